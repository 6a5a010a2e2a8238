"""How members are trained: optimiser settings, learning-rate schedules, and the epochs after which a member is kept.

Everything here is a pure function of the step, so that a continued run needs no scheduler state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from veridical.errors import ParameterError
from veridical.predictions.validation import check_choice, check_integer, check_real

SCHEDULES = ("step", "cyclic", "one-cycle")
METHODS = ("deep", "snapshot")

#: Fraction of a one-cycle run in which the rate rises.
_RISING = 0.25
#: Of rates: PyTorch multiplies by them in float32.
_LARGEST = 1e12


@dataclass(frozen=True)
class Recipe:
    """Stochastic gradient descent with momentum, and the schedule of its learning rate.

    Attributes
    ----------
    schedule : {"step", "cyclic", "one-cycle"}
        ``step``: the rate is multiplied by ``drop_factor`` after each fraction of the epochs in ``drops``.
        ``cyclic``: ``cycles`` half-cosines from the full rate to zero (Huang et al. 2017, equation 2).
        ``one-cycle``: a linear rise to the full rate over a quarter of the steps, then linearly to zero (Smith 2018).
    epochs, batch_size : int
    learning_rate, momentum, weight_decay : float
        ``learning_rate`` is the largest that the schedule reaches.
    nesterov : bool
    drops : tuple of float
    drop_factor : float
    cycles : int
    augment : bool
        Random flips and padded crops.

    Examples
    --------
    >>> import dataclasses
    >>> from veridical import training
    >>> dataclasses.replace(training.RECIPES["paper"], epochs=10).epochs
    10
    """

    schedule: str = "step"
    epochs: int = 200
    batch_size: int = 128
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    nesterov: bool = False
    drops: tuple[float, ...] = (0.3, 0.6, 0.8)
    drop_factor: float = 0.2
    cycles: int = 1
    augment: bool = True

    def checked(self) -> Recipe:
        """This recipe, after its values are checked."""
        check_choice(self.schedule, SCHEDULES, "schedule")
        check_integer(self.epochs, "epochs", 1)
        check_integer(self.batch_size, "batch_size", 2)  # batch normalisation needs two images
        check_integer(self.cycles, "cycles", 1)
        check_real(self.learning_rate, "learning_rate", 0, _LARGEST)
        check_real(self.momentum, "momentum", 0, 1)
        check_real(self.weight_decay, "weight_decay", 0, _LARGEST)
        check_real(self.drop_factor, "drop_factor", 0, 1)
        if self.epochs % self.cycles:
            raise ParameterError(
                f"{self.epochs} epochs cannot be split into {self.cycles} cycles; give a number of epochs that "
                f"{self.cycles} divides."
            )
        return self

    def learning_rate_at(self, step: int, steps_per_epoch: int) -> float:
        """The rate of step ``step`` (from 0) of the whole run."""
        total = self.epochs * steps_per_epoch
        if self.schedule == "step":
            epoch = step // steps_per_epoch
            passed = sum(epoch >= round(fraction * self.epochs) for fraction in self.drops)
            return self.learning_rate * self.drop_factor**passed
        if self.schedule == "cyclic":
            cycle = total // self.cycles
            return self.learning_rate / 2 * (math.cos(math.pi * (step % cycle) / cycle) + 1)
        peak = _RISING * total
        return self.learning_rate * min((step + 1) / peak, (total - step) / (total - peak), 1.0)


#: Named starting points; every field can be changed.
RECIPES: dict[str, Recipe] = {
    # The paper's: 200 epochs, batches of 128, rate 0.1, times 0.2 at epochs 60, 120 and 160.
    "paper": Recipe(),
    # Snapshot ensembles of Huang et al. (2017): restarts from 0.2, small weight decay.
    "cyclic": Recipe(schedule="cyclic", learning_rate=0.2, weight_decay=1e-4),
    # A good network in a dozen epochs.
    "one-cycle": Recipe(schedule="one-cycle", epochs=12, learning_rate=0.2, nesterov=True),
}


@dataclass(frozen=True)
class Trajectory:
    """One training run from one seed; ``members`` maps numbers of finished epochs to the members kept then."""

    index: int
    seed: int
    members: dict[int, int]


def plan(method: str, recipe: Recipe, members: int | None, seeds: list[int]) -> tuple[Recipe, list[Trajectory]]:
    """The runs that give ``members`` members, and the recipe that they use.

    A deep ensemble is one run per member.  A snapshot ensemble is one run: with the cyclic schedule a member at the
    end of each cycle, otherwise one after each of the last ``members`` epochs (by default, of all).
    """
    check_choice(method, METHODS, "method")
    if method == "deep":
        count = members or 1
        recipe = replace(recipe, cycles=1).checked()
        return recipe, [Trajectory(m, seeds[m], {recipe.epochs: m}) for m in range(count)]
    if recipe.schedule == "cyclic":
        recipe = replace(recipe, cycles=members or recipe.cycles).checked()
        ends = range(recipe.epochs // recipe.cycles, recipe.epochs + 1, recipe.epochs // recipe.cycles)
    else:
        recipe.checked()
        count = members or recipe.epochs
        if count > recipe.epochs:
            raise ParameterError(f"{recipe.epochs} epochs give at most {recipe.epochs} snapshots, not {count}.")
        ends = range(recipe.epochs - count + 1, recipe.epochs + 1)
    return recipe, [Trajectory(0, seeds[0], {epoch: m for m, epoch in enumerate(ends)})]
