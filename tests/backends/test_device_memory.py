"""Nothing on the array path reads an array's numbers on the host, but for single answers such as "are all valid?"."""

import array_api_strict
import numpy as np
import pytest
import torch
from calibration_cases import NAMES, labelled_ensemble

import veridical as vd
from veridical import metrics
from veridical.backends import array_path
from veridical.backends.foreign import to_host

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


DEVICE = array_api_strict.Device("device1")
_Array = type(array_api_strict.asarray(0.0))


def on_device(values):
    """An array of a strict library whose device NumPy cannot read."""
    return array_api_strict.asarray(values, device=DEVICE)


@pytest.fixture
def no_way_to_the_host(monkeypatch):
    """Refuse copies of whole arrays to the host; returns a function that sets what is whole."""
    move, is_whole = _Array.to_device, [lambda array: array.size > MOST_NUMBERS]

    def to_device(array, device, /, **options):
        if "CPU_DEVICE" in str(device) and array.device == DEVICE and is_whole[0](array):
            raise AssertionError(f"an array of shape {array.shape} left its device")
        return move(array, device, **options)

    monkeypatch.setattr(_Array, "to_device", to_device)
    yield lambda rule: is_whole.__setitem__(0, rule)
    is_whole[0] = lambda array: False


def test_simulated_device_refuses_conversion(no_way_to_the_host, rng):
    array = on_device(rng.random((3, 40, 4)))
    with pytest.raises(AssertionError, match="left its device"):
        to_host(array)
    with pytest.raises(RuntimeError, match="device"):
        np.asarray(array)


def test_discover_and_consensus_on_a_simulated_device(no_way_to_the_host, rng):
    probs = labelled_ensemble(rng)[0].astype(np.float64)
    truth, agreed = vd.discover(on_device(probs)), vd.consensus(on_device(probs))
    no_way_to_the_host(lambda array: False)
    for result, expected in ((truth, vd.discover(probs)), (agreed, vd.consensus(probs))):
        assert result.probs.device == DEVICE
        np.testing.assert_allclose(to_host(result.probs), expected.probs, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "auto"])
def test_calibrators_on_a_simulated_device(name, no_way_to_the_host, rng):
    probs, labels = labelled_ensemble(rng)
    calibrator = vd.calibrators()[name]().fit(probs, labels)
    new = labelled_ensemble(rng)[0]
    answers = calibrator.predict_all(on_device(new))
    no_way_to_the_host(lambda array: False)
    for result, expected in zip(answers, calibrator.predict_all(new), strict=True):
        assert result.device == DEVICE
        np.testing.assert_allclose(to_host(result), expected, atol=1e-5)


def test_metrics_on_a_simulated_device_copy_one_number_per_sample(no_way_to_the_host, rng):
    probs, labels = labelled_ensemble(rng)
    mean = probs.mean(axis=0).astype(np.float64)
    no_way_to_the_host(lambda array: array.ndim > 1)
    for metric in ("ece", "ece_kde", "ks_error", "nll", "brier", "accuracy", "smooth_ece"):
        function = getattr(metrics, metric)
        assert function(on_device(labels), on_device(mean)) == pytest.approx(function(labels, mean), abs=1e-9)
