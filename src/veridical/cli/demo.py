"""``veridical demo``."""

from __future__ import annotations

import click

from veridical.cli.output import Output, output_options


@click.command()
@output_options
def command(as_json: bool, quiet: bool) -> None:
    """Run the main job on the ensemble that ships with the package.

    Twenty small residual networks on CIFAR-10: their mean, truth discovery, and calibration by pTDE, scored on the half
    of the samples that calibration has not seen.
    """
    from veridical.data import load_demo
    from veridical.evaluation import evaluate

    output = Output(as_json, quiet)
    predictions = load_demo()
    output.say(f"{predictions}")
    with output.progress() as progress:
        found = evaluate(predictions, methods=["members", "mean", "tde", "atde", "ptde"], progress=progress)
    output.table(*found.rows(), title=f"Scored on {found.protocol}; errors and accuracy in %")
    output.result(found.to_dict())
