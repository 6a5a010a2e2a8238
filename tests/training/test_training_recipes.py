"""Learning rates as published, and the epochs after which a member is kept."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veridical.errors import ParameterError, UnknownNameError
from veridical.training.recipes import RECIPES, SCHEDULES, Recipe, plan

STEPS = 391  # batches of 128 in 50,000 images, rounded up


def test_paper_recipe_has_the_rates_of_the_paper() -> None:
    paper = RECIPES["paper"]
    by_epoch = [paper.learning_rate_at(epoch * STEPS, STEPS) for epoch in range(200)]
    expected = [0.1] * 60 + [0.02] * 60 + [0.004] * 40 + [0.0008] * 40
    assert by_epoch == pytest.approx(expected)
    assert (paper.epochs, paper.batch_size, paper.momentum, paper.weight_decay) == (200, 128, 0.9, 5e-4)


def test_step_schedule_drops_at_the_epoch() -> None:
    paper = RECIPES["paper"]
    assert paper.learning_rate_at(60 * STEPS - 1, STEPS) == 0.1


def test_cyclic_rates_follow_huang_et_al() -> None:
    recipe = replace(RECIPES["cyclic"], epochs=40, cycles=4)
    total = 40 * STEPS
    for step in (0, 1, 777, total // 4 - 1, total // 4, total // 2 + 5, total - 1):
        length = math.ceil(total / 4)
        formula = recipe.learning_rate / 2 * (math.cos(math.pi * (step % length) / length) + 1)
        assert recipe.learning_rate_at(step, STEPS) == pytest.approx(formula)
    assert recipe.learning_rate_at(total // 4, STEPS) == recipe.learning_rate  # a restart
    assert recipe.learning_rate_at(total // 4 - 1, STEPS) < 1e-4 * recipe.learning_rate


def test_one_cycle_rate_rises_and_falls() -> None:
    recipe = RECIPES["one-cycle"]
    rates = [recipe.learning_rate_at(step, 100) for step in range(1200)]
    peak = rates.index(max(rates))
    assert rates[peak] == recipe.learning_rate
    assert 250 <= peak <= 350
    assert rates[: peak + 1] == sorted(rates[: peak + 1])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert 0 < rates[-1] < 0.01 * recipe.learning_rate


@given(
    schedule=st.sampled_from(SCHEDULES),
    epochs=st.integers(1, 50),
    steps=st.integers(1, 30),
    data=st.data(),
)
def test_rates_never_exceed_the_learning_rate(schedule: str, epochs: int, steps: int, data: st.DataObject) -> None:
    recipe = Recipe(schedule=schedule, epochs=epochs, learning_rate=0.3)
    step = data.draw(st.integers(0, epochs * steps - 1))
    assert 0 < recipe.learning_rate_at(step, steps) <= 0.3


def test_deep_plan_has_a_run_per_member() -> None:
    recipe, runs = plan("deep", Recipe(epochs=7), 3, [11, 12, 13])
    assert [(run.seed, run.members) for run in runs] == [(11, {7: 0}), (12, {7: 1}), (13, {7: 2})]
    assert recipe.cycles == 1


def test_snapshot_plan_has_a_member_per_epoch() -> None:
    _, (run,) = plan("snapshot", RECIPES["paper"], None, [5])
    assert run.members == {epoch: epoch - 1 for epoch in range(1, 201)}


def test_snapshot_plan_keeps_the_last_epochs() -> None:
    _, (run,) = plan("snapshot", Recipe(epochs=10), 3, [5])
    assert run.members == {8: 0, 9: 1, 10: 2}


def test_cyclic_plan_has_a_member_at_the_end_of_each_cycle() -> None:
    recipe, (run,) = plan("snapshot", replace(RECIPES["cyclic"], epochs=30), 5, [5])
    assert recipe.cycles == 5
    assert run.members == {6: 0, 12: 1, 18: 2, 24: 3, 30: 4}


@pytest.mark.parametrize(
    ("recipe", "members", "message"),
    [
        (Recipe(schedule="cyclic", epochs=10), 3, "10 epochs cannot be split into 3 cycles"),
        (Recipe(epochs=4), 5, "4 epochs give at most 4 snapshots, not 5"),
        (Recipe(epochs=0), None, "epochs is 0"),
        (Recipe(batch_size=1), None, "batch_size is 1"),
        (Recipe(learning_rate=-0.1), None, "learning_rate is -0.1"),
        (Recipe(momentum=1.5), None, "momentum is 1.5; give a number from 0 to 1"),
    ],
)
def test_plan_rejects_impossible_recipes(recipe: Recipe, members: int | None, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        plan("snapshot", recipe, members, [0])


def test_plan_rejects_unknown_methods() -> None:
    with pytest.raises(UnknownNameError, match="choose one of: deep, snapshot"):
        plan("bagging", Recipe(), 1, [0])
