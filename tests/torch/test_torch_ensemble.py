"""An ensemble of networks as one module."""

import os
import shutil

import numpy as np
import pytest
import torch
from torch import nn

import veridical as vd
from veridical.errors import ParameterError, ShapeError

pytestmark = pytest.mark.compiled

N_SOURCES, N_FEATURES, N_CLASSES = 5, 8, 4


@pytest.fixture(scope="module")
def networks():
    torch.manual_seed(0)
    return [make_network() for _ in range(N_SOURCES)]


def make_network():
    """A linear readout of the informative features, disturbed: members that are often right, and differ."""
    network = nn.Sequential(nn.Linear(N_FEATURES, 16), nn.Tanh(), nn.Linear(16, N_CLASSES))
    with torch.no_grad():
        network[0].weight[:N_CLASSES] += 0.5 * torch.eye(N_CLASSES, N_FEATURES)
        network[2].weight[:, :N_CLASSES] += 4 * torch.eye(N_CLASSES)
    return network


@pytest.fixture(scope="module")
def batches():
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(600, N_FEATURES, generator=generator)
    labels = (inputs[:, :N_CLASSES] + 0.5 * torch.randn(600, N_CLASSES, generator=generator)).argmax(dim=1)
    return [(inputs[start : start + 200], labels[start : start + 200]) for start in range(0, 600, 200)]


@pytest.fixture(scope="module")
def new_inputs():
    """Not those of the fit, whose scores are edges of bins: there the last bit decides."""
    return torch.randn(200, N_FEATURES, generator=torch.Generator().manual_seed(2))


CALIBRATORS = [
    vd.Temperature(), vd.PTDE(random_state=0), vd.TruthLogit(), vd.VectorScaling(combine="log-pool"),
    vd.Spline(combine="atde"),
]  # fmt: skip


@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=lambda calibrator: calibrator.name)
def test_module_returns_what_the_calibrator_returns(networks, batches, new_inputs, calibrator):
    ensemble, inputs = vd.torch.CalibratedEnsemble(networks, calibrator).fit(batches), new_inputs
    with torch.no_grad():
        scores = np.stack([network(inputs).numpy() for network in networks])
        probs, confidence = ensemble(inputs), ensemble.confidence(inputs)
    expected = vd.Predictions(scores, kind="logits")
    np.testing.assert_allclose(probs.numpy(), calibrator.predict_proba(expected), atol=1e-5)
    np.testing.assert_allclose(confidence.numpy(), calibrator.predict_confidence(expected), atol=1e-5)


@pytest.mark.parametrize(
    "calibrator", [CALIBRATORS[0], CALIBRATORS[1], CALIBRATORS[3]], ids=lambda calibrator: calibrator.name
)
def test_export_takes_the_module(networks, batches, new_inputs, calibrator):
    ensemble = vd.torch.CalibratedEnsemble(networks, calibrator).fit(batches).eval()
    inputs = new_inputs
    exported = torch.export.export(ensemble, (inputs[:7],), dynamic_shapes=({0: torch.export.Dim("n", min=2)},))
    with torch.no_grad():
        np.testing.assert_allclose(exported.module()(inputs).numpy(), ensemble(inputs).numpy(), atol=1e-6)


def test_compile_takes_the_module(networks, batches, new_inputs):
    ensemble = vd.torch.CalibratedEnsemble(networks, vd.PTDE(random_state=0)).fit(batches).eval()
    compiled = torch.compile(ensemble, backend="aot_eager", fullgraph=True)
    inputs = new_inputs
    with torch.no_grad():
        np.testing.assert_allclose(compiled(inputs).numpy(), ensemble(inputs).numpy(), atol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # of torch.jit, which the code generator imports
@pytest.mark.skipif(shutil.which(os.environ.get("CXX", "g++")) is None, reason="no C++ compiler on this machine")
def test_compile_takes_the_module_with_its_default_backend(networks, batches, new_inputs):
    """One method: torch.compile's own code generator takes a minute for truth discovery."""
    ensemble = vd.torch.CalibratedEnsemble(networks, vd.Temperature()).fit(batches).eval()
    compiled = torch.compile(ensemble, fullgraph=True)
    with torch.no_grad():
        np.testing.assert_allclose(compiled(new_inputs).numpy(), ensemble(new_inputs).numpy(), atol=1e-5)


@pytest.mark.parametrize("calibrator", [vd.IROvA(), vd.Identity(combine="consensus")], ids=["irova", "consensus"])
def test_compile_breaks_the_graph_where_constants_decide(networks, batches, new_inputs, calibrator):
    ensemble = vd.torch.CalibratedEnsemble(networks, calibrator).fit(batches).eval()
    compiled = torch.compile(ensemble, backend="eager")
    with torch.no_grad():
        np.testing.assert_allclose(compiled(new_inputs).numpy(), ensemble(new_inputs).numpy(), atol=1e-6)


def test_members_move_train_and_save_with_the_module(networks, batches):
    ensemble = vd.torch.CalibratedEnsemble(networks, vd.Temperature()).fit(batches)
    assert ensemble.training
    assert len(list(ensemble.parameters())) == 4 * N_SOURCES
    assert ensemble.double()(batches[0][0].double()).dtype == torch.float64
    assert ensemble.float()(batches[0][0]).dtype == torch.float32
    inputs = batches[0][0].clone().requires_grad_()
    ensemble(inputs)[:, 0].log().sum().backward()
    assert torch.isfinite(inputs.grad).all()
    assert "Temperature()" in repr(ensemble)


def test_probabilities_instead_of_logits(networks, batches):
    soft = [nn.Sequential(network, nn.Softmax(dim=1)) for network in networks]
    inputs = batches[0][0]
    by_logits = vd.torch.CalibratedEnsemble(networks, vd.Temperature()).fit(batches)(inputs)
    by_probs = vd.torch.CalibratedEnsemble(soft, vd.Temperature(), kind="probs").fit(batches)(inputs)
    torch.testing.assert_close(by_logits, by_probs, atol=1e-4, rtol=1e-4)


def test_bad_input(networks, batches):
    with pytest.raises(ParameterError, match="there are no modules"):
        vd.torch.CalibratedEnsemble([], vd.Temperature())
    with pytest.raises(ParameterError, match=r"module 0 is 3; give an nn\.Module"):
        vd.torch.CalibratedEnsemble([3], vd.Temperature())
    with pytest.raises(ParameterError, match=r"give one of veridical\.calibrators"):
        vd.torch.CalibratedEnsemble(networks, "temperature")
    with pytest.raises(vd.errors.UnfittedError, match="not fitted"):
        vd.torch.CalibratedEnsemble(networks, vd.Temperature())(batches[0][0])
    with pytest.raises(ShapeError, match="there are no batches"):
        vd.torch.CalibratedEnsemble(networks, vd.Temperature()).fit([])
    calibrator = vd.torch.CalibratedEnsemble(networks, vd.PTDE()).fit(batches).calibrator
    with pytest.raises(ShapeError, match="fitted for 5 sources and 4 classes"):
        vd.torch.CalibratedEnsemble(networks[:2], calibrator)(batches[0][0])
