"""Every calibrator on distributions whose smaller scores are subnormal, as softmax returns for [740, 0]."""

import numpy as np
import pytest
from calibration_cases import NAMES
from scipy.special import softmax
from test_contract import assert_sane, make

pytestmark = pytest.mark.filterwarnings("ignore::veridical.errors.NotConvergedWarning")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_calibrators_return_distributions_for_subnormal_scores(name, dtype):
    calibrator = make(name).fit(np.array([[[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]] * 3, dtype), [0, 1, 1])
    largest_logits = np.array([[80.0], [88.0], [103.0], [700.0], [740.0], [744.0], [800.0]])
    probs = softmax(np.append(largest_logits, np.zeros((7, 1)), axis=1), axis=1).astype(dtype)
    assert_sane(calibrator, np.array([probs] * 3))
