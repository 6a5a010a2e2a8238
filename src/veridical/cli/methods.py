"""``veridical methods``."""

from __future__ import annotations

import click

from veridical.cli.options import output_options
from veridical.cli.output import Output


@click.command()
@output_options
def command(as_json: bool, quiet: bool) -> None:
    """All combiners, calibrators and metrics, by name."""
    from veridical.calibrate import calibrators
    from veridical.evaluation.methods import COMBINERS
    from veridical.metrics import METRICS

    output = Output(as_json, quiet)
    output.table(["combiner", ""], [[name, line] for name, (_, line) in COMBINERS.items()], of_words=True)
    rows = [
        [name, method.summary + ("" if method.keeps_labels else "  May change labels.")]
        for name, method in calibrators().items()
    ]
    output.table(["calibrator", ""], rows, of_words=True)
    output.table(["metric", ""], [[name, metric.meaning] for name, metric in METRICS.items()], of_words=True)
    output.json(
        {
            "schema": 1,
            "type": "methods",
            "combiners": {name: line for name, (_, line) in COMBINERS.items()},
            "calibrators": {
                name: {
                    "summary": method.summary,
                    "keeps_labels": method.keeps_labels,
                    "needs_sources": method.needs_sources,
                }
                for name, method in calibrators().items()
            },
            "metrics": {
                name: {"meaning": metric.meaning, "lower_is_better": metric.lower_is_better}
                for name, metric in METRICS.items()
            },
        }
    )
