"""The ensemble and the jury that ship with the package."""

from veridical.data.demo import load_demo
from veridical.data.jury import load_demo_jury

__all__ = ["load_demo", "load_demo_jury"]
