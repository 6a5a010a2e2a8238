"""The accuracy-preserving projection, for vectors that come from elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from veridical.backends.namespace import LABEL_MARGIN as LABEL_MARGIN
from veridical.predictions.validation import Array, check_distributions, check_labels, check_real


def keep_labels(probs: Any, labels: Any, *, margin: float = LABEL_MARGIN) -> Array:
    """The nearest distributions in which the given labels win.

    Each row is moved to the closest point (in Euclidean distance) of the simplex at which its label leads every
    other class by ``margin``: the label's score and the k scores above it meet at a common level, the rest stays.
    Rows in which the label already leads are returned as they are.

    Parameters
    ----------
    probs : array of shape (N, L)
    labels : array of N integers in 0..L-1
    margin : float
        With 0 ties are possible, and ``argmax`` may then name another class.

    Returns
    -------
    array of shape (N, L)
        float64 for float64 input, otherwise float32.

    References
    ----------
    Ma et al., UAI 2021, Section 3.3; their pseudo-code can count the label's own class twice, this one cannot.

    Examples
    --------
    >>> from veridical.combine import keep_labels
    >>> keep_labels([[0.5, 0.3, 0.2]], [1], margin=0.0)
    array([[0.4, 0.4, 0.2]])
    """
    from veridical._kernels.projection import project_rows_onto_winners  # loads the compiler

    rows = check_distributions(probs)
    winners = check_labels(labels, *rows.shape)
    result = np.array(rows, order="C")
    project_rows_onto_winners(result, winners, check_real(margin, "margin", 0.0, 1.0))
    return result
