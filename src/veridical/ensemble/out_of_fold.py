"""Predictions of members for samples that they were not fitted on: what combiner and calibrator are fitted on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils import Bunch
from sklearn.utils.parallel import Parallel, delayed

from veridical.combine.combined import Floats, Labels
from veridical.ensemble.members import Classes, fit_member, weight_parameter
from veridical.ensemble.sources import Source, all_scores, fit_margin_scale, margins_to_probabilities
from veridical.errors import (
    InvalidInputError,
    LabelError,
    ParameterError,
    SampleWeightWarning,
    UnseenClassWarning,
    first_line,
    shown,
)
from veridical.predictions import Predictions
from veridical.predictions.classes import ClassIndices
from veridical.predictions.validation import check_weights

_FOLDS = "give a number of folds, a splitter, or pairs of train and test indices"


@dataclass(frozen=True)
class CalibrationScores:
    """Scores (S, M, L) of M calibration samples by members that were not fitted on them.

    ``known`` says whether at least one of these members was fitted on samples of the sample's class.
    """

    sources: list[Source]
    scores: Floats
    labels: Labels
    known: npt.NDArray[np.bool_]
    weights: Floats | None

    def margin_scales(self) -> list[float | None]:
        """For each source with margins instead of probabilities, what they are divided by."""
        return [
            fit_margin_scale(self.scores[s], self.labels) if source.response == "decision_function" else None
            for s, source in enumerate(self.sources)
        ]

    def predictions(self, scales: Sequence[float | None], classes: Classes) -> Predictions:
        """What the calibrator is fitted on: weighted samples are drawn, samples of unseen classes are left out."""
        weights = np.ones(len(self.labels)) if self.weights is None else self.weights
        counts = systematic_counts(np.where(self.known, weights, 0.0))
        n_unseen = int(np.sum(~self.known))
        if n_unseen:
            warnings.warn(
                f"{n_unseen} of {len(self.labels)} samples are left out of the calibration: no member was fitted on "
                "samples of their class in its fold; use fewer folds, or merge rare classes.",
                UnseenClassWarning,
                stacklevel=4,
            )
        rows = np.repeat(np.arange(len(counts)), counts)
        probs = to_probabilities(self.scores, scales)[:, rows]
        names = [source.name for source in self.sources]
        return Predictions(
            probs, ClassIndices(self.labels[rows]), source_names=names, class_names=[str(name) for name in classes]
        )


def to_probabilities(scores: Floats, scales: Sequence[float | None]) -> Floats:
    """(S, N, L) scores with the margins of some sources turned into probabilities."""
    for s, scale in enumerate(scales):
        if scale is not None:
            scores[s] = margins_to_probabilities(scores[s], scale)
    return scores


def systematic_counts(weights: Floats) -> npt.NDArray[np.intp]:
    """How often each sample is drawn, as often as there are positive weights in all, in proportion to the weights.

    Equal weights give each sample once.  A count differs from its expectation by less than one.
    """
    n_positive = int(np.count_nonzero(weights))
    if n_positive == 0:
        raise LabelError("no sample is left to calibrate on; every sample has weight zero or a class no member knows.")
    expected = np.cumsum(weights / weights.sum() * n_positive)
    # Half an interval of shift keeps equal weights at one each, whatever the rounding of the sum.
    drawn = np.floor(expected + 0.5)
    drawn[-1] = n_positive
    counts: npt.NDArray[np.intp] = np.diff(drawn, prepend=0.0).astype(np.intp)
    return counts


def prefit_scores(
    sources: list[Source], X: Any, labels: Labels, n_classes: int, sample_weight: Any
) -> CalibrationScores:
    """Scores of members that were fitted elsewhere."""
    weights = None if sample_weight is None else check_weights(sample_weight, len(labels))
    known = np.isin(labels, np.concatenate([source.columns for source in sources]))
    return CalibrationScores(sources, all_scores(sources, X, n_classes), labels, known, weights)


def fit_out_of_fold(
    members: Sequence[tuple[str, Any]],
    X: Any,
    labels: Labels,
    classes: Classes,
    *,
    cv: Any,
    routed: Bunch,
    sample_weight: Any,
    expand: bool,
    refit: bool,
    n_jobs: int | None,
) -> tuple[list[list[Source]], CalibrationScores]:
    """Fit every member on every fold; the copies to serve, and the scores of samples outside the copies' folds."""
    split_parameters = routed.splitter.split
    splitter = check_cv(cv, labels, classifier=True)
    if not hasattr(splitter, "get_n_splits"):  # bytes have a method split, too
        raise ParameterError(f"cv is {shown(cv)}; {_FOLDS}.")
    if isinstance(cv, (int, np.integer)) and split_parameters.get("groups") is not None:
        splitter = StratifiedGroupKFold(int(cv))
    try:
        folds = list(splitter.split(X, classes[labels], **split_parameters))
    except ValueError as error:  # scikit-learn's: more folds than groups, or than samples
        raise ParameterError(f"cv cannot split {len(labels)} samples ({first_line(error)}); {_FOLDS}.") from error
    if not folds:
        raise ParameterError(f"cv has no folds; {_FOLDS}.")
    weights = None if sample_weight is None else check_weights(sample_weight, len(labels))
    for k, (train, _) in enumerate(folds):
        if weights is not None and not weights[train].any():
            raise InvalidInputError(
                f"all samples that fold {k} leaves for its members have weight 0; spread the weights over more samples."
            )

    def jobs(train: Any, test: Any) -> Iterator[Any]:
        for name, member in members:
            yield delayed(fit_member)(name, member, X, labels, classes, train, test, expand, routed[name].fit)

    work = [job for train, test in folds for job in jobs(train, test)]
    results = Parallel(n_jobs=n_jobs)(work + (list(jobs(None, None)) if refit else []))
    by_copy = [results[start : start + len(members)] for start in range(0, len(results), len(members))]
    copies = [[source for sources, _ in copy for source in sources] for copy in by_copy]
    scores = [np.concatenate([part for _, part in copy]) for copy in by_copy[: len(folds)]]
    rows = np.concatenate([test for _, test in folds])
    known = [
        np.isin(labels[test], np.concatenate([source.columns for source in copy]))
        for copy, (_, test) in zip(copies, folds, strict=False)
    ]
    of_rows = None if weights is None else weights[rows]
    calibration = CalibrationScores(
        copies[0], np.concatenate(scores, axis=1), labels[rows], np.concatenate(known), of_rows
    )
    return copies[len(folds) :] if refit else copies, calibration


def route_by_hand(members: Sequence[tuple[str, Any]], sample_weight: Any, parameters: dict[str, Any]) -> Bunch:
    """Where metadata go without scikit-learn's metadata routing: groups to the splitter, the rest to all members."""
    others = {key: value for key, value in parameters.items() if key != "groups"}
    groups = {"groups": parameters["groups"]} if "groups" in parameters else {}
    routed = Bunch(splitter=Bunch(split=groups))
    without = []
    for name, member in members:
        fit_parameters = dict(others)
        if sample_weight is not None:
            parameter = weight_parameter(member)
            if parameter is None:
                without.append(name)
            else:
                fit_parameters[parameter] = sample_weight
        routed[name] = Bunch(fit=fit_parameters)
    if without:
        warnings.warn(
            f"members that take no sample weights: {', '.join(without)}; there the weights are used for calibration "
            "only.",
            SampleWeightWarning,
            stacklevel=4,
        )
    return routed
