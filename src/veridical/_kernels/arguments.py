"""What kernels are called with; nothing here needs the compiler."""

from __future__ import annotations

from collections import namedtuple

#: Samples that are worked on at once where there are few classes: a register of float32 where registers are widest, two
#: of float64.
LANES = 16

#: What the caller asks for: which samples are valid (``tolerance`` and ``rounding`` of their sums, ``skip_missing``),
#: how far to iterate and what to keep; ``near`` is how many times ``eps`` the mean of a class may be wrong besides the
#: rounding of its sum, ``exact_scores`` whether the scores in cache decide near-ties; ``weighted`` whether sources have
#: weights other than one; ``tiny`` is the squared distance below which a source is the truth.
Options = namedtuple(
    "Options",
    "tolerance rounding skip_missing keep_label tol max_iter margin group near exact_scores weighted eps tiny",
)
#: Where it goes: arrays over all samples; ``trace`` has no rows unless HV after each iteration is wanted, and ``mean``
#: none unless the mean of the sources is wanted besides the truth.
#: ``prediction`` is read as well: a label that is not negative is taken as it stands.
Outputs = namedtuple("Outputs", "probs reliability hv prediction n_iter converged trace mean")

#: A three-dimensional array inside one run of memory: where it starts, its steps from source to source and from sample
#: to sample (the classes of a sample follow each other), and its shape.
Layout = namedtuple("Layout", "start source_stride sample_stride n_sources n_samples n_classes")
