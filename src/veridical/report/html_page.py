"""From numbers to one self-contained page."""

from __future__ import annotations

import base64
import hashlib
import html
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from veridical._json import to_json
from veridical._names import printable
from veridical._tables import Table, html_table
from veridical._templates import html_template
from veridical.metrics import METRICS, SUMMARY_METRICS
from veridical.plots.calibration import count_legend
from veridical.plots.style import COLOURS, series_roles
from veridical.report.data import ReportData
from veridical.report.figures import (
    MOST_IN_MATRIX,
    agreement_legend,
    draw_agreement,
    draw_disagreement,
    draw_reliability,
    draw_risk,
    draw_source_value,
    draw_sources,
    draw_sweep,
    has_agreement,
    most_in_bin,
)
from veridical.report.svg import inline_svg
from veridical.report.tables import (
    advice_table,
    disagreement_table,
    disputed_table,
    metric_text,
    metrics_table,
    reliability_table,
    risk_table,
    shown_title,
    source_value_table,
    sources_table,
    sweep_table,
)
from veridical.report.verdict import percent, stands_apart

#: Longer tables scroll.
_MOST_ROWS = 12
_TEMPLATES = files("veridical.report").joinpath("templates")
#: Colours of the page around them.
PAGE_COLOURS = {
    "page": ("#f6f7f9", "#101319"),
    "accent": ("#3457d5", "#8aa2ff"),
    "on-accent": ("#ffffff", "#101319"),
    "tint": ("#eef2fb", "#212838"),
    "good": ("#14805e", "#4cc59c"),
    "better": ("#3457d5", "#8aa2ff"),
    "bad": ("#b8432b", "#ef8e75"),
    "unknown": ("#596273", "#a6aebc"),
}
#: Characters that could end a script element or start another; inside JSON strings the escapes mean the same.
_UNSAFE_IN_SCRIPT = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def page_template(name: str) -> jinja2.Template:
    """A template of the report."""
    return html_template(_TEMPLATES, name)


def render_html(data: ReportData) -> str:
    """The report as one HTML document."""
    script, style = page_resource("page.js"), theme_css() + "\n" + page_resource("page.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return page_template("page.html.j2").render(
        data=data,
        facts=data.inspection.data,
        script=Markup(script),
        script_digest=digest,
        style=Markup(style),
        payload=json_for_script(data.to_dict()),
        shown_title=shown_title,
        printable=printable,
        tiles=_tiles(data),
        calibration=_calibration(data),
        sources=_sources(data),
        sweep=_sweep(data),
        disagreement=_disagreement(data),
        risk=_risk(data),
        disputed=_disputed(data),
        run=_run(data),
    )


def theme_css() -> str:
    """The colours as variables: light, dark by choice, dark by the system's preference, and light on paper."""
    light, dark = ([f"--{role}:{pair[k]}" for role, pair in (COLOURS | PAGE_COLOURS).items()] for k in (0, 1))
    return "\n".join(
        [
            f":root{{color-scheme:light;{';'.join(light)}}}",
            f":root[data-theme=dark]{{color-scheme:dark;{';'.join(dark)}}}",
            "@media (prefers-color-scheme:dark){:root:not([data-theme=light]){color-scheme:dark;"
            + ";".join(dark)
            + "}}",
            f"@media print{{:root{{{';'.join(f'{entry}!important' for entry in light)}}}}}",
        ]
    )


def page_resource(name: str) -> str:
    """The text of a template, a style sheet or a script of the report."""
    return _TEMPLATES.joinpath(name).read_text(encoding="utf-8")


def json_for_script(content: Any) -> Markup:
    """JSON that is safe inside a script element, whatever strings it holds."""
    return Markup(to_json(content).translate(_UNSAFE_IN_SCRIPT))


def scrolled_table(table: Table, id: str) -> Markup:
    """A table in a region that scrolls; a long one has a limited height."""
    tall = " tall" if len(table.rows) > _MOST_ROWS else ""
    label = html.escape(table.caption)
    region = f'<div class="scroll{tall}" role="region" aria-label="{label}" tabindex="0">'
    return Markup(f"{region}\n{html_table(table, id)}\n</div>")


def _tiles(data: ReportData) -> list[tuple[str, str, str]]:
    """(what, value, note) of the few numbers that come first."""
    facts = data.inspection.data
    shape = (
        "Data",
        f"{facts.n_sources:,} × {facts.n_samples:,} × {facts.n_classes:,}",
        "sources × samples × classes",
    )
    if data.evaluation is None or data.method is None:
        agreement = percent(data.inspection.mean_agreement)
        return [shape, ("Agreement with the mean", agreement, "average over the sources")]
    before, after = data.evaluation["mean"], data.evaluation[data.method]
    title = shown_title(data.method)
    floor = after.summary["ece"].floor or 0.0
    tiles = [
        ("ECE of the mean", metric_text("ece", before.summary["ece"].value), _gap_text(before.gap)),
        (
            f"ECE with {title}",
            metric_text("ece", after.summary["ece"].value),
            f"noise floor {metric_text('ece', floor)}{_swapped_text(data)}",
        ),
        (
            "Accuracy",
            metric_text("accuracy", after.summary["accuracy"].value),
            f"{after.labels_changed:,} labels changed",
        ),
    ]
    return [*(tiles if data.method != "mean" else [tiles[0], tiles[2]]), shape]


def _swapped_text(data: ReportData) -> str:
    """The ECE with the halves swapped, if it is known."""
    assert data.evaluation is not None
    assert data.method is not None
    swapped = data.evaluation.halves(data.method)[1:]
    return "".join(f"; halves swapped: {metric_text('ece', scores.summary['ece'].value)}" for scores in swapped)


def _gap_text(gap: float) -> str:
    return f"confidence {100 * abs(gap):.1f} points {'above' if gap > 0 else 'below'} accuracy"


def _calibration(data: ReportData) -> dict[str, Any] | None:
    if data.evaluation is None:
        return None
    panels = [
        {
            "method": panel.method,
            "title": shown_title(panel.method),
            "binning": panel.binning,
            "svg": inline_svg(draw_reliability(data, panel)),
            "table": scrolled_table(reliability_table(panel), f"bins-{panel.method}-{panel.binning}"),
            "scores": data.evaluation[panel.method],
        }
        for panel in data.reliability
    ]
    return {
        "before": [panel for panel in panels if panel["method"] == "mean"],
        "after": [panel for panel in panels if panel["method"] != "mean"],
        "methods": [(m, shown_title(m)) for m in dict.fromkeys(p.method for p in data.reliability) if m != "mean"],
        "chosen": data.method,
        "legends": {binning: count_legend(most_in_bin(data, binning)) for binning in ("mass", "width")},
        "table": scrolled_table(metrics_table(data.evaluation), "metrics-table"),
        "advice": None if data.advice is None else scrolled_table(advice_table(data.advice), "advice-table"),
    }


def _sources(data: ReportData) -> dict[str, Any]:
    value = data.inspection.value
    several, comparable = data.inspection.data.n_sources > 1, has_agreement(data)
    return {
        "table": scrolled_table(sources_table(data), "sources-table"),
        "scatter": inline_svg(draw_sources(data)) if several else None,
        "agreement": inline_svg(draw_agreement(data)) if comparable else None,
        "legend": agreement_legend(data) if comparable else [],
        "stands_apart": stands_apart(data.inspection),
        "value": None if value is None else inline_svg(draw_source_value(data)),
        "value_table": None if value is None else scrolled_table(source_value_table(value), "value-table"),
        "value_sentences": [] if value is None else [printable(sentence) for sentence in value.sentences],
        "equal_share": data.inspection.equal_share,
        "least": printable(data.inspection.least_trusted),
        "left_out": max(data.inspection.data.n_sources - MOST_IN_MATRIX, 0),
        "shown": MOST_IN_MATRIX,
    }


def _sweep(data: ReportData) -> dict[str, Any] | None:
    if not data.sweep:
        return None
    methods = list(dict.fromkeys(point.method for point in data.sweep))
    roles = series_roles(methods, data.method)
    return {
        "series": [(method, shown_title(method), roles[method]) for method in methods],
        "figures": [(METRICS[metric].title, inline_svg(draw_sweep(data, metric))) for metric in SUMMARY_METRICS],
        "table": scrolled_table(sweep_table(data), "sweep-table"),
    }


def _disagreement(data: ReportData) -> dict[str, Any] | None:
    if data.inspection.data.n_sources == 1:
        return None
    correlation = data.disagreement.correlation
    return {
        "right": inline_svg(draw_disagreement(data, "right")),
        "wrong": None if data.evaluation is None else inline_svg(draw_disagreement(data, "wrong")),
        "table": scrolled_table(disagreement_table(data), "disagreement-table"),
        "correlation": f"{correlation:.2f}".replace("-", "−") if correlation == correlation else None,
    }


def _risk(data: ReportData) -> dict[str, Any] | None:
    if not data.risk:
        return None
    roles = series_roles([curve.ranking for curve in data.risk], data.method)
    return {
        "svg": inline_svg(draw_risk(data)),
        "series": [(curve.ranking, curve.title, roles[curve.ranking]) for curve in data.risk],
        "table": scrolled_table(risk_table(data), "risk-table"),
    }


def _disputed(data: ReportData) -> dict[str, Any]:
    names = [printable(name) for name in data.inspection.data.class_names]
    labels = [(sample.prediction, sample.label) for sample in data.disputed]
    present = sorted({label for pair in labels for label in pair if label is not None})
    return {
        "table": scrolled_table(disputed_table(data), "disputed-table"),
        "n_rows": len(data.disputed),
        "classes": [(label, names[label]) for label in present],
    }


def _run(data: ReportData) -> dict[str, Any]:
    facts = data.inspection.data
    protocol = "no labels, nothing scored" if data.evaluation is None else data.evaluation.protocol
    entries = [
        (
            "Data",
            f"{facts.n_sources:,} source{'s' * (facts.n_sources != 1)} × {facts.n_samples:,} samples × "
            f"{facts.n_classes:,} classes",
        ),
        ("Kind, precision", f"{facts.kind}, {facts.dtype}"),
        ("SHA-256", facts.sha256),
        ("Seed", str(data.random_state)),
        ("Scored on", protocol),
    ]
    return {
        "facts": entries,
        "versions": list(data.versions.items()),
        "parameters": {shown_title(name): list(parameters.items()) for name, parameters in data.parameters.items()},
    }
