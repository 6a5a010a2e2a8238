"""How many examples are tried, and from which seed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from conftest import HUNT, examples
from hypothesis import Phase, seed, settings

#: The seed of a hunt; continuous integration tries the same examples in every run.
SEED = int(os.environ["VERIDICAL_SEED"]) if "VERIDICAL_SEED" in os.environ else 0


def hunted(n_examples: int) -> Callable[[Any], Any]:
    """Try ``n_examples``, and VERIDICAL_HUNT times as many others in a hunt."""

    def decorate(test: Any) -> Any:
        # Shrinking an ensemble of numbers drawn from a seed shows little, and takes minutes.
        phases = (Phase.explicit, Phase.generate) if HUNT else (Phase.explicit, Phase.generate, Phase.shrink)
        limited = settings(max_examples=examples(n_examples), phases=phases, database=None)(test)
        return seed(SEED)(limited) if HUNT else limited

    return decorate
