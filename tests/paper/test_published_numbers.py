"""The paper's numbers: complete, and marked as the paper marks them."""

from importlib.resources import files
from pathlib import Path

import pytest

from veridical import metrics
from veridical.paper import published_groups
from veridical.paper.published import published_sources, published_value

METRICS = ("ece_kde", "ece", "nll", "brier", "ks_error", "accuracy")

#: Where the paper's marks and its numbers disagree: the place -> what it marks.
SLIPS = {
    # Nothing is marked, and DE is best.
    ("A1", "CIFAR100", "PreResNet110", "deep", 10, "ece"): (),
    # Nothing is bold: TS and ETS tie for best, ahead of the paper's own method.
    ("2", "CIFAR10", "ResNet18", "snapshot", 200, "ece"): (),
    # The second best is marked too.
    ("A2", "CIFAR10", "PreResNet164", "deep", 100, "ece_kde"): ("TDE", "aTDE"),
    ("A3", "CIFAR10", "WideResNet28x10", "deep", 100, "ece_kde"): ("TDE", "aTDE"),
    ("4", "ImageNet", "ResNet50", "snapshot", 30, "ks_error"): ("Spline", "ptde-kde"),
}


def key_of(group, metric):
    return group.table, group.dataset, group.architecture, group.ensemble, group.sources, metric


def best_of(metric, values):
    best = metrics.METRICS[metric].best(values.values())
    return {method for method, value in values.items() if value == best}


def figures(group, metric):
    return {method: value.mean for method, value in group.values[metric].items()}


def test_published_groups_cover_every_table():
    groups = published_groups()
    count = {table: sum(group.table == table for group in groups) for table in {group.table for group in groups}}
    assert count == {"1": 16, "2": 10, "3": 10, "4": 4, "A1": 20, "A2": 20, "A3": 20, "A4": 20}
    cells = sum(len(methods) for group in groups for methods in group.values.values())
    # 16 groups of 3 x 3 (Table 1), 10 of 2 x 5, 10 of 2 x 4, 4 of 9, and 80 of 6 x 3 in the appendix.
    assert cells == 16 * 9 + 10 * 10 + 10 * 8 + 4 * 9 + 80 * 18
    assert {metric for group in groups for metric in group.values} == set(METRICS)


def test_best_of_each_group_is_what_the_paper_marks():
    slips = {}
    for group in published_groups():
        for metric, marked in group.best.items():
            # Ties at the printed precision may be broken by digits that are not printed.
            if not marked or not set(marked) <= best_of(metric, figures(group, metric)):
                slips[key_of(group, metric)] = marked
    assert slips == SLIPS


def test_table_2_underlines_the_best_of_the_others():
    groups = [group for group in published_groups() if group.table == "2"]
    for group in groups:
        for metric, marked in group.best_other.items():
            others = {method: value for method, value in figures(group, metric).items() if method != "pTDE"}
            assert marked
            assert set(marked) <= best_of(metric, others)
    assert len(groups) == 10


def test_table_1_and_the_appendix_agree_but_for_rounding():
    compared = 0
    for group in published_groups():
        if group.table == "1":
            for metric, methods in group.values.items():
                for method, value in methods.items():
                    again = published_value(
                        group.dataset,
                        group.architecture,
                        group.ensemble,
                        group.sources,
                        method,
                        metric,
                        ("A1", "A2", "A3", "A4"),
                    )
                    assert abs(again.mean - value.mean) < 0.000101
                    compared += 1
    assert compared == 144


def test_published_deviations_are_of_tables_2_to_4():
    for group in published_groups():
        for methods in group.values.values():
            for value in methods.values():
                assert (value.std is not None) == (group.table in "234")
                assert value.table == group.table


@pytest.mark.parametrize(
    ("table", "dataset", "architecture", "ensemble", "sources", "method", "metric", "mean", "std"),
    [
        ("1", "CIFAR100", "PreResNet110", "deep", 50, "DE", "ece_kde", 2.88, None),
        ("1", "CIFAR10", "WideResNet28x10", "deep", 100, "aTDE", "accuracy", 97.20, None),
        ("1", "ImageNet", "ResNet50", "snapshot", 25, "TDE", "ece", 2.08, None),
        ("A1", "CIFAR100", "PreResNet110", "deep", 10, "aTDE", "ks_error", 2.63, None),
        ("A1", "CIFAR10", "PreResNet110", "deep", 70, "TDE", "nll", 0.107, None),
        ("A2", "CIFAR10", "PreResNet164", "deep", 20, "DE", "brier", 0.051, None),
        ("A3", "CIFAR100", "WideResNet28x10", "deep", 90, "TDE", "ece_kde", 5.59, None),
        ("A4", "ImageNet", "ResNet50", "deep", 45, "aTDE", "ks_error", 2.04, None),
        ("A4", "ImageNet", "ResNet50", "snapshot", 5, "TDE", "accuracy", 77.61, None),
        ("2", "CIFAR100", "ResNet18", "snapshot", 200, "pTDE", "ece", 1.64, 0.37),
        ("2", "CIFAR10", "ResNeXt29", "snapshot", 200, "TS", "ece", 0.33, 0.10),
        ("2", "ImageNet", "ResNet50", "snapshot", 30, "IRM", "ece_kde", 1.43, 0.11),
        ("2", "ImageNet", "ResNet50", "deep", 10, "pTDE", "ece_kde", 0.93, 0.08),
        ("3", "CIFAR10", "DenseNet121", "snapshot", 200, "ptde-hist", "ece", 0.44, 0.04),
        ("3", "ImageNet", "ResNet50", "deep", 30, "opt-kde", "ece_kde", 1.02, 0.09),
        ("4", "ImageNet", "ResNet50", "deep", 30, "ptde-kde", "ks_error", 0.27, 0.12),
        ("4", "ImageNet", "ResNet50", "snapshot", 10, "Spline", "ks_error", 0.27, 0.08),
    ],
)
def test_published_value_is_as_printed(table, dataset, architecture, ensemble, sources, method, metric, mean, std):
    value = published_value(dataset, architecture, ensemble, sources, method, metric, (table,))
    printed = metrics.METRICS[metric].scaled
    assert round(printed(value.mean), 6) == mean
    assert (None if value.std is None else round(printed(value.std), 6)) == std


def test_published_value_is_none_where_the_paper_has_none():
    assert published_value("CIFAR10", "ResNet8", "deep", 20, "DE", "ece", ("1",)) is None
    assert published_value("CIFAR100", "PreResNet110", "deep", 55, "DE", "ece", ("1", "A1")) is None
    assert published_value("CIFAR100", "PreResNet110", "deep", 50, "Spline", "ece", ("1", "A1")) is None
    assert published_sources("ImageNet", "ResNet50", "deep", ("2", "3", "4")) == [10, 30]
    assert published_sources("nothing", "", "", ("2",)) == []


def printed_numbers():
    """Table -> the numbers that the paper prints in it."""
    tables = {}
    for line in Path(__file__).with_name("printed_numbers.txt").read_text().splitlines():
        if line.startswith("table "):
            numbers = tables.setdefault(line.removeprefix("table "), [])
        elif not line.startswith("#"):
            numbers += map(float, line.split())
    return tables


@pytest.mark.parametrize("table", ["1", "2", "3", "4", "A1", "A2", "A3", "A4"])
def test_published_numbers_are_those_of_the_paper(table):
    """The printed numbers of a table, as a multiset, are those in the data file."""
    stored = []
    for group in published_groups():
        if group.table == table:
            for metric, methods in group.values.items():
                for value in methods.values():
                    numbers = [value.mean] + [value.std] * (value.std is not None)
                    stored += [round(metrics.METRICS[metric].scaled(number), 6) for number in numbers]
    assert sorted(printed_numbers()[table]) == sorted(stored)


def test_published_file_names_its_source_and_units():
    text = files("veridical.paper").joinpath("published.json").read_text(encoding="utf-8")
    assert "UAI 2021" in text
    assert "in percent" in text
