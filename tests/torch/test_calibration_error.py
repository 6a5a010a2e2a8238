"""The calibration metric for validation loops, in one process and across ranks."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

import veridical as vd
from veridical import metrics
from veridical.errors import ParameterError

pytestmark = pytest.mark.compiled


def batches(n_batches=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(n_batches):
        logits = 2 * torch.randn(250, 5, generator=generator)
        yield logits, torch.distributions.Categorical(logits=0.7 * logits).sample()


@pytest.mark.parametrize("metric", ["ece", "ece_width", "ks_error", "nll", "brier", "accuracy", "ece_kde"])
def test_loop_equals_the_metric_of_everything(metric):
    torch.manual_seed(0)
    error = vd.torch.CalibrationError(metric, kind="logits")
    parts = list(batches())
    for logits, labels in parts:
        error.update(logits, labels)
    logits, labels = torch.cat([part for part, _ in parts]), torch.cat([part for _, part in parts])
    probs = torch.softmax(logits.double(), dim=1)
    name = "ece" if metric == "ece_width" else metric
    options = {"binning": "width"} if metric == "ece_width" else {}
    expected = getattr(metrics, name)(labels, probs, **options)
    assert error.compute().item() == pytest.approx(expected, abs=2e-4)
    assert "1,000 samples" in repr(error)


def test_reset_merge_forward_and_checkpoints():
    torch.manual_seed(0)
    parts = [(torch.softmax(logits, dim=1), labels) for logits, labels in batches()]
    whole, first, second = (vd.torch.CalibrationError() for _ in range(3))
    for place, part in enumerate(parts):
        whole.update(*part)
        (first if place < 2 else second).update(*part)
    alone = vd.torch.CalibrationError()
    alone.update(*parts[0])
    assert vd.torch.CalibrationError()(*parts[0]) == alone.compute()
    first.merge_state(second)
    assert first.state == whole.state
    assert first.compute() == whole.compute()
    copy = vd.torch.CalibrationError()
    copy.load_state_dict(json.loads(json.dumps(whole.state_dict())))
    assert copy.compute() == whole.compute()
    whole.reset()
    assert whole.state.n_samples == 0
    whole.update(*parts[0])
    assert whole.compute() == alone.compute()


def test_confidences_and_outcomes():
    error = vd.torch.CalibrationError()
    error.update(torch.tensor([0.75, 0.75, 0.75, 0.75]), torch.tensor([True, True, True, False]))
    assert error.compute().item() == 0.0
    assert error.compute().dtype == torch.get_default_dtype()


def test_bad_input():
    with pytest.raises(ParameterError, match="metric 'mce' is unknown"):
        vd.torch.CalibrationError("mce")
    with pytest.raises(ParameterError, match="give shape"):
        vd.torch.CalibrationError(kind="logits").update(torch.zeros(3), torch.zeros(3, dtype=torch.bool))
    with pytest.raises(ParameterError, match="cannot merge 3"):
        vd.torch.CalibrationError().merge_state(3)


RANK = """
import sys
import torch
import veridical as vd

rank, path = int(sys.argv[1]), sys.argv[2]
torch.distributed.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
generator = torch.Generator().manual_seed(rank)
probs = torch.softmax(2 * torch.randn(300 + 100 * rank, 5, generator=generator), dim=1)
labels = torch.randint(0, 5, (len(probs),), generator=generator)
error = vd.torch.CalibrationError()
error.update(probs, labels)
print(repr(error.compute().item()), vd.torch.CalibrationError(sync_on_compute=False).state.n_samples)
torch.distributed.destroy_process_group()
"""


def test_ranks_are_merged(tmp_path):
    command = [sys.executable, "-c", RANK]
    ranks = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "store")], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    values = [float(process.communicate(timeout=120)[0].split()[0]) for process in ranks]
    parts = []
    for rank in range(2):
        generator = torch.Generator().manual_seed(rank)
        probs = torch.softmax(2 * torch.randn(300 + 100 * rank, 5, generator=generator), dim=1)
        parts.append((probs, torch.randint(0, 5, (len(probs),), generator=generator)))
    whole = vd.torch.CalibrationError()
    for part in parts:
        whole.update(*part)
    assert values[0] == values[1] == pytest.approx(whole.compute().item(), abs=1e-7)
    np.testing.assert_array_equal([whole.state.n_samples], [700])
