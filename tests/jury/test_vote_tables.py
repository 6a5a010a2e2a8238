"""Tables of votes: columns, ids, labels, confidences, probabilities and gold labels, and what is wrong with them."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import veridical as vd
from veridical.cli.commands import program
from veridical.errors import (
    AmbiguousInputWarning,
    CorruptFileError,
    FileFormatError,
    GoldWarning,
    InvalidInputError,
    LabelError,
    NotFiniteError,
    NotNormalisedError,
    ParameterError,
    ShapeError,
)
from veridical.jury.columns import columns_of_frame, read_columns
from veridical.jury.known_answers import canonical_number, match_ids
from veridical.jury.tables import ballots_of_table
from veridical.predictions.sample_ids import as_id
from veridical.predictions.votes import in_order


def table(**columns):
    """Columns of a table of votes; item and source have defaults."""
    n_rows = len(next(iter(columns.values())))
    return {"item": list(range(n_rows)), "source": ["a"] * n_rows, **columns}


def dense(ballots):
    """(S, N, L) shares of the votes, zero where there is none."""
    votes = ballots.votes
    array = np.zeros(votes.shape)
    array[votes.sources[votes.entries], votes.items[votes.entries], votes.labels] = votes.values
    return array


# --- ids


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"),
        (7.0, "7"),
        (np.float32(7), "7"),
        (7.5, "7.5"),
        (-0.0, "0"),
        (float("nan"), ""),
        (np.float64("nan"), ""),
        (float("inf"), "inf"),
        (None, ""),
        ("  q 1\t", "q 1"),
        ("007", "007"),
        (True, "True"),
    ],
)
def test_id_is_text(value, text):
    assert as_id(value) == text


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("007", "7"),
        ("7.0", "7"),
        ("+7", "7"),
        ("-7", "-7"),
        ("7e2", "700"),
        ("7.5", "7.5"),
        ("q7", "q7"),
        ("inf", "inf"),
        ("nan", "nan"),
        (str(2**53 + 1), str(2**53 + 1)),
        ("", ""),
    ],
)
def test_canonical_number_drops_zeros_sign_and_fraction(text, number):
    assert canonical_number(text) == number


@pytest.mark.parametrize(
    ("wanted", "known", "places", "as_numbers"),
    [
        (["b", "a"], ["a", "b"], [1, 0], False),
        (["b", "z"], ["a", "b"], [1, -1], False),
        (["007", "8.0"], ["8", "7"], [1, 0], True),
        (["7", "008"], ["8", "7"], [1, -1], False),  # one id is there as text: no numbers are compared
        (["7"], ["07", "007"], [-1], False),  # two ids are the same number
        (["q"], ["a"], [-1], False),
        ([], ["a"], [], False),
    ],
)
def test_ids_are_matched_as_text_and_else_as_numbers(wanted, known, places, as_numbers):
    assert match_ids(wanted, known) == (places, as_numbers)


@pytest.mark.parametrize(
    ("names", "ordered"),
    [
        ({"10", "9", "-1"}, ["-1", "9", "10"]),
        ({"10", "9", "x"}, ["10", "9", "x"]),
        ({"01", "1", "+1"}, ["+1", "01", "1"]),
        ({"+-3", "1"}, ["+-3", "1"]),
        ({"--1", "-"}, ["-", "--1"]),
        ({"1.5", "-2"}, ["-2", "1.5"]),
        (set(), []),
    ],
)
def test_classes_are_ordered_by_number_if_all_are_whole(names, ordered):
    assert in_order(names) == ordered


@given(st.sets(st.integers(-(10**20), 10**20).map(str), max_size=20))
def test_whole_numbers_are_ordered_as_numbers(names):
    assert in_order(names) == [str(number) for number in sorted(map(int, names))]


@given(st.lists(st.text("01-+.ex ", max_size=5), max_size=8))
def test_order_of_any_texts_keeps_each_once(names):
    assert sorted(in_order(set(names))) == sorted(set(names))


# --- files


def test_csv_is_read_with_mark_blank_lines_and_quotes(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_bytes('\ufeffItem , source,label\nq1,"a, b",x\n\n"q""2",c,y\n'.encode())
    assert read_columns(path) == {"Item": ["q1", 'q"2'], "source": ["a, b", "c"], "label": ["x", "y"]}
    assert vd.judge(path).item_ids == ("q1", 'q"2')


def test_suffix_decides_the_reader_in_any_case(tmp_path):
    path = tmp_path / "VOTES.CSV"
    path.write_text("item,source,label\n1,a,x\n2,a,y\n")
    assert vd.judge(path).class_names == ("x", "y")


@pytest.mark.parametrize(
    ("name", "content", "error", "words"),
    [
        ("votes.txt", b"item", FileFormatError, r"has the suffix '\.txt'; a table of votes is a \.csv or \.parquet"),
        ("votes.csv", None, FileFormatError, "does not exist; check the name"),
        ("votes.csv", b"", FileFormatError, "is empty; write it again"),
        ("votes.csv", b"item,source,label\n", FileFormatError, "has no rows; write one row per vote"),
        ("votes.csv", b"item,item,label\n1,a,x\n", FileFormatError, "two columns called 'item'"),
        (
            "votes.csv",
            b"item,source,label\n1,a,x\n2,a\n",
            CorruptFileError,
            "line 3 of .* has 2 entries, and there are 3",
        ),
        ("votes.csv", b"item,source,label\n1,a,x,y\n", CorruptFileError, "line 2 of .* has 4 entries"),
        ("votes.csv", b"item,source,label\n1,a,\xff\n", CorruptFileError, r"is not a \.csv table in UTF-8"),
        ("votes.csv", b'item,source,label\n1,"a"b,x\n', CorruptFileError, r"is not a \.csv table in UTF-8"),
        ("votes.parquet", b"PAR1 and then nothing", CorruptFileError, r"damaged|truncated"),
    ],
)
def test_bad_file_is_rejected_by_name(tmp_path, name, content, error, words):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=words) as caught:
        vd.judge(path)
    assert name in str(caught.value)


def test_frame_with_numbered_columns_has_text_names():
    pandas = pytest.importorskip("pandas")
    assert columns_of_frame(pandas.DataFrame({0: [1, 2], "label": ["x", "y"]})) == {"0": [1, 2], "label": ["x", "y"]}


@pytest.mark.parametrize(
    ("item", "source", "label"),
    [
        ("item", "source", "label"),
        ("Sample", "juror", "vote"),
        ("TASK", "Worker", "Answer"),
        ("question", "annotator", "label"),
        ("Id", "model", "vote"),
        ("id", "judge", "label"),
    ],
)
def test_columns_may_have_other_names(item, source, label):
    ballots = ballots_of_table({item: [1, 2], source: ["a", "b"], label: ["x", "y"]}, "the table")
    assert (ballots.item_ids, ballots.source_names, ballots.class_names) == (("1", "2"), ("a", "b"), ("x", "y"))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"item": [1], "label": ["x"]},
            r"no column source \(columns: item, label\); call it source, juror, worker, annotator, model or judge\.$",
        ),
        (
            {"source": [1], "label": ["x"]},
            r"no column item \(columns: source, label\); call it item, sample, task, question or id\.$",
        ),
        ({"item": [1], "source": [1], "label": ["x"], "vote": ["x"]}, "columns label and vote, which mean the same"),
        ({"item": [1], "Item": [1], "source": [1], "label": ["x"]}, "columns item and Item, which mean the same"),
        (
            {"item": [1], "source": [1], "p_x": [1]},
            "no column label and fewer than two columns of probabilities .*; name the column of votes label, vote",
        ),
    ],
)
def test_missing_and_repeated_columns_are_named(columns, words):
    with pytest.raises(FileFormatError, match=words):
        vd.judge(columns)


@pytest.mark.parametrize(
    ("column", "entries"), [("source", ["a"]), ("label", ["x", "y", "x"]), ("confidence", [1.0]), ("item", [])]
)
def test_columns_of_different_lengths_are_rejected(column, entries):
    columns = {"item": [1, 2], "source": ["a", "b"], "label": ["x", "y"], column: entries}
    with pytest.raises(ShapeError, match=f"the table of votes have different lengths .*{column} has {len(entries)}"):
        vd.judge(columns)


# --- labels


def test_labels_are_votes_in_order_of_appearance():
    ballots = ballots_of_table(
        {"item": ["q2", "q1", "q2", "q1"], "source": ["b", "b", "a", "a"], "label": [10, 9, 9, 9.0]}, "the table"
    )
    assert (ballots.item_ids, ballots.source_names, ballots.class_names) == (("q2", "q1"), ("b", "a"), ("9", "10"))
    np.testing.assert_array_equal(dense(ballots), [[[0, 1], [1, 0]], [[1, 0], [1, 0]]])
    assert repr(ballots) == "Ballots(4 votes of 2 sources on 2 items, 2 classes)"
    assert ballots.notes == ()


def test_draws_of_a_source_become_shares_and_are_noted():
    ballots = ballots_of_table(
        {"item": [1, 1, 1, 1, 2, 2], "source": list("aaaabb"), "label": list("xyxxyx")}, "the table"
    )
    np.testing.assert_allclose(dense(ballots), [[[0.75, 0.25], [0, 0]], [[0, 0], [0.5, 0.5]]])
    assert ballots.n_votes == 2
    assert ballots.notes[0] == (
        "2 pairs of item and source have several votes (the first is a on 1): they count as draws, and their shares as "
        "one vote."
    )


def test_abstentions_are_counted_and_are_not_votes():
    ballots = ballots_of_table(table(label=["x", "", None, " y ", float("nan")]), "the table")
    assert ballots.answered.tolist() == [0, 3]
    assert ballots.notes[0] == "3 rows have no label: abstentions, which are not votes."
    assert ballots.notes[1].startswith("3 items have no vote (the first is 1)")


def test_first_item_without_votes_is_named():
    ballots = ballots_of_table(table(item=["p", "q", "r"], label=["x", "", "y"]), "the table")
    assert ballots.notes[0] == "1 row has no label: abstentions, which are not votes."
    assert ballots.notes[1] == "1 item has no vote (the first is q); such items get no answer."


def test_sources_with_one_vote_are_counted():
    votes = {"item": [1, 2, 1, 2], "source": ["a", "a", "b", "c"], "label": ["x", "y", "x", "y"]}
    words = "2 sources have one vote (the first is b): one vote shows no skill"
    assert vd.judge(votes).notes[0] == f"{words}."  # no juror has a skill, and the votes count alike
    more = {"item": [1, 2] * 3, "source": list("ddeeff"), "label": list("xyxyxy")}
    result = vd.judge({name: [*votes[name], *more[name]] for name in votes})
    assert [juror.weight > 0 for juror in result.jurors] == [True, False, False, True, True, True]
    assert result.notes[0] == f"{words}, so that it counts only on items without the vote of a juror with a weight."


def test_given_classes_come_in_their_order():
    result = vd.judge(table(label=["x", "y"]), classes=["y", "x", "never"])
    assert result.class_names == ("y", "x", "never")
    assert result.label.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("classes", "error", "words"),
    [
        (["x", "x", "y"], ParameterError, "two classes are called 'x'"),
        ([1, 1.0], ParameterError, "two classes are called '1'"),
        ("xy", ParameterError, "classes is 'xy'; give a list of names"),
        ({"x", "y"}, ParameterError, "give a list of names"),
        (3, ParameterError, "classes is 3"),
        (["x"], LabelError, "row 2 of the table of votes: the vote on item 1 is 'y', and the classes are x"),
    ],
)
def test_bad_classes_are_rejected(classes, error, words):
    for votes in (table(label=["x", "y"]), np.array([["x", "y"]])):
        with pytest.raises(error, match=words if isinstance(votes, dict) or error is ParameterError else "'y'"):
            vd.judge(votes, classes=classes)


def test_one_class_is_too_few():
    with pytest.raises(LabelError, match=r"the votes have 1 class \(x\); at least two are needed: give classes="):
        vd.judge(table(label=["x", "x"]))
    with pytest.raises(LabelError, match="the votes have 0 class; at least two"):
        vd.judge(table(label=["", ""]))
    with pytest.raises(InvalidInputError, match="no item has a vote; at least one is needed"):
        vd.judge(table(label=["", ""]), classes=["x", "y"])


# --- confidences and probabilities


def test_confidence_of_a_vote_is_spread_over_the_other_classes():
    ballots = ballots_of_table(
        table(label=["x", "y", "z", "x"], confidence=["0.7", 1, None, 0]), "the table", classes=["x", "y", "z"]
    )
    np.testing.assert_allclose(dense(ballots)[0], [[0.7, 0.15, 0.15], [0, 1, 0], [0, 0, 1], [0, 0.5, 0.5]])


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (-0.1, NotFiniteError, "row 2 of the table of votes: the confidence is -0.1; it is a number from 0 to 1"),
        (1.5, NotFiniteError, "the confidence is 1.5"),
        ("inf", NotFiniteError, "the confidence is inf"),
        ("sure", FileFormatError, "row 2 of the table of votes: the confidence is 'sure'; write a number"),
        ([0.5], FileFormatError, "write a number"),
    ],
)
def test_bad_confidence_is_located(value, error, words):
    with pytest.raises(error, match=words):
        vd.judge(table(label=["x", "y"], confidence=[0.5, value]))


def test_probabilities_are_opinions_and_empty_rows_abstain():
    ballots = ballots_of_table(table(p_x=["0.2", "", 1], p_y=[0.8, None, 0]), "the table")
    assert ballots.class_names == ("x", "y")
    np.testing.assert_allclose(dense(ballots)[0], [[0.2, 0.8], [1.0, 0.0]])
    assert ballots.notes[0] == "1 row has no probabilities: abstentions."
    # Without a common prefix, columns are named after their classes.
    assert ballots_of_table(table(p_x=[0.2], other=[0.8]), "the table").class_names == ("p_x", "other")


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        ({"x": [0.5, -0.1], "y": [0.5, 1.1]}, NotFiniteError, "row 2 of .*: x is -0.1; probabilities are numbers from"),
        ({"x": [0.5, 0.5], "y": [0.5, ""]}, NotFiniteError, "row 2 of .*: y is nan"),
        ({"x": [0.5, 0.5], "y": [0.5, "inf"]}, NotFiniteError, "y is inf"),
        ({"x": [0.5, "much"], "y": [0.5, 0.5]}, FileFormatError, "row 2 of .*: x is 'much'; write a number"),
        ({"x": [0.5, 0.5], "y": [0.5, 0.6]}, NotNormalisedError, "row 2 of .*: the probabilities sum to 1.1"),
        ({"x": [0.5, 0.0], "y": [0.5, 0.0]}, NotNormalisedError, "row 2 of .*: the probabilities sum to 0"),
    ],
)
def test_bad_probabilities_are_located(columns, error, words):
    with pytest.raises(error, match=words):
        vd.judge(table(**columns))


def test_columns_of_probabilities_must_be_the_classes():
    columns = table(x=[0.5, 1.0], y=[0.5, 0.0])
    assert vd.judge(columns, classes=["x", "y"]).class_names == ("x", "y")
    with pytest.raises(LabelError, match="the columns of the table of votes are x, y, and the classes are y, x"):
        vd.judge(columns, classes=["y", "x"])


# --- arrays


@pytest.mark.parametrize(
    ("votes", "options", "error", "words"),
    [
        ([[0, 1], [0]], {}, ShapeError, "the votes cannot be made into one array"),
        (np.zeros((0, 3), int), {}, ShapeError, r"the votes have shape \(0, 3\)"),
        ([[0, 1]], {"item_ids": ["p"]}, ShapeError, "item_ids: there are 1 ids for 2 samples"),
        (
            [[0, 1]],
            {"item_ids": ["p", " p "]},
            ParameterError,
            "item_ids: 1 id occurs more than once, the first is 'p'",
        ),
        ([[0, 1]], {"source_names": ["a", "b"]}, ShapeError, "there are 2 source names for 1 sources"),
        ([[0, 1]], {"random_state": -1}, ParameterError, "random_state is -1"),
    ],
)
def test_bad_arrays_and_names_are_rejected(votes, options, error, words):
    with pytest.raises(error, match=words):
        vd.judge(votes, **options)


@pytest.mark.parametrize("option", [{"classes": ["x", "y"]}, {"source_names": ["a", "b"]}, {"item_ids": [1, 2]}])
def test_named_votes_take_no_names(option):
    predictions = vd.Predictions([[0, 1], [1, 1]], kind="labels")
    with pytest.raises(ParameterError, match="Predictions name their classes, sources and items"):
        vd.judge(predictions, **option)
    if "classes" not in option:
        with pytest.raises(ParameterError, match="a table names its items and sources"):
            vd.judge(table(label=["x", "y"]), **option)


def test_ballots_are_judged_as_the_table_they_were_read_from():
    columns = {"item": [1, 1, 2, 2, 3], "source": list("ababa"), "label": list("xxyxy")}
    ballots = ballots_of_table(columns, "the table")
    np.testing.assert_array_equal(vd.judge(ballots).probs, vd.judge(columns).probs)
    with pytest.raises(ParameterError, match="Ballots name their classes"):
        vd.judge(ballots, classes=["x", "y"])


# --- gold labels


def simple_votes():
    return {"item": ["p", "p", "q", "q"], "source": list("abab"), "label": list("xxyx")}


@pytest.mark.parametrize("label", ["label", "gold", "Truth", "answer"])
def test_gold_table_may_name_its_labels(tmp_path, label):
    (tmp_path / "gold.csv").write_text(f"Question,{label}\nq,y\np,\n")
    assert vd.judge(simple_votes(), tmp_path / "gold.csv").gold.tolist() == [-1, 1]


def test_gold_may_be_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"item": ["q", "p"], "truth": ["y", None]})
    assert vd.judge(simple_votes(), frame).gold.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("q,x\nq,y\n", "gold.csv has two answers to item q, 'x' and 'y'; keep one"),
        ("q,x\n,y\n", "row 2 of .*gold.csv has no item"),
    ],
)
def test_contradicting_gold_is_rejected_wherever_it_is_read(tmp_path, rows, words):
    path = tmp_path / "gold.csv"
    path.write_text("item,label\n" + rows)
    with (tmp_path / "votes.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("item", "source", "label"), *zip(*simple_votes().values(), strict=True)])
    for read in (vd.judge, vd.load_votes):
        with pytest.raises(LabelError, match=words):
            read(tmp_path / "votes.csv", path)
    path.write_text("item,label\nq,y\nq,y\n")
    assert vd.judge(tmp_path / "votes.csv", path).gold.tolist() == [-1, 1]
    assert vd.load_votes(tmp_path / "votes.csv", path).labels.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("gold", "error", "words"),
    [
        ([[0], [1]], ShapeError, r"gold has shape \(2, 1\); give one label per item"),
        ([0], LabelError, "there are 1 gold labels for 2 items"),
        (
            [0, 7],
            LabelError,
            r"1 of the 2 gold items has the answer '7' \(the first is q\), .* the classes are x, y: c",
        ),
        (
            [True, False],
            LabelError,
            r"the answer 'True' .*, which is not a class of the votes \(nor is 1 other answer\)",
        ),
        ({"z": "x"}, LabelError, "none of the 1 gold items is among the votes: gold has 'z' and the votes have 'p'"),
    ],
)
def test_bad_gold_is_rejected(gold, error, words):
    with pytest.raises(error, match=words):
        vd.judge(simple_votes(), gold)


@pytest.mark.parametrize("gold", [["x", "y"], [0, 1], np.array([0, 1], np.int8), {"p": "x", "q": "y"}])
def test_gold_is_given_by_name_or_place(gold):
    assert vd.judge(simple_votes(), gold).gold.tolist() == [0, 1]


@pytest.mark.parametrize("gold", [["x", None], [0, -1], ["x", ""], {"p": "x"}, {"p": "x", "other": "y", "q": "x"}])
@pytest.mark.filterwarnings("ignore:1 gold item is not in the votes")
def test_gold_may_leave_items_out(gold):
    expected = [0, 0] if "other" in gold else [0, -1]
    assert vd.judge(simple_votes(), gold).gold.tolist() == expected


def test_gold_in_floating_point_names_classes_by_number():
    votes = {**simple_votes(), "label": [0, 0, 1, 0]}
    assert vd.judge(votes, [1.0, float("nan")]).gold.tolist() == [1, -1]


def test_gold_of_another_spelling_is_rejected_wherever_it_is_read(tmp_path):
    with (tmp_path / "votes.csv").open("w", newline="") as file:
        rows = [(n, s, ("relevant", "not relevant")[n % 2]) for n in range(6) for s in "ab"]
        csv.writer(file).writerows([("item", "source", "label"), *rows])
    gold = {"0": "relevant", "1": "Not Relevant", "3": "Not Relevant"}
    words = (
        r"2 of the 3 gold items have the answer 'Not Relevant' \(the first is 1\), which is not a class of the votes; "
        r"the nearest class is 'not relevant': correct the answers, or name all classes with classes="
    )
    for read in (vd.judge, vd.load_votes):
        with pytest.raises(LabelError, match=words):
            read(tmp_path / "votes.csv", gold)
        names = ["relevant", "not relevant", "Not Relevant"]
        assert read(tmp_path / "votes.csv", gold, classes=names).class_names == tuple(names)
    with pytest.raises(
        LabelError, match=r"1 of the 1 gold items has the answer 'spam' .* the classes are not relevant, re"
    ):
        vd.judge(tmp_path / "votes.csv", {"0": "spam"})


@pytest.mark.filterwarnings("error")
def test_gold_ids_of_predictions_match_as_numbers(tmp_path):
    (tmp_path / "votes.csv").write_text("item,source,label\n1,a,x\n2,a,y\n")
    with pytest.warns(GoldWarning, match="only as numbers"):
        assert vd.load_votes(tmp_path / "votes.csv", {"002": "x"}).labels.tolist() == [-1, 0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("item,label\np,\nq,\n", "gold.csv has 2 items, all without an answer; fill in some"),
        ("item,label\np,\n", "gold.csv has 1 item, without an answer"),
        ("item,label\n", "gold.csv has no rows; write one row per known answer, with the columns item and label"),
        ("thing,label\np,x\n", r"no column item \(columns: thing, label\); call it item, .* or id\.$"),
        (
            "item,thing\np,x\n",
            r"no column label \(columns: item, thing\); call it label, vote, answer, gold or truth\.$",
        ),
    ],
)
def test_gold_file_is_not_asked_for_votes(tmp_path, content, words):
    (tmp_path / "gold.csv").write_text(content)
    with pytest.raises(InvalidInputError, match=words):
        vd.judge(simple_votes(), tmp_path / "gold.csv")


def test_id_is_an_item_only_where_no_column_is(tmp_path):
    (tmp_path / "votes.csv").write_text("id,item,source,p_x,p_y\n1,p,a,1,0\n2,q,a,0,1\n")
    result = vd.judge(tmp_path / "votes.csv")
    assert (result.item_ids, result.class_names) == (("p", "q"), ("x", "y"))


@pytest.mark.parametrize(
    "rows", [[["q0", "a", "x"]], [["q0", "a", "x"], ["q0", "b", "x"]], np.array([["q0", "a", "x", "0.5"]] * 3)]
)
def test_rows_of_a_table_are_not_votes(rows):
    with pytest.raises(ShapeError, match=r"look like \d rows? of a table .*'source': .* classes= if these are labels"):
        vd.judge(rows)


def test_texts_of_three_items_are_votes():
    assert vd.judge([["x", "y", "x"], ["x", "y", "y"]]).n_votes.tolist() == [2, 2, 2]
    assert vd.judge([["x", "y", "z"]], classes=["x", "y", "z"]).label.tolist() == [0, 1, 2]


# --- votes as predictions


def test_votes_become_vectors_with_names_and_ids(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("item,source,label\np,a,x\np,b,y\nq,a,y\nr,a,\n")
    predictions = vd.load_votes(path, {"q": "y", "r": "x"})
    assert predictions.class_names == ("x", "y")
    assert predictions.source_names == ("a", "b")
    assert predictions.sample_ids.tolist() == ["p", "q"]  # nobody answered r
    assert predictions.labels.tolist() == [-1, 1]
    assert predictions.files == (path,)
    assert predictions.is_votes
    np.testing.assert_array_equal(predictions.values, [[[1, 0], [0, 1]], [[0, 1], [np.nan, np.nan]]])


def test_shares_are_not_votes(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("item,source,label\np,a,x\np,a,y\nq,a,y\n")
    predictions = vd.load_votes(path, classes=["y", "x", "z"])
    assert not predictions.is_votes
    assert predictions.class_names == ("y", "x", "z")
    np.testing.assert_array_equal(predictions.values, [[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]])


def test_gold_frame_gives_labels(tmp_path):
    pandas = pytest.importorskip("pandas")
    (tmp_path / "votes.csv").write_text("item,source,label\np,a,x\nq,a,y\n")
    gold = pandas.DataFrame({"item": ["q", "p"], "label": ["x", None]})
    assert vd.load_votes(tmp_path / "votes.csv", gold).labels.tolist() == [-1, 0]


def test_too_many_votes_for_vectors_are_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr("veridical.jury.predictions._MOST_NUMBERS", 3)
    (tmp_path / "votes.csv").write_text("item,source,label\np,a,x\nq,a,y\n")
    with pytest.raises(
        ShapeError, match="1 sources, 2 items and 2 classes are too many for vectors; use 'veridical ju"
    ):
        vd.load_votes(tmp_path / "votes.csv")


# --- spellings of labels

SPELT = ["A", "a", " A.", "B", "A", "n/a", "NULL", "Refused", "b .", "A"]


def _csv(columns, path):
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("form", ["csv", "frame", "pandas reading", "array", "predictions"])
@pytest.mark.parametrize("normalize", [False, True])
def test_blanks_and_spellings_are_the_same_in_every_form(tmp_path, form, normalize):
    columns = table(label=SPELT)
    path = _csv(columns, tmp_path / "votes.csv")
    options = {"normalize": normalize, "abstain": ["refused"]}
    if form == "predictions":
        with pytest.warns(AmbiguousInputWarning, match="differ only by case, spaces or final dots: 'A' .*, 'A.' "):
            class_names = vd.load_votes(path, **options).class_names
    else:
        votes = {
            "csv": path,
            "frame": pd.DataFrame(columns),
            "pandas reading": pd.read_csv(path) if form == "pandas reading" else None,
            "array": [SPELT],
        }[form]
        result = vd.judge(votes, **options)
        class_names = result.class_names
        (note,) = [note for note in result.notes if "spaces or final dots" in note]
        end = "are read as one." if normalize else "count as different classes, which normalize=True makes one."
        assert note == (
            "labels that differ only by case, spaces or final dots: 'A' (3), 'A.' (1), 'a' (1); 'B' (1), 'b .' (1); "
            f"they {end}"
        )
    assert class_names == (("A", "B") if normalize else ("A", "A.", "B", "a", "b ."))


def test_spellings_follow_the_classes_and_the_known_answers():
    votes = table(label=["a", "A.", "b", "None", "B"])
    result = vd.judge(votes, {"0": "A", "2": "b."}, classes=["A", "B", "None"], normalize=True)
    assert (result.class_names, result.gold.tolist()) == (("A", "B", "None"), [0, -1, 1, -1, -1])
    assert result.label.tolist() == [0, 0, 1, 2, 1]
    with pytest.raises(LabelError, match="the vote on item 0 is 'a', and the classes are A, B"):
        vd.judge(votes, classes=["A", "B"])
    with pytest.raises(ParameterError, match="abstain is 'refused'; give a list of names"):
        vd.judge(votes, abstain="refused")
    with pytest.raises(ParameterError, match="normalize is 1; give True or False"):
        vd.judge(votes, normalize=1)


def test_spellings_on_the_command_line(tmp_path):
    path = str(_csv(table(label=SPELT), tmp_path / "votes.csv"))
    options = ["--normalize", "--abstain", "refused,never", "--json"]
    for command in (["jury", path], ["inspect", path, "--kind", "labels"]):
        result = CliRunner().invoke(program, [*command, *options])
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout[result.stdout.index("{") :])
    result = CliRunner().invoke(program, ["inspect", path, "--normalize"])
    assert isinstance(result.exception, ParameterError)
    assert "--kind labels" in str(result.exception)


def test_two_columns_of_one_name_are_refused():
    frame = pd.DataFrame([["q", "a", "x", "y"]], columns=["item", "source", "label", "label"])
    for read in (lambda: vd.judge(frame), lambda: vd.judge(table(label=["x"]), frame)):
        with pytest.raises(FileFormatError, match="the data frame has two columns called 'label'"):
            read()
