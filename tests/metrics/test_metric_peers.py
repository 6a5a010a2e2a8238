"""Side by side with other libraries: where results agree, and where they differ on purpose.

A test is skipped if its peer is not installed; the extra ``peers`` has all of them.
"""

import warnings

import naive
import numpy as np
import pytest

from veridical import metrics
from veridical.metrics.kde import ReflectingGrid

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore"),  # warnings of the peers
]


def peer(name):
    """The module of a peer; warnings at import are ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


@pytest.fixture
def predictions(rng):
    """Over-confident distributions over five classes, and labels."""
    logits = 2 * rng.standard_normal((3000, 5))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (probs.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1)
    sharp = probs**1.7
    return labels, sharp / sharp.sum(axis=1, keepdims=True)


def outcomes_of(predictions):
    labels, probs = predictions
    return probs.argmax(axis=1) == labels, probs.max(axis=1)


def torchmetrics_error(labels, probs, **options):
    peer("torchmetrics")
    torch = peer("torch")
    from torchmetrics.functional.classification import multiclass_calibration_error

    tensors = torch.tensor(np.asarray(probs, dtype=np.float64)), torch.tensor(np.asarray(labels))
    return float(multiclass_calibration_error(*tensors, num_classes=np.shape(probs)[1], **options))


class TestTorchmetrics:
    @pytest.mark.parametrize("n_bins", [1, 5, 15, 40])
    @pytest.mark.parametrize(("norm", "theirs"), [(1, "l1"), (2, "l2"), ("max", "max")])
    def test_equal_width(self, predictions, n_bins, norm, theirs):
        expected = torchmetrics_error(*predictions, n_bins=n_bins, norm=theirs)
        error = metrics.ece(*predictions, n_bins=n_bins, binning="width", norm=norm)
        assert error == pytest.approx(expected, abs=1e-6)

    def test_confidence_of_exactly_one_is_not_a_bin_of_its_own(self):
        labels, probs = [1, 0], [[1.0, 0.0], [0.99, 0.01]]
        # Both lie in (14/15, 1], where mean confidence is 0.995 and accuracy 0.5.
        assert metrics.ece(labels, probs, binning="width") == pytest.approx(0.495)
        assert torchmetrics_error(labels, probs, n_bins=15) == pytest.approx(0.505)

    def test_bins_are_closed_above(self):
        """0.6 belongs to (0.4, 0.6] here and to [0.6, 0.8) there."""
        labels, probs = [0, 1], [[0.6, 0.4], [0.7, 0.3]]
        assert metrics.ece(labels, probs, n_bins=5, binning="width") == pytest.approx((0.4 + 0.7) / 2)
        assert torchmetrics_error(labels, probs, n_bins=5) == pytest.approx(0.15)

    def test_top_label_of_two_classes(self):
        """Their binary error is that of the positive class, not of the top label."""
        torch = peer("torch")
        peer("torchmetrics")
        from torchmetrics.functional.classification import binary_calibration_error

        positive, labels = np.array([0.1, 0.9]), np.array([0, 0])
        assert metrics.ece(labels, np.column_stack((1 - positive, positive)), n_bins=1) == pytest.approx(0.4)
        theirs = binary_calibration_error(torch.tensor(positive), torch.tensor(labels), n_bins=1)
        assert float(theirs) == pytest.approx(0.5)


class TestRelplot:
    def test_smooth_ece(self, predictions):
        relplot = peer("relplot")
        correct, confidence = outcomes_of(predictions)
        # Their bandwidth is searched in ten halvings of [0, 1], ours to 1e-9.
        expected = relplot.smECE(confidence, correct.astype(float))
        assert metrics.smooth_ece(correct, confidence) == pytest.approx(expected, abs=2e-3)

    def test_smooth_ece_at_our_bandwidth(self, predictions, monkeypatch):
        """Their error at our bandwidth, on a finer mesh, is that bandwidth."""
        peer("relplot")
        from relplot import config
        from relplot.metrics import smECE_sigma

        monkeypatch.setattr(config, "smECE_mesh_pts", 20_001)
        correct, confidence = outcomes_of(predictions)
        inner = 0.05 + 0.9 * confidence
        sigma = metrics.smooth_ece(correct, inner)
        assert smECE_sigma(inner, correct.astype(float), sigma) == pytest.approx(sigma, abs=5e-5)

    def test_mirror_images_at_the_ends(self, monkeypatch):
        """A confidence of 1 is its own mirror image and counts twice; they count it once, and lose half of it."""
        peer("relplot")
        from relplot import config
        from relplot.metrics import smECE_sigma

        monkeypatch.setattr(config, "smECE_mesh_pts", 20_001)
        confidence, correct = np.array([1.0] * 10 + [0.5] * 10), np.array([True] * 10 + [False] * 10)
        sigma = metrics.smooth_ece(correct, confidence)
        assert sigma == pytest.approx(0.25, abs=1e-6)  # half of the samples are right, the others off by 0.5
        assert naive.smooth_ece_at(confidence, correct, sigma, 400) == pytest.approx(sigma, abs=1e-4)
        assert smECE_sigma(confidence, correct.astype(float), sigma) > 0.3

    def test_confidence_of_exactly_one_is_not_a_bin_of_its_own(self):
        peer("relplot")
        from relplot.metrics import binnedECE

        confidence, correct = np.array([1.0, 0.95]), np.array([False, True])
        assert metrics.ece(correct, confidence, n_bins=10, binning="width") == pytest.approx(0.475)
        assert binnedECE(confidence, correct.astype(float), nbins=10) == pytest.approx(0.525)


class TestUncertaintyCalibration:
    @pytest.mark.parametrize("n_bins", [1, 5, 15])
    def test_debiased(self, predictions, n_bins):
        """Their estimator on our bins; they put edges halfway between samples, we at samples."""
        utils = peer("calibration.utils")
        correct, confidence = outcomes_of(predictions)
        bins = list(metrics.bin_edges(confidence, n_bins)[1:])
        binned = utils.bin(list(zip(confidence, correct.astype(float), strict=True)), bins)
        expected = utils.unbiased_l2_ce(binned)
        assert metrics.debiased_ece(correct, confidence, n_bins=n_bins) == pytest.approx(expected, abs=1e-9)

    def test_debiased_on_their_own_bins(self, predictions):
        calibration = peer("calibration")
        expected = calibration.lower_bound_scaling_top_ce(predictions[1], predictions[0], num_bins=15)
        assert metrics.debiased_ece(*predictions) == pytest.approx(expected, abs=2e-3)

    def test_equal_width(self, predictions):
        calibration = peer("calibration")
        labels, probs = predictions
        expected = calibration.get_ece(probs, labels, num_bins=15)
        assert metrics.ece(labels, probs, binning="width") == pytest.approx(expected, abs=1e-9)

    def test_number_of_bins_is_kept(self):
        """Where many confidences are equal, their five equal-mass bins are three."""
        utils = peer("calibration.utils")
        confidence = np.array([0.9] * 6 + [0.5, 0.95, 0.97, 0.99])
        assert len(utils.get_equal_bins(list(confidence), num_bins=5)) < 5
        assert len(metrics.bin_edges(confidence, 5)) == 6


class TestKDEpy:
    @pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.3])
    def test_density(self, rng, bandwidth):
        kdepy = peer("KDEpy")
        confidence = rng.beta(5, 1, 2000)
        grid = ReflectingGrid.around(confidence, bandwidth)
        masses = np.zeros(grid.n_cells + 1)
        position = (confidence - grid.origin) / grid.step
        below = np.minimum(position.astype(int), grid.n_cells - 1)
        np.add.at(masses, below, 1 - (position - below))
        np.add.at(masses, below + 1, position - below)
        density_on_grid = grid.smooth(masses, grid.kernel_spectrum()) / grid.step / len(confidence)
        mirrored = np.concatenate((confidence, -confidence, 2 - confidence))
        wide = np.linspace(-1.5, 2.5, 2**15)
        density = kdepy.FFTKDE(bw=bandwidth, kernel="triweight").fit(mirrored).evaluate(wide) * 3
        np.testing.assert_allclose(
            density_on_grid, np.interp(grid.nodes, wide, density), atol=2e-3 * density_on_grid.max()
        )


class TestScikitLearn:
    def test_proper_scores(self, predictions, rng):
        from sklearn.metrics import brier_score_loss, log_loss

        labels, probs = predictions
        weight = rng.random(len(labels))
        assert metrics.nll(labels, probs) == pytest.approx(log_loss(labels, probs))
        assert metrics.nll(labels, probs, sample_weight=weight) == pytest.approx(
            log_loss(labels, probs, sample_weight=weight)
        )
        two = np.column_stack((probs[:, 0], 1 - probs[:, 0]))
        once = brier_score_loss(labels != 0, two[:, 1])
        assert metrics.brier((labels != 0).astype(int), two) == pytest.approx(2 * once)  # over both classes

    def test_error_auroc(self, predictions, rng):
        from sklearn.metrics import roc_auc_score

        correct, confidence = outcomes_of(predictions)
        weight, doubt = rng.integers(0, 3, len(correct)), np.round(rng.random(len(correct)), 2)
        assert metrics.error_auroc(correct, confidence) == pytest.approx(roc_auc_score(~correct, -confidence))
        auroc = metrics.error_auroc(correct, confidence, doubt=doubt, sample_weight=weight)
        assert auroc == pytest.approx(roc_auc_score(~correct, doubt, sample_weight=weight))

    def test_nll_of_impossible_label_is_infinite(self):
        """They clip probabilities at machine epsilon: the loss of an impossible label is 36; here it is infinite."""
        from sklearn.metrics import log_loss

        labels, probs = [1, 0], [[1.0, 0.0], [0.5, 0.5]]
        assert metrics.nll(labels, probs) == np.inf
        assert log_loss(labels, probs) < 20

    def test_accuracy(self, predictions):
        from sklearn.metrics import accuracy_score

        labels, probs = predictions
        assert metrics.accuracy(labels, probs) == accuracy_score(labels, probs.argmax(axis=1))
