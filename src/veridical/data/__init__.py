"""The ensemble and the jury that ship with the package."""

from veridical.data.shipped import load_demo, load_demo_jury

__all__ = ["load_demo", "load_demo_jury"]
