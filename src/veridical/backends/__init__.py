"""PyTorch tensors, JAX and CuPy arrays: which path they take, and the same computations on their own device.

Arrays in host memory go to the compiled kernels without a copy.  Others, and those that are differentiated or traced,
are computed where they are, with operations of the Python array API standard.
"""

from veridical.backends.foreign import Foreign, NeedsHostError, also_foreign, array_path, as_foreign, from_host, to_host

__all__ = ["Foreign", "NeedsHostError", "also_foreign", "array_path", "as_foreign", "from_host", "to_host"]
