"""Tables as text: the same content in each format; LaTeX that compiles."""

import csv
import io
import json
import re
import shutil
import subprocess

import pytest
from small_ensembles import small_predictions

from veridical import paper
from veridical._tables import escape_latex
from veridical.errors import UnknownNameError
from veridical.metrics import METRICS, SUMMARY_METRICS
from veridical.paper.tables import PairedDifference, Row, Table, Value, with_best_marked, with_published

HOSTILE = r"50%_of {all} & $x^2$ #1 ~\textbf<script>|*pipe*|`é"

METHODS = ["temperature", *(f"log-pool-{i}" for i in range(12))]


def made_table(name=None):
    """Two groups of made-up numbers; the first is an ensemble of the paper."""
    known = paper.EnsembleName("ImageNet", "ResNet50", "snapshot")
    other = paper.EnsembleName(name or "mine")
    rows = [
        Row(ensemble, 10, method, {"ece": Value(ece, 0.00125), "nll": Value(nll), "accuracy": Value(accuracy)})
        for ensemble in (known, other)
        for method, ece, nll, accuracy in (("DE", 0.02321, 0.8, 0.7825), ("TS", 0.01504, float("inf"), 0.7825))
    ]
    marked = with_best_marked(with_published(rows, ("2",), lambda method: method))
    return Table("table2", "Made up", ("ece", "nll", "accuracy"), tuple(marked), {"random_state": 0})


def extended_table(name=None):
    table = made_table(name)
    rows = tuple(
        Row(
            row.name,
            row.sources,
            row.method,
            {m: Value(v.mean, v.std, v.best, v.published, 0.005, 0.001, 0.009) for m, v in row.values.items()},
        )
        for row in table.rows
    )
    pair = PairedDifference("ece", "SE", "TS", 0.008, 0.003, 0.013, name=rows[0].name, sources=10)
    return Table(table.name, table.title, table.metrics, rows, table.settings, ("A note.",), (pair,))


def test_rows_have_best_and_published_values():
    table = made_table()
    first = table.rows[0]
    assert first.shown_method == "SE"
    assert first.values["ece"].published.mean == pytest.approx(0.0232)
    assert first.values["ece"].difference == pytest.approx(0.00001)
    assert [row.values["ece"].best for row in table.rows] == [False, True, False, True]
    assert [row.values["nll"].best for row in table.rows] == [True, False, True, False]
    assert all(row.values["accuracy"].best for row in table.rows)  # a tie is a tie


def test_best_values_are_compared_as_printed():
    rows = [
        Row(paper.EnsembleName("x"), 1, m, {"ece": Value(v)})
        for m, v in (("a", 0.01001), ("b", 0.01004), ("c", 0.01006))
    ]
    assert [row.values["ece"].best for row in with_best_marked(rows)] == [True, True, False]


def test_terminal_shows_figures_and_published_numbers():
    lines = paper.format_table(made_table()).splitlines()
    assert any(line.startswith("SE ") and "2.32 ± 0.12" in line for line in lines)
    assert any(line.strip().startswith("paper") and "2.32 ± 0.09" in line for line in lines)
    assert any(line.strip().startswith("difference") and "-0.06" in line for line in lines)
    assert any("1.50 ± 0.12*" in line for line in lines)
    assert any("mine, 10 sources" in line for line in lines)


@pytest.mark.compiled
def test_terminal_tables_have_80_columns():
    name = paper.EnsembleName("CIFAR100", "WideResNet28x10", "deep")
    ensembles = [paper.Ensemble(name, small_predictions(10, 200))]
    for table in (paper.table1(ensembles, sources=[10], updates=6), paper.table2(ensembles, n_splits=2)):
        assert max(map(len, paper.format_table(table).splitlines())) <= 80


def wide_value(metric, i):
    """A value that is printed with the same digits in percent and otherwise."""
    unit = 1 / METRICS[metric].scaled(1.0)
    return Value(unit * (10 * i + 0.25), unit * 1.75, low=unit * 10.125, high=unit * 99.5)


def wide_table():
    """All of the paper's columns with intervals, long names, and a method that is better than many."""
    name = paper.EnsembleName("a-file-with-a-long-name " * 5)
    rows = tuple(
        Row(name, 20, method, {m: wide_value(m, i) for m in SUMMARY_METRICS}) for i, method in enumerate(METHODS)
    )
    pairs = tuple(
        PairedDifference("ece", METHODS[0], other, -0.02, -0.03, -0.01, name=name, sources=20) for other in METHODS[1:]
    )
    return Table(
        "table2", "A title that goes on " * 6, SUMMARY_METRICS, rows, {}, ("A note that goes on. " * 8,), pairs
    )


def test_terminal_prints_a_wide_table_in_parts():
    text = paper.format_table(wide_table())
    assert max(map(len, text.splitlines())) <= 80
    words = text.split()
    for head in ("ECE-KDE", "ECE", "NLL", "MSE", "KS", "ACC"):
        assert f" {head} " in text
    assert words.count("1.75") == 4 * len(METHODS)  # two columns have three decimals
    assert words.count("1.750") == 2 * len(METHODS)
    assert words.count("10.12") == 4 * len(METHODS)
    assert words.count("goes") == 6 + 8
    assert text.count("best of its group") == 1
    for method in METHODS[1:]:
        assert len(re.findall(rf"^{method} ", text, re.MULTILINE)) == 2
        assert re.search(rf"\b{method}(,|$)", text, re.MULTILINE)


def test_terminal_leaves_out_lines_without_figures():
    name = paper.EnsembleName("x")
    values = {m: Value(1.0, 10.0, floor=0.5 if m == SUMMARY_METRICS[0] else None) for m in SUMMARY_METRICS}
    text = paper.format_table(
        Table("table2", "x", SUMMARY_METRICS, (Row(name, 1, "a-long-method-name" * 2, values),), {})
    )
    assert text.count("a-long-method-name" * 2) > 1
    assert text.count("floor") == 1


def test_markdown_rows_have_equal_lengths_and_names_are_text():
    text = paper.format_table(extended_table(HOSTILE), "markdown")
    tables = re.findall(r"(?:^\|.*\|\n)+", text, flags=re.MULTILINE)
    assert len(tables) == 2
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1
    assert "<script" not in text.replace(r"\<script", "")
    assert "**1.50 ± 0.12**" in text


def test_csv_keeps_every_digit():
    rows = list(csv.DictReader(io.StringIO(paper.format_table(made_table(), "csv"))))
    assert [row["method"] for row in rows] == ["SE", "TS", "DE", "TS"]
    assert float(rows[0]["ece"]) == 0.02321
    assert float(rows[0]["ece_paper"]) == pytest.approx(0.0232)
    assert float(rows[0]["ece_difference"]) == pytest.approx(0.00001)
    assert rows[2]["ece_paper"] == ""
    assert rows[1]["nll"] == "inf"
    assert "ece_floor" not in rows[0]
    assert "ece_floor" in next(csv.DictReader(io.StringIO(paper.format_table(extended_table(), "csv"))))


def test_json_is_standard_and_complete():
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    stored = json.loads(paper.format_table(extended_table(), "json"), parse_constant=refuse)
    assert stored["rows"][0]["values"]["ece"]["mean"] == 0.02321
    assert stored["rows"][0]["values"]["ece"]["published"] == pytest.approx(
        {"mean": 0.0232, "std": 0.0009, "table": "2"}
    )
    assert stored["rows"][1]["values"]["nll"]["mean"] == "infinity"
    assert stored["comparisons"][0]["better"] == "TS"
    assert stored["unit"] == "fraction"


def test_format_table_rejects_unknown_formats():
    with pytest.raises(UnknownNameError, match="terminal, markdown, csv, latex, json"):
        paper.format_table(made_table(), "word")


def test_latex_is_well_formed():
    """Braces balance, environments nest, every row has as many cells as there are columns, rules are booktabs'."""
    text = paper.format_table(extended_table(HOSTILE), "latex")
    text.encode("ascii")
    bare = re.sub(r"\\[\\{}&%$#_]", "", text)
    depth = 0
    for mark in bare:
        depth += (mark == "{") - (mark == "}")
        assert depth >= 0
    assert depth == 0
    assert bare.count("$") % 2 == 0
    assert re.findall(r"\\(begin|end)\{(\w+)\}", text) == [
        ("begin", "table"),
        ("begin", "tabular"),
        ("end", "tabular"),
        ("end", "table"),
    ]
    columns = len(re.search(r"begin\{tabular\}\{@\{\}([lr]+)@\{\}\}", text).group(1))
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 1 + 4 * 3 + 2 * 2  # heading; figures, floor and interval; the paper's beside two of them
    for row in rows:
        assert len(re.findall(r"(?<!\\)&", row)) == columns - 1
    assert body.count(r"\midrule") == 2
    assert r"\hline" not in text
    assert r"\textbf{1.50{\scriptsize$\pm$0.12}}" in text


def test_latex_escapes_special_characters():
    assert escape_latex("a_b%") == r"a\_b\%"
    assert escape_latex("\\") == r"\textbackslash{}"
    assert escape_latex("Ä\n") == "??"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no TeX on this machine")
@pytest.mark.parametrize("make", [made_table, lambda: extended_table(HOSTILE)], ids=["plain", "hostile"])
def test_latex_compiles(make, tmp_path):
    if subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True, check=False).returncode:
        pytest.skip("this TeX has no booktabs")
    document = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n%s\\end{document}\n"
    (tmp_path / "table.tex").write_text(document % paper.format_table(make(), "latex"))
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "table.pdf").stat().st_size > 1000
