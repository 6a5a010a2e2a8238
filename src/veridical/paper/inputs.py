"""Prediction files, with what their names say and the labels that belong to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veridical.data import load_demo
from veridical.errors import LabelError, ParameterError
from veridical.paper.cifar_labels import read_binary_batch
from veridical.paper.names import EnsembleName, recognise
from veridical.predictions import Predictions
from veridical.predictions.files import load
from veridical.predictions.validation import Kind, check_integer

_SHIPPED = EnsembleName("CIFAR10", "ResNet8", "deep")


@dataclass(frozen=True)
class Ensemble:
    """Labelled predictions and what to call them.

    Attributes
    ----------
    name : EnsembleName
    predictions : Predictions
        With labels.
    """

    name: EnsembleName
    predictions: Predictions

    def first(self, n_sources: int) -> Predictions:
        """The predictions of the first sources."""
        return self.predictions.select(sources=slice(n_sources))


def open_ensembles(
    paths: Sequence[str | Path] = (),
    *,
    labels: Sequence[str | Path] = (),
    kind: Kind | None = None,
    sources_axis: int | None = None,
) -> list[Ensemble]:
    """The ensembles in some files; the shipped one where no file is given.

    Parameters
    ----------
    paths : sequence of paths
        Anything :func:`veridical.load` reads.  Names like the authors' say which ensemble it is (see
        :func:`veridical.paper.recognise`), and that the numbers are logits.
    labels : sequence of paths
        Label files: one for all, or one per prediction file; none where the files hold their labels.  Anything
        :func:`veridical.load` reads, plain pickles and CIFAR's ``test_batch`` and ``test`` among them (nothing in them
        is run), and CIFAR's binary batches.
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
    if not paths:
        if labels:
            raise ParameterError("labels were given without predictions; the shipped ensemble has its own.")
        return [Ensemble(_SHIPPED, load_demo())]
    if len(labels) not in (0, 1, len(paths)):
        raise ParameterError(
            f"there are {len(labels)} label files for {len(paths)} prediction files; give one for all, or one for each."
        )
    label_files: list[str | Path | None] = [*labels] * len(paths) if len(labels) == 1 else [*labels]
    label_files = label_files or [None] * len(paths)
    opened = [_open(path, label, kind, sources_axis) for path, label in zip(paths, label_files, strict=True)]
    return _told_apart(opened, paths)


def _open(path: str | Path, labels: str | Path | None, kind: Kind | None, sources_axis: int | None) -> Ensemble:
    name = recognise(path)
    known: Any = labels
    if labels is not None and Path(labels).suffix == ".bin":
        known = read_binary_batch(Path(labels))
    if kind is None and name.recognised and Path(path).suffix == ".npy":
        kind = "logits"  # the authors' files hold nothing else
    predictions = load(path, known, kind=kind, sources_axis=sources_axis)
    if predictions.labels is None:
        raise LabelError(f"{path} holds no labels, and the tables need them; give a file of labels with --labels.")
    return Ensemble(name, predictions)


def _told_apart(ensembles: list[Ensemble], paths: Sequence[str | Path]) -> list[Ensemble]:
    """Two files that would have the same name in a table go by their paths."""
    names = [ensemble.name for ensemble in ensembles]
    return [
        ensemble if names.count(ensemble.name) == 1 else Ensemble(EnsembleName(str(path)), ensemble.predictions)
        for ensemble, path in zip(ensembles, paths, strict=True)
    ]


def check_sources(sources: Sequence[int], ensemble: Ensemble) -> list[int]:
    """Numbers of sources, ascending and each once, none more than there are."""
    wanted = sorted({check_integer(n, "a number of sources", 1) for n in sources})
    there = ensemble.predictions.n_sources
    if wanted[-1] > there:
        raise ParameterError(
            f"{ensemble.name} has {there} source{'s' * (there != 1)} and {wanted[-1]} were asked for; ask for at most "
            f"{there} with --sources."
        )
    return wanted
