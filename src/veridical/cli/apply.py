"""``veridical apply``."""

from __future__ import annotations

from typing import Any

import click

from veridical.cli.inputs import prediction_options, read
from veridical.cli.output import Output, output_options


@click.command()
@click.argument("calibrator", type=click.Path())
@prediction_options
@click.option("--out", "-o", type=click.Path(dir_okay=False), required=True, help="Where to write (.npz).")
@output_options
def command(calibrator: str, out: str, as_json: bool, quiet: bool, **where: Any) -> None:
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
    predictions = read(**where)
    check_outputs({"--out": out}, [calibrator, *predictions.files])
    found = apply_calibrator(load_calibrator(calibrator), predictions)
    found.save(out)
    output.say(f"Wrote {out}: {len(found.prediction)} samples, mean confidence {100 * found.mean_confidence:.2f} %")
    output.result(
        {
            "schema": 1,
            "type": "calibrated",
            "out": out,
            "n_samples": len(found.prediction),
            "mean_confidence": found.mean_confidence,
        }
    )
