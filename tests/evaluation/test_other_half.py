"""Scores with the halves swapped, and which method is judged."""

import numpy as np
import pytest
from ensembles import random_ensemble

import veridical as vd
from veridical.evaluation.choice import Rule, Situation
from veridical.evaluation.engine import half_split
from veridical.report import calibrate_with_report

pytestmark = pytest.mark.compiled


@pytest.fixture
def predictions(rng):
    probs = random_ensemble(rng, 4, 600, 3)
    return vd.Predictions(probs, np.array([rng.choice(3, p=row) for row in probs.mean(axis=0)]))


def swapped_ece(predictions, calibrator):
    split = half_split(predictions, 0)
    fit, test = (predictions.select(samples=part) for part in (split.scored_on, split.fitted_on))
    return vd.metrics.ece(test.labels, calibrator.fit(fit).predict_proba(test))


def test_other_half_is_that_of_a_fit_on_the_scored_half(predictions):
    evaluation = vd.fit_calibrator(predictions, method="spline").evaluation
    assert [scores.method for scores in evaluation.other_half] == ["mean", "spline"]
    for name, calibrator in {"mean": vd.Identity(), "spline": vd.Spline()}.items():
        (_, swapped) = evaluation.halves(name)
        assert swapped.summary["ece"].value == pytest.approx(swapped_ece(predictions, calibrator))
        assert swapped.summary["ece"].floor_high is not None
    assert evaluation.to_dict()["other_half"][1]["method"] == "spline"


def test_method_is_at_its_floor_only_on_both_halves(predictions):
    calibration = vd.fit_calibrator(predictions, method="spline")
    evaluation, advice = calibration.evaluation, calibration.advice
    for name in ("mean", "spline"):
        both = all(s.summary["ece"].value <= s.summary["ece"].floor_high for s in evaluation.halves(name))
        assert evaluation.is_at_floor(name) == both
        assert advice.confidence[name].at_floor == both


def test_report_swaps_the_halves(predictions):
    data = vd.build_report(predictions, method="temperature", intervals=False).data
    (_, swapped) = data.evaluation.halves("temperature")
    assert swapped.summary["ece"].value == pytest.approx(swapped_ece(predictions, vd.Temperature()))
    assert f"({100 * swapped.summary['ece'].value:.1f}% with the halves swapped)" in data.verdict or (
        data.evaluation.is_at_floor("mean")
    )


class TestAuto:
    """ "auto" chooses one method on the half and another one on all samples."""

    @pytest.fixture
    def choosing(self, monkeypatch):
        """A choice by the number of samples: spline on all 600, temperature on fewer."""

        def rule(situation):
            return Rule({("mean", "spline" if situation.n_labels == 600 else "temperature"): 1e9}, must_help=False)

        monkeypatch.setattr(Situation, "rule", property(rule))

    def test_what_is_saved_has_a_row_and_is_judged(self, choosing, predictions):
        calibration = vd.fit_calibrator(predictions, method="auto", candidates=["temperature", "spline"])
        assert (calibration.chosen, calibration.chosen_on_half) == ("spline on mean", "temperature on mean")
        assert calibration.judged == "spline"
        titles = [scores.title for scores in calibration.evaluation.methods]
        assert titles == ["DE", "Spline", "auto (chose TS on that half)"]
        alone = vd.fit_calibrator(predictions, method="spline").evaluation
        assert calibration.evaluation["spline"].summary == alone["spline"].summary
        assert calibration.advice.method == "spline"

    def test_report_is_about_what_is_saved(self, choosing, predictions):
        calibration, report = calibrate_with_report(predictions, method="auto", candidates=["temperature", "spline"])
        assert (report.data.method, report.data.method_title) == ("spline", "Spline")
        assert report.data.advice == calibration.advice
        plain = vd.fit_calibrator(predictions, method="auto", candidates=["temperature", "spline"])
        assert plain.advice.sentences == calibration.advice.sentences

    def test_one_choice_has_one_row(self, predictions):
        calibration = vd.fit_calibrator(predictions, method="auto", candidates=["temperature"])
        assert calibration.judged == "auto"
        (mean, auto) = calibration.evaluation.methods
        assert (mean.method, auto.method) == ("mean", "auto")
        assert auto.title == f"auto ({calibration.calibrator.best_.title})"
