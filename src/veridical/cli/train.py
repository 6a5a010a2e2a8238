"""``veridical train``: an ensemble from images."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from veridical.cli import _image_options
from veridical.cli.output import Output, output_options
from veridical.training.architectures import ARCHITECTURES
from veridical.training.data import DATASETS, load_dataset
from veridical.training.recipes import METHODS, RECIPES

if TYPE_CHECKING:
    from veridical.training import TrainedEnsemble


@click.command("train")
@click.option("--dataset", type=click.Choice(list(DATASETS)), required=True)
@_image_options.data
@click.option("--arch", type=click.Choice(list(ARCHITECTURES)), default="resnet18", show_default=True)
@click.option("--method", type=click.Choice(METHODS), default="deep", show_default=True)
@click.option("--recipe", type=click.Choice(list(RECIPES)), help="Default: paper.")
@click.option("--members", type=int, help="Default: 5 (deep), one per epoch or cycle (snapshot).")
@click.option("--epochs", type=int, help="Default: the recipe's.")
@click.option("--batch-size", type=int, help="Default: the recipe's.")
@click.option("--lr", "learning_rate", type=float, help="Largest learning rate. Default: the recipe's.")
@click.option("--augment/--no-augment", default=None, help="Random flips and padded crops. Default: the recipe's.")
@click.option("--limit", type=int, help="Take only the first N training images.")
@click.option("--seed", "random_state", type=int, default=0, show_default=True)
@_image_options.device
@click.option("--precision", type=click.Choice(["auto", "float32", "bfloat16"]), default="auto", show_default=True)
@_image_options.verify
@click.option("--out", "-o", type=click.Path(), required=True, help="Directory of the run; give it again to go on.")
@output_options
def command(
    dataset: str,
    data: str,
    limit: int | None,
    verify: bool,
    recipe: str | None,
    out: str,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Train a deep or snapshot ensemble, and write each member's weights and test predictions.

    A run that was broken off goes on when the same command is given again.

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
    ensemble = train_ensemble(
        load_dataset(dataset, data, "train", limit=limit, verify=verify),
        load_dataset(dataset, data, "test", verify=verify),
        out=out,
        recipe=changed,
        dataset=dataset,
        progress=not quiet,
        **options,
    )
    _show(ensemble, out, Output(as_json, quiet))


def _show(ensemble: TrainedEnsemble, out: str, output: Output) -> None:
    members = [
        {"name": name, "test_accuracy": accuracy}
        for name, accuracy in zip(ensemble.source_names, ensemble.accuracies(), strict=True)
    ]
    for member in members:
        output.say(f"{member['name']}  test accuracy {member['test_accuracy']:.2%}")
    output.say(f"{len(members)} members in {out}")
    output.result({"schema": 1, "type": "training", "out": out, "members": members})
