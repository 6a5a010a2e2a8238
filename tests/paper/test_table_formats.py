"""Tables as text: each format says the same; LaTeX that compiles."""

import csv
import io
import json
import re
import shutil
import subprocess

import pytest
from small_ensembles import small_predictions

from veridical import paper
from veridical.errors import UnknownNameError
from veridical.paper.latex import escaped
from veridical.paper.scores import COLUMNS
from veridical.paper.tables import PairedDifference, Row, Table, Value, with_best_marked, with_published

HOSTILE = r"50%_of {all} & $x^2$ #1 ~\textbf<script>|*pipe*|`é"

METHODS = ["temperature", *(f"log-pool-{i}" for i in range(12))]


def made_table(name=None):
    """Two groups of made-up numbers; the first is an ensemble of the paper."""
    known = paper.EnsembleName("ImageNet", "ResNet50", "snapshot")
    other = paper.EnsembleName(name or "mine")
    rows = [
        Row(ensemble, 10, method, {"ece": Value(ece, 0.125), "nll": Value(nll), "accuracy": Value(accuracy)})
        for ensemble in (known, other)
        for method, ece, nll, accuracy in (("DE", 2.321, 0.8, 78.25), ("TS", 1.504, float("inf"), 78.25))
    ]
    marked = with_best_marked(with_published(rows, ("2",), lambda method: method))
    return Table("table2", "Made up", ("ece", "nll", "accuracy"), tuple(marked), {"seed": 0})


def extended_table(name=None):
    table = made_table(name)
    rows = tuple(
        Row(
            row.name,
            row.sources,
            row.method,
            {m: Value(v.mean, v.std, v.best, v.published, 0.5, 0.1, 0.9) for m, v in row.values.items()},
        )
        for row in table.rows
    )
    pair = PairedDifference(rows[0].name, 10, "ece", "SE", "TS", 0.8, 0.3, 1.3)
    return Table(table.name, table.title, table.metrics, rows, table.settings, ("A note.",), (pair,))


def test_best_and_published():
    table = made_table()
    first = table.rows[0]
    assert first.shown_method == "SE"
    assert first.values["ece"].published.mean == 2.32
    assert first.values["ece"].difference == pytest.approx(0.001)
    assert [row.values["ece"].best for row in table.rows] == [False, True, False, True]
    assert [row.values["nll"].best for row in table.rows] == [True, False, True, False]
    assert all(row.values["accuracy"].best for row in table.rows)  # a tie is a tie


def test_ties_are_judged_as_printed():
    rows = [
        Row(paper.EnsembleName("x"), 1, m, {"ece": Value(v)}) for m, v in (("a", 1.001), ("b", 1.004), ("c", 1.006))
    ]
    assert [row.values["ece"].best for row in with_best_marked(rows)] == [True, True, False]


def test_terminal():
    lines = paper.format_table(made_table()).splitlines()
    assert any(line.startswith("SE ") and "2.32 ± 0.12" in line for line in lines)
    assert any(line.strip().startswith("paper") and "2.32 ± 0.09" in line for line in lines)
    assert any(line.strip().startswith("difference") and "-0.06" in line for line in lines)
    assert any("1.50 ± 0.12*" in line for line in lines)
    assert any("mine, 10 sources" in line for line in lines)


@pytest.mark.compiled
def test_the_papers_tables_fit_a_terminal():
    name = paper.EnsembleName("CIFAR100", "WideResNet28x10", "deep")
    ensembles = [paper.Ensemble(name, small_predictions(10, 200))]
    for table in (paper.table1(ensembles, sources=[10], updates=6), paper.table2(ensembles, n_splits=2)):
        assert max(map(len, paper.format_table(table).splitlines())) <= 80


def wide_table():
    """All of the paper's columns with intervals, long names, and a method that is better than many."""
    name = paper.EnsembleName("a-file-with-a-long-name " * 5)
    rows = tuple(
        Row(name, 20, method, {m: Value(10 * i + 0.25, 1.75, low=10.125, high=99.5) for m in COLUMNS})
        for i, method in enumerate(METHODS)
    )
    pairs = tuple(PairedDifference(name, 20, "ece", METHODS[0], other, -2.0, -3.0, -1.0) for other in METHODS[1:])
    return Table("table2", "A title that goes on " * 6, COLUMNS, rows, {}, ("A note that goes on. " * 8,), pairs)


def test_a_wide_table_is_several_in_the_terminal_and_loses_nothing():
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


def test_lines_without_figures_are_not_repeated_below_other_columns():
    name = paper.EnsembleName("x")
    values = {m: Value(1.0, 10.0, floor=0.5 if m == COLUMNS[0] else None) for m in COLUMNS}
    text = paper.format_table(Table("table2", "x", COLUMNS, (Row(name, 1, "a-long-method-name" * 2, values),), {}))
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
    assert float(rows[0]["ece"]) == 2.321
    assert float(rows[0]["ece_paper"]) == 2.32
    assert float(rows[0]["ece_difference"]) == pytest.approx(0.001)
    assert rows[2]["ece_paper"] == ""
    assert rows[1]["nll"] == "inf"
    assert "ece_floor" not in rows[0]
    assert "ece_floor" in next(csv.DictReader(io.StringIO(paper.format_table(extended_table(), "csv"))))


def test_json_is_standard_and_whole():
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    stored = json.loads(paper.format_table(extended_table(), "json"), parse_constant=refuse)
    assert stored["rows"][0]["values"]["ece"]["mean"] == 2.321
    assert stored["rows"][0]["values"]["ece"]["published"] == {"mean": 2.32, "std": 0.09, "table": "2"}
    assert stored["rows"][1]["values"]["nll"]["mean"] == "infinity"
    assert stored["comparisons"][0]["better"] == "TS"
    assert Table.from_dict(extended_table().to_dict()) == extended_table()


def test_unknown_format():
    with pytest.raises(UnknownNameError, match="terminal, markdown, csv, latex, json"):
        paper.format_table(made_table(), "word")


def test_latex_strictly():
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


def test_latex_escapes_everything_special():
    assert escaped("a_b%") == r"a\_b\%"
    assert escaped("\\") == r"\textbackslash{}"
    assert escaped("Ä\n") == "??"


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
