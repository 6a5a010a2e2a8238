"""The ensemble that ships with the package."""

from veridical.data.demo import load_demo

__all__ = ["load_demo"]
