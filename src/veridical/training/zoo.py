"""Checkpoints from elsewhere: files of the pytorch-ensembles zoo, whose tensors are renamed.

The zoo (Ashukha et al., 2020, "Pitfalls of In-Domain Uncertainty Estimation") saved PyTorch state dicts, bare or
inside a dict (``state_dict`` or ``model_state``), with ``module.`` before each name where it was trained on several
devices.  Files are opened with ``weights_only=True``: tensors and plain values, nothing that can run.
"""

from __future__ import annotations

import os
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from veridical._atomic import as_path
from veridical._names import natural_order
from veridical.backends.foreign import to_tensor
from veridical.errors import CheckpointError, CorruptFileError, DatasetError, FileFormatError, ParameterError
from veridical.predictions.files.file_checks import check_is_file
from veridical.predictions.files.format_torch import load_tensors as load_arrays
from veridical.predictions.files.format_torch import load_weights_only
from veridical.predictions.validation import check_choice, entries_of
from veridical.training.architectures import ARCHITECTURES, build
from veridical.training.checkpoints import load_tensors, put_weights
from veridical.training.data.images import Normalisation
from veridical.training.devices import preserve_random_state

LAYOUTS = ("veridical", "pytorch-ensembles")

_SUFFIXES = (".safetensors", ".pt", ".pth", ".pth.tar", ".ckpt")
_WRAPPERS = ("state_dict", "model_state", "model_state_dict", "model")

#: Normalisation of the images that the zoo's CIFAR networks were trained on, by the method in the file's name:
#: CIFAR-10's (for CIFAR-100 too), CIFAR-100's for cyclic methods, ImageNet's for fast geometric ensembles.
_CIFAR_NORMALISATIONS = {
    "": Normalisation((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "SSE": Normalisation((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)),
    "cSGLD": Normalisation((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)),
    "FGE": Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}

_PRE_ACTIVATION = [
    (r"^conv1\.", "stem."),
    (r"\.bn(\d)\.", r".pre\1.norm."),
    (r"\.(?:downsample|shortcut)\.0\.", ".shortcut."),
    (r"^(?:bn|bn1)\.", "tail.norm."),
]
_POST_ACTIVATION = [
    (r"^conv1\.", "stem.0."),
    (r"^bn1\.", "stem.1."),
    (r"\.bn(\d)\.", r".norm\1."),
    (r"\.downsample\.", ".shortcut."),
]
#: Family -> rules that rewrite the zoo's names to the library's, applied in order.
_NAME_MAPS = {"preactivation": _PRE_ACTIVATION, "resnet": _POST_ACTIVATION}

_ALL_FAMILIES = [(r"^(?:fc|linear)\.", "classifier.")]
_ZOO_ARCHITECTURES = ("preresnet110", "preresnet164", "wideresnet28x10", "resnet50")


def our_name(zoo_name: str, arch: str) -> str:
    """The name that a tensor of the zoo has in this library.

    Examples
    --------
    >>> our_name("module.layer2.0.downsample.1.running_var", "resnet50")
    'stages.1.0.shortcut.1.running_var'
    """
    name = zoo_name.removeprefix("module.")
    for pattern, replacement in _NAME_MAPS[ARCHITECTURES[arch].family] + _ALL_FAMILIES:
        name = re.sub(pattern, replacement, name)
    return re.sub(r"^layer(\d)\.", lambda match: f"stages.{int(match[1]) - 1}.", name)


def zoo_normalisation(arch: str, layout: str, files: Sequence[Path]) -> Normalisation | None:
    """The normalisation that the zoo's networks were trained with; None where it is that of the data set.

    The zoo's files are called ``DATASET-ARCH-...``, or ``DATASET-METHOD_ARCH-...`` for methods other
    than deep ensembles.
    """
    if layout != "pytorch-ensembles" or arch == "resnet50":
        return None
    matches = [re.match(r"[^-]+-(SSE|cSGLD|FGE)_", file.name) for file in files]
    methods = {match[1] if match else "" for match in matches}
    normalisations = {_CIFAR_NORMALISATIONS[method] for method in methods}
    if len(normalisations) > 1:
        names = ", ".join(sorted(method or "plain" for method in methods))
        raise ParameterError(
            f"the checkpoints are of different methods ({names}), whose images were normalised differently; predict "
            "each method separately."
        )
    return normalisations.pop()


def load_checkpoint(
    path: str | os.PathLike[str], arch: str, n_classes: int, *, in_channels: int = 3, layout: str = "veridical"
) -> nn.Module:
    """A network with the weights of a file.

    Parameters
    ----------
    path : path
        A ``.safetensors`` file, or a PyTorch file of tensors (``.pt``, ``.pth``).
    arch : str
        Name of the architecture.
    n_classes, in_channels : int
    layout : {"veridical", "pytorch-ensembles"}
        Whose names of tensors the file has.

    Raises
    ------
    CheckpointError
        A tensor is missing, unknown, or of another shape; the first is named.
    CorruptFileError
        The file holds anything but tensors, or is damaged.

    Examples
    --------
    >>> import torch
    >>> from veridical import training
    >>> torch.save(training.build("resnet8", 10).state_dict(), "net.pt")
    >>> network = training.load_checkpoint("net.pt", "resnet8", 10)
    >>> sum(parameter.numel() for parameter in network.parameters())
    78042
    """
    check_choice(layout, LAYOUTS, "layout")
    check_choice(arch, ARCHITECTURES, "architecture")
    is_zoo = layout == "pytorch-ensembles"
    if is_zoo and arch not in _ZOO_ARCHITECTURES:
        raise ParameterError(f"the pytorch-ensembles zoo has no {arch}; it has: {', '.join(_ZOO_ARCHITECTURES)}.")
    tensors = load_tensors(path)[0] if as_path(path).suffix == ".safetensors" else _load_torch_file(as_path(path))
    if is_zoo:
        tensors = {our_name(name, arch): tensor for name, tensor in tensors.items()}
    with preserve_random_state(torch.device("cpu")):  # the initial weights are replaced
        model = build(arch, n_classes, in_channels=in_channels, zoo_form=is_zoo)
    put_weights(model, tensors, path)
    return model.eval()


def _load_torch_file(path: Path) -> Mapping[str, Tensor]:
    check_is_file(path, "a PyTorch file of tensors")
    try:
        with warnings.catch_warnings():  # about the pickle's protocol, which does not matter if the file can be read
            warnings.simplefilter("ignore")
            # What is not an archive was written by PyTorch before 1.6.
            stored: Any = load_arrays(path) if zipfile.is_zipfile(path) else load_weights_only(path)
    except (OSError, RuntimeError, EOFError, ValueError, KeyError) as error:
        cause = error.__cause__ if isinstance(error, FileFormatError) else error
        if cause is None:
            raise
        reason = str(cause).splitlines()[0] if str(cause) else type(cause).__name__
        raise CorruptFileError(
            f"{path} cannot be read as a PyTorch file of plain tensors ({reason}); save a state dict."
        ) from error
    for wrapper in _WRAPPERS:
        if isinstance(stored, dict) and isinstance(stored.get(wrapper), dict):
            stored = stored[wrapper]
    if not isinstance(stored, dict) or not all(isinstance(entry, (Tensor, np.ndarray)) for entry in stored.values()):
        raise CheckpointError(
            f"{path} is not a state dict: a dict of tensors, alone or under {' or '.join(_WRAPPERS)}."
        )
    return {name: to_tensor(entry) if isinstance(entry, np.ndarray) else entry for name, entry in stored.items()}


def find_checkpoints(directory: str | os.PathLike[str]) -> list[Path]:
    """Checkpoint files of a directory in natural order, or the file itself.

    Parameters
    ----------
    directory : path

    Returns
    -------
    list of Path

    Examples
    --------
    >>> from pathlib import Path
    >>> from veridical import training
    >>> for name in ("net_10.pt", "net_2.pt"):
    ...     Path(name).touch()
    >>> [path.name for path in training.find_checkpoints(".")]
    ['net_2.pt', 'net_10.pt']
    """
    folder = as_path(directory)
    if folder.is_file():
        return [folder]
    files = [
        path
        for path in folder.glob("[!.]*")
        if path.is_file() and path.name.endswith(_SUFFIXES) and not path.name.endswith(".state.safetensors")
    ]
    if not files:
        raise DatasetError(f"{folder} has no checkpoints; put files there that end with {', '.join(_SUFFIXES)}.")
    return sorted(files, key=lambda path: natural_order(path.name))


def load_checkpoints(
    paths: list[Path], arch: str, n_classes: int, *, in_channels: int = 3, layout: str = "veridical"
) -> Iterator[nn.Module]:
    """Networks of several files, one after another, so that only one is in memory.

    Parameters
    ----------
    paths : list of Path
    arch, n_classes, in_channels, layout
        As in :func:`load_checkpoint`.

    Returns
    -------
    iterator of torch.nn.Module

    Examples
    --------
    >>> from pathlib import Path
    >>> import torch
    >>> from veridical import training
    >>> torch.save(training.build("resnet8", 10).state_dict(), "net.pt")
    >>> len(list(training.load_checkpoints([Path("net.pt")], "resnet8", 10)))
    1
    """
    for path in entries_of(paths, "paths are", "a list of files"):
        yield load_checkpoint(path, arch, n_classes, in_channels=in_channels, layout=layout)
