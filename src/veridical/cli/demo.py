"""``veridical demo``."""

from __future__ import annotations

import click

from veridical.cli.output import Output, output_options


@click.command()
@click.option("--out", "-o", type=click.Path(dir_okay=False), default="report.html", show_default=True)
@output_options
def command(out: str, as_json: bool, quiet: bool) -> None:
    """Run the main job on the ensemble that ships with the package.

    Twenty small residual networks on CIFAR-10: their mean (DE), truth discovery (TDE, aTDE) and calibration by pTDE,
    scored on the half of the samples that calibration has not seen.  Prints a table and writes an HTML report.
    """
    from veridical.data import load_demo
    from veridical.report import build_report

    output = Output(as_json, quiet)
    predictions = load_demo()
    with output.progress() as progress:
        found = build_report(predictions, title="The shipped ensemble", out=out, progress=progress)
    evaluation = found.data.evaluation
    assert evaluation is not None  # the shipped ensemble has labels
    output.say(f"{predictions}")
    output.table(*evaluation.rows(), title=f"Scored on {evaluation.protocol}; errors and accuracy in %")
    output.say(found.data.verdict)
    output.say(f"Wrote {out}")
    output.result({**evaluation.to_dict(), "verdict": found.data.verdict, "out": out})
