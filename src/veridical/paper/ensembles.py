"""Ensembles: prediction files, the labels that belong to them, and what their names say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from veridical._atomic import as_path
from veridical._parallel import resolve_threads
from veridical.data import load_demo
from veridical.errors import LabelError, ParameterError, ShapeError
from veridical.evaluation.engine import Engine
from veridical.predictions import Predictions
from veridical.predictions.files import load
from veridical.predictions.files.formats import FORMATS
from veridical.predictions.validation import Kind, check_integer, check_type, entries_of

#: A list that goes on longer is refused by what its first entries are.
_MOST_ENTRIES = 1 << 20
_Type = TypeVar("_Type")
#: Data sets, architectures and ensembles as files spell them (in lower case, without punctuation) -> as the paper does.
_DATASETS = {"cifar10": "CIFAR10", "cifar100": "CIFAR100", "imagenet": "ImageNet"}
_ARCHITECTURES = {
    "preresnet110": "PreResNet110",
    "preresnet164": "PreResNet164",
    "wideresnet28x10": "WideResNet28x10",
    "wideresnet": "WideResNet28x10",
    "resnet50": "ResNet50",
    "resnet18": "ResNet18",
    "densenet121": "DenseNet121",
    "resnext29": "ResNeXt29",
}
_ENSEMBLES = {
    "deepens": "deep",
    "deep": "deep",
    "de": "deep",
    "sse": "snapshot",
    "snapshot": "snapshot",
    "se": "snapshot",
}
_ENDINGS = re.compile(f"({'|'.join(map(re.escape, filter(None, FORMATS)))})+$", re.IGNORECASE)


@dataclass(frozen=True)
class EnsembleName:
    """Which ensemble a row of a table is about.

    Attributes
    ----------
    dataset : str
        As the paper spells it, or the file's own name where that is not one of the authors'.
    architecture : str
        Empty where unknown.
    ensemble : str
        "deep", "snapshot", or empty where unknown.

    Examples
    --------
    >>> from veridical import paper
    >>> paper.EnsembleName("CIFAR10", "ResNet8", "deep").recognised
    True
    """

    dataset: str
    architecture: str = ""
    ensemble: str = ""

    @property
    def recognised(self) -> bool:
        """Whether this is an ensemble as the paper names them."""
        return bool(self.architecture)

    @property
    def mean_method(self) -> str:
        """The paper's name for the mean of these sources: DE, or SE for snapshots."""
        return "SE" if self.ensemble == "snapshot" else "DE"

    def __str__(self) -> str:
        if not self.recognised:
            return self.dataset
        return f"{self.dataset} {self.architecture} ({self.ensemble} ensemble)"


def recognise(path: str | Path) -> EnsembleName:
    """Data set, architecture and kind of ensemble from a file's name.

    Names like the authors' are recognised: ``logits_CIFAR100-PreResNet110-deepens-100-1.pkl.npy``, that is data set,
    architecture, way of training, members and run.  Case does not matter.  Any other name is used as it is.

    Parameters
    ----------
    path : path
        Only its last part is looked at.

    Returns
    -------
    EnsembleName

    Examples
    --------
    >>> from veridical.paper import recognise
    >>> print(recognise("logits_CIFAR100-PreResNet110-deepens-100-1.pkl.npy"))
    CIFAR100 PreResNet110 (deep ensemble)
    >>> print(recognise("runs/my_models.npz"))
    my_models
    """
    as_path(path)
    full = Path(path) if Path(path).name not in ("", "..") else Path(path).resolve()  # "." is a directory of members
    last = full.name or str(full)
    stem = _ENDINGS.sub("", last) or last
    parts = re.sub(r"^logits[_-]", "", stem, flags=re.IGNORECASE).lower().split("-")
    if len(parts) >= 3:
        dataset, architecture, ensemble = (
            known.get(re.sub(r"[^a-z0-9]", "", part))
            for known, part in zip((_DATASETS, _ARCHITECTURES, _ENSEMBLES), parts, strict=False)
        )
        if dataset and architecture and ensemble and all(part.isdecimal() for part in parts[3:]):
            return EnsembleName(dataset, architecture, ensemble)
    return EnsembleName(stem)


_SHIPPED = EnsembleName("CIFAR10", "ResNet8", "deep")


@dataclass(frozen=True)
class Ensemble:
    """Labelled predictions and what to call them.

    Attributes
    ----------
    name : EnsembleName
    predictions : Predictions
        With labels.

    Examples
    --------
    >>> from veridical import paper
    >>> paper.open_ensembles()[0].predictions.n_sources
    20
    """

    name: EnsembleName
    predictions: Predictions
    _engines: dict[tuple[int, int], Engine] = field(default_factory=dict, repr=False, compare=False)

    def engine(self, n_sources: int, n_threads: int | None = None) -> Engine:
        """The engine of the first sources; tables and figures share it, so each way of combining runs once."""
        key = n_sources, resolve_threads(n_threads)
        if key not in self._engines:
            first = self.predictions.select(sources=slice(n_sources))
            self._engines[key] = Engine(first, n_threads=n_threads, missing="raise")
        return self._engines[key]


def open_ensembles(
    paths: Sequence[str | Path] = (),
    *,
    labels: Sequence[str | Path] = (),
    kind: Kind | None = None,
    sources_axis: int | None = None,
) -> list[Ensemble]:
    """The ensembles in some files; without files, the shipped one.

    Parameters
    ----------
    paths : sequence of paths
        Anything :func:`veridical.load` reads.  Names like the authors' say which ensemble it is (see
        :func:`veridical.paper.recognise`), and that the numbers are logits.
    labels : sequence of paths
        Label files: one for all, or one per prediction file; none where the files hold their labels.  Anything
        :func:`veridical.load` reads, such as CIFAR's published ``test_batch`` and ``test``, and its binary batches.
    kind : {"probs", "logits", "log_probs"}, optional
        What the numbers are, where the file does not say.
    sources_axis : {0, 1, 2}, optional
        Where the sources are, for arrays that do not have them first.

    Returns
    -------
    list of Ensemble

    Examples
    --------
    >>> from veridical import paper
    >>> print(paper.open_ensembles()[0].name)
    CIFAR10 ResNet8 (deep ensemble)
    """
    paths, labels = _as_paths(paths, "paths"), _as_paths(labels, "labels")
    if not paths:
        if labels:
            raise ParameterError("there are labels without predictions; the shipped ensemble has its own.")
        return [Ensemble(_SHIPPED, load_demo())]
    if len(labels) not in (0, 1, len(paths)):
        raise ParameterError(
            f"there are {len(labels)} label files for {len(paths)} prediction files; give one for all, or one for each."
        )
    label_files: list[str | Path | None] = [*labels] * len(paths) if len(labels) == 1 else [*labels]
    label_files = label_files or [None] * len(paths)
    ensembles = [_open(path, label, kind, sources_axis) for path, label in zip(paths, label_files, strict=True)]
    return _with_distinct_names(ensembles, paths)


def _open(path: str | Path, labels: str | Path | None, kind: Kind | None, sources_axis: int | None) -> Ensemble:
    name = recognise(path)
    if kind is None and name.recognised and Path(path).suffix == ".npy":
        kind = "logits"  # the authors' files hold nothing else
    predictions = load(path, labels, kind=kind, sources_axis=sources_axis)
    if predictions.labels is None:
        raise LabelError(f"{path} has no labels, and the tables need them; give a file of labels with labels=.")
    if predictions.n_samples == 0:
        raise ShapeError(f"{path} has no samples; at least one is needed.")
    return Ensemble(name, predictions.flat().labelled())


def _with_distinct_names(ensembles: list[Ensemble], paths: Sequence[str | Path]) -> list[Ensemble]:
    """Ensembles of the same name are called by the paths of their files."""
    names = [ensemble.name for ensemble in ensembles]
    return [
        ensemble if names.count(ensemble.name) == 1 else Ensemble(EnsembleName(str(path)), ensemble.predictions)
        for ensemble, path in zip(ensembles, paths, strict=True)
    ]


def _as_paths(paths: Any, what: str) -> list[str | Path]:
    """A list of paths."""
    listed = list(islice(entries_of(paths, f"{what} are", "a list of files"), _MOST_ENTRIES))
    for path in listed:
        as_path(path)
    return listed


def check_ensembles(ensembles: Any) -> list[Ensemble]:
    """A list of ensembles, as :func:`open_ensembles` gives it."""
    return check_each(ensembles, Ensemble, "ensemble", "what veridical.paper.open_ensembles returns")


def check_each(values: Any, expected: type[_Type], what: str, needed: str) -> list[_Type]:
    """A list whose entries are all ``expected``; ``what`` is one of them."""
    listed = islice(entries_of(values, f"{what}s are", needed), _MOST_ENTRIES)
    return [check_type(value, expected, f"{what} {place}", needed) for place, value in enumerate(listed)]


def check_sources(sources: Sequence[int] | None, ensemble: Ensemble, usual: Sequence[int]) -> list[int]:
    """Numbers of sources, ascending and each once, or the usual ones; one that exceeds the ensemble is an error."""
    if sources is None or (isinstance(sources, (list, tuple)) and not sources):
        sources = usual
    n_sources = ensemble.predictions.n_sources
    listed = islice(entries_of(sources, "sources are", "a list of whole numbers"), _MOST_ENTRIES)
    numbers = sorted({check_integer(n, "a number of sources", 1) for n in listed})
    if not numbers:
        raise ParameterError("there are no numbers of sources; give at least one.")
    if numbers[-1] > n_sources:
        raise ParameterError(
            f"{ensemble.name} has {n_sources} source{'s' * (n_sources != 1)} and sources= asks for {numbers[-1]}; ask "
            f"for at most {n_sources}."
        )
    return numbers
