"""What all calibrators share: the template that validates, combines, fits and predicts.

A method writes ``_fit`` and ``formula``, which runs on NumPy's arrays, on those of other libraries and as a graph.
Everything a user can hand in is dealt with here.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from veridical._dispatch import also_out_of_memory
from veridical._parallel import resolve_threads
from veridical._progress import Progress, check_progress
from veridical.calibrate.fitting_data import FittingData
from veridical.calibrate.parameters import ParametersAsFields, unfitted_error
from veridical.calibrate.predicting import predict, results
from veridical.calibrate.samples import (
    check_classes,
    labelled_samples,
    match_sources,
    predictions_for,
    reject_two_dimensions,
    remembered_logits,
)
from veridical.combine.base import Combiner
from veridical.combine.combined import Combined, Floats, Labels
from veridical.combine.registry import COMBINERS, fit_combiner, label_keeping_combiners
from veridical.combine.small_arrays import combine_array, plain_array
from veridical.predictions import Predictions
from veridical.predictions.inputs import check_sources_axis
from veridical.predictions.validation import (
    INPUT_KINDS,
    Array,
    InputKind,
    check_choice,
)

if TYPE_CHECKING:
    from veridical.calibrate.fit_sums import FitSums
    from veridical.metrics import CalibrationState


class Calibrator(ParametersAsFields):
    """Base of all post-hoc calibrators.

    Parameters
    ----------
    combine : {"mean", "tde", "atde", "consensus", "aconsensus", "linear-pool", "log-pool"}
        How the sources become one vector per sample before the method sees them: their mean, truth discovery
        without and with the mean's label kept, the consensus whose weights come from the calibration samples without
        their labels ("aconsensus" keeps the mean's labels), or a pool whose weights are fitted on the labels.
    kind : {"probs", "logits", "log_probs", "binary"}
        What the numbers are.  Never guessed.  After a fit on Predictions of another kind, arrays are of that kind.
    sources_axis : {0, 1, 2}
        1 for arrays (N, S, L), which scikit-learn's cross-validation can cut along its first axis; 2 for (N, L, S).
    missing : {"raise", "skip"}
        Whether a source may be absent for a sample (a row of NaN).
    n_threads : int, optional
        Threads to use; all cores by default.  Results do not depend on it.

    Attributes
    ----------
    classes_ : (L,) array
        The labels 0 to L-1.
    n_sources_, n_classes_ : int
        What the calibrator was fitted for.
    kind_ : str
        Kind of the scores it was fitted on, which is the kind of arrays that it predicts for.
    fitting_data_ : FittingData or None
        Mean confidence and HV of the calibration data; see :func:`veridical.apply_calibrator`.
    class_names_ : tuple of str, or None
        Names of the classes it was fitted on, where they had names; predictions with other names are refused.
    source_names_ : tuple of str, or None
        Names of the sources it was fitted on, where they had names.  Learned pools, which have a weight for each
        source, match sources by name: a source of the fit that is not there is left out, a new one has the mean
        weight, and :class:`veridical.errors.ChangedSourcesWarning` names both.  Everything else combines any number of
        sources; the same warning says if there are more, fewer or partly other ones than at the fit.

    Examples
    --------
    >>> import veridical as vd
    >>> fit, new = vd.load_demo().split(random_state=0)
    >>> calibrator = vd.Temperature().fit(fit)
    >>> isinstance(calibrator, vd.calibrate.Calibrator), calibrator.kind_, calibrator.n_sources_
    (True, 'logits', 20)
    >>> calibrator.predict_confidence(new)[:3].round(2)
    array([0.98, 0.98, 0.63])
    """

    #: What one types.
    name: ClassVar[str]
    #: What tables, figures and sentences show; the name where a method has no usual short title.
    title: ClassVar[str]
    #: One line for tables and ``--help``.
    summary: ClassVar[str]
    #: Whether the method uses the sources themselves, beyond the combined vector.
    needs_sources: ClassVar[bool] = False
    #: Whether labels stay those of the combined vector.
    keeps_labels: ClassVar[Any] = True
    #: Whether a larger combined score never becomes a smaller confidence.
    monotone: ClassVar[bool] = False
    #: Rank among methods of equal merit: the lower, the fewer things it fits.
    complexity: ClassVar[int] = 1
    #: Names of the combiners that it takes: all that are known, also later ones.
    combiners: ClassVar[Collection[str]] = COMBINERS.keys()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__ and "title" not in cls.__dict__:
            cls.title = cls.name

    combine: str = "mean"
    kind: InputKind = "probs"
    sources_axis: int = 0
    missing: str = "raise"
    n_threads: int | None = None

    @also_out_of_memory(1, "X", maps=True)
    def fit(self, X: Any, y: Any = None, *, progress: Progress | None = None) -> Self:  # noqa: N803  scikit-learn's name
        """Fit on calibration data that no source was trained on.

        Parameters
        ----------
        X : (S, N, L) array, Predictions, or (N, L) array for methods that need no sources
        y : (N,) labels
            As in :class:`veridical.Predictions`, whose own labels they replace.  Samples whose label is unknown count
            for weights that need no labels, those of the consensus and the pools' prior, and for nothing else.
        progress : callable, optional
            Called as ``progress(done, total, what)`` before each stage and at the end.

        Returns
        -------
        The calibrator itself.
        """
        self.check_parameters()
        predictions, labels = labelled_samples(self._predictions(X), y)
        report = check_progress(progress)
        report(0, 2, "combine the sources")
        combiner, combined = fit_combiner(self.combine, predictions, labels, self)
        report(1, 2, f"fit {self.name}")
        self.fit_combined(combiner, combined, labels)
        confidence = combined.confidence if self.combine == "mean" else None
        self.remember(predictions, confidence, combined.discovered_hv)
        report(2, 2, "done")
        return self

    def fit_combined(self, combiner: Combiner, combined: Combined, labels: Labels) -> Self:
        """Fit on sources that are combined already: for callers that share the work between calibrators."""
        self.check_parameters()
        self._fit(combined, labels)
        self._set_fitted(combiner, combined.n_sources, combined.n_classes, combined.source_names)
        return self

    def _set_fitted(
        self, combiner: Combiner, n_sources: int, n_classes: int, source_names: tuple[str, ...] | None
    ) -> None:
        self.combiner_: Combiner = combiner
        self.n_sources_, self.n_classes_ = n_sources, n_classes
        self.source_names_: tuple[str, ...] | None = source_names
        self.classes_: Labels = np.arange(n_classes)

    def fit_state(
        self, state: CalibrationState, *, n_classes: int, n_sources: int = 1, source_names: Any = None
    ) -> Self:
        """Fit from a :class:`veridical.metrics.CalibrationState` of the combined vectors; states merge.

        Only methods that need nothing but confidences and outcomes can: histogram, isotonic, platt and spline.
        """
        fits = importlib.import_module("veridical.calibrate.fit_sums")
        return fits.fit_from_state(self, state, n_classes, n_sources, source_names)  # type: ignore[no-any-return]

    def new_sums(self) -> FitSums | None:
        """What a fit over blocks adds up, without samples; None where it needs the samples themselves."""
        has_pairs = type(self)._fit_pairs is not Calibrator._fit_pairs and not COMBINERS[self.combine].has_weights
        return importlib.import_module("veridical.calibrate.fit_sums").PairSums() if has_pairs else None

    def remember(self, predictions: Predictions, confidence: Floats | None = None, hv: Array | None = None) -> None:
        """Keep what the data of the fit looked like; ``confidence`` of the mean and ``hv`` as far as they are known."""
        self.remember_scores(predictions.input_kind, predictions.class_names)
        data = FittingData.of(predictions, self.n_threads, confidence=confidence, hv=hv)
        self.fitting_data_: FittingData | None = data

    def remember_scores(self, kind: InputKind, class_names: tuple[str, ...] | None) -> None:
        """Keep what the scores of the fit were: arrays to predict for are of the same kind."""
        self.kind_: InputKind = kind
        self.class_names_: tuple[str, ...] | None = class_names

    def predict_confidence(self, X: Any) -> Floats:  # noqa: N803
        """(N,) probability that the predicted label is right; (N, H, W) for images."""
        return predict(self, "predict_confidence", X)  # type: ignore[no-any-return]

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """(N, L) calibrated distributions, in float32 or, for float64 input, float64; (N, H, W, L) for images.

        Where the method keeps labels, the combined vector's label is the strict argmax of every row.
        """
        return predict(self, "predict_proba", X)  # type: ignore[no-any-return]

    def predict(self, X: Any) -> Labels:  # noqa: N803
        """(N,) predicted labels; (N, H, W) for images."""
        return predict(self, "predict", X)  # type: ignore[no-any-return]

    def predict_all(self, X: Any) -> tuple[Array, Floats, Labels]:  # noqa: N803
        """What ``predict_proba``, ``predict_confidence`` and ``predict`` return, with the sources combined once."""
        return predict(self, "predict_all", X)  # type: ignore[no-any-return]

    def save(self, path: str | Path) -> None:
        """Write the fitted calibrator to a JSON file that :func:`veridical.load_calibrator` reads."""
        importlib.import_module("veridical.calibrate.saving").save_calibrator(self, path)

    def to_onnx(self, path: str | Path, *, dtype: str = "float32") -> None:
        """Write the fitted calibrator as an ONNX model (extra ``onnx``).

        Its input ``predictions`` has the shape, kind and axis of the arrays that the calibrator predicts for (binary
        scores have no axis of classes); its outputs are ``probs``, ``confidence`` and ``label``.  With
        ``missing="skip"`` sources may be absent, as rows of NaN.  A sample that the calibrator would refuse, where a
        source is no distribution or is absent, has the label -1 and NaN.  Truth discovery has its 20 updates, of which
        those after a sample came to rest change nothing.

        Parameters
        ----------
        path : str or path-like
            Ends in .onnx.  The file appears whole or not at all.
        dtype : {"float32", "float64"}
            Of the input and the outputs; in between all numbers are float64.

        Raises
        ------
        ExportError
            The calibrator has no such model; the message says why.
        """
        importlib.import_module("veridical.export").save_onnx(self, path, dtype=dtype)

    @property
    def fitted_calibrator(self) -> Calibrator:
        """The calibrator that predictions come from: this one, or the one that a choice fell on."""
        return self

    @property
    def keeps_mean_labels(self) -> bool:
        """Whether labels stay those of the sources' mean: what the method and the way to combine promise together.

        Examples
        --------
        >>> import veridical as vd
        >>> vd.Temperature().keeps_mean_labels, vd.Temperature(combine="log-pool").keeps_mean_labels
        (True, False)
        """
        return self.keeps_labels and self.combine in label_keeping_combiners()

    def check_parameters(self) -> None:
        """Raise :class:`veridical.errors.ParameterError` where a parameter is none that ``fit`` accepts."""
        check_choice(self.combine, self.combiners, f"combine for {self.name}")
        check_choice(self.kind, INPUT_KINDS, "kind")
        check_sources_axis(self.sources_axis)
        check_choice(self.missing, ("raise", "skip"), "missing")
        resolve_threads(self.n_threads)

    def load_kernels(self) -> Self:
        """Load the compiled kernels now and have them answer for inputs of any size; returns the calibrator itself.

        Without this, NumPy answers for at most 64 samples, so that no process waits for a compiler.  A server that
        stays up calls it once: where ``veridical compile`` was run it takes about a second.
        """
        self.check_fitted()
        chosen = self.fitted_calibrator
        vars(chosen)["small_inputs_compiled"] = True  # of this calibrator; its class leaves them to NumPy
        if chosen.combiner_.name != "mean" or chosen.kind_of_arrays != chosen.kind or chosen.kind == "binary":
            return self  # small inputs of these go the ordinary way
        probs = np.full((chosen.n_sources_, 1, chosen.n_classes_), 0.4 / (chosen.n_classes_ - 1))
        probs[:, :, 0] = 0.6
        scores = np.moveaxis(probs if chosen.kind == "probs" else np.log(probs), 0, chosen.sources_axis)
        for dtype in (np.float32, np.float64):
            chosen.predict_all(scores.astype(dtype))
        return self

    #: Whether the kernels answer for small inputs, too: see :meth:`load_kernels`.
    small_inputs_compiled: ClassVar[Any] = False

    # What a method writes -----------------------------------------------------------------------------------------

    #: Whether :meth:`formula` returns distributions, and not the predicted label's confidence.
    whole_vectors: ClassVar[bool] = False
    #: Whether the method's numbers depend on how many sources there are.
    fixed_number_of_sources: ClassVar[bool] = False
    #: Names of the fitted attributes, which are saved and restored: numbers, strings, None or float64 arrays.
    _state: ClassVar[tuple[str, ...]] = ()

    def _fit(self, combined: Combined, labels: Labels) -> None:
        """Set the attributes named in ``_state``."""
        self._fit_pairs(combined.confidence, combined.correct(labels), single=combined.dtype != np.float64)

    def _fit_pairs(
        self, confidence: Floats, correct: npt.NDArray[np.bool_], weight: Floats | None = None, *, single: bool = False
    ) -> None:
        """``_fit`` for methods that need only these.

        ``weight`` is how many samples a pair stands for, ``single`` whether confidences come from single precision.
        """
        raise NotImplementedError

    def formula(self, xp: Any, combined: Any) -> Any:
        """What the fitted method makes of combined samples.

        Parameters
        ----------
        xp : namespace
            Functions of the array API standard: NumPy, those of another library, or those that write an ONNX graph.
        combined
            The samples: ``probs`` (N, L), ``prediction`` (N,), its ``confidence`` (N,), ``hv`` (N,), ``truth.probs``
            and ``geometric_mean`` (N, L), all in float64 where there is such a type; ``n_sources`` and ``n_classes``.
            ``constant(values)`` makes an array of a fitted attribute.

        Returns
        -------
        (N,) confidences of the predicted label, or (N, L) positive numbers, which are scaled to distributions, where
        ``whole_vectors`` is set.  A new array: nothing of ``combined`` is changed.
        """
        raise NotImplementedError

    def _check_state(self) -> None:
        """Raise ValueError where a restored state is none that a fit leaves behind."""

    def _predictions(self, values: Any, kind: InputKind | None = None) -> Predictions:
        """``values`` as predictions; ``kind`` is that of arrays, by default the parameter."""
        return predictions_for(self, values, self.kind if kind is None else kind)

    @property
    def kind_of_arrays(self) -> InputKind:
        """Kind of the arrays to predict for: the parameter, or that of the fit where the parameter is the default."""
        kind: InputKind = getattr(self, "kind_", self.kind) if self.kind == "probs" else self.kind
        return kind

    def new_predictions(self, values: Any) -> Predictions:
        """What a fitted calibrator predicts for: arrays are of the kind that it was fitted on."""
        self.check_fitted()
        if isinstance(values, Predictions):
            return self._predictions(values)
        kind = self.kind_of_arrays
        if kind != "binary" and self.n_sources_ > 1 and not self.needs_sources:
            reject_two_dimensions(values, self.n_sources_)
        if kind == "logits" != self.kind:
            return remembered_logits(self._predictions(values, "probs"))
        return self._predictions(values, kind)

    def check_fitted(self) -> None:
        """Raise :class:`veridical.errors.UnfittedError`, also scikit-learn's NotFittedError, before ``fit``."""
        if not hasattr(self, "n_classes_"):
            raise unfitted_error()(
                f"this {type(self).__name__} is not fitted; call fit with labelled predictions first."
            )

    def predict_combined(self, combined: Any, wanted: str = "predict_all") -> Any:
        """What the method called ``wanted`` returns for combined samples, of any library."""
        return combined.over_samples(partial(results, self, wanted))

    def combine_new(self, values: Any) -> Combined:
        """New predictions combined as those of the fit were, on one axis of samples."""
        predictions = self.new_predictions(values).flat()
        check_classes(self, predictions)
        combiner, predictions = match_sources(self, predictions)
        return combiner.apply(predictions, self)

    def _combine_array(self, values: Any) -> Combined | None:
        """A small array that fits, in the shortest way; None for everything else."""
        kind, values = self.kind, plain_array(values, self.sources_axis)
        if values is None or self.combiner_.name != "mean" or self.kind_of_arrays != kind:
            return None
        combined = None if kind == "binary" else combine_array(values, kind, self.sources_axis, self)
        fits = combined is not None and combined.n_classes == self.n_classes_
        return combined if fits and values.shape[self.sources_axis] == self.n_sources_ else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.two_d_array = not self.needs_sources
        tags.input_tags.positive_only = self.kind == "probs"
        tags.classifier_tags.poor_score = True
        return tags
