"""Advice in words and tables, from standings that are written down here."""

import json

import numpy as np
import pytest
from ensembles import random_ensemble

import veridical as vd
from veridical.evaluation.advice import Advantage, Advice, Choice, LabelChange, Standing, advise
from veridical.evaluation.engine import Engine
from veridical.evaluation.evaluating import run_evaluation
from veridical.evaluation.methods import resolve_methods


def standing(method, title, value, behind=0.0, reach=0.0, at_floor=False, ties=True):
    return Standing(method, title, value, behind, behind - reach, behind + reach, at_floor, ties)


def advice_of(confidence, distribution, recommended=("temperature", "temperature"), method="spline", **changes):
    best = confidence[0].method, distribution[0].method
    choices = (
        Choice("confidence", "ece", best[0], recommended[0], tuple(confidence)),
        Choice("distribution", "nll", best[1], recommended[1], tuple(distribution)),
    )
    facts = {"advantages": (), "label_change": None, "n_samples": 1500}
    return Advice(method, *choices, **{**facts, **changes})


DISTRIBUTION = [standing("temperature", "TS", 0.51), standing("spline", "Spline", 0.52, 0.01, 0.02)]


def test_advice_on_a_worse_method_names_the_better_one():
    confidence = [standing("temperature", "TS", 0.0123), standing("spline", "Spline", 0.05, 0.0377, 0.01, ties=False)]
    assert advice_of(confidence, DISTRIBUTION).sentences == ("TS does better here: ECE 1.23%.",)


def test_advice_on_an_equal_method_says_what_decides():
    tied = [standing("spline", "Spline", 0.01), standing("temperature", "TS", 0.0123, 0.0023, 0.01)]
    assert advice_of(tied, DISTRIBUTION).sentences == (
        "TS, which is simpler, cannot be told from it with 1,500 samples: ECE 1.23%.",
        "They do not differ by more than chance in NLL, Brier, KS and accuracy.",
    )
    at_floor = [
        standing("spline", "Spline", 0.01, at_floor=True),
        standing("temperature", "TS", 0.0123, 0.0023, 0.01, at_floor=True),
    ]
    assert advice_of(at_floor, DISTRIBUTION).sentences == (
        "TS, which is simpler, is calibrated as well: ECE 1.23%, at its noise floor too.",
        "They do not differ by more than chance in NLL, Brier, KS and accuracy.",
    )


def test_advice_on_the_recommended_method_is_silent():
    confidence = [standing("temperature", "TS", 0.0123), standing("spline", "Spline", 0.05, 0.0377, 0.01, ties=False)]
    assert advice_of(confidence, DISTRIBUTION, method="temperature").sentences == ()


def test_advice_on_a_method_that_changes_labels_has_no_sentence_on_confidence():
    confidence = [standing("temperature", "TS", 0.0123)]
    assert advice_of(confidence, DISTRIBUTION, method="vector").sentences == ()


def test_advice_names_another_method_for_distributions():
    confidence = [standing("mean", "DE", 0.01)]
    distribution = [standing("irm", "IRM", 0.4567), standing("mean", "DE", 0.6, 0.2, 0.1, ties=False)]
    advice = advice_of(confidence, distribution, recommended=("mean", "irm"), method="mean")
    assert advice.sentences == ("For the whole distribution IRM is enough: NLL 0.457.",)


def test_advice_on_a_method_that_is_as_good_for_distributions_names_no_other():
    confidence = [standing("temperature", "TS", 0.01)]
    distribution = [standing("temperature", "TS", 0.4514), standing("atde", "aTDE", 0.454, 0.0026, 0.004)]
    recommended = ("temperature", "atde")
    assert advice_of(confidence, distribution, recommended=recommended, method="temperature").sentences == ()
    confidence = [standing("platt", "platt", 0.01), standing("temperature", "TS", 0.02, 0.01, 0.005, ties=False)]
    distribution = [standing("temperature", "TS", 0.4514), standing("atde", "aTDE", 0.454, 0.0026, 0.004)]
    advice = advice_of(confidence, distribution, recommended=("platt", "atde"), method="temperature")
    assert not any("whole distribution" in sentence for sentence in advice.sentences)


def test_advice_lists_what_each_method_is_better_in():
    tied = [standing("spline", "Spline", 0.01), standing("temperature", "TS", 0.0123, 0.0023, 0.01)]
    advantages = (
        Advantage("nll", "temperature", "spline", 0.5, 0.625),
        Advantage("brier", "temperature", "spline", 0.25, 0.375),
        Advantage("ks_error", "spline", "temperature", 0.01, 0.02),
    )
    assert advice_of(tied, DISTRIBUTION, advantages=advantages).sentences[1] == (
        "TS is better in NLL (0.5000 against 0.6250) and Brier (0.2500 against 0.3750), "
        "Spline is better in KS (1.00% against 2.00%)."
    )


@pytest.mark.parametrize(
    ("accuracy", "words"),
    [
        (0.912, "raises accuracy by 1.2 points"),
        (0.88, "lowers accuracy by 2.0 points"),
        (0.9, "leaves accuracy as it is"),
        (0.9004, "leaves accuracy as it is"),
    ],
)
def test_label_change_says_what_happens_to_accuracy(accuracy, words):
    change = LabelChange("log-pool+vector", "Log pool + VS", 0.5, 0.25, 0.9, accuracy)
    assert change.sentence == (
        f"Letting labels change lowers NLL from 0.500 to 0.250 and {words}: "
        'objective="distribution", keep_labels=False.'
    )
    confidence = [standing("temperature", "TS", 0.0123)]
    advice = advice_of(confidence, DISTRIBUTION, method="temperature", label_change=change)
    assert advice.sentences == (change.sentence,)


def test_choice_is_indexed_by_method():
    choice = Choice("confidence", "ece", "mean", "mean", (standing("mean", "DE", 0.01), standing("irm", "IRM", 0.02)))
    assert "irm" in choice
    assert "spline" not in choice
    assert choice["irm"].value == 0.02
    with pytest.raises(KeyError):
        choice["spline"]


def test_advice_table_has_one_row_per_question_and_method():
    confidence = [standing("temperature", "TS", 0.0123), standing("spline", "Spline", 0.05, 0.0377, 0.01, ties=False)]
    heading, rows = advice_of(confidence, DISTRIBUTION).rows()
    assert heading == ["question", "method", "ECE or NLL", "behind the best (95%)", "as good as the best"]
    assert rows == [
        ["confidence", "TS *", "1.23 %", "", "yes"],
        ["confidence", "Spline", "5.00 %", "3.77 (2.77 to 4.77)", "no"],
        ["distribution", "TS *", "0.5100", "", "yes"],
        ["distribution", "Spline", "0.5200", "0.0100 (-0.0100 to 0.0300)", "yes"],
    ]


def test_advice_in_json_has_its_sentences():
    confidence = [standing("temperature", "TS", 0.0123), standing("spline", "Spline", 0.05, 0.0377, 0.01, ties=False)]
    advice = advice_of(confidence, DISTRIBUTION)
    document = json.loads(json.dumps(advice.to_dict()))
    assert document["sentences"] == list(advice.sentences)
    assert document["confidence"]["standings"][1]["ties_with_best"] is False
    assert document["label_change"] is None


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore::veridical.errors.NotConvergedWarning")
def test_advice_needs_two_scored_samples(rng):
    probs, labels = random_ensemble(rng, 3, 3, 3), np.array([0, 1, 2])
    assert vd.fit_calibrator(probs[:, :2], labels[:2], method="temperature").advice is None
    engine = Engine(vd.Predictions(probs, labels))
    options = {"floors": True, "intervals": False, "random_state": 0}
    run = run_evaluation(engine, resolve_methods(["mean"]), options)
    advice = advise(run, engine, "mean")
    assert advice.n_samples == 3
    assert advice.label_change is None  # nothing was held out


@pytest.mark.compiled
def test_standings_are_sorted_and_the_recommended_method_is_the_simplest_of_equals(rng):
    probs = random_ensemble(rng, 3, 400, 3)
    labels = np.array([rng.choice(3, p=row) for row in probs.mean(axis=0)])
    advice = vd.fit_calibrator(probs, labels, method="irm").advice
    for choice in (advice.confidence, advice.distribution):
        values = [row.value for row in choice.standings]
        assert values == sorted(values)
        first = choice.standings[0]
        assert (first.method, first.behind, first.low, first.high) == (choice.best, 0, 0, 0)
        assert {row.method for row in choice.standings} == {"mean", "temperature", "irm"}
        equal = [row.method for row in choice.standings if row.ties_with_best]
        assert choice.recommended == next(name for name in ("mean", "temperature", "irm") if name in equal)
        for row in choice.standings:
            assert row.behind == pytest.approx(row.value - first.value)
            assert row.ties_with_best == (row.low <= 0 or (row.at_floor and first.at_floor))
