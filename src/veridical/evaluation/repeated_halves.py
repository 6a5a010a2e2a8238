"""Methods on several random halves of the samples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from veridical._parallel import run_blocks
from veridical.calibrate import calibrators
from veridical.errors import NotConvergedWarning
from veridical.evaluation.engine import Engine, FitsWithEngine, half_split
from veridical.evaluation.methods import Method
from veridical.evaluation.outcomes import Outcome
from veridical.predictions.validation import check_integer, check_seed


def run_halves(engine: Engine, methods: Sequence[Method], n_splits: int, random_state: int) -> list[list[Outcome]]:
    """Outcomes on the scored halves: one list per split, in the order of the methods.

    Splits run side by side.  Split i uses the seed ``random_state + i``, for the halves and in calibrators.
    """
    n_splits = check_integer(n_splits, "n_splits", 1)
    random_state = check_seed(random_state, "random_state")
    splits = [half_split(engine.predictions, random_state + i) for i in range(n_splits)]
    # What all splits need is combined before them, with all threads.
    engine.combined("mean")
    if any(_may_need_truth(method) for method in methods):
        engine.combined("atde")
    with warnings.catch_warnings():
        # An optimum at the edge of its range is a result here; the same sentence for every split would not help.
        warnings.simplefilter("ignore", NotConvergedWarning)
        return run_blocks(
            lambda i: engine.run(methods, splits[i], random_state=random_state + i), range(n_splits), engine.n_threads
        )


def _may_need_truth(method: Method) -> bool:
    if method.calibrator is None:
        return method.combiner == "atde"
    calibrator = calibrators()[method.calibrator]
    return calibrator.needs_sources or issubclass(calibrator, FitsWithEngine)
