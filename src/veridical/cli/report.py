"""``veridical report``."""

from __future__ import annotations

from typing import Any

import click

from veridical.cli.inputs import complete_methods, prediction_options, read
from veridical.cli.output import Output, output_options


@click.command()
@prediction_options
@click.option(
    "--method",
    "-m",
    default="ptde",
    show_default=True,
    shell_complete=complete_methods,
    help="The calibrator to show; see 'veridical methods'.",
)
@click.option("--out", "-o", type=click.Path(dir_okay=False), default="report.html", show_default=True)
@click.option("--figures", type=click.Path(file_okay=False), help="Also write the figures to this directory.")
@click.option("--format", "figure_format", type=click.Choice(["svg", "png", "pdf"]), default="pdf", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@output_options
def command(
    method: str, out: str, figures: str | None, figure_format: str, seed: int, as_json: bool, quiet: bool, **where: Any
) -> None:
    """Write an HTML report about PRED: the verdict in words, then the evidence.

    One file, no network, light and dark.

    \b
    Examples:
      veridical report preds.npz --out report.html
      veridical report preds.npz --method auto --figures figures/ --format svg
    """
    from veridical._outputs import check_outputs
    from veridical.report import build_report

    output = Output(as_json, quiet)
    predictions = read(**where)
    check_outputs({"--out": out}, predictions.files)
    with output.progress() as progress:
        found = build_report(predictions, method=method, random_state=seed, out=out, progress=progress)
    if figures is not None:
        found.figures(figures, format=figure_format)
    output.say(found.data.verdict)
    output.say(f"Wrote {out}")
    output.result({**found.data.to_dict(), "out": out})
