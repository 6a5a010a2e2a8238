"""The page: complete, self-contained, safe, and accessible."""

import base64
import hashlib
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from ensembles import tied_ensembles
from hypothesis import given, settings
from hypothesis import strategies as st
from page_checks import HOSTILE_NAMES, Page, embedded_json, labelled_ensemble

import veridical as vd
from veridical import errors
from veridical._tables import html_table
from veridical.plots.style import COLOURS
from veridical.report import Report
from veridical.report.html_page import render_html
from veridical.report.prepare import prepare_report
from veridical.report.tables import metrics_table

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def report():
    ensemble = labelled_ensemble(5, 300, sharpness=0.6, source_names=HOSTILE_NAMES, class_names=HOSTILE_NAMES)
    return vd.build_report(ensemble, intervals=False, title=HOSTILE_NAMES[0])


@pytest.fixture(scope="module")
def page(report):
    return Page(report.html)


def test_hostile_names_are_text(report, page):
    assert page.tags.count("script") == 2
    assert not {"img", "b", "iframe", "object", "embed", "link"} & set(page.tags)
    assert not [key for _, key, _ in page.attributes if key.startswith("on")]
    text = "".join(page.text)
    for name in HOSTILE_NAMES[:4]:
        assert name in text
    assert "\x00" not in report.html
    assert "\ud800" not in report.html


def test_embedded_numbers_are_the_data(report):
    stored = embedded_json(report.html)
    assert not set("<>&\u2028\u2029") & set(stored)
    assert json.loads(stored) == json.loads(json.dumps(report.data.to_dict()))


def test_page_fetches_nothing(page, report):
    for key in ("src", "srcset", "poster", "action", "background"):
        assert page.values(key) == []
    assert all(value.startswith("#") for value in page.values("href"))
    assert "@import" not in report.html
    addresses = set(re.findall(r"url\(([^)]*)\)", report.html))
    assert all(address.startswith("#") for address in addresses)


def test_policy_allows_the_one_script_only(report):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', report.html)[1].replace("&#39;", "'")
    assert "default-src 'none'" in policy
    script = re.search(r"<script>(.*?)</script>", report.html, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy


def test_ids_are_unique_and_references_lead_somewhere(page):
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    named = {value.removeprefix("#") for value in page.values("href")}
    named |= {word for key in ("aria-labelledby", "for") for value in page.values(key) for word in value.split()}
    assert named <= set(ids)


def test_figures_have_text_alternatives_and_tables_captions(page):
    described = [value for tag, key, value in page.attributes if tag == "svg" and key == "aria-label" and value]
    assert len(described) == page.tags.count("svg") > 10
    assert page.tags.count("caption") == page.tags.count("table")
    headings = [(tag, key) for tag, key, _ in page.attributes if tag == "th" and key == "scope"]
    assert len(headings) == page.tags.count("th")
    assert page.tags.count("h1") == 1
    assert {"main", "nav", "header", "footer"} <= set(page.tags)


def test_colours_follow_the_theme(report):
    figures = "".join(re.findall(r"<svg.*?</svg>", report.html, re.DOTALL))
    assert "var(--" in figures
    for light, _ in COLOURS.values():
        assert light not in figures


def test_printed_page_keeps_its_colours(report):
    printed = report.html.partition("@media print {")[2]
    assert "print-color-adjust: exact" in printed.partition("</style>")[0]


@pytest.mark.parametrize("name", ["report.pdf", "report.json", "report"])
def test_report_is_refused_under_other_names(tmp_path, name):
    with pytest.raises(errors.FileFormatError, match=r"does not end in \.html; a report is written as an HTML page"):
        vd.build_report(labelled_ensemble(2, 20).values, out=tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_colours_have_one_role_each():
    light = [pair[0] for pair in COLOURS.values()]
    assert len(light) == len(set(light))


def test_page_without_labels_has_fewer_sections():
    report = vd.build_report(labelled_ensemble(3, 60).values)
    ids = Page(report.html).values("id")
    assert {"verdict", "sources", "disagreement", "disputed", "run"} <= set(ids)
    assert not {"calibration", "metrics", "number", "risk-coverage"} & set(ids)


@pytest.mark.parametrize("n_sources", [1, 2, 49])
def test_page_of_few_and_many_sources(n_sources):
    ensemble = labelled_ensemble(n_sources, 60)
    report = vd.build_report(ensemble, method="mean", methods=[], intervals=False)
    ids = Page(report.html).values("id")
    assert ("disagreement" in ids) == (n_sources > 1)
    assert ("are left out" in report.html) == (n_sources == 49)


def test_page_of_unanimous_sources():
    one = labelled_ensemble(1, 100)
    report = vd.build_report(np.repeat(one.values, 3, axis=0), one.labels, method="mean", methods=[], intervals=False)
    assert "all sources agree on every sample" in report.html


@pytest.mark.parametrize("labels", [None, [0, 1, 2, 1, 0, 2]])
def test_page_of_sources_that_are_absent(labels):
    """What is not known is not drawn, and no sentence is about a source without predictions."""
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], size=(4, 6))
    probs[3] = np.nan
    page = vd.build_report(probs, labels, method="mean", methods=["mean"], intervals=False)
    assert "source 3 stands apart" not in page.data.verdict
    assert "no samples in common" in page.html
    assert not re.search(r"\bnan\b", "".join(Page(page.html).text))
    probs[0, 3:], probs[1, :3], probs[2] = np.nan, np.nan, np.nan
    page = vd.build_report(probs, labels, method="mean", methods=["mean"], intervals=False)
    assert "How often two sources agree" not in page.html


def test_infinite_loss_is_shown():
    probs = np.tile([[[0.0, 1.0]], [[0.0, 1.0]]], (1, 40, 1))
    report = vd.build_report(probs, np.arange(40) % 2, method="mean", methods=[], intervals=False)
    assert "infinite" in report.html
    assert report.data.to_dict()["evaluation"]["methods"][0]["summary"]["nll"]["value"] == "infinity"


def test_save_writes_whole_files_or_none(report, tmp_path):
    target = tmp_path / "report.html"
    assert report.save(target) == target
    assert target.read_text(encoding="utf-8") == report.html
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(errors.StorageError, match="cannot be written"):
        report.save(tmp_path / "absent" / "report.html")


def test_out_writes_the_page(tmp_path):
    target = tmp_path / "report.html"
    report = vd.build_report(labelled_ensemble(2, 20).values, out=target)
    assert target.read_text() == report.html


@pytest.mark.parametrize(("format", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_figures_for_papers(tmp_path, format, start):
    data = prepare_report(labelled_ensemble(3, 60), method="mean", methods=[], intervals=False)
    report = Report(data, "")
    paths = report.figures(tmp_path / "figures", format)
    names = {path.stem for path in paths}
    assert {"reliability-mean-mass", "risk", "sources", "agreement", "sweep-ece", "disagreement-wrong"} <= names
    for path in paths:
        assert path.read_bytes().startswith(start)
    if format == "svg":
        first = paths[0].read_bytes()
        assert report.figures(tmp_path / "again", format)[0].read_bytes() == first
        assert ET.fromstring(first).tag.endswith("svg")


def test_figures_reject_unknown_format(report, tmp_path):
    with pytest.raises(errors.UnknownNameError, match="svg, pdf, png"):
        report.figures(tmp_path / "figures", "gif")
    assert not (tmp_path / "figures").exists()


def test_report_in_a_notebook_is_a_frame(report):
    shown = Page(report._repr_html_())
    assert shown.tags == ["iframe"]
    assert shown.values("srcdoc") == [report.html]
    assert "allow-same-origin" not in shown.values("sandbox")[0]


def test_page_repeats_byte_for_byte():
    ensemble = labelled_ensemble(3, 60)
    data = prepare_report(ensemble, method="mean", methods=[], intervals=False)
    assert render_html(data) == render_html(data)


@settings(max_examples=6, deadline=None)
@given(tied_ensembles(), st.booleans(), st.integers(0, 100))
def test_report_of_any_small_ensemble(probs, labelled, seed):
    """Ties, unanimity, one source, one sample."""
    labels = np.random.default_rng(seed).integers(0, probs.shape[2], probs.shape[1]) if labelled else None
    report = vd.build_report(probs, labels, method="mean", methods=["tde"], intervals=False)
    ids = Page(report.html).values("id")
    assert len(ids) == len(set(ids))
    assert ("calibration" in ids) == labelled
    json.loads(embedded_json(report.html))


def test_metrics_table_lists_single_sources():
    ensemble = labelled_ensemble(3, 60, source_names=["a", "b", "c"])
    table = metrics_table(vd.evaluate(ensemble, methods=["members", "mean"]))
    assert re.findall(r'<th scope="row" data-value="([abc])"', html_table(table)) == ["a", "b", "c"]


def test_page_of_many_classes_stays_small():
    ensemble = labelled_ensemble(3, 400, 1000)
    report = vd.build_report(ensemble, method="mean", methods=[], intervals=False)
    assert len(report.data.disputed) <= 300
    assert len(report.html) < 1_500_000
