"""Estimators as they are given: their names, ensembles among them, and how a member is fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.ensemble._forest import ForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, _name_estimators
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params, check_is_fitted, has_fit_parameter

from veridical.combine.combined import Floats, Labels
from veridical.ensemble.sources import Source, all_scores, response_of
from veridical.errors import LabelError, ParameterError, UnfittedError, shown

Classes = npt.NDArray[Any]
#: Ensembles of scikit-learn whose fitted members become the sources.
ENSEMBLES = (VotingClassifier, StackingClassifier, BaggingClassifier, ForestClassifier)


class UnfittedMemberError(UnfittedError, NotFittedError):  # type: ignore[misc]
    """An :class:`veridical.errors.UnfittedError` that scikit-learn knows as its own."""


def named_estimators(estimators: Any) -> list[tuple[str, Any]]:
    """(name, estimator) pairs of what was given: pairs, estimators alone, or one ensemble or classifier."""
    if hasattr(estimators, "fit"):
        return [(type(estimators).__name__.lower(), estimators)]
    if isinstance(estimators, str) or not isinstance(estimators, Sequence) or not len(estimators):
        raise ParameterError(
            f"estimators is {shown(estimators)}; give a list of classifiers, of (name, classifier) pairs, or one "
            "ensemble of scikit-learn."
        )
    pairs = [entry for entry in estimators if isinstance(entry, tuple) and len(entry) == 2]
    if not pairs:
        pairs = _name_estimators(list(estimators))
    elif len(pairs) != len(estimators):
        raise ParameterError("some of the estimators have names and some have not; name all of them or none.")
    names = [name for name, _ in pairs]
    for name, estimator in pairs:
        if not isinstance(name, str) or "__" in name or names.count(name) > 1:
            raise ParameterError(f"estimator name {name!r} cannot be used; give each its own, without '__' in it.")
        if not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
            raise ParameterError(f"estimator {name} is {shown(estimator)}; give a classifier, with fit and predict.")
    return pairs


def members_to_fit(estimators: Any) -> list[tuple[str, Any]]:
    """What is fitted on each fold: a voting or stacking classifier's members, which are fitted alone there, too."""
    if isinstance(estimators, (VotingClassifier, StackingClassifier)):
        return [(name, member) for name, member in estimators.estimators if not _is_dropped(member)]
    return named_estimators(estimators)


def _is_dropped(member: Any) -> bool:
    return isinstance(member, str) and member == "drop"


def fit_member(
    name: str,
    estimator: Any,
    X: Any,
    y: Labels,
    classes: Classes,
    train: npt.NDArray[np.intp] | None,
    test: npt.NDArray[np.intp] | None,
    expand: bool,
    parameters: Mapping[str, Any],
) -> tuple[list[Source], Floats | None]:
    """Fit a copy on the training samples (all where None); its sources, and their scores for the test samples."""
    features = X if train is None else _safe_indexing(X, train)
    labels = y if train is None else y[train]
    present = np.unique(labels)
    encoded = _wants_encoded_labels(estimator)
    targets = np.searchsorted(present, labels) if encoded else classes[labels]
    member = clone(estimator)
    member.fit(features, targets, **_check_method_params(X, dict(parameters), indices=train))
    known = present[np.asarray(getattr(member, "classes_", range(len(present))), dtype=np.intp)] if encoded else None
    sources = sources_of(name, member, classes, columns=known, expand=expand)
    return sources, None if test is None else all_scores(sources, _safe_indexing(X, test), len(classes))


def _wants_encoded_labels(estimator: Any) -> bool:
    """Whether it is, or contains, a classifier of xgboost, whose labels must be 0 to K-1."""
    parts = [estimator, *estimator.get_params(deep=True).values()]
    return any(type(part).__module__.partition(".")[0] == "xgboost" and hasattr(part, "fit") for part in parts)


def sources_of(
    name: str, member: Any, classes: Classes, columns: Labels | None = None, *, expand: bool
) -> list[Source]:
    """A fitted member as one source, or as those it is made of."""
    check_is_fitted(member)
    if not hasattr(member, "classes_"):
        raise ParameterError(f"source {name}, a {type(member).__name__}, is not a classifier: it has no classes_.")
    columns = columns_of(name, member.classes_, classes) if columns is None else columns
    if not (expand and isinstance(member, ENSEMBLES)):
        return [Source(name, member, columns, response_of(name, member))]
    if isinstance(member, StackingClassifier) and member.cv == "prefit":  # fitted elsewhere, on labels as they are
        return [s for name, part, _, _ in _parts(member) for s in sources_of(name, part, classes, expand=False)]
    # Members of scikit-learn's ensembles are fitted on the numbers of the ensemble's classes.
    return [
        Source(name, part, columns[np.asarray(part.classes_, np.intp)], response_of(name, part), features, dtype)
        for name, part, features, dtype in _parts(member)
    ]  # fmt: skip


def _parts(ensemble: Any) -> list[tuple[str, Any, npt.NDArray[np.intp] | None, Any]]:
    """(name, member, its features, dtype of the array that it was fitted on) of a fitted ensemble."""
    if isinstance(ensemble, (VotingClassifier, StackingClassifier)):
        names = [name for name, member in ensemble.estimators if not _is_dropped(member)]
        return [(name, member, None, None) for name, member in zip(names, ensemble.estimators_, strict=True)]
    stem = "tree" if isinstance(ensemble, ForestClassifier) else "member"
    names = [f"{stem}-{number}" for number in range(len(ensemble.estimators_))]
    if isinstance(ensemble, ForestClassifier):
        return [(name, tree, None, "float32") for name, tree in zip(names, ensemble.estimators_, strict=True)]
    features = ensemble.estimators_features_
    return [
        (name, member, chosen, "numeric")
        for name, member, chosen in zip(names, ensemble.estimators_, features, strict=True)
    ]


def columns_of(name: str, known: Any, classes: Classes) -> Labels:
    """Where a member's classes stand among all."""
    known = np.asarray(known)
    if known.ndim != 1:
        raise ParameterError(f"source {name} predicts several outputs; give classifiers of one label per sample.")
    columns: Labels = np.searchsorted(classes, known)
    if not np.array_equal(classes[np.minimum(columns, len(classes) - 1)], known):
        raise LabelError(f"source {name} was fitted on classes that are not among {shown(classes.tolist())}.")
    return columns


def fitted_members(estimators: Any) -> list[tuple[str, Any]]:
    """The named members of ``prefit=True``, each fitted."""
    pairs = named_estimators(estimators)
    for name, estimator in pairs:
        try:
            check_is_fitted(estimator)
        except NotFittedError:
            raise UnfittedMemberError(
                f"estimator {name} is not fitted; fit it first, or leave prefit=True out."
            ) from None
    return pairs


def all_classes(members: Sequence[tuple[str, Any]], y: Classes) -> Classes:
    """The classes of fitted members and of the labels, sorted; an error where they are of different types."""
    known = [np.asarray(member.classes_) for _, member in members if hasattr(member, "classes_")]
    if len({part.dtype.kind in "OUS" for part in (*known, y)}) > 1:
        raise LabelError(
            "some labels are text and some are numbers: those of y, or those that the members were fitted on; use one "
            "kind for both."
        )
    return np.unique(np.concatenate([*known, y]))


def weight_parameter(estimator: Any) -> str | None:
    """What ``fit`` calls sample weights: of a pipeline, those of its last step."""
    if isinstance(estimator, Pipeline):
        last, step = estimator.steps[-1]
        inner = weight_parameter(step)
        return None if inner is None else f"{last}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None
