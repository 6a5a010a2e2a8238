"""``veridical calibrate``."""

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
    default="auto",
    show_default=True,
    shell_complete=complete_methods,
    help="A calibrator, also on a pool as in log-pool+matrix; see 'veridical methods'.",
)
@click.option(
    "--objective", type=click.Choice(["confidence", "distribution"]), help="For auto: what to be good at (confidence)."
)
@click.option("--change-labels", is_flag=True, help="For auto: also try methods that may change labels.")
@click.option("--out", "-o", type=click.Path(dir_okay=False), help="Where to write the calibrator (.json).")
@click.option("--report", "report_path", type=click.Path(dir_okay=False), help="Also write an HTML report.")
@click.option("--seed", type=int, default=0, show_default=True)
@output_options
def command(
    method: str,
    objective: str | None,
    change_labels: bool,
    out: str | None,
    report_path: str | None,
    seed: int,
    as_json: bool,
    quiet: bool,
    **where: Any,
) -> None:
    """Fit a calibrator on PRED and its labels, and show what it is worth.

    The figures come from fitting on one random half and scoring on the other; what is written to --out was fitted on
    all samples.

    \b
    Examples:
      veridical calibrate preds.npz --out cal.json
      veridical calibrate preds.npz --objective distribution --change-labels --out cal.json
      veridical calibrate preds.npz --method ptde --out cal.json --report report.html
    """
    from veridical._outputs import check_outputs, check_report_target
    from veridical.calibrate.saving import check_target
    from veridical.evaluation import fit_calibrator
    from veridical.report import build_report

    output = Output(as_json, quiet)
    if out is not None:
        check_target(out)
    if report_path is not None:
        check_report_target(report_path)
    predictions = read(**where)
    check_outputs({"--out": out, "--report": report_path}, predictions.files)
    parameters: dict[str, Any] = {} if objective is None else {"objective": objective}
    if change_labels:
        parameters["keep_labels"] = False
    with output.progress() as progress:
        found = fit_calibrator(predictions, method=method, random_state=seed, progress=progress, **parameters)
        if out is not None:
            found.calibrator.save(out)
        if report_path is not None:
            build_report(
                predictions, method=method, parameters=parameters, random_state=seed, out=report_path, progress=progress
            )
    output.table(*found.evaluation.rows(), title="Scored on the half that calibration has not seen; errors in %")
    if found.chosen is not None:
        output.say(f"auto chose {found.chosen}.")
        if found.chosen_on_half != found.chosen:
            output.say(f"On the half that it was fitted on for this table it chose {found.chosen_on_half}.")
    for path in (out, report_path):
        if path is not None:
            output.say(f"Wrote {path}")
    output.result({**found.to_dict(), "out": out, "report": report_path})
