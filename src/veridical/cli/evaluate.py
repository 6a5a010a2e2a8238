"""``veridical evaluate``."""

from __future__ import annotations

from typing import Any

import click

from veridical.cli.inputs import complete_methods, prediction_options, read
from veridical.cli.output import Output, output_options


@click.command()
@prediction_options
@click.option(
    "--methods",
    "-m",
    shell_complete=complete_methods,
    help="Comma-separated; default: members,mean,tde,atde.  See 'veridical methods'.",
)
@click.option("--intervals/--no-intervals", default=True, show_default=True, help="Bootstrap intervals (95 %).")
@click.option("--floors/--no-floors", default=True, show_default=True, help="Noise floors of calibration errors.")
@click.option("--seed", type=int, default=0, show_default=True)
@output_options
def command(
    methods: str | None, intervals: bool, floors: bool, seed: int, as_json: bool, quiet: bool, **where: Any
) -> None:
    """How well calibrated is the ensemble in PRED, as it is?

    Scores its members, their mean (DE), TDE and aTDE by all of the paper's metrics.  Calibrators named in --methods are
    fitted on one random half; everything is then scored on the other.

    \b
    Examples:
      veridical evaluate preds.npz
      veridical evaluate logits.npy --kind logits --labels y.npy
      veridical evaluate preds.npz --methods mean,atde,temperature,ptde --json
    """
    from veridical.evaluation import evaluate
    from veridical.evaluation.scores import DEFAULT_METHODS

    output = Output(as_json, quiet)
    chosen = DEFAULT_METHODS if methods is None else [name.strip() for name in methods.split(",") if name.strip()]
    with output.progress() as progress:
        found = evaluate(
            read(**where),
            methods=chosen,
            floors=floors,
            intervals=intervals,
            random_state=seed,
            progress=progress,
        )
    output.table(*found.rows(), title=f"Scored on {found.protocol}; errors and accuracy in %")
    for scores in found.methods:
        if not scores.is_source and (floors or intervals):
            heading, *rows = scores.summary.table()
            output.table(heading, rows, title=scores.title)
    output.result(found.to_dict())
