"""``veridical threshold``."""

from __future__ import annotations

from typing import Any

import click

from veridical.cli.options import prediction_options, read
from veridical.cli.output import Output, output_options


@click.command()
@click.argument("calibrator", type=click.Path())
@prediction_options
@click.option("--max-risk", type=float, required=True, help="Error rate of the answers, above 0 and below 1.")
@click.option("--confidence-level", type=float, default=0.9, show_default=True, help="How surely it is not exceeded.")
@output_options
def command(calibrator: str, max_risk: float, confidence_level: float, output: Output, **source: Any) -> None:
    """From which confidence on to answer, so that at most --max-risk of the answers are wrong.

    PRED holds fresh labelled samples, on which CALIBRATOR was not fitted.  The error rate is exceeded in at most one
    minus --confidence-level of all draws of such samples.

    \b
    Examples:
      veridical threshold cal.json fresh.npz --max-risk 0.05
    """
    from veridical.calibrate import load_calibrator
    from veridical.evaluation import choose_threshold

    loaded = load_calibrator(calibrator)
    fresh = read(**source, default_kind=getattr(loaded, "kind_", None))
    threshold = choose_threshold(loaded, fresh, max_risk=max_risk, confidence_level=confidence_level)
    output.table(threshold.as_table(""))
    output.text(threshold.sentence)
    output.json(threshold)
