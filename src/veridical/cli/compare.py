"""``veridical compare``."""

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
    help="Comma-separated; default: DE, TDE, aTDE, all calibrators but auto.",
)
@click.option("--splits", type=click.IntRange(1), default=5, show_default=True, help="Random halves.")
@click.option("--seed", type=int, default=0, show_default=True)
@output_options
def command(methods: str | None, splits: int, seed: int, as_json: bool, quiet: bool, **where: Any) -> None:
    """Which calibrator is best on PRED?

    Fits all of them on random halves and scores them on the others; mean ± standard deviation, the best of each column
    with a star.

    \b
    Examples:
      veridical compare preds.npz
      veridical compare preds.npz --methods temperature,spline,ptde --splits 20
    """
    from veridical.evaluation import compare_calibrators

    output = Output(as_json, quiet)
    with output.progress() as progress:
        found = compare_calibrators(
            read(**where),
            methods=None if methods is None else [name.strip() for name in methods.split(",") if name.strip()],
            n_splits=splits,
            random_state=seed,
            progress=progress,
        )
    output.table(*found.rows(), title=f"{splits} random halves; errors and accuracy in %; * is the best of its column")
    floor = found.floors.get("mean") or next(iter(found.floors.values()))
    output.say(
        f"Noise floor: ECE-KDE {100 * floor['ece_kde']:.2f}, ECE {100 * floor['ece']:.2f}, KS "
        f"{100 * floor['ks_error']:.2f}; errors near it cannot be told from calibrated."
    )
    output.result(found.to_dict())
