"""Combiner and nothing else: the combined vector as it is."""

from __future__ import annotations

from typing import Any

from veridical.calibrate.base import Calibrator
from veridical.combine.combined import Combined, Labels


class Identity(Calibrator):
    """No calibration: the combined vectors themselves, as the yardstick for everything else.

    Parameters are those of every calibrator.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> vd.Identity().fit([[0.6, 0.4]], [0]).predict_proba([[0.6, 0.4]])
    array([[0.6, 0.4]])
    """

    name = "identity"
    summary = "No calibration: the combined vectors as they are."
    monotone = True
    complexity = 0
    whole_vectors = True

    def _fit(self, combined: Combined, labels: Labels) -> None:
        """There is nothing to fit."""

    def formula(self, xp: Any, combined: Any) -> Any:
        return combined.probs


class ConsensusPool(Identity):
    r"""The consensus: a weighted mean of the sources, weights from their agreement over the calibration samples.

    The labels of the calibration samples are not used, and no label is needed to fit it beyond the signature that all
    calibrators share.  See :func:`veridical.consensus` for the method.  Labels may differ from the mean's.

    Parameters are those of every calibrator, with ``combine`` fixed to "consensus".

    Attributes
    ----------
    combiner_.weights : (S,) array
    combiner_.dependence : (S, S) array

    Examples
    --------
    Two sources that see the same thing, each in its own way, and one that guesses:

    >>> import numpy as np
    >>> import veridical as vd
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 500)
    >>> probs = 0.6 * np.eye(3)[[y, y, rng.integers(0, 3, 500)]] + 0.4 * rng.dirichlet([1, 1, 1], (3, 500))
    >>> int(vd.ConsensusPool().fit(probs, y).combiner_.weights.argmin())
    2
    """

    name = "consensus"
    summary = "Weighted mean of the sources, weights from their agreement; copies count once."
    needs_sources = True
    keeps_labels = False
    complexity = 1
    combiners = ("consensus",)

    combine: str = "consensus"


class LabelKeepingConsensus(Identity):
    """The consensus, projected onto the nearest distribution in which the mean's label wins.

    Parameters are those of every calibrator, with ``combine`` fixed to "aconsensus".

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> probs = np.random.default_rng(0).dirichlet([1, 1, 1], (3, 50))
    >>> pool = vd.LabelKeepingConsensus().fit(probs, np.zeros(50, int))
    >>> bool((pool.predict(probs) == probs.mean(axis=0).argmax(axis=1)).all())
    True
    """

    name = "aconsensus"
    summary = "The consensus with the mean's labels kept."
    needs_sources = True
    complexity = 1
    combiners = ("aconsensus",)

    combine: str = "aconsensus"


class LinearPool(Identity):
    r"""Linear pool: a weighted mean of the sources, its weights learnt from the labels.  Labels may change.

    .. math:: q = \sum_s a_s p_s, \quad a \ge 0,\ \sum_s a_s = 1

    by maximum likelihood, with one pseudo-count spread over the sources.

    Parameters are those of every calibrator, with ``combine`` fixed to this pool.

    Attributes
    ----------
    combiner_.weights : (S,) array

    Examples
    --------
    A source that is right most of the time, and one that says nothing:

    >>> import numpy as np
    >>> import veridical as vd
    >>> informed = np.tile([0.8, 0.2], (500, 1))
    >>> y = np.repeat([0, 1], [400, 100])
    >>> pool = vd.LinearPool().fit(np.stack([informed, np.full((500, 2), 0.5)]), y)
    >>> bool(pool.combiner_.weights[0] > 0.9)
    True
    """

    name = "linear-pool"
    summary = "Weighted mean of the sources, weights learnt from the labels."
    needs_sources = True
    keeps_labels = False
    complexity = 2
    combiners = ("linear-pool",)

    combine: str = "linear-pool"


class LogPool(Identity):
    r"""Log pool: a weighted geometric mean of the sources and of their mean, its exponents learnt from the labels.

    .. math:: q = \mathrm{softmax}\Big(\sum_s a_s \ln \max(p_s, \epsilon) + b \ln \max(\bar p, \epsilon)\Big)

    by penalised maximum likelihood: S times each exponent is pulled towards the consensus's share of their sum as by a
    normal prior, whose strength cross-validation chooses, so that like sources stay alike.  The sum of all exponents,
    an inverse temperature, has a normal prior around one with standard deviation 1/2, for the sake of few labels.  The
    arithmetic mean takes part as one more source, its exponent pulled towards zero: sources that are sure and wrong
    in turn are better averaged than multiplied.  The problem is convex in (a, b); the floor is the best of 1e-12,
    1e-6, 1e-4, 1e-3 and 1e-2.  Labels may change.

    Parameters are those of every calibrator, with ``combine`` fixed to this pool.

    Attributes
    ----------
    combiner_.weights : (S,) array
    combiner_.mean_weight : float
    combiner_.floor : float

    Examples
    --------
    A source that is right most of the time, and one that says nothing:

    >>> import numpy as np
    >>> import veridical as vd
    >>> informed = np.where(np.arange(50)[:, None] % 2 == [0, 1], 0.8, 0.2)
    >>> y = np.where(np.arange(50) % 10 < 8, np.arange(50) % 2, 1 - np.arange(50) % 2)
    >>> pool = vd.LogPool().fit(np.stack([informed, np.full((50, 2), 0.5)]), y)
    >>> bool(pool.combiner_.weights[0] > 0.5)
    True
    """

    name = "log-pool"
    summary = "Weighted geometric mean of the sources and their mean, exponents learnt from the labels."
    needs_sources = True
    keeps_labels = False
    complexity = 2
    combiners = ("log-pool",)

    combine: str = "log-pool"
