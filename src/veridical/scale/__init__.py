"""Predictions larger than memory, on one machine in blocks and on several with Dask.

``veridical.scale.open`` gives predictions that are read in blocks; the ordinary functions take them.  The functions
here have, in addition, ``out`` and ``resume``: results are written block by block, and continued after an interruption.
"""

from typing import TYPE_CHECKING

from veridical.blocks import __all__ as __all__
from veridical.blocks import __dir__ as __dir__
from veridical.blocks import __getattr__ as __getattr__

if TYPE_CHECKING:
    from veridical.blocks import *  # noqa: F403
