"""A scikit-learn classifier that fits its members, combines their predictions and calibrates the result."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d

from veridical.calibrate import Calibrator, Identity
from veridical.calibrate.parameters import unfitted_error
from veridical.combine import discover
from veridical.combine.combined import Floats
from veridical.ensemble.members import (
    Classes,
    all_classes,
    fitted_members,
    members_to_fit,
    named_estimators,
    sources_of,
)
from veridical.ensemble.out_of_fold import (
    CalibrationScores,
    fit_out_of_fold,
    prefit_scores,
    route_by_hand,
    to_probabilities,
)
from veridical.ensemble.sources import Source, all_scores
from veridical.errors import LabelError, NotConvergedWarning, ParameterError, ShapeError, first_line
from veridical.evaluation.choice import fit_log_pool_or_better
from veridical.evaluation.methods import resolve_method
from veridical.predictions import Predictions
from veridical.predictions.arrays import holds_masked
from veridical.predictions.validation import LARGEST_COUNT, check_choice, check_flag

SERVED = ("refit", "folds")
#: Scores of all sources for samples are held in memory in portions of at most so many numbers.
_MOST_NUMBERS = 1 << 24


class CalibratedEnsemble(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifiers that are fitted, combined and calibrated together.

    Every member is fitted on the training part of each fold and predicts the test part.  The combiner and the
    calibrator are fitted on these predictions, of samples that the members have not seen.  Then the members are
    fitted on all samples, or the copies of the folds are kept.

    Parameters
    ----------
    estimators : list of classifiers, list of (name, classifier) pairs, or one ensemble
        Classifiers of scikit-learn, pipelines, lightgbm and xgboost.  A classifier without ``predict_proba`` takes part
        with its ``decision_function``, scaled to the lowest log loss, or with its votes.  The members of a
        ``VotingClassifier``, ``StackingClassifier``, ``BaggingClassifier``, ``RandomForestClassifier`` or
        ``ExtraTreesClassifier`` given alone become the sources.
    method : str or Calibrator
        The name of a calibrator ("temperature", "ptde"), a calibrator on a way of combining ("log-pool+vector"), or a
        way of combining alone ("mean", "atde").  "auto" chooses by cross-validated log loss: the log
        pool, unless another of nine is better by more than two standard errors.
    cv : int, splitter or iterable of (train, test) indices
        As in scikit-learn: stratified folds for a number.  Grouped folds keep groups together: give ``groups`` to
        ``fit``.  With a time-series splitter only samples of test parts take part in calibration.
    prefit : bool
        The estimators are fitted already, on other samples; all samples given to ``fit`` are for calibration.
    serve : {"folds", "refit"}
        Whether members are fitted again on all samples, or the copies of the folds stay: each copy's predictions are
        calibrated, and the results averaged.  ``benchmarks/ensemble.py`` compares the two; the copies take as many
        times longer to predict as there are folds.
    n_jobs : int, optional
        Members fitted at the same time, with joblib.
    random_state : int or None
        Decides the folds of "auto" and whatever is random in the calibrator; not the members' own.

    Attributes
    ----------
    classes_ : (L,) array
    estimators_ : list of lists of fitted classifiers
        One list, or one per fold with ``serve="folds"``.
    source_names_ : tuple of str
    calibrator_ : Calibrator
        Fitted on ``n_calibration_samples_`` predictions of samples that members had not seen.
    candidates_ : list of dict
        With ``method="auto"``: cross-validated log loss of each pair of combiner and method, the best first.
    n_calibration_samples_ : int
    n_features_in_, feature_names_in_
        Where the first member has them.

    Notes
    -----
    Sample weights go to all members that take them (of a pipeline, to its last step).  Calibrators do not take weights:
    they are fitted on samples drawn in proportion to their weights (systematic sampling, which is not random).

    See Also
    --------
    veridical.fit_calibrator : for predictions that are there already.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import veridical as vd
    >>> X, y = load_wine(return_X_y=True)
    >>> members = [make_pipeline(StandardScaler(), LogisticRegression()), GaussianNB()]
    >>> ensemble = vd.CalibratedEnsemble(members, method="temperature").fit(X, y)
    >>> ensemble.predict_proba(X).shape, ensemble.source_reliability(X).shape
    ((178, 3), (178, 2))
    """

    def __init__(
        self,
        estimators: Any,
        method: Any = "auto",
        cv: Any = 5,
        *,
        prefit: bool = False,
        serve: str = "folds",
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.estimators = estimators
        self.method = method
        self.cv = cv
        self.prefit = prefit
        self.serve = serve
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit members, combiner and calibrator.

        Parameters
        ----------
        X : whatever the members take
        y : (N,) labels
        sample_weight : (N,) array, optional
        **fit_params
            ``groups`` goes to the splitter, everything else to the members; with scikit-learn's metadata routing
            enabled, wherever it was requested.
        """
        calibrator = self._calibrator()
        check_choice(self.serve, SERVED, "serve")
        X, labels = _check_data(X, y, sample_weight=sample_weight, **fit_params)
        if _num_samples(X) == 0:
            raise LabelError("there are no samples to fit on; at least two of each class are needed.")
        copies, calibration = self._sources_and_scores(X, labels, sample_weight, fit_params)
        self._margin_scales = calibration.margin_scales()
        predictions = calibration.predictions(self._margin_scales, self.classes_)
        if calibrator is None:
            self.calibrator_, self.candidates_, _ = fit_log_pool_or_better(predictions, self.random_state)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotConvergedWarning)  # members that are always right are not a fault
                self.calibrator_ = calibrator.fit(predictions)
        self.n_calibration_samples_: int = predictions.n_samples
        self._copies: list[list[Source]] = copies
        self.source_names_: tuple[str, ...] = tuple(source.name for source in copies[0])
        self.estimators_: list[list[Any]] = [[source.estimator for source in copy] for copy in copies]
        self._copy_feature_facts()
        return self

    def predict_proba(self, X: Any) -> Floats:
        """(N, L) calibrated distributions; columns are in the order of ``classes_``."""
        self._check_fitted()
        return np.concatenate([self._distributions(part) for part in self._portions(X)])

    def predict(self, X: Any) -> Classes:
        """(N,) labels."""
        best = self.predict_proba(X).argmax(axis=1)
        labels: Classes = self.classes_[best]
        return labels

    def predict_confidence(self, X: Any) -> Floats:
        """(N,) probability that the predicted label is right."""
        self._check_fitted()
        if len(self._copies) > 1:
            confidence: Floats = np.minimum(self.predict_proba(X).max(axis=1), 1.0)
            return confidence
        return np.concatenate(
            [self.calibrator_.predict_confidence(self._predictions(part, 0)) for part in self._portions(X)]
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of ``predict(X)``."""
        X, labels = _check_data(X, y, sample_weight=sample_weight)
        return float(super().score(X, labels, sample_weight))

    def source_reliability(self, X: Any) -> Floats:
        """(N, S): how far truth discovery trusts each source for each sample; rows sum to one.

        Sources are in the order of ``source_names_``.
        """
        self._check_fitted()
        copies = range(len(self._copies))
        parts = [
            np.mean([discover(self._predictions(part, copy)).reliability for copy in copies], axis=0).T
            for part in self._portions(X)
        ]
        return np.concatenate(parts)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether ``fit`` came to its end."""
        return hasattr(self, "_copies")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise unfitted_error()("this CalibratedEnsemble is not fitted; call fit with samples and labels first.")

    # Parameters of the members, as scikit-learn's own ensembles have them ------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; ``deep`` also those of the members, as ``name__parameter``."""
        parameters: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, member in self._named():
                parameters[name] = member
                parameters |= {f"{name}__{key}": value for key, value in member.get_params(deep=True).items()}
        return parameters

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the ensemble and its members, or replace a member by name."""
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        replaced = {name: params.pop(name) for name, _ in self._named() if name in params}
        if replaced:
            if hasattr(self.estimators, "fit"):
                (self.estimators,) = replaced.values()
            else:
                self.estimators = [(name, replaced.get(name, member)) for name, member in self._named()]
        super().set_params(**params)
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Where metadata go: members' ``fit`` and the splitter's ``split``."""
        router = MetadataRouter(owner=self).add_self_request(self)
        fit = MethodMapping().add(caller="fit", callee="fit")
        if not self.prefit:
            router.add(**dict(members_to_fit(self.estimators)), method_mapping=fit)
        return router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        members = [get_tags(member) for _, member in self._named()]
        tags.input_tags.sparse = bool(members) and all(member.input_tags.sparse for member in members)
        tags.input_tags.allow_nan = bool(members) and all(member.input_tags.allow_nan for member in members)
        return tags

    def _named(self) -> list[tuple[str, Any]]:
        """Members with names, none where the parameter is not valid; ``fit`` says why."""
        try:
            return named_estimators(self.estimators)
        except ParameterError:
            return []

    # Fitting --------------------------------------------------------------------------------------------------------

    def _calibrator(self) -> Calibrator | None:
        """A new calibrator as ``method`` says; None where one is to be chosen."""
        if isinstance(self.method, Calibrator):
            copy: Calibrator = clone(self.method)
            return copy
        if isinstance(self.method, str) and self.method.strip().lower() == "auto":
            return None
        method = resolve_method(self.method)
        return Identity(combine=method.combiner) if method.calibrator is None else method.make(self.random_state)

    def _sources_and_scores(
        self, X: Any, y: Classes, sample_weight: Any, fit_params: dict[str, Any]
    ) -> tuple[list[list[Source]], CalibrationScores]:
        """The copies of members to serve, and scores of samples that members were not fitted on."""
        expand = hasattr(self.estimators, "fit")
        if check_flag(self.prefit, "prefit"):
            members = fitted_members(self.estimators)
            self.classes_ = _at_least_two(all_classes(members, y))
            sources = [
                source for name, member in members for source in sources_of(name, member, self.classes_, expand=expand)
            ]
            labels = np.searchsorted(self.classes_, y)
            return [sources], prefit_scores(sources, X, labels, len(self.classes_), sample_weight)
        self.classes_, labels = np.unique(y, return_inverse=True)
        _at_least_two(self.classes_)
        members = members_to_fit(self.estimators)
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
        else:
            routed = route_by_hand(members, sample_weight, fit_params)
        return fit_out_of_fold(
            members, X, labels, self.classes_, cv=self.cv, routed=routed, sample_weight=sample_weight, expand=expand,
            refit=self.serve == "refit", n_jobs=self.n_jobs,
        )  # fmt: skip

    def _copy_feature_facts(self) -> None:
        """``n_features_in_`` and ``feature_names_in_`` of the first member, or of the ensemble that was given."""
        first = self.estimators if self.prefit and hasattr(self.estimators, "fit") else self.estimators_[0][0]
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))

    # Predicting -----------------------------------------------------------------------------------------------------

    def _portions(self, X: Any) -> Iterator[Any]:
        """Consecutive samples, as many at a time as fit in memory with the scores of all sources."""
        _reject_masked(X=X)
        n_samples = _num_samples(X)
        if n_samples > LARGEST_COUNT:
            raise ShapeError(f"X has {n_samples:,} samples; give at most {LARGEST_COUNT:,} at a time.")
        step = max(_MOST_NUMBERS // (len(self._copies[0]) * len(self.classes_)), 1)
        if n_samples <= step:
            yield X
        else:
            for start in range(0, n_samples, step):
                yield _safe_indexing(X, slice(start, start + step))

    def _predictions(self, X: Any, copy: int) -> Predictions:
        """What the sources of a copy predict."""
        scores = all_scores(self._copies[copy], X, len(self.classes_))
        return Predictions(to_probabilities(scores, self._margin_scales), source_names=self.source_names_)

    def _distributions(self, X: Any) -> Floats:
        """Calibrated distributions, averaged over the copies."""
        parts = [self.calibrator_.predict_proba(self._predictions(X, copy)) for copy in range(len(self._copies))]
        mean: Floats = parts[0] if len(parts) == 1 else np.mean(parts, axis=0)
        return mean


def _check_data(X: Any, y: Any, **per_sample: Any) -> tuple[Any, Classes]:
    """Samples that can be indexed, and labels that are classes; ``per_sample`` is what else there is, by name."""
    if y is None:
        raise LabelError("CalibratedEnsemble requires y to be passed, but the target y is None; give one label each.")
    _reject_masked(X=X, y=y, **per_sample)
    try:
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
    except Exception as error:  # scikit-learn's, or anything from an object that is not an array
        raise LabelError(f"y is not one class per sample ({first_line(error)}); give labels without gaps.") from error
    X, labels, _ = indexable(X, labels, per_sample.get("sample_weight"))
    return X, labels


def _reject_masked(**arrays: Any) -> None:
    """Refuse masked arrays: members would not see the mask."""
    for name, values in arrays.items():
        if holds_masked(values, name):
            raise ParameterError(f"{name} is a masked array, and its mask would be lost; leave masked samples out.")


def _at_least_two(classes: Classes) -> Classes:
    if len(classes) < 2:
        raise LabelError(f"y has one class, {classes.tolist()[0]!r}; samples of at least two classes are needed.")
    return classes
