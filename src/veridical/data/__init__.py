"""The ensemble and the jury that ship with the package."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np

from veridical.predictions import Predictions

__all__ = ["load_demo", "load_demo_jury"]


def _arrays(name: str) -> dict[str, Any]:
    with files("veridical.data").joinpath(name).open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
        return dict(stored)


def load_demo() -> Predictions:
    """The shipped deep ensemble: 20 sources, 10,000 samples, 10 classes, logits in float16, with labels.

    Residual networks of three stages with one block each, width 16 (78 thousand parameters), independent seeds,
    12 epochs of SGD with a one-cycle learning rate, flips and shifted crops.  Each is right on 83 to 84% of the
    images, their mean on 85.9%; the mean is under-confident.

    Examples
    --------
    >>> import veridical as vd
    >>> vd.load_demo()
    Predictions(20 sources, 10000 samples, 10 classes, kind='logits', float16, labelled)
    """
    stored = _arrays("cifar10-resnet8-de.npz")
    return Predictions(
        stored["logits"],
        stored["labels"],
        kind="logits",
        source_names=[str(name) for name in stored["source_names"]],
        class_names=[str(name) for name in stored["class_names"]],
    )


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
    stored = _arrays("mmlupro29.npz")
    return Predictions(
        stored["votes"],
        stored["answers"].astype(np.int64),
        kind="labels",
        source_names=[str(name) for name in stored["source_names"]],
        class_names=[str(name) for name in stored["class_names"]],
        sample_ids=[f"q{n}" for n in range(stored["votes"].shape[1])],
    )
