"""Samples onto a grid and back (method: kernel density estimate of the calibration error)."""

from __future__ import annotations

from veridical._kernels.jit import kernel


@kernel
def spread_onto_grid(confidence, correct, weight, origin, per_step, masses):
    """Share each sample's weight between its two neighbours on a grid, the nearer getting more.

    Node j lies at ``origin + j / per_step``.  ``masses`` (2, G + 1) is added to: row 0 takes all samples, row 1
    those with ``correct``.  ``weight`` may be None (all ones).
    """
    last = masses.shape[1] - 2
    for i in range(confidence.shape[0]):
        position = (confidence[i] - origin) * per_step
        j = min(max(int(position), 0), last)
        mass = 1.0 if weight is None else weight[i]
        upper = (position - j) * mass
        masses[0, j] += mass - upper
        masses[0, j + 1] += upper
        if correct[i]:
            masses[1, j] += mass - upper
            masses[1, j + 1] += upper


@kernel
def absolute_integral(values, slopes):
    """The integral of |f| for f linear between its ``values`` at unit distance, and its derivative by each of them.

    A cell with ends p and q contributes (|p| + |q|) / 2 where they agree in sign, and
    (p^2 + q^2) / (2 (|p| + |q|)) where f crosses zero in it; this has a continuous derivative, which goes
    into ``slopes``.
    """
    total = 0.0
    slopes[:] = 0.0
    for j in range(1, values.shape[0]):
        p, q = values[j - 1], values[j]
        if p * q >= 0.0:
            total += 0.5 * (abs(p) + abs(q))
            slopes[j - 1] += 0.5 if p > 0.0 else (-0.5 if p < 0.0 else 0.0)
            slopes[j] += 0.5 if q > 0.0 else (-0.5 if q < 0.0 else 0.0)
        else:
            size = abs(p) + abs(q)
            area = 0.5 * (p * p + q * q) / size
            total += area
            slopes[j - 1] += (p - (area if p > 0.0 else -area)) / size
            slopes[j] += (q - (area if q > 0.0 else -area)) / size
    return total


@kernel
def gather_slopes(confidence, correct, weight, origin, per_step, smoothed, gradient):
    """``gradient[i] = weight_i (F(w_i) - correct_i H(w_i))`` with F and H the derivatives of the rows of ``smoothed``.

    Central differences at the nodes, linear in between; the rows are even about both ends, so the derivative
    is 0 there.
    """
    last = smoothed.shape[1] - 1
    for i in range(confidence.shape[0]):
        position = (confidence[i] - origin) * per_step
        j = min(max(int(position), 0), last - 1)
        share = position - j
        total = 0.0
        for row in range(2):
            if row == 0 or correct[i]:
                left = 0.0 if j == 0 else smoothed[row, j + 1] - smoothed[row, j - 1]
                right = 0.0 if j + 1 == last else smoothed[row, j + 2] - smoothed[row, j]
                slope = 0.5 * per_step * (left + share * (right - left))
                total += slope if row == 0 else -slope
        gradient[i] = total if weight is None else weight[i] * total
