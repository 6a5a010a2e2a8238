"""``veridical evaluate``."""

from __future__ import annotations

from typing import Any

import click

from veridical.cli.options import (
    VOTES_NOTE,
    block_option,
    methods_option,
    prediction_options,
    read_in_blocks,
    seed_option,
    workers_client,
    workers_option,
)
from veridical.cli.output import Output, output_options
from veridical.errors import ParameterError
from veridical.predictions import Predictions


@click.command()
@prediction_options
@methods_option("Default: members,mean,tde,atde.")
@click.option(
    "--walk-forward",
    "--time-column",
    "time_column",
    metavar="COLUMN",
    help="Fit on earlier periods and score the next; a column (.npz: array) of PRED holds the period.",
)
@click.option(
    "--period-order",
    type=click.Choice(["value", "appearance"]),
    help="Periods by what they mean (default), or, for texts such as Jan, as they first appear.",
)
@click.option(
    "--intervals/--no-intervals", default=None, help="Bootstrap intervals (95 %); default, unless read in blocks."
)
@click.option("--floors/--no-floors", default=True, show_default=True, help="Noise floors of calibration errors.")
@block_option
@workers_option
@seed_option
@output_options
def command(
    methods: list[str] | None,
    time_column: str | None,
    period_order: str | None,
    intervals: bool | None,
    floors: bool,
    seed: int,
    workers: int | None,
    output: Output,
    **source: Any,
) -> None:
    """How well calibrated is the ensemble in PRED, as it is?

    Scores its members, their mean (DE), TDE and aTDE by all of the paper's metrics.  Calibrators named in --methods are
    fitted on one random half; everything is then scored on the other.  A saved one (cal.json) is scored as it is.

    \b
    Examples:
      veridical evaluate preds.npz
      veridical evaluate logits.npy --kind logits --labels y.npy
      veridical evaluate preds.npz --methods mean,atde,temperature,ptde --json
      veridical evaluate probs.npy --labels y.npy --block-memory 512M
      veridical evaluate new.npz --methods mean,cal.json
      veridical evaluate forecasts.csv --methods mean,temperature --walk-forward month
    """
    from veridical.evaluation import evaluate
    from veridical.evaluation.evaluating import DEFAULT_METHODS

    walk_forward: dict[str, Any] = {}
    if time_column is not None:
        if source["group_column"] not in (None, time_column):
            raise ParameterError("--walk-forward takes its periods as the groups; leave --groups out.")
        source["group_column"] = time_column
        walk_forward["walk_forward"] = True
    if period_order is not None:
        if time_column is None:
            raise ParameterError("--period-order is the order of the periods of --walk-forward, which is missing.")
        walk_forward["period_order"] = period_order
    predictions = read_in_blocks(**source, workers=workers)
    if intervals is None:
        intervals = isinstance(predictions, Predictions)
    with workers_client(workers) as client, output.progress() as progress:
        evaluation = evaluate(
            predictions,
            **walk_forward,
            methods=methods or DEFAULT_METHODS,
            floors=floors,
            intervals=intervals,
            random_state=seed,
            progress=progress,
            client=client,
        )
    output.table(evaluation.as_table(f"Scored on {evaluation.protocol}; errors and accuracy in %"))
    for scores in evaluation.methods:
        if not scores.is_source and (floors or intervals):
            output.table(scores.summary.as_table(scores.title))
    if getattr(predictions, "is_votes", False) and any(scores.is_source for scores in evaluation.methods):
        output.text(VOTES_NOTE)
    for note in evaluation.notes:
        output.text(f"Note: {note}")
    output.json(evaluation)
