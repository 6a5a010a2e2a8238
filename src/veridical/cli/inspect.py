"""``veridical inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from veridical.cli.options import VOTES_NOTE, prediction_options, read
from veridical.cli.output import Output, output_options


@click.command()
@prediction_options
@output_options
def command(output: Output, **source: Any) -> None:
    """What is in PRED, a file of predictions or a saved calibrator?

    Shape, kind, accuracy, reliability and agreement of each source, and warnings.

    \b
    Examples:
      veridical inspect preds.npz
      veridical inspect cal.json
    """
    if isinstance(source["pred"], str) and Path(source["pred"]).suffix == ".json":
        _show_calibrator(source["pred"], output)
    else:
        _show_predictions(output, **source)


def _show_calibrator(path: str, output: Output) -> None:
    from veridical.calibrate import load_calibrator
    from veridical.evaluation import inspect_calibrator

    facts = inspect_calibrator(load_calibrator(path))
    output.table(facts.as_table(), of_words=True)
    if facts.candidates:
        output.table(facts.candidate_table("Candidates, cross-validated"))
    output.json(facts)


def _show_predictions(output: Output, **source: Any) -> None:
    from veridical.evaluation import inspect

    predictions = read(**source)
    inspection = inspect(predictions)
    output.text(repr(predictions))
    output.table(inspection.as_table())
    if inspection.least_trusted:
        output.text(f"Trusted least, as it agrees least with the others: {inspection.least_trusted}")
    if inspection.value is not None:
        output.table(inspection.value.as_table())
        for sentence in inspection.value.sentences:
            output.text(sentence)
    for warning in inspection.warnings:
        output.text(f"Note: {warning}")
    if predictions.is_votes:
        output.text(VOTES_NOTE)
    output.json(inspection)
