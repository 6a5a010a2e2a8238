"""The report's tables: numbers as text, with what to sort them by."""

from __future__ import annotations

import math

from veridical._tables import Cell, Row, Table
from veridical.evaluation import Evaluation
from veridical.evaluation.advice import Advice, advice_row
from veridical.evaluation.curves import ReliabilityPanel
from veridical.evaluation.methods import resolve_method
from veridical.evaluation.source_value import Effect, SourceValues
from veridical.metrics import METRICS, SUMMARY_METRICS, SummaryRow
from veridical.report.data import DisputedSample, ReportData


def shown_title(method: str) -> str:
    """A method's title."""
    return resolve_method(method).title


def metric_text(metric: str, value: float, *, unit: bool = True) -> str:
    """A metric's value as the page shows it."""
    return METRICS[metric].text(value).replace(" %", "%" if unit else "")


def _number(value: float, text: str) -> Cell:
    return Cell(text, value) if math.isfinite(value) else Cell("–", "")


def _percent(value: float | None, digits: int = 1) -> Cell:
    return Cell("–", "") if value is None else _number(value, f"{100 * value:.{digits}f}%")


def metrics_table(evaluation: Evaluation) -> Table:
    """Every method's figures with floors and intervals; the best of each column is marked."""
    best = {metric: _best(evaluation, metric) for metric in SUMMARY_METRICS}
    rows = []
    for scores in evaluation.methods:
        cells = [_metric_cell(scores.summary[metric], best[metric]) for metric in SUMMARY_METRICS]
        gap = Cell(f"{100 * scores.gap:+.2f}".replace("-", "−"), scores.gap)
        changed = Cell(f"{scores.labels_changed:,}", scores.labels_changed)
        rows.append([Cell(scores.title), *cells, gap, changed])
    heading = ("Method", *(METRICS[metric].title for metric in SUMMARY_METRICS), "Gap (points)", "Labels changed")
    where = "all samples" if evaluation.protocol == "all samples" else "the half that calibrators have not seen"
    n_samples = evaluation["mean"].summary.n_samples
    return Table.of(heading, rows, f"Scores on {where} ({n_samples:,} samples)", sortable=True)


def _best(evaluation: Evaluation, metric: str) -> float:
    values = [scores.summary[metric].value for scores in evaluation.methods]
    return min(values) if METRICS[metric].lower_is_better else max(values)


def _metric_cell(row: SummaryRow, best: float) -> Cell:
    notes = []
    if row.low is not None and row.high is not None:
        notes.append(
            f"{metric_text(row.metric, row.low, unit=False)} to {metric_text(row.metric, row.high, unit=False)}"
        )
    if row.floor is not None and row.floor_high is not None:
        notes.append(f"floor {metric_text(row.metric, row.floor, unit=False)}")
    at_floor = row.floor_high is not None and row.value <= row.floor_high
    text = metric_text(row.metric, row.value)
    is_best = text == metric_text(row.metric, best)  # what reads the same is equally good
    mark = " ".join(name for name, holds in (("best", is_best), ("at-floor", at_floor)) if holds)
    if not math.isfinite(row.value):
        return Cell("infinite", 1e300)
    return Cell(text, row.value, notes=tuple(notes), mark=mark)


def advice_table(advice: Advice) -> Table:
    """How far each method is behind the best, for both questions."""
    titles = {"confidence": "Confidence (ECE)", "distribution": "Distribution (NLL)"}
    rows = []
    for choice in (advice.confidence, advice.distribution):
        for standing in choice.standings:
            _, method, value, behind, equal = advice_row(choice, standing)
            note = ("simplest of the best",) if standing.method == choice.recommended else ()
            name = Cell(method, notes=note, mark="best" if note else "")
            cells = (_number(standing.value, value.replace(" %", "%")), Cell(behind or "–", standing.behind))
            rows.append((titles[choice.question], name, *cells, equal))
    heading = ("Question", "Method", "Value", "Behind the best (95%)", "As good as the best")
    return Table.of(heading, rows, f"Paired comparison on {advice.n_samples:,} held-out samples")


def sources_table(data: ReportData) -> Table:
    """One row per source."""
    accuracy = ("Accuracy",) if data.evaluation is not None else ()
    heading = ("Source", *accuracy, "Mean confidence", "Mean reliability", "Agrees with the mean", "Missing")
    rows = []
    for s, source in enumerate(data.inspection.sources):
        least = s == data.inspection.outlier and data.inspection.least_trusted != ""
        cells = [
            Cell(source.name, notes=("trusted least",) if least else ()),
            *(_percent(source.accuracy, 2) for _ in accuracy),
            _percent(source.mean_confidence, 2),
            _percent(source.mean_reliability, 2),
            _percent(source.agreement, 2),
            Cell(f"{source.missing:,}", source.missing),
        ]
        rows.append(cells)
    return Table.of(heading, rows, f"Sources, on all {data.inspection.data.n_samples:,} samples", sortable=True)


def _effect(effect: Effect, scale: float, digits: int) -> Cell:
    low, high = (f"{scale * end:+.{digits}f}" for end in (effect.low, effect.high))
    return Cell(f"{scale * effect.value:+.{digits}f}", effect.value, notes=(f"{low} to {high}",))


def source_value_table(value: SourceValues) -> Table:
    """The value of each source to the mean."""
    rows = []
    for s, source in enumerate(value.sources):
        without, points = source.nll_without, source.accuracy_without
        note = ("in the smallest subset",) if s in value.subset and len(value.subset) < len(value.sources) else ()
        cells = (
            Cell(source.name, notes=note),
            _percent(source.accuracy, 2),
            _number(source.nll, source.nll_text),
            _effect(without, 1, 4),
            _effect(points, 100, 2),
            _percent(source.weight),
            _percent(source.agreement),
        )
        rows.append(cells)
    heading = (
        "Source",
        "Accuracy alone",
        "NLL alone",
        "NLL without it",
        "Accuracy without it",
        "Learned weight",
        "Agrees with others",
    )
    caption = f"What sources are worth to the mean, on {value.n_samples:,} held-out samples"
    return Table.of(heading, rows, caption, sortable=True)


def reliability_table(panel: ReliabilityPanel) -> Table:
    """The numbers of one diagram."""
    rows = []
    for b, count in enumerate(panel.counts):
        where = f"{panel.edges[b]:.3f} to {panel.edges[b + 1]:.3f}"
        band = f"{100 * panel.low[b]:.1f} to {100 * panel.high[b]:.1f}%" if count else "–"
        count_cell = Cell(f"{round(count):,}", count)
        rows.append((where, count_cell, _percent(panel.confidence[b]), _percent(panel.accuracy[b]), band))
    heading = ("Confidence", "Samples", "Mean confidence", "Accuracy", "By chance (95%)")
    return Table.of(heading, rows, f"Bins of {shown_title(panel.method)}")


def sweep_table(data: ReportData) -> Table:
    """Metrics by number of sources and way to combine them."""
    rows = []
    for point in data.sweep:
        cells = [_number(point.values[metric], metric_text(metric, point.values[metric])) for metric in SUMMARY_METRICS]
        rows.append([Cell(str(point.n_sources), point.n_sources), Cell(shown_title(point.method)), *cells])
    heading = ("Sources", "Method", *(METRICS[metric].title for metric in SUMMARY_METRICS))
    return Table.of(heading, rows, "Metrics against the number of sources, on all samples", sortable=True)


def risk_table(data: ReportData) -> Table:
    """Error rates at every tenth of coverage."""
    coverage = data.risk[0].coverage
    rows = [
        [Cell(f"{100 * coverage[k]:.0f}%"), *(_percent(curve.risk[k], 2) for curve in data.risk)]
        for k in range(9, len(coverage), 10)
    ]
    area = [Cell("Area (AURC)"), *(_percent(curve.aurc, 2) for curve in data.risk)]
    heading = ("Kept", *(curve.title for curve in data.risk))
    return Table.of(heading, [*rows, area], "Wrong predictions among the samples kept")


def disagreement_table(data: ReportData) -> Table:
    """Median HV and counts by confidence of the mean."""
    grid = data.disagreement
    right = [sum(line[c] for line in grid.right) for c in range(len(grid.median))]
    wrong = [sum(line[c] for line in grid.wrong) for c in range(len(grid.median))]
    rows = []
    for c, median in enumerate(grid.median):
        where = f"{grid.confidence_edges[c]:.3f} to {grid.confidence_edges[c + 1]:.3f}"
        counts = (Cell(f"{right[c]:,}", right[c]), Cell(f"{wrong[c]:,}", wrong[c]))
        shown = counts if data.evaluation is not None else counts[:1]
        rows.append((where, _number(median, f"{median:.4f}"), *shown))
    heading = ("Confidence", "Median HV", *(("Right", "Wrong") if data.evaluation is not None else ("Samples",)))
    return Table.of(heading, rows, "HV by confidence of the mean")


def disputed_table(data: ReportData) -> Table:
    """The samples on which the sources disagree most, with the classes and the outcome that the filters show."""
    labelled = data.evaluation is not None
    columns = ("Sample", "HV", "Prediction", "Confidence", *(("Label", "Outcome") if labelled else ()), "Votes")
    rows = tuple(_disputed_row(sample, data.inspection.data.class_names, labelled) for sample in data.disputed)
    return Table(columns, rows, "Disputed samples; votes are how many sources name which class", sortable=True)


def _disputed_row(sample: DisputedSample, names: tuple[str, ...], labelled: bool) -> Row:
    label = sample.label
    outcome = "" if label is None else "right" if label == sample.prediction else "wrong"
    answer = (Cell("" if label is None else names[label]), Cell(outcome, mark=outcome)) if labelled else ()
    place = Cell(f"{sample.sample:,}", sample.sample) if sample.sample_id is None else Cell(str(sample.sample_id))
    cells = (
        place,
        Cell(f"{sample.hv:.3f}", sample.hv),
        Cell(names[sample.prediction]),
        _percent(sample.confidence),
        *answer,
        Cell(", ".join(f"{names[vote]} {count}" for vote, count in sample.votes)),
    )
    classes = sorted({sample.prediction, sample.prediction if label is None else label})
    return Row(cells, data={"classes": " ".join(map(str, classes)), "outcome": outcome})
