"""Notes on labels in another order, and on samples that a calibrator was fitted on."""

import re

import numpy as np
import pytest
from programs import veridical_in_process

import veridical as vd
from veridical import scale

pytestmark = pytest.mark.compiled

ORDER = "are the labels in the order of the predictions, and do they name the same classes?"


@pytest.fixture(scope="module")
def predictions():
    return vd.load_demo().select(sources=slice(4), samples=slice(600))


@pytest.fixture(scope="module")
def shuffled(predictions):
    return predictions.with_labels(np.random.default_rng(0).permutation(predictions.labels))


@pytest.mark.filterwarnings("ignore::veridical.errors.NotConvergedWarning")
def test_labels_in_another_order_are_noticed_everywhere(shuffled, tmp_path):
    (note,) = vd.evaluate(shuffled, methods=["mean"], floors=False).notes
    accuracy = (vd.discover(shuffled).prediction == shuffled.labels).mean()
    assert note.startswith(f"Accuracy is {accuracy:.1%}, no better than chance, while the sources agree on 8")
    assert note.endswith(ORDER)
    assert note in vd.inspect(shuffled).warnings
    assert note in vd.fit_calibrator(shuffled, method="temperature").evaluation.notes
    assert vd.build_report(shuffled, method="temperature", intervals=False).data.verdict.startswith(note)
    assert f"Note: {note}" in str(vd.evaluate(shuffled, methods=["mean"], floors=False))
    vd.save(shuffled, tmp_path / "p.npz")
    for command in (["inspect"], ["evaluate", "-m", "mean", "--no-intervals"], ["calibrate", "--method", "ts"]):
        done = veridical_in_process(command[0], tmp_path / "p.npz", *command[1:])
        assert "Note: Accuracy is " in done.stdout
        assert ORDER in " ".join(done.stdout.split())


def one_source(n_classes, n_samples, accuracy, confidence, seed=0):
    """One source that names the label of so many samples, always with this confidence; and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n_samples)
    wrong = (labels + rng.integers(1, n_classes, n_samples)) % n_classes
    named = np.where(rng.random(n_samples) < accuracy, labels, wrong)
    probs = np.full((n_samples, n_classes), (1 - confidence) / (n_classes - 1))
    probs[np.arange(n_samples), named] = confidence
    return probs, labels


def test_shuffled_labels_of_one_confident_source_are_noticed(tmp_path):
    probs, labels = one_source(7, 3000, 0.5, 0.5)
    assert vd.evaluate(probs, labels, methods=["mean"], floors=False).notes == ()
    shuffled = vd.Predictions(probs, np.random.default_rng(1).permutation(labels))
    (note,) = vd.evaluate(shuffled, methods=["mean"], floors=False).notes
    assert re.match(r"Accuracy is 1\d\.\d%, no better than chance, while the mean confidence is 50%: are the", note)
    assert note.endswith(ORDER)
    in_blocks = scale.open(probs, shuffled.labels, block_memory=200_000)
    assert in_blocks.n_blocks > 1
    assert vd.evaluate(in_blocks, methods=["mean"], floors=False).notes == (note,)
    vd.save(shuffled, tmp_path / "p.npz")
    done = veridical_in_process("calibrate", tmp_path / "p.npz", "--method", "ts", "--out", tmp_path / "cal.json")
    assert done.returncode == 2
    assert "Nothing was written." in " ".join(done.stderr.split())
    assert not (tmp_path / "cal.json").exists()


@pytest.mark.parametrize(
    ("n_classes", "n_samples", "accuracy", "confidence"),
    [(7, 300, 1 / 7, 0.17), (100, 2000, 0.01, 0.05), (2, 300, 0.5, 0.65), (7, 40, 1 / 7, 0.4), (7, 300, 0.3, 0.9)],
    ids=["calibrated", "many classes", "two classes", "few samples", "skilled and overconfident"],
)
def test_low_accuracy_of_one_source_needs_no_note(n_classes, n_samples, accuracy, confidence):
    for seed in range(5):
        probs, labels = one_source(n_classes, n_samples, accuracy, confidence, seed)
        assert vd.evaluate(probs, labels, methods=["mean"], floors=False).notes == ()


def test_order_of_one_class_is_not_doubted():
    """A source that names one class, or labels of one class, are right as often in any order."""
    probs, labels = one_source(3, 300, 0.4, 0.9)
    for scores, truth in ((probs, np.zeros(300, int)), (np.broadcast_to([0.9, 0.05, 0.05], (300, 3)), labels)):
        assert vd.evaluate(scores, truth, methods=["mean"], floors=False).notes == ()


def test_right_labels_need_no_note(predictions):
    assert vd.evaluate(predictions, methods=["mean"], floors=False).notes == ()
    assert not any(ORDER in warning for warning in vd.inspect(predictions).warnings)


def test_sources_that_agree_by_chance_need_no_note():
    rng = np.random.default_rng(1)
    probs, labels = rng.dirichlet(np.ones(4), (3, 400)), rng.integers(0, 4, 400)
    assert vd.evaluate(probs, labels, methods=["mean"], floors=False).notes == ()
    constant = np.broadcast_to([0.7, 0.2, 0.1], (3, 400, 3))
    assert vd.evaluate(constant, np.minimum(labels, 2), methods=["mean"], floors=False).notes == ()


def test_frequent_class_is_not_chance_to_beat_by_much():
    """Skilled sources on rare events have an accuracy near the share of the frequent class, but above chance."""
    rng = np.random.default_rng(2)
    labels = (rng.random(2000) < 0.05).astype(int)
    named = np.where(rng.random((3, 2000)) < 0.97, labels, 1 - labels)
    probs = np.where(np.eye(2)[named] > 0, 0.9, 0.1)
    assert vd.evaluate(probs, labels, methods=["mean"], floors=False).notes == ()


@pytest.mark.parametrize("method", ["temperature", "ptde"])
def test_calibrator_on_its_own_samples_is_noticed(predictions, method, tmp_path):
    vd.fit_calibrator(predictions, method=method).calibrator.save(tmp_path / "cal.json")
    options = {"methods": ["mean", str(tmp_path / "cal.json")], "floors": False}
    (note,) = vd.evaluate(predictions, **options).notes
    assert "(cal.json) was fitted on these very samples: its figures are in-sample" in note
    other = vd.load_demo().select(sources=slice(4), samples=slice(600, 1200))
    assert vd.evaluate(other, **options).notes == ()
