"""How many examples are tried, and from which seed."""

from __future__ import annotations

import atexit
import functools
import os
from collections.abc import Callable
from typing import Any

from conftest import HUNT, examples
from hypothesis import Phase, seed, settings
from rule import counts

#: The seed of a hunt; continuous integration tries the same examples in every run.
SEED = int(os.environ["VERIDICAL_SEED"]) if "VERIDICAL_SEED" in os.environ else 0


def _counted(inner: Any) -> Any:
    @functools.wraps(inner)
    def run(*arguments: Any, **options: Any) -> Any:
        result = inner(*arguments, **options)
        counts["examples"] += 1  # only those that ended: Hypothesis gives up some while it draws them
        return result

    return run


def hunted(n_examples: int) -> Callable[[Any], Any]:
    """Try ``n_examples``, and VERIDICAL_HUNT times as many others in a hunt."""

    def decorate(test: Any) -> Any:
        # Shrinking an ensemble of numbers drawn from a seed shows little, and takes minutes.
        phases = (Phase.explicit, Phase.generate) if HUNT else (Phase.explicit, Phase.generate, Phase.shrink)
        if HUNT:
            test.hypothesis.inner_test = _counted(test.hypothesis.inner_test)
        limited = settings(max_examples=examples(n_examples), phases=phases, database=None)(test)
        return seed(SEED)(limited) if HUNT else limited

    return decorate


if HUNT:
    atexit.register(lambda: print(f"\nhunt with seed {SEED}: {counts['examples']:,} examples; {dict(counts)}"))
