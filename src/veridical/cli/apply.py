"""``veridical apply``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from veridical.cli.options import (
    block_option,
    prediction_options,
    read_in_blocks,
    workers_client,
    workers_option,
)
from veridical.cli.output import Output, output_options
from veridical.errors import ParameterError, SavedFileError
from veridical.predictions import Predictions


@click.command()
@click.argument("calibrator", type=click.Path())
@prediction_options
@click.option("--out", "-o", type=click.Path(), required=True, help="A .npz, .npy, or table such as .csv; see above.")
@block_option
@workers_option
@click.option("--resume", is_flag=True, help="In blocks: continue a result that was begun.")
@output_options
def command(calibrator: str, out: str, workers: int | None, resume: bool, output: Output, **source: Any) -> None:
    """Calibrate PRED with a calibrator that 'veridical calibrate' wrote.

    A table, such as a .csv, gets the columns id, label, confidence and one per class; a .npz the arrays probs (samples,
    classes), confidence and prediction (samples); a .npy the probabilities alone.  Predictions that are read in blocks
    are written block by block, to a .npz, a .zarr, or a directory of .npy files (a name without suffix); OUT appears
    when it is complete, and a run that was interrupted is continued with --resume.

    \b
    Examples:
      veridical apply cal.json new.npz --out calibrated.csv
      veridical apply cal.json large.npy --out calibrated.zarr --resume
    """
    from veridical._outputs import check_outputs, check_replaced_directory
    from veridical.blocks import apply_calibrator as apply_in_blocks
    from veridical.calibrate import load_calibrator
    from veridical.calibrate.saving import files_of
    from veridical.evaluation import apply_calibrator
    from veridical.evaluation.calibrated_files import check_calibrated_target

    try:
        loaded = load_calibrator(calibrator)
    except SavedFileError as error:
        if Path(calibrator).suffix == ".json":
            raise
        raise SavedFileError(f"{error} The order is: veridical apply CALIBRATOR PRED.") from None
    predictions = read_in_blocks(**source, workers=workers, default_kind=getattr(loaded, "kind_", None))
    inputs = [*files_of(calibrator), *predictions.files]
    check_outputs({"--out": out}, inputs)
    check_replaced_directory("--out", out, inputs)
    if isinstance(predictions, Predictions):
        if resume:
            raise ParameterError("--resume continues a result that is written in blocks; give --block-memory, too.")
        check_calibrated_target(out)
        calibrated = apply_calibrator(loaded, predictions)
        calibrated.save(out)
        mean = calibrated.mean_confidence
    else:
        with workers_client(workers) as client, output.progress() as progress:
            calibrated = apply_in_blocks(loaded, predictions, out=out, resume=resume, progress=progress, client=client)
        mean = calibrated.mean_confidence
    n_samples = predictions.n_samples
    output.text(f"Wrote {out}: {n_samples} samples, mean confidence {100 * mean:.2f} %")
    output.json({"schema": 1, "type": "calibrated", "out": out, "n_samples": n_samples, "mean_confidence": mean})
