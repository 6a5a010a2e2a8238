"""``veridical report``."""

from __future__ import annotations

from typing import Any

import click

from veridical.cli import with_options
from veridical.cli.options import (
    block_option,
    method_option,
    prediction_options,
    read_in_blocks,
    seed_option,
)
from veridical.cli.output import Output, output_options


@click.command()
@prediction_options
@method_option("ptde", "The calibrator to show; see 'veridical methods'.")
@click.option(
    "--out", "-o", type=click.Path(dir_okay=False), default="report.html", show_default=True, help="An HTML file."
)
@click.option("--figures", type=click.Path(file_okay=False), help="Also write the figures to this directory.")
@click.option(
    "--format",
    "figure_format",
    type=click.Choice(["svg", "png", "pdf"]),
    default="pdf",
    show_default=True,
    help="Format of the figures.",
)
@block_option
@seed_option
@output_options
def command(
    method: str, out: str, figures: str | None, figure_format: str, seed: int, output: Output, **source: Any
) -> None:
    """Write an HTML report about PRED: the verdict in words, then the evidence.

    One file that needs no network, in light and dark colours.

    \b
    Examples:
      veridical report preds.npz --out report.html
      veridical report preds.npz --method auto --figures figures/ --format svg
    """
    from veridical._outputs import check_outputs
    from veridical.report import build_report

    predictions = read_in_blocks(**source)
    check_outputs({"--out": out}, predictions.files)
    with output.progress() as progress:
        report = build_report(predictions, method=method, random_state=seed, out=out, progress=progress)
    if figures is not None:
        report.figures(figures, format=figure_format)
    output.text(with_options(report.data.verdict))
    output.wrote(out)
    output.json(report.data, out=out)
