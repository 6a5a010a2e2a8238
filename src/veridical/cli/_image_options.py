"""Options that ``train`` and ``predict`` share: where images are, and where networks run."""

from __future__ import annotations

import click

data = click.option(
    "--data",
    type=click.Path(),
    default="data",
    show_default=True,
    envvar="VERIDICAL_DATA",
    show_envvar=True,
    help="Directory of the data set's files (npz: the file).",
)
verify = click.option("--verify/--no-verify", default=True, show_default=True, help="Compare with published checksums.")
device = click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or mps.")
