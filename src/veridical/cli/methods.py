"""``veridical methods``."""

from __future__ import annotations

import click

from veridical._tables import Table
from veridical.cli.output import Output, output_options


@click.command()
@output_options
def command(output: Output) -> None:
    """All combiners, calibrators and metrics, by name."""
    from veridical.calibrate import calibrators
    from veridical.calibrate.registry import ALIASES
    from veridical.combine import COMBINERS
    from veridical.metrics import METRICS

    combiners = [[name, info.title, info.summary] for name, info in COMBINERS.items()]
    fitted = [
        [name, method.title, method.summary + ("" if method.keeps_labels else "  May change labels.")]
        for name, method in calibrators().items()
    ]
    metrics = [[name, metric.meaning] for name, metric in METRICS.items()]
    output.table(Table.of(["combiner", "title", ""], combiners), of_words=True)
    output.table(Table.of(["calibrator", "title", ""], fitted), of_words=True)
    output.text("Short names: " + ", ".join(f"{name} for {full}" for name, full in ALIASES.items()) + ".")
    output.table(Table.of(["metric", ""], metrics), of_words=True)
    output.json(
        {
            "schema": 1,
            "type": "methods",
            "combiners": {name: info.summary for name, info in COMBINERS.items()},
            "calibrators": {
                name: {
                    "title": method.title,
                    "summary": method.summary,
                    "keeps_labels": method.keeps_labels,
                    "needs_sources": method.needs_sources,
                }
                for name, method in calibrators().items()
            },
            "aliases": dict(ALIASES),
            "metrics": {
                name: {"meaning": metric.meaning, "lower_is_better": metric.lower_is_better}
                for name, metric in METRICS.items()
            },
        }
    )
