"""``veridical inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from veridical.cli.inputs import prediction_options, read
from veridical.cli.output import Output, output_options


@click.command()
@prediction_options
@output_options
def command(as_json: bool, quiet: bool, **where: Any) -> None:
    """What is in PRED, a file of predictions or a saved calibrator?

    Shapes, kinds, per-source accuracy, reliability and agreement, and what looks wrong.

    \b
    Examples:
      veridical inspect preds.npz
      veridical inspect cal.json
    """
    output = Output(as_json, quiet)
    if Path(where["pred"]).suffix == ".json":
        _show_calibrator(where["pred"], output)
    else:
        _show_predictions(output, **where)


def _show_calibrator(path: str, output: Output) -> None:
    from veridical.calibrate import load_calibrator
    from veridical.evaluation import inspect_calibrator

    found = inspect_calibrator(load_calibrator(path))
    output.table(*found.rows(), of_words=True)
    if found.candidates:
        output.table(*found.candidate_rows(), title="Candidates, cross-validated")
    output.result(found.to_dict())


def _show_predictions(output: Output, **where: Any) -> None:
    from veridical.evaluation import inspect

    predictions = read(**where)
    found = inspect(predictions)
    output.say(repr(predictions))
    output.table(*found.rows(), title="Sources (%)")
    if found.data.n_sources > 2:
        output.say(f"Trusted least: {found.sources[found.outlier].name}")
    for warning in found.warnings:
        output.say(f"Note: {warning}")
    output.result(found.to_dict())
