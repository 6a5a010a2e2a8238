"""The one place the version is written, and versions of what results depend on."""

from __future__ import annotations

__version__ = "0.1.0"

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def versions(*others: str) -> dict[str, str]:
    """Versions of veridical, of Python, of the libraries that all numbers depend on, and of ``others``."""
    import platform
    from importlib.metadata import version

    return {
        "veridical": __version__,
        "python": platform.python_version(),
        **{library: version(library) for library in (*_LIBRARIES, *others)},
    }
