"""Nothing on the array path reads an array's numbers on the host, but for single answers such as "are all valid?"."""

import numpy as np
import pytest
import torch
from calibration_cases import NAMES, labelled_ensemble

import veridical as vd
from veridical import metrics
from veridical.arrays import array_path

pytestmark = pytest.mark.compiled

#: Larger than any array that depends on the number of sources or classes alone, smaller than one that has the samples.
MOST_NUMBERS = 100


class Refusing(torch.Tensor):
    """A tensor that stays where it is: its numbers are not copied, listed or shared; so are all that come of it."""

    def _refuse(self, *args, **kwargs):
        if self.numel() <= MOST_NUMBERS:
            return
        raise AssertionError(f"an array of shape {tuple(self.shape)} left its device")

    def numpy(self, *args, **kwargs):
        self._refuse()
        return super().numpy(*args, **kwargs)

    def cpu(self, *args, **kwargs):
        self._refuse()
        return super().cpu(*args, **kwargs)

    def tolist(self):
        self._refuse()
        return super().tolist()

    def __array__(self, *args, **kwargs):
        self._refuse()
        return super().__array__(*args, **kwargs)

    def __dlpack__(self, *args, **kwargs):
        self._refuse()
        return super().__dlpack__(*args, **kwargs)


def refusing(values):
    return torch.from_numpy(values).as_subclass(Refusing)


def numbers(tensor):
    return tensor.as_subclass(torch.Tensor).detach().numpy()


def test_unreadable_tensor_refuses_conversion(rng):
    tensor = refusing(rng.random((3, 40, 4)))
    for read in (np.asarray, np.from_dlpack, lambda values: values.numpy(), lambda values: (values + 1).tolist()):
        with pytest.raises(AssertionError, match="left its device"):
            read(tensor)


def test_discover(rng):
    probs = rng.dirichlet(np.ones(4), size=(5, 60))
    expected = vd.discover(probs, trace=True)
    with array_path():
        truth = vd.discover(refusing(probs), trace=True)
    for field in ("probs", "reliability", "hv", "prediction", "n_iter", "converged", "trace"):
        assert isinstance(getattr(truth, field), Refusing)
        np.testing.assert_allclose(numbers(getattr(truth, field)), getattr(expected, field), atol=1e-9)


@pytest.mark.parametrize("missing", ["skip", "raise"])
def test_consensus(missing, rng):
    probs = labelled_ensemble(rng)[0].astype(np.float64)
    if missing == "skip":
        probs[0, ::3] = np.nan
    with array_path():
        result = vd.consensus(refusing(probs), missing=missing)
    np.testing.assert_allclose(numbers(result.probs), vd.consensus(probs, missing=missing).probs, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "auto"])
def test_calibrators(name, rng):
    probs, labels = labelled_ensemble(rng)
    calibrator = vd.calibrators()[name]().fit(probs, labels)
    new = labelled_ensemble(rng)[0]
    with array_path():
        answers = calibrator.predict_all(refusing(new))
    for result, wanted in zip(answers, calibrator.predict_all(new), strict=True):
        assert isinstance(result, Refusing)
        np.testing.assert_allclose(numbers(result), wanted, atol=1e-5)


@pytest.mark.parametrize("combine", ["consensus", "aconsensus", "linear-pool", "log-pool", "tde"])
def test_combiners_with_absent_sources(combine, rng):
    probs, labels = labelled_ensemble(rng)
    probs = probs.astype(np.float64)
    probs[0, ::3] = np.nan
    calibrator = vd.Temperature(combine=combine, missing="skip").fit(probs, labels)
    with array_path():
        answers = calibrator.predict_proba(refusing(probs))
    np.testing.assert_allclose(numbers(answers), calibrator.predict_proba(probs), atol=1e-6)


def test_metrics_copy_one_number_per_sample(rng):
    probs, labels = labelled_ensemble(rng)
    mean = probs.mean(axis=0).astype(np.float64)

    class Distributions(Refusing):
        """Refuses only for whole distributions."""

        def _refuse(self, *args, **kwargs):
            if self.ndim > 1:
                super()._refuse()

    tensor = torch.from_numpy(mean).as_subclass(Distributions)
    with array_path():
        for metric in ("ece", "ece_kde", "ks_error", "nll", "brier", "accuracy", "smooth_ece"):
            function = getattr(metrics, metric)
            assert function(labels, tensor) == pytest.approx(function(labels, mean), abs=1e-9)
        with pytest.raises(AssertionError, match="left its device"):
            metrics.classwise_ece(labels, tensor)  # which needs them whole
