"""``veridical predict``: predictions of an ensemble's checkpoints."""

from __future__ import annotations

from typing import Any

import click

from veridical.cli.options import data_option, device_option, precision_option
from veridical.cli.output import Output, output_options
from veridical.training.architectures import ARCHITECTURES
from veridical.training.data import DATASETS, SPLITS


@click.command("predict")
@click.argument("checkpoints", type=click.Path(exists=True))
@click.option("--dataset", type=click.Choice(list(DATASETS)), help="Default: the one that the run was trained on.")
@data_option
@click.option("--split", type=click.Choice(SPLITS), default="test", show_default=True)
@click.option("--limit", type=int, help="Take only the first N images.")
@click.option("--arch", type=click.Choice(list(ARCHITECTURES)), help="Needed for checkpoints from elsewhere.")
@click.option("--layout", type=click.Choice(["veridical", "pytorch-ensembles"]), default="veridical", show_default=True)
@click.option("--batch-size", type=click.IntRange(1), default=512, show_default=True)
@device_option
@precision_option("float32")
@click.option("--out", "-o", type=click.Path(dir_okay=False), required=True, help="A .npz file to write.")
@output_options
def command(checkpoints: str, data: str, out: str, output: Output, **options: Any) -> None:
    """Write the logits (S, N, L) of the run or directory CHECKPOINTS, with labels, to a .npz file.

    \b
    Examples:
      veridical predict runs/r18 --data DIR --out preds.npz
      veridical predict runs/r18 --data DIR --split train --limit 5000 --out fit.npz
      veridical predict CKPT_DIR --arch preresnet110 --layout pytorch-ensembles \\
          --dataset cifar100 --data DIR --out preds.npz
    """
    from veridical._outputs import check_outputs
    from veridical.training import predict_dataset

    check_outputs({"--out": out}, [data, checkpoints])
    predictions = predict_dataset(checkpoints, data, out=out, **options)
    output.text(
        f"{out}: {predictions.n_sources} members, {predictions.n_samples} samples, {predictions.n_classes} classes"
    )
    output.json(
        {
            "schema": 1,
            "type": "predictions",
            "out": out,
            "kind": predictions.kind,
            "n_sources": predictions.n_sources,
            "n_samples": predictions.n_samples,
            "n_classes": predictions.n_classes,
            "source_names": predictions.source_names,
            "class_names": predictions.class_names,
        }
    )
