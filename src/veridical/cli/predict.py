"""``veridical predict``: predictions of an ensemble's checkpoints."""

from __future__ import annotations

from pathlib import Path

import click

from veridical.cli import _image_options
from veridical.cli.output import Output, output_options
from veridical.errors import ParameterError, ShapeError
from veridical.predictions import Predictions
from veridical.training.architectures import ARCHITECTURES, check_image_shape
from veridical.training.data import DATASETS, SPLITS, load_dataset


@click.command("predict")
@click.argument("checkpoints", type=click.Path(exists=True))
@click.option("--dataset", type=click.Choice(list(DATASETS)), help="Default: the run's own.")
@_image_options.data
@click.option("--split", type=click.Choice(SPLITS), default="test", show_default=True)
@click.option("--limit", type=int, help="Take only the first N images.")
@click.option("--arch", type=click.Choice(list(ARCHITECTURES)), help="For checkpoints that were not trained here.")
@click.option("--layout", type=click.Choice(["veridical", "pytorch-ensembles"]), default="veridical", show_default=True)
@click.option("--batch-size", type=click.IntRange(1), default=512, show_default=True)
@_image_options.device
@click.option("--precision", type=click.Choice(["auto", "float32", "bfloat16"]), default="float32", show_default=True)
@_image_options.verify
@click.option("--out", "-o", type=click.Path(dir_okay=False), required=True, help="A .npz file.")
@output_options
def command(
    checkpoints: str,
    dataset: str | None,
    data: str,
    split: str,
    limit: int | None,
    arch: str | None,
    layout: str,
    batch_size: int,
    device: str,
    precision: str,
    verify: bool,
    out: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write the logits (S, N, L) of the run or directory CHECKPOINTS, with labels, to a .npz file.

    \b
    Examples:
      veridical predict runs/r18 --data DIR --out preds.npz
      veridical predict runs/r18 --data DIR --split train --limit 5000 --out fit.npz
      veridical predict CKPT_DIR --arch preresnet110 --layout pytorch-ensembles \\
          --dataset cifar100 --data DIR --out preds.npz
    """
    from veridical._outputs import check_outputs
    from veridical.training import (
        ImageBatches,
        collect_predictions,
        find_checkpoints,
        load_checkpoints,
        load_ensemble,
    )
    from veridical.training.devices import resolve_device
    from veridical.training.zoo import zoo_normalisation

    check_outputs({"--out": out}, [data, checkpoints])
    trained = load_ensemble(checkpoints) if (Path(checkpoints) / "run.json").is_file() else None
    dataset = dataset or (trained.settings["dataset"] if trained else None)
    if dataset is None:
        raise ParameterError(f"the data set is not known; give --dataset, one of: {', '.join(DATASETS)}.")
    images = load_dataset(dataset, data, split, limit=limit, verify=verify)
    if trained is not None:
        _check_fits(images.image_shape, images.n_classes, trained.settings)
        models, names, normalisation = trained.models(), trained.source_names, trained.normalisation
    else:
        if arch is None:
            raise ParameterError(f"{checkpoints} is no run of ours (no run.json); say --arch, and --layout if needed.")
        check_image_shape(arch, images.image_shape)
        files = find_checkpoints(checkpoints)
        models = load_checkpoints(files, arch, images.n_classes, in_channels=images.image_shape[2], layout=layout)
        names = [file.name for file in files]
        normalisation = zoo_normalisation(arch, layout, files) or images.normalisation
    where = resolve_device(device)
    predictions = collect_predictions(
        models,
        ImageBatches(images, batch_size=batch_size, device=where, normalisation=normalisation),
        out=out,
        source_names=names,
        class_names=images.class_names,
        device=where,
        precision=precision,
    )
    _show(predictions, out, Output(as_json, quiet))


def _show(predictions: Predictions, out: str, output: Output) -> None:
    output.say(
        f"{out}: {predictions.n_sources} members, {predictions.n_samples} samples, {predictions.n_classes} classes"
    )
    output.result(
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


def _check_fits(image_shape: tuple[int, int, int], n_classes: int, settings: dict[str, object]) -> None:
    if list(image_shape) != settings["image_shape"]:
        raise ShapeError(f"the images have shape {image_shape}, and the run was trained on {settings['image_shape']}.")
    if n_classes != settings["n_classes"]:
        raise ShapeError(f"the data set has {n_classes} classes, and the run was trained on {settings['n_classes']}.")
