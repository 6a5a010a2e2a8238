"""``veridical demo``."""

from __future__ import annotations

import click

from veridical.cli.options import output_options
from veridical.cli.output import Output


@click.command()
@click.option(
    "--out", "-o", type=click.Path(dir_okay=False), default="report.html", show_default=True, help="An HTML file."
)
@output_options
def command(out: str, as_json: bool, quiet: bool) -> None:
    """Run the main job on the ensemble that ships with the package.

    Twenty small residual networks on CIFAR-10: their mean (DE), truth discovery (TDE, aTDE) and calibration by pTDE,
    scored on the half of the samples that was not used to fit.  Prints a table and writes an HTML report.
    """
    from veridical.data import load_demo
    from veridical.report import build_report

    output = Output(as_json, quiet)
    predictions = load_demo()
    with output.progress() as progress:
        report = build_report(predictions, title="The shipped ensemble", out=out, progress=progress)
    evaluation = report.data.evaluation
    assert evaluation is not None  # the shipped ensemble has labels
    output.text(f"{predictions}")
    output.table(*evaluation.rows(), title=f"Scored on {evaluation.protocol}; errors and accuracy in %")
    output.text(report.data.verdict)
    output.text(f"Wrote {out}")
    output.json({**evaluation.to_dict(), "verdict": report.data.verdict, "out": out})
