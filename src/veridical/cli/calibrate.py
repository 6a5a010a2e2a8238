"""``veridical calibrate``."""

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
from veridical.predictions import Predictions


@click.command()
@prediction_options
@method_option("auto", "A calibrator, alone or after a combiner as in log-pool+matrix; see 'veridical methods'.")
@click.option(
    "--objective", type=click.Choice(["confidence", "distribution"]), help="For auto: what to optimise (confidence)."
)
@click.option("--change-labels", is_flag=True, help="For auto: also try methods that may change labels.")
@click.option("--out", "-o", type=click.Path(dir_okay=False), help="A .json file to write the calibrator to.")
@click.option("--report", "report_path", type=click.Path(dir_okay=False), help="Also write an HTML report.")
@block_option
@seed_option
@output_options
def command(
    method: str,
    objective: str | None,
    change_labels: bool,
    out: str | None,
    report_path: str | None,
    seed: int,
    output: Output,
    **source: Any,
) -> None:
    """Fit a calibrator on PRED and its labels, and show how much it improves calibration.

    The table is from a fit on one random half, scored on the other; the verdict also swaps the halves.  The
    calibrator in --out is fitted on all samples.  Nothing is written where the labels seem to be in another order.

    \b
    Examples:
      veridical calibrate preds.npz --out cal.json
      veridical calibrate preds.npz --objective distribution --change-labels --out cal.json
      veridical calibrate preds.npz --method ptde --out cal.json --report report.html
    """
    from veridical._outputs import check_outputs, check_report_target
    from veridical.calibrate.saving import check_replaced_file, check_target
    from veridical.evaluation import fit_calibrator
    from veridical.evaluation.notes import check_label_order
    from veridical.report import build_report, calibrate_with_report
    from veridical.report.verdict import calibration_sentence

    if out is not None:
        check_target(out)
    if report_path is not None:
        check_report_target(report_path)
    predictions = read_in_blocks(**source)
    check_outputs({"--out": out, "--report": report_path}, predictions.files)
    if out is not None:
        check_replaced_file(out)
    if out is not None or report_path is not None:
        first = predictions if isinstance(predictions, Predictions) else next(iter(predictions.blocks())).predictions
        check_label_order(first)
    parameters: dict[str, Any] = {} if objective is None else {"objective": objective}
    if change_labels:
        parameters["keep_labels"] = False
    with output.progress() as progress:
        options: dict[str, Any] = {"method": method, "random_state": seed, "progress": progress, **parameters}
        if report_path is None:
            calibration = fit_calibrator(predictions, **options)
        elif isinstance(predictions, Predictions):
            calibration, _ = calibrate_with_report(predictions, out=report_path, **options)
        else:
            calibration = fit_calibrator(predictions, **options)
            build_report(
                predictions,
                method=method,
                parameters=parameters,
                out=report_path,
                random_state=seed,
                progress=progress,
            )
        if out is not None:
            calibration.calibrator.save(out)
    output.table(calibration.as_table("Scored on the half that was not used to fit; errors in %"))
    evaluation, judged = calibration.evaluation, calibration.judged
    if calibration.chosen is not None:
        output.text(f"auto chose {calibration.chosen}.")
    if calibration.chosen_on_half not in (None, calibration.chosen):
        output.text(f"On the half that the table was fitted on it chose {calibration.chosen_on_half}.")
    sentences = [calibration_sentence(evaluation, judged, evaluation[judged].title)]
    if calibration.advice is not None:
        sentences += calibration.advice.sentences
    output.text(with_options(" ".join(sentences)))
    for note in evaluation.notes:
        output.text(f"Note: {note}")
    output.wrote(out, report_path)
    output.json(calibration, verdict=sentences[0], out=out, report=report_path)
