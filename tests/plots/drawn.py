"""Figures without a screen, closed after each test, and their artists by their ids."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def close_figures():
    """Imported by the tests of figures."""
    yield
    plt.close("all")


def artists(ax, prefix):
    """The artists of an axes whose id begins so."""
    return {child.get_gid(): child for child in ax.get_children() if (child.get_gid() or "").startswith(prefix)}
