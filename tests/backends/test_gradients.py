"""Derivatives of the truth vector and of HV through PyTorch, against finite differences."""

import numpy as np
import pytest
import torch

import veridical as vd

pytestmark = pytest.mark.compiled


def normalised(scores):
    """Positive scores as distributions: finite differences must not leave the simplex."""
    return scores / scores.sum(dim=-1, keepdim=True)


def difference_quotient(function, scores, direction, step=1e-6):
    with torch.no_grad():
        return float((function(scores + step * direction) - function(scores - step * direction)) / (2 * step))


def derivative(function, scores, direction):
    scores = scores.clone().requires_grad_()
    function(scores).backward()
    assert torch.isfinite(scores.grad).all()
    return float((scores.grad * direction).sum())


def hv(scores):
    return vd.discover(normalised(scores).requires_grad_(True)).hv.sum()


def weighted_truth(scores):
    probs = vd.discover(normalised(scores).requires_grad_(True)).probs
    return (probs * torch.arange(1.0, probs.shape[1] + 1, dtype=probs.dtype)).sum()


def truth_of_last_class(scores):
    """Does not depend on which of the other classes leads, by a millionth, where they tie."""
    return vd.discover(normalised(scores).requires_grad_(True)).probs[:, -1].sum()


@pytest.mark.parametrize("function", [hv, weighted_truth])
def test_random_samples(function, rng):
    scores = torch.from_numpy(rng.dirichlet(np.ones(5), size=(6, 30)) + 0.05)
    for _ in range(5):
        direction = torch.from_numpy(rng.standard_normal(scores.shape))
        expected = difference_quotient(function, scores, direction)
        assert derivative(function, scores, direction) == pytest.approx(expected, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("function", [hv, truth_of_last_class])
def test_sample_whose_mean_ties(function, rng):
    """The mean of the first two classes ties, and the truth leans to the second: it is held at the boundary."""
    scores = torch.tensor([[[0.6, 0.3, 0.1]], [[0.3, 0.6, 0.1]], [[0.35, 0.35, 0.3]], [[0.42, 0.42, 0.16]]]).double()
    assert vd.discover(normalised(scores)).prediction.item() == 0
    direction = torch.from_numpy(rng.standard_normal(scores.shape))
    direction[:, :, :2] = direction[:, :, :1]  # along the tie: across it, the label changes and HV has a kink
    expected = difference_quotient(function, scores, direction)
    assert derivative(function, scores, direction) == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_unanimous_jury(rng):
    """HV is quadratic around unanimity; the truth moves with all sources together."""
    scores = torch.from_numpy(np.broadcast_to(rng.dirichlet(np.ones(4)), (5, 1, 4)).copy())
    direction = torch.from_numpy(rng.standard_normal(scores.shape))
    assert difference_quotient(hv, scores, direction) == pytest.approx(0.0, abs=1e-5)
    assert derivative(hv, scores, direction) == 0.0
    together = direction[:1].expand_as(scores)
    expected = difference_quotient(weighted_truth, scores, together)
    assert derivative(weighted_truth, scores, together) == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_two_sources_and_certain_sources():
    """Distances of zero, rows with zeros: derivatives stay finite."""
    for values in ([[[1.0, 0.0]], [[0.0, 1.0]]], [[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]]]):
        probs = torch.tensor(values).double().requires_grad_()
        truth = vd.discover(probs)
        (truth.hv.sum() + truth.probs[:, 0].sum()).backward()
        assert torch.isfinite(probs.grad).all()


def test_calibrated_confidence_is_differentiable(rng):
    probs = rng.dirichlet(np.ones(4), size=(5, 400))
    labels = rng.integers(0, 4, 400)
    for calibrator in (vd.Temperature(), vd.LogPool(), vd.Platt()):
        calibrator.fit(probs, labels)
        scores = torch.from_numpy(probs[:, :10].copy())

        def loss(scores, calibrator=calibrator):
            return -torch.log(calibrator.predict_proba(normalised(scores).requires_grad_(True))[:, 0]).sum()

        direction = torch.from_numpy(rng.standard_normal(scores.shape)) * scores
        expected = difference_quotient(loss, scores, direction, step=1e-7)
        assert derivative(loss, scores, direction) == pytest.approx(expected, rel=1e-3)


def test_no_grad_takes_the_compiled_kernels(rng):
    probs = torch.from_numpy(rng.dirichlet(np.ones(4), size=(3, 10))).requires_grad_()
    with torch.no_grad():
        assert not vd.discover(probs).hv.requires_grad
    assert vd.discover(probs).hv.requires_grad
    assert not vd.discover(probs.detach()).hv.requires_grad
