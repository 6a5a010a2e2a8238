"""Calibrators under the rule of ``rule.py``: parameters, fits, predictions, and what is saved and read again."""

from __future__ import annotations

import numpy as np
import pytest
from cases import cases, often
from hunting import hunted
from hypothesis import given
from hypothesis import strategies as st
from odd_values import mostly, odd_values
from rule import check_call
from strategies import arguments

import veridical as vd
from veridical.backends.foreign import to_host

pytestmark = pytest.mark.compiled

#: The automatic choice fits many others.
SLOW = {"auto": 1, "matrix": 2}


def check_distributions(probs, what):
    """Rows that sum to one, within the precision of their type."""
    probs = to_host(probs)
    assert ((probs >= 0) & (probs <= 1)).all(), f"{what}: {probs}"
    assert np.allclose(probs.sum(axis=-1), 1, atol=1e-4), f"{what}: {probs.sum(axis=-1)}"


@pytest.mark.parametrize("name", vd.calibrators())
def test_calibrator(name, tmp_path):
    method = vd.calibrators()[name]
    path = tmp_path / "calibrator.json"

    @hunted(SLOW.get(name, 4))
    @given(st.data())
    def keeps_the_rule(data):
        case = data.draw(cases())
        calibrator = check_call(name, method, **data.draw(arguments(method, case)))
        if calibrator is None:
            return
        used = data.draw(mostly(often(case.ensemble, [case.vectors])))
        fitted = check_call(name, calibrator.fit, used, data.draw(mostly(often(case.labels, [None]))))
        if fitted is None:
            check_call(name, calibrator.predict_proba, case.ensemble)
            return
        for values in (used, data.draw(cases()).ensemble, data.draw(odd_values())):
            probs = check_call(name, fitted.predict_proba, values)
            if probs is not None:
                check_distributions(probs, name)
            check_call(name, fitted.predict_confidence, values)
            check_call(name, fitted.predict, values)
        check_call(name, vd.apply_calibrator, fitted, case.ensemble)
        check_call(name, vd.inspect_calibrator, fitted)
        check_call(name, vd.choose_threshold, fitted, case.ensemble, case.labels, max_risk=0.5)
        check_call(name, fitted.save, path)
        if path.exists():
            again = vd.load_calibrator(path)
            path.unlink()
            before, after = (check_call(name, c.predict_proba, used) for c in (fitted, again))
            assert before is None or np.array_equal(to_host(before), to_host(after))

    keeps_the_rule()


@hunted(15)
@given(odd_values(), odd_values())
def test_other_objects_as_calibrators(value, other):
    check_call("apply_calibrator", vd.apply_calibrator, value, other)
    check_call("inspect_calibrator", vd.inspect_calibrator, value)
    check_call("choose_threshold", vd.choose_threshold, value, other, max_risk=0.5)
    for name in ("predict", "predict_proba", "predict_confidence", "predict_all", "save"):
        check_call(name, getattr(vd.Temperature(), name), value)
