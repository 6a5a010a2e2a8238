"""Other sources than those that a calibrator was fitted on: what is said about them, and where."""

import warnings

import numpy as np
import pytest
from calibration_cases import labelled_ensemble

import veridical as vd
from veridical.errors import ChangedSourcesWarning


@pytest.fixture
def ensemble(rng):
    return labelled_ensemble(rng)


@pytest.mark.parametrize("method", [vd.Temperature(), vd.Temperature(combine="tde"), vd.Platt()], ids=str)
@pytest.mark.parametrize("number", [1, 4, 10])
def test_another_number_of_sources_is_named_once(ensemble, method, number):
    probs, labels = ensemble
    fitted = method.fit(probs, labels)
    others = np.concatenate([probs, probs])[:number]
    expected = r"fitted on 5 sources and (these are|this is) " + str(number) + ";.* fit again"
    for values in (others, others[:, :10], vd.Predictions(others)):
        with pytest.warns(ChangedSourcesWarning, match=expected) as caught:
            fitted.predict_all(values)
        assert len(caught) == 1
        assert caught[0].filename == __file__


def test_apply_calibrator_warns_at_the_line_of_the_caller(ensemble):
    probs, labels = ensemble
    fitted = vd.Temperature().fit(probs, labels)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vd.apply_calibrator(fitted, probs[:4])
    assert [warning.category for warning in caught].count(ChangedSourcesWarning) == 1
    assert {warning.filename for warning in caught} == {__file__}


def test_auto_names_the_numbers_of_sources(ensemble):
    probs, labels = ensemble
    fitted = vd.Auto(random_state=0).fit(probs, labels)
    with pytest.warns(ChangedSourcesWarning, match="fitted on 5 sources and these are 4") as caught:
        fitted.predict(probs[:4])
    assert (len(caught), caught[0].filename) == (1, __file__)


def test_swapped_axes_are_suspected(ensemble):
    probs, labels = ensemble
    fitted = vd.Temperature().fit(probs, labels)
    with pytest.warns(ChangedSourcesWarning, match=rf"these are {len(labels)}; if the axes are swapped, give shape"):
        fitted.predict_proba(probs.transpose(1, 0, 2))


def test_names_tell_which_sources_changed(ensemble):
    probs, labels = ensemble
    fitted = vd.Temperature().fit(vd.Predictions(probs, labels, source_names=list("abcde")))
    with pytest.warns(ChangedSourcesWarning, match=r"5 sources and these are 4 \(fitted on, left out: e\);"):
        fitted.predict(vd.Predictions(probs[:4], source_names=list("abcd")))
    with pytest.warns(ChangedSourcesWarning, match=r"\(not fitted on: x; fitted on, left out: b\)"):
        fitted.predict(vd.Predictions(probs, source_names=list("axcde")))
    many = vd.Predictions(np.concatenate([probs] * 3)[:13], source_names=["a", *(f"n{n}" for n in range(12))])
    with pytest.warns(ChangedSourcesWarning, match=r"not fitted on: n0, .*, n9 and 2 more;"):
        fitted.predict(many)


def test_same_number_of_sources_under_other_names_is_silent(ensemble):
    probs, labels = ensemble
    fitted = vd.Temperature().fit(vd.Predictions(probs, labels, source_names=[f"net{s}_val" for s in range(5)]))
    fitted.predict(vd.Predictions(probs, source_names=[f"net{s}_test" for s in range(5)]))
    fitted.predict(vd.Predictions(probs[::-1], source_names=[f"net{s}_val" for s in reversed(range(5))]))
    fitted.predict(probs)


def test_pools_warn_at_the_line_of_the_caller(ensemble):
    probs, labels = ensemble
    fitted = vd.LinearPool().fit(vd.Predictions(probs, labels, source_names=list("abcde")))
    fewer = vd.Predictions(probs[:4], source_names=list("abcd"))
    for call in (fitted.predict, fitted.predict_all, lambda values: vd.apply_calibrator(fitted, values)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(fewer)
        changed = [warning for warning in caught if warning.category is ChangedSourcesWarning]
        assert "left out: e" in str(changed[0].message)
        assert (len(changed), changed[0].filename) == (1, __file__)


def test_arrays_of_other_libraries_have_their_sources_counted(ensemble):
    torch = pytest.importorskip("torch")
    probs, labels = ensemble
    fitted = vd.Temperature().fit(probs, labels)
    with pytest.warns(ChangedSourcesWarning, match="fitted on 5 sources and these are 4") as caught:
        fitted.predict_proba(torch.tensor(probs[:4]))
    assert caught[0].filename == __file__
