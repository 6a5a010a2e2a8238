"""``veridical compare``."""

from __future__ import annotations

from typing import Any

import click

from veridical.cli.options import methods_option, prediction_options, read, seed_option
from veridical.cli.output import Output, output_options


@click.command()
@prediction_options
@methods_option("Default: DE, TDE, aTDE and all calibrators but auto.")
@click.option("--splits", type=click.IntRange(1), default=5, show_default=True, help="Number of random halves.")
@seed_option
@output_options
def command(methods: list[str] | None, splits: int, seed: int, output: Output, **source: Any) -> None:
    """Which calibrator is best on PRED?

    Fits each of them on random halves and scores it on the others: mean and standard deviation, and a star at the
    best of each column.

    \b
    Examples:
      veridical compare preds.npz
      veridical compare preds.npz --methods temperature,spline,ptde --splits 20
    """
    from veridical.evaluation import compare_calibrators

    with output.progress() as progress:
        comparison = compare_calibrators(
            read(**source),
            methods=methods,
            n_splits=splits,
            random_state=seed,
            progress=progress,
        )
    output.table(comparison.as_table())
    floor = comparison.floors.get("mean") or next(iter(comparison.floors.values()))
    output.text(
        f"Noise floor: ECE-KDE {100 * floor['ece_kde']:.2f}, ECE {100 * floor['ece']:.2f}, KS "
        f"{100 * floor['ks_error']:.2f}; an error near it is not evidence of miscalibration."
    )
    output.json(comparison)
