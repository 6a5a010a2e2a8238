"""Inner functions of kernels as something that a test can call."""

from __future__ import annotations

from veridical._kernels.jit import kernel


def callable_from_python(function):
    """A kernel that does what the inner function does."""
    return kernel(getattr(function, "py_func", function))
