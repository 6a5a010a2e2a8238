"""Temperature scaling: loss and derivative over a block of samples."""

from __future__ import annotations

import numpy as np

from veridical._kernels.elementary import exp_in_place
from veridical._kernels.jit import kernel


@kernel
def temperature_loss(logs, labels, inverse, squared):
    """Sum over samples of the loss of q = softmax(x / T), and its derivative by b = 1/T.

    With m = sum_l q_l x_l, dq_l/db = q_l (x_l - m).  NLL: -ln q_y, derivative m - x_y.  Squared error:
    sum_l q_l^2 - 2 q_y + 1, derivative 2 sum_l q_l^2 (x_l - m) - 2 q_y (x_y - m).
    """
    n_classes = logs.shape[1]
    e = np.empty(n_classes)
    loss = slope = 0.0
    for i in range(logs.shape[0]):
        x, y = logs[i], labels[i]
        for l in range(n_classes):
            e[l] = inverse * x[l]
        exp_in_place(e)
        total = first = squares = squares_first = 0.0
        for l in range(n_classes):
            total += e[l]
            first += e[l] * x[l]
            squares += e[l] * e[l]
            squares_first += e[l] * e[l] * x[l]
        mean = first / total
        if squared:
            at_label = e[y] / total
            squares /= total * total
            loss += squares - 2.0 * at_label + 1.0
            slope += 2.0 * (squares_first / (total * total) - mean * squares) - 2.0 * at_label * (x[y] - mean)
        else:
            loss += np.log(total) - inverse * x[y]
            slope += mean - x[y]
    return loss, slope
