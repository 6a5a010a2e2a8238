"""``veridical apply``."""

from __future__ import annotations

from typing import Any

import click

from veridical.cli.options import output_options, prediction_options, read
from veridical.cli.output import Output


@click.command()
@click.argument("calibrator", type=click.Path())
@prediction_options
@click.option("--out", "-o", type=click.Path(dir_okay=False), required=True, help="A .npz file to write.")
@output_options
def command(calibrator: str, out: str, as_json: bool, quiet: bool, **source: Any) -> None:
    """Calibrate PRED with a calibrator that 'veridical calibrate' wrote.

    OUT gets the arrays probs (samples, classes), confidence and prediction (samples).

    \b
    Example:
      veridical apply cal.json new.npz --out calibrated.npz
    """
    from veridical._outputs import check_outputs
    from veridical.calibrate import load_calibrator
    from veridical.evaluation import apply_calibrator

    output = Output(as_json, quiet)
    predictions = read(**source)
    check_outputs({"--out": out}, [calibrator, *predictions.files])
    calibrated = apply_calibrator(load_calibrator(calibrator), predictions)
    calibrated.save(out)
    n_samples, mean_confidence = len(calibrated.prediction), calibrated.mean_confidence
    output.text(f"Wrote {out}: {n_samples} samples, mean confidence {100 * mean_confidence:.2f} %")
    output.json(
        {"schema": 1, "type": "calibrated", "out": out, "n_samples": n_samples, "mean_confidence": mean_confidence}
    )
