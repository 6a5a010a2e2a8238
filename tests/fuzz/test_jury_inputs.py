"""Votes under the rule of ``rule.py``: tables, arrays and mappings of jurors who copy, guess, or never vary."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pandas
import pytest
from cases import often
from hunting import hunted
from hypothesis import given
from hypothesis import strategies as st
from odd_values import NAMES, mostly
from rule import check_call, places_of_nan

import veridical as vd

pytestmark = pytest.mark.compiled

#: What the votes of a juror are, given the right answers.
JURORS: dict[str, Any] = {
    "skilled": lambda rng, truth, others, n_classes: np.where(
        rng.random(len(truth)) < 0.8, truth, rng.integers(0, n_classes, len(truth))
    ),
    "guessing": lambda rng, truth, others, n_classes: rng.integers(0, n_classes, len(truth)),
    "constant": lambda rng, truth, others, n_classes: np.zeros_like(truth),
    "copying": lambda rng, truth, others, n_classes: others[0].copy() if others else truth.copy(),
    "opposed": lambda rng, truth, others, n_classes: (truth + 1) % n_classes,
    "absent": lambda rng, truth, others, n_classes: np.full_like(truth, -1),
    "seldom": lambda rng, truth, others, n_classes: np.where(rng.random(len(truth)) < 0.1, truth, -1),
    "perfect": lambda rng, truth, others, n_classes: truth.copy(),
}


@st.composite
def juries(draw: Any) -> tuple[Any, Any, int]:
    """(S, N) votes, the right answers, and the number of classes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_items, n_classes = draw(st.sampled_from((1, 3, 19, 20, 30, 60))), draw(st.sampled_from((2, 3, 5)))
    truth = rng.integers(0, n_classes, n_items)
    votes: list[Any] = []
    for kind in draw(st.lists(st.sampled_from(sorted(JURORS)), min_size=1, max_size=6)):
        votes.append(JURORS[kind](rng, truth, votes, n_classes))
    array = np.stack(votes)
    if draw(st.booleans()):
        array[rng.random(array.shape) < 0.2] = -1
    return array, truth, n_classes


def rows_of(votes: Any) -> dict[str, list[Any]]:
    """A long table."""
    sources, items = np.nonzero(votes >= 0)
    return {
        "item": [f"item {n}" for n in items],
        "source": [f"juror {s}" for s in sources],
        "label": [f"class {label}" for label in votes[sources, items]],
    }


def _with_confidences(votes: Any) -> dict[str, list[Any]]:
    rows = rows_of(votes)
    return {**rows, "confidence": [0.5 + n % 6 / 10 for n in range(len(rows["item"]))]}


#: The forms in which votes may be passed.
FORMS: dict[str, Any] = {
    "array": lambda votes, n_classes: votes,
    "names": lambda votes, n_classes: np.where(votes < 0, "", np.char.add("class ", votes.astype(str))),
    "frame": lambda votes, n_classes: pandas.DataFrame(rows_of(votes)),
    "columns": lambda votes, n_classes: rows_of(votes),
    "confidences": lambda votes, n_classes: _with_confidences(votes),
    "predictions": lambda votes, n_classes: vd.Predictions(
        votes, kind="labels", class_names=[str(l) for l in range(n_classes)]
    ),
}


def gold_of(truth: Any, form: str) -> list[Any]:
    """Known answers: none, few, enough to calibrate, all, and some about other items."""
    item, label = ("item {}", "class {}") if form in ("frame", "columns", "confidences") else ("{}", "{}")
    known = {item.format(n): label.format(k) for n, k in enumerate(truth.tolist())}
    return [
        None,
        known,
        dict(list(known.items())[:5]),
        dict(list(known.items())[:12]),
        {**known, "another": label.format(0)},
        np.where(np.arange(len(truth)) < 12, truth, -1),
        {item.format(0): "unknown class"},
        pandas.DataFrame({"item": list(known), "label": list(known.values())}),
    ]


@hunted(10)
@given(st.data())
def test_jury(tmp_path_factory, data):
    """An answer for each item with votes, findings about jurors, and nothing that JSON or a table cannot hold."""
    votes, truth, n_classes = data.draw(juries())
    form = data.draw(st.sampled_from(sorted(FORMS)))
    gold = data.draw(mostly(st.sampled_from(gold_of(truth, form))))
    options = {}
    for name, values in {
        "classes": ([str(l) for l in range(n_classes)], [f"class {l}" for l in range(n_classes)]),
        "source_names": ([f"juror {s}" for s in range(len(votes))], list(NAMES[: len(votes)])),
        "item_ids": (list(range(len(truth))), [f"item {n}" for n in range(len(truth))]),
        "normalize": (False, True),
        "abstain": (("refused",), ["1"]),
        "random_state": (0, 1, 2**32 - 1),
        "n_threads": (1, 2),
    }.items():
        if data.draw(st.integers(0, 4)) == 0:
            options[name] = data.draw(mostly(st.sampled_from(values)))
    used = check_call("votes", FORMS[form], votes, n_classes)
    result = check_call("judge", vd.judge, used, gold, **options)
    if result is None:
        return
    assert not list(places_of_nan(result.to_dict()))
    answered = result.answered
    assert np.allclose(result.probs[answered].sum(axis=1), 1)
    assert ((result.confidence[answered] >= 0) & (result.confidence[answered] <= 1)).all()
    for finding in result.jurors_to_check:
        check_call("finding", str, finding)
    for name in ("rows", "to_frame", "ranked_jurors", "distinct_jurors_in_words", "_repr_html_", "__repr__", "__str__"):
        check_call(name, getattr(result, name))
    check_call("answer", result.answer, data.draw(mostly(st.sampled_from(result.item_ids))))
    path = tmp_path_factory.mktemp("answers") / "answers.csv"
    check_call("save", result.save, data.draw(often(path, (path.with_suffix(".txt"), 5, None))))
    check_call("fit_dawid_skene", vd.fit_dawid_skene, used)


@hunted(10)
@given(st.data())
def test_votes(tmp_path_factory, data):
    """Tables of votes with odd entries: counted, or refused."""
    cells = st.sampled_from((*NAMES, "0", "1", "a", "b", "-1", "0.5"))
    rows = data.draw(st.lists(st.tuples(cells, cells, cells), max_size=12))
    path = tmp_path_factory.mktemp("votes") / "votes.csv"
    with path.open("w", newline="", encoding="utf-8", errors="surrogatepass") as file:
        csv.writer(file).writerows([("item", "source", "label"), *rows])
    gold = data.draw(mostly(st.none() | st.dictionaries(cells, cells, max_size=3)))
    check_call("load_votes", vd.load_votes, path, gold, classes=data.draw(mostly(often(None, (["a", "b"],)))))
    result = check_call("judge", vd.judge, path, gold)
    if result is not None:
        check_call("repr", repr, result)
        check_call("save", result.save, path.with_name("answers.csv"))
    check_call("load", vd.load, path, kind="labels")
