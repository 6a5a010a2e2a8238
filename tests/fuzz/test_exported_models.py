"""ONNX export under the rule of ``rule.py``: a model that gives distributions, or a refusal."""

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
from veridical.export import make_onnx, save_onnx

pytestmark = pytest.mark.compiled


@pytest.mark.parametrize("name", [name for name in vd.calibrators() if name != "auto"])
def test_exported_calibrator(name, tmp_path):
    import onnxruntime

    method = vd.calibrators()[name]
    path = tmp_path / "model.onnx"

    @hunted(1)
    @given(st.data())
    def keeps_the_rule(data):
        case = data.draw(cases(most_samples=40))
        calibrator = check_call(name, method, **data.draw(arguments(method, case)))
        if calibrator is None or check_call(name, calibrator.fit, case.scores, case.labels) is None:
            return
        check_call("make_onnx", make_onnx, calibrator, dtype=data.draw(mostly(often("float64", ("float32",)))))
        check_call("save_onnx", save_onnx, calibrator, path)
        if not path.exists():
            return
        session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
        path.unlink()
        known = session.get_inputs()[0]
        assert known.name == "predictions"
        if check_call(name, calibrator.predict_proba, case.scores) is not None and case.n_samples:
            probs = session.run(["probs"], {"predictions": case.scores.astype(np.float32)})[0]
            assert np.isfinite(probs).all() or case.scores.dtype != np.float64

    keeps_the_rule()


@hunted(10)
@given(odd_values(), odd_values())
def test_other_objects_as_exports(tmp_path_factory, value, other):
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    check_call("save_onnx", save_onnx, value, path)
    check_call("make_onnx", make_onnx, value)
    check_call("save_onnx", save_onnx, vd.Temperature(), other)
    assert not path.exists()
