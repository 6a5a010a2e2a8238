"""The paper's tables and figures under the rule of ``rule.py``."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from cases import often
from hunting import hunted
from hypothesis import given
from hypothesis import strategies as st
from odd_values import mostly, odd_values
from rule import check_call

import veridical as vd
from veridical import paper

matplotlib.use("Agg")
pytestmark = pytest.mark.compiled


@hunted(4)
@given(st.data())
def test_paper(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("paper")
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    n_samples = data.draw(st.sampled_from((1, 2, 24)))
    probs = rng.dirichlet([1, 1, 1], size=(2, n_samples))
    path = vd.save(vd.Predictions(probs, rng.integers(0, 3, n_samples)), folder / "cifar10-resnet18-de.npz")
    check_call("recognise", paper.recognise, data.draw(mostly(st.just(path))))
    ensembles = check_call(
        "open_ensembles",
        paper.open_ensembles,
        data.draw(mostly(st.just([path]))),
        labels=data.draw(mostly(often((), ([path],)))),
        kind=data.draw(mostly(often(None, ("probs", "logits")))),
        sources_axis=data.draw(mostly(often(None, (0, 1)))),
    )
    if not ensembles or data.draw(st.integers(0, 4)) == 0:
        ensembles = data.draw(odd_values().filter(lambda value: value is not None))
    options = {"sources": data.draw(mostly(often(None, ([1], [2], [1, 2], [])))), "n_threads": 1}
    table = check_call("table1", paper.table1, ensembles, updates=data.draw(mostly(often(1, (5,)))), **options)
    for function in (paper.table2, paper.table3, paper.table4):
        if not isinstance(ensembles, list):
            check_call(function.__name__, function, ensembles)
    chosen = ensembles[0] if isinstance(ensembles, list) and ensembles else ensembles
    panels = check_call("disagreement", paper.disagreement_by_score, chosen, **options)
    method = data.draw(mostly(st.just("histogram")))
    bins = check_call("bins", paper.bins_before_after, chosen, method=method, **options)
    try:  # figures and formats take what the other functions return
        if table is not None:
            figure = check_call("draw_figure2", paper.draw_figure2, table)
            target = folder / data.draw(st.sampled_from(("f.svg", "f.png", "f", "f.txt", "no/f.svg")))
            check_call("save_figure", paper.save_figure, figure, target)
            check_call(
                "format_table", paper.format_table, table, data.draw(mostly(st.sampled_from(sorted(paper.FORMATS))))
            )
        if bins is not None:
            check_call("draw_figure3", paper.draw_figure3, bins)
        if panels is not None:
            check_call("draw_figure_a", paper.draw_figure_a, panels)
    finally:
        plt.close("all")
    # Without a path, the shipped ensemble would be taken, which takes minutes.
    check_call("reproduce_all", paper.reproduce_all, [folder / "missing.npz"], folder / "all")
