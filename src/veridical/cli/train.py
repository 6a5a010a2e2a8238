"""``veridical train``: an ensemble from images."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import click

from veridical.cli import print_message
from veridical.cli.options import data_option, device_option, precision_option
from veridical.cli.output import Output, output_options
from veridical.training.architectures import ARCHITECTURES
from veridical.training.data import DATASETS, load_dataset
from veridical.training.recipes import METHODS, RECIPES


@click.command("train")
@click.option("--dataset", type=click.Choice(list(DATASETS)), required=True)
@data_option
@click.option("--arch", type=click.Choice(list(ARCHITECTURES)), default="resnet18", show_default=True)
@click.option("--method", type=click.Choice(METHODS), default="deep", show_default=True)
@click.option("--recipe", type=click.Choice(list(RECIPES)), help="Default: paper.")
@click.option("--members", type=int, help="Number of members. Default: 5 (deep), one per epoch or cycle (snapshot).")
@click.option("--epochs", type=int, help="Default: the recipe's.")
@click.option("--batch-size", type=int, help="Default: the recipe's.")
@click.option("--lr", "learning_rate", type=float, help="Largest learning rate. Default: the recipe's.")
@click.option("--augment/--no-augment", default=None, help="Random flips and padded crops. Default: the recipe's.")
@click.option("--limit", type=int, help="Take only the first N training images.")
@click.option("--seed", "random_state", type=int, default=0, show_default=True, help="Seed of everything random.")
@device_option
@precision_option("auto")
@click.option("--out", "-o", type=click.Path(), required=True, help="Directory of the run, new or to be continued.")
@output_options
def command(
    dataset: str,
    data: str,
    limit: int | None,
    recipe: str | None,
    out: str,
    output: Output,
    **options: Any,
) -> None:
    """Train a deep or snapshot ensemble, and write each member's weights and test predictions.

    The same command continues a run that was interrupted.

    \b
    Examples:
      veridical train --dataset cifar10 --data DIR --out runs/r18
      veridical train --dataset cifar10 --data DIR --method snapshot --epochs 200 --out runs/snap
      veridical train --dataset npz --data images.npz --arch resnet8 --recipe one-cycle --out runs/r8
      veridical evaluate runs/r18
    """
    from veridical._outputs import check_outputs
    from veridical.training import train_ensemble

    check_outputs({"--out": out}, [data])
    changes = {key: options.pop(key) for key in ("epochs", "batch_size", "learning_rate", "augment")}
    changed = replace(RECIPES[recipe or "paper"], **{key: value for key, value in changes.items() if value is not None})
    with output.progress() as progress, _log_to_stderr(output.quiet):
        ensemble = train_ensemble(
            load_dataset(dataset, data, "train", limit=limit),
            load_dataset(dataset, data, "test"),
            out=out,
            recipe=changed,
            dataset=dataset,
            progress=progress,
            **options,
        )
    members = []
    for name, accuracy in zip(ensemble.source_names, ensemble.accuracies(), strict=True):
        members.append({"name": name, "test_accuracy": accuracy})
        output.text(name if accuracy is None else f"{name}  test accuracy {accuracy:.2%}")
    output.text(f"{len(members)} members in {out}")
    output.json({"schema": 1, "type": "training", "out": out, "members": members})


@contextmanager
def _log_to_stderr(quiet: bool) -> Iterator[None]:
    """Print a line for each finished epoch and member."""
    logger, handler = logging.getLogger("veridical.training"), _StderrHandler()
    level = logger.level
    if not quiet:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _StderrHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        print_message(record.getMessage())
