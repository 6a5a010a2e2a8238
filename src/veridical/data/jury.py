"""Answers of 29 language models to the questions of MMLU-Pro."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from veridical.predictions import Predictions

_FILE = "mmlupro29.npz"


def load_demo_jury() -> Predictions:
    """The shipped jury: votes of 29 language models on 11,990 questions with up to ten choices, with the right answers.

    From the evaluation results that the authors of MMLU-Pro publish (TIGER-AI-Lab/MMLU-Pro, eval_results), licensed
    under Apache-2.0; only the chosen letters are kept.  Unreadable answers are absent votes.  Sources are the
    models, samples the questions; the majority is right on 60.0% of them.

    Examples
    --------
    >>> import veridical as vd
    >>> vd.load_demo_jury()
    Predictions(29 sources, 11990 samples, 10 classes, votes, labelled)
    """
    with files("veridical.data").joinpath(_FILE).open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
        return Predictions(
            stored["votes"],
            stored["answers"].astype(np.int64),
            kind="labels",
            source_names=[str(name) for name in stored["source_names"]],
            class_names=[str(name) for name in stored["class_names"]],
            sample_ids=[f"q{n}" for n in range(stored["votes"].shape[1])],
        )
