"""``judge``: answers, confidence and jurors from votes."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

import veridical as vd
from veridical.combine.across_samples.votes import sort_votes
from veridical.errors import (
    CampsWarning,
    FileFormatError,
    GoldWarning,
    LabelError,
    NotFiniteError,
    ParameterError,
    ShapeError,
)
from veridical.jury.notes import agreement_beyond_chance
from veridical.metrics import ece

pytestmark = pytest.mark.filterwarnings("error")
ACCURACIES = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])


def simulated_votes(rng, n_items=400, n_classes=3, absent=0.2, accuracies=ACCURACIES):
    """(S, N) votes with -1 for none, and the truth."""
    truth = rng.integers(0, n_classes, n_items)
    right = rng.random((len(accuracies), n_items)) < accuracies[:, None]
    votes = np.where(right, truth, rng.integers(0, n_classes, right.shape))
    votes[rng.random(votes.shape) < absent] = -1
    votes[0, (votes < 0).all(axis=0)] = 0
    return votes, truth


def write_votes(path, votes, names="ABC", ids=None):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "source", "label"])
        for s, row in enumerate(votes):
            for n, vote in enumerate(row):
                if vote >= 0:
                    writer.writerow([f"q{n}" if ids is None else ids[n], f"model-{s}", names[vote]])
    return path


def write_rows(path, heading, rows):
    path.write_text("\n".join(",".join(map(str, row)) for row in [heading, *rows]) + "\n")
    return path


def test_answers_are_better_than_the_majority(rng):
    accuracies = np.array([0.7, 0.65, 0.6, 0.2, 0.1, 0.0])
    votes, truth = simulated_votes(rng, n_items=2000, accuracies=accuracies)
    result = vd.judge(votes)
    majority = np.array([(votes == l).sum(axis=0) for l in range(3)]).argmax(axis=0)
    assert (result.label == truth).mean() > (majority == truth).mean() + 0.02
    np.testing.assert_allclose(result.probs.sum(axis=1), 1.0)
    assert [juror.name for juror in result.ranked_jurors()][:3] == list("012")
    assert result.distinct_jurors.max() <= 6


def test_array_table_and_predictions_agree(rng, tmp_path):
    votes, _ = simulated_votes(rng)
    from_array = vd.judge(votes)
    from_table = vd.judge(write_votes(tmp_path / "votes.csv", votes))
    order = [from_table.item_ids.index(f"q{n}") for n in range(400)]
    np.testing.assert_allclose(from_table.probs[order], from_array.probs, atol=1e-9)
    from_predictions = vd.judge(vd.Predictions(votes, kind="labels"))
    np.testing.assert_allclose(from_predictions.probs, from_array.probs, atol=1e-6)
    named = vd.judge(np.array(["A", "B", "C", ""])[votes], item_ids=[f"q{n}" for n in range(400)])
    assert named.class_names == ("A", "B", "C")
    np.testing.assert_allclose(named.probs, from_array.probs, atol=1e-9)
    assert named.answer("q3")[0] == "ABC"[from_array.label[3]]


def test_parquet_and_frames_are_read(rng, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    votes, _ = simulated_votes(rng, n_items=50)
    csv_result = vd.judge(write_votes(tmp_path / "votes.csv", votes))
    frame = pandas.read_csv(tmp_path / "votes.csv")
    frame.to_parquet(tmp_path / "votes.parquet")
    for form in (frame, tmp_path / "votes.parquet"):
        result = vd.judge(form)
        assert result.item_ids == csv_result.item_ids
        np.testing.assert_array_equal(result.probs, csv_result.probs)


def test_answers_keep_their_ids_in_the_file(rng, tmp_path):
    votes, truth = simulated_votes(rng)
    ids = rng.permutation(10_000)[:400]
    path = write_votes(tmp_path / "votes.csv", votes, ids=ids)
    gold = {str(ids[n]): "ABC"[truth[n]] for n in range(50)}
    result = vd.judge(path, gold)
    result.save(tmp_path / "answers.csv")
    with (tmp_path / "answers.csv").open(newline="") as file:
        rows = {row["item"]: row for row in csv.DictReader(file)}
    assert set(rows) == set(map(str, ids))
    n = int(np.flatnonzero(ids.astype(str) == result.item_ids[7])[0])
    row = rows[str(ids[n])]
    assert row["label"] == result.answer(str(ids[n]))[0]
    assert float(row["p_A"]) + float(row["p_B"]) + float(row["p_C"]) == pytest.approx(1.0, abs=1e-4)
    assert rows[str(ids[0])]["gold"] == "ABC"[truth[0]]
    assert json.loads(json.dumps(result.to_dict()))["answers"][0]["item"] == result.item_ids[0]


def test_jurors_are_described(rng):
    votes, truth = simulated_votes(rng)
    votes = np.concatenate([votes, votes[:1]])
    result = vd.judge(votes, truth.tolist(), source_names=[*"abcdef", "copy of a"])
    a, *_, copy = result.jurors
    assert (a.depends_on, copy.depends_on) == ("copy of a", "a")
    assert copy.dependence == pytest.approx(1.0)
    present = votes[0] >= 0
    assert a.n_votes == present.sum()
    assert a.accuracy == pytest.approx((votes[0] == truth)[present].mean())
    assert np.mean([j.weight * j.n_votes for j in result.jurors]) == pytest.approx(
        np.mean([j.n_votes for j in result.jurors])
    )
    assert "copy of a" in str(result)


def test_copies_of_a_juror_change_no_answer(rng):
    votes, _ = simulated_votes(rng)
    alone, copied = vd.judge(votes), vd.judge(np.concatenate([votes, np.repeat(votes[-1:], 5, axis=0)]))
    np.testing.assert_allclose(copied.probs, alone.probs, atol=1e-6)


def test_several_draws_become_a_share(tmp_path):
    rows = [("1", s, label) for s in "abc" for label in "xxy"] + [("2", s, "y") for s in "abc"]
    result = vd.judge(write_rows(tmp_path / "votes.csv", ("item", "source", "label"), rows))
    assert result.n_votes.tolist() == [3, 3]
    assert any("several votes" in note and "a on 1" in note for note in result.notes)
    assert 0.5 < result.confidence[0] < result.confidence[1]


def test_confidence_of_a_vote_counts(tmp_path):
    def judged(confidence):
        rows = [(n, s, "xy"[n % 2], 1.0) for n in range(40) for s in "abc"]
        rows += [("last", "a", "x", confidence), ("last", "b", "y", 0.9)]
        return vd.judge(write_rows(tmp_path / "votes.csv", ("item", "source", "label", "confidence"), rows))

    sure, unsure = judged(1.0), judged(0.6)
    assert sure.answer("last")[0] == "x"
    assert unsure.answer("last")[0] == "y"


@pytest.mark.parametrize("prefix", ["", "p_"])
def test_probabilities_per_class_are_votes(tmp_path, rng, prefix):
    probs = rng.dirichlet([1, 1, 1], (4, 60))
    rows = [(n, s, *probs[s, n]) for s in range(4) for n in range(60)]
    heading = ("item", "source", *(f"{prefix}{name}" for name in ("cat", "dog", "cow")))
    result = vd.judge(write_rows(tmp_path / "votes.csv", heading, rows))
    assert result.class_names == ("cat", "dog", "cow")
    np.testing.assert_allclose(result.probs, vd.judge(vd.Predictions(probs)).probs, atol=1e-9)


# --- known answers ---------------------------------------------------------------------------------------------------


def jury_of_the_demo(n_items=3000):
    votes = vd.load_demo_jury().select(samples=slice(0, n_items))
    return votes, votes.labels


@pytest.mark.compiled
def test_gold_labels_calibrate_the_confidence():
    votes, answers = jury_of_the_demo()
    known = np.where(np.arange(3000) % 15 == 0, answers, -1)
    plain, calibrated = vd.judge(votes), vd.judge(votes, known)
    rest = known < 0
    for result in (plain, calibrated):
        assert (result.label == answers)[rest].mean() > 0.62
    losses = [-np.log(result.probs[rest, answers[rest]]).mean() for result in (plain, calibrated)]
    assert losses[1] < losses[0]
    assert ece(answers[rest], calibrated.probs[rest]) < 0.06
    assert calibrated.calibration.n_gold == 200
    assert "200 known answers" in calibrated.notes[-1]
    assert "No answers are known" in plain.notes[-1]


def test_choice_by_cross_validation_is_reproducible(rng):
    votes, truth = simulated_votes(rng)
    first, again = (vd.judge(votes, np.where(np.arange(400) < 40, truth, -1), random_state=3) for _ in range(2))
    assert first.calibration == again.calibration
    np.testing.assert_array_equal(first.probs, again.probs)


def test_many_known_answers_correct_the_bias_of_a_class(rng):
    """All jurors mistake one class for another in the same way, which no vote shows."""
    truth = rng.integers(0, 3, 1000)
    seen = np.where((truth == 2) & (rng.random(1000) < 0.7), 1, truth)
    votes = np.where(rng.random((6, 1000)) < 0.8, seen, rng.integers(0, 3, (6, 1000)))
    few, many = (vd.judge(votes, np.where(np.arange(1000) < n, truth, -1)) for n in (15, 400))
    assert few.calibration.method in ("log-pool", "mean+identity")
    assert many.calibration.method.endswith("vector")
    rest = np.arange(400, 1000)
    nll = [-np.log(result.probs[rest, truth[rest]]).mean() for result in (few, many)]
    assert nll[1] < nll[0] - 0.02


def test_right_answers_alone_do_not_make_the_jury_entirely_sure(rng):
    votes, truth = simulated_votes(rng, accuracies=np.full(6, 0.9))
    right = vd.judge(votes).label == truth
    result = vd.judge(votes, np.where(right & (np.arange(400) < 200), truth, -1))
    assert result.calibration.accuracy == 1
    assert np.nanmin(result.confidence) < 0.95
    assert np.nanmean(result.confidence) < 0.9999


def test_progress_of_a_jury_is_reported(rng):
    steps = []
    vd.judge(simulated_votes(rng)[0], progress=lambda done, total, what: steps.append((done, total, what)))
    assert [done for done, _, _ in steps] == [0, 1, 2, 3, 4]
    assert (1, 4, "compare 6 jurors") in steps


def test_few_known_answers_calibrate_nothing(rng):
    votes, truth = simulated_votes(rng)
    result = vd.judge(votes, np.where(np.arange(400) < 5, truth, -1))
    assert result.calibration is None
    assert "5 known answers are too few" in result.notes[-1]


# --- what can be wrong with the input ------------------------------------------------------------------------------


def test_gold_ids_match_as_numbers(rng, tmp_path):
    votes, truth = simulated_votes(rng)
    path = write_votes(tmp_path / "votes.csv", votes, ids=list(range(400)))
    gold = write_rows(tmp_path / "gold.csv", ("item", "label"), [(f"{n:05d}", "ABC"[truth[n]]) for n in range(30)])
    with pytest.warns(GoldWarning, match="only as numbers"):
        result = vd.judge(path, gold)
    assert (result.gold >= 0).sum() == 30
    frame_ids = {float(n): "ABC"[truth[n]] for n in range(30)}
    assert (vd.judge(path, frame_ids).gold >= 0).sum() == 30


def test_gold_items_without_votes_are_named(rng, tmp_path):
    votes, truth = simulated_votes(rng)
    gold = {f"q{n}": "ABC"[truth[n]] for n in range(20)} | {"unheard": "A"}
    with pytest.warns(GoldWarning, match=r"1 gold item is not in the votes \(the first is unheard\)"):
        result = vd.judge(write_votes(tmp_path / "votes.csv", votes), gold)
    assert (result.gold >= 0).sum() == 20
    with pytest.raises(LabelError, match="none of the 1 gold items"):
        vd.judge(tmp_path / "votes.csv", {"unheard": "A"})


def test_items_without_votes_stay_in_the_answers(tmp_path):
    rows = [(n, s, "xy"[n % 2]) for n in range(6) for s in "abc"] + [("silent", "a", "")]
    result = vd.judge(write_rows(tmp_path / "votes.csv", ("item", "source", "label"), rows))
    assert result.item_ids[-1] == "silent"
    assert result.label[-1] == -1
    assert result.answer("silent")[0] == ""
    assert any("1 item has no vote (the first is silent)" in note for note in result.notes)
    assert any("1 row has no label" in note for note in result.notes)
    result.save(tmp_path / "answers.csv")
    assert (tmp_path / "answers.csv").read_text().splitlines()[-1] == "silent,,,0,0,,"


def test_class_that_nobody_chose_is_declared(tmp_path, rng):
    votes, _ = simulated_votes(rng, n_classes=2)
    path = write_votes(tmp_path / "votes.csv", votes)
    with pytest.raises(LabelError, match="1 of the 1 gold items has the answer 'Z'"):
        vd.judge(path, {"q0": "Z"})
    result = vd.judge(path, {"q0": "Z"}, classes=["A", "B", "Z"])
    assert result.class_names == ("A", "B", "Z")
    assert result.gold[result.item_ids.index("q0")] == 2


def test_gold_of_other_items_is_questioned(rng):
    votes, truth = simulated_votes(rng)
    known = np.where(np.arange(400) < 100, truth, -1)
    assert not any("ids" in note for note in vd.judge(votes, known).notes)
    shuffled = known.copy()
    shuffled[:100] = rng.permutation(known[:100])
    with pytest.warns(GoldWarning, match="are the ids of the gold file those of the votes"):
        result = vd.judge(votes, shuffled)
    assert any(
        note.startswith("the jury's answers are right for ") and "100 gold items" in note for note in result.notes
    )


def test_gold_of_other_items_is_questioned_in_a_crowd_with_useless_jurors(rng):
    votes, truth = simulated_votes(rng, accuracies=np.array([0.8] * 4 + [0.0] * 6))
    shuffled = np.where(np.arange(400) < 100, np.roll(truth, 7), -1)
    with pytest.warns(GoldWarning, match="are the ids of the gold file those of the votes"):
        vd.judge(votes, shuffled)


def test_gold_that_a_divided_jury_misses_is_not_questioned(rng):
    """Jurors who guess are right by chance, and their confidence says so."""
    votes, truth = rng.integers(0, 3, (6, 400)), rng.integers(0, 3, 400)
    result = vd.judge(votes, np.where(np.arange(400) < 100, truth, -1))
    assert not any("gold file" in note for note in result.notes)


def test_juror_with_one_vote_is_mentioned(rng, tmp_path):
    rows = [(n, s, "xy"[n % 2]) for n in range(6) for s in "abc"] + [(0, "newcomer", "x")]
    result = vd.judge(write_rows(tmp_path / "votes.csv", ("item", "source", "label"), rows))
    assert any("newcomer" in note and "one vote" in note for note in result.notes)
    assert result.jurors[-1].n_votes == 1


@pytest.mark.parametrize(
    ("heading", "row", "error", "words"),
    [
        (("item", "source", "label"), (0, "a", "z"), LabelError, "row 7 of .*'z'"),
        (("item", "source", "label"), ("", "a", "x"), FileFormatError, "row 7 of .* has no item"),
        (("item", "source", "label"), (0, "", "x"), FileFormatError, "row 7 of .* has no source"),
        (("item", "who", "label"), (0, "a", "x"), FileFormatError, "no column source"),
        (("item", "source", "worker", "label"), (0, "a", "b", "x"), FileFormatError, "mean the same"),
        (("item", "source", "label", "confidence"), (0, "a", "x", 2), NotFiniteError, "confidence is 2"),
        (("item", "source", "label", "confidence"), (0, "a", "x", "high"), FileFormatError, "'high'"),
    ],
)
def test_bad_tables_are_refused(tmp_path, heading, row, error, words):
    filler = {"item": 1, "source": "a", "worker": "a", "who": "a", "label": "x", "confidence": 0.5}
    rows = [tuple(filler[name] for name in heading)] * 6 + [row]
    with pytest.raises(error, match=words):
        vd.judge(write_rows(tmp_path / "votes.csv", heading, rows), classes=["x", "y"])


@pytest.mark.parametrize(
    ("votes", "error", "words"),
    [
        ([[0, 1], [1, 5]], LabelError, "source 1, item 1: the vote is 5"),
        ([[0, 1], [1, -2]], LabelError, "is -2"),
        ([[0.5, 1.0]], LabelError, "dtype float64"),
        ([0, 1], ShapeError, "shape"),
        ([["x", "q"]], LabelError, "'q'"),
    ],
)
def test_bad_arrays_are_refused(votes, error, words):
    with pytest.raises(error, match=words):
        vd.judge(votes, classes=["x", "y"])


def test_camps_are_named_and_noted(rng):
    votes, _ = simulated_votes(rng, n_items=2000, absent=0.0, accuracies=np.full(8, 0.8))
    votes[4:] = (votes[4:] + 1) % 3
    with pytest.warns(CampsWarning, match="2 camps"):
        result = vd.judge(votes)
    assert len(result.consensus.camps) == 2
    assert any("camps" in note for note in result.notes)


def test_agreement_beyond_chance_is_fleiss_kappa():
    """A textbook example: 14 raters, 10 subjects, 5 categories, kappa 0.210."""
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    labels = np.array([np.repeat(np.arange(5), row) for row in counts]).T
    sources, items = np.nonzero(labels >= 0)
    votes = sort_votes(items, sources, labels[sources, items], (14, 10, 5))
    assert agreement_beyond_chance(votes) == pytest.approx(0.20993, abs=1e-5)


# --- Dawid and Skene -------------------------------------------------------------------------------------------------


def dawid_skene_by_loops(votes, n_classes, n_iter):
    """The same EM with plain loops, from the shares of votes."""
    n_sources, n_items = votes.shape
    probs = np.array(
        [[(votes[:, n] == k).sum() / (votes[:, n] >= 0).sum() for k in range(n_classes)] for n in range(n_items)]
    )
    for _ in range(n_iter):
        confusion = np.full((n_sources, n_classes, n_classes), 0.01)
        for s in range(n_sources):
            for n in range(n_items):
                if votes[s, n] >= 0:
                    confusion[s, :, votes[s, n]] += probs[n]
        confusion /= confusion.sum(axis=2, keepdims=True)
        priors = (probs.sum(axis=0) + 0.01) / (n_items + 0.01 * n_classes)
        for n in range(n_items):
            logs = np.log(priors)
            for s in range(n_sources):
                if votes[s, n] >= 0:
                    logs = logs + np.log(confusion[s, :, votes[s, n]])
            probs[n] = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    return probs


def test_dawid_skene_agrees_with_loops(rng):
    votes, truth = simulated_votes(rng, n_items=80)
    sources, items = np.nonzero(votes >= 0)
    sparse = sort_votes(items, sources, votes[sources, items], (6, 80, 3))
    model = vd.fit_dawid_skene(sparse)
    assert model.converged
    np.testing.assert_allclose(model.probs, dawid_skene_by_loops(votes, 3, model.n_iter), atol=1e-8)
    np.testing.assert_allclose(model.confusion.sum(axis=2), 1.0)
    assert (model.prediction == truth).mean() > 0.85


# --- missing values


@pytest.mark.parametrize("dtype", ["Int64", "string", "boolean"])
def test_missing_label_of_a_frame_is_no_vote(dtype):
    labels = pd.array([0, 1, None, 1, 0, 1], dtype="Int64").astype(dtype)
    frame = pd.DataFrame({"item": list("aabbcc"), "source": list("xyxyxy"), "label": labels})
    result = vd.judge(frame)
    assert len(result.class_names) == 2
    assert any("1 row has no label" in note for note in result.notes)


def test_masked_entries_of_columns_are_missing():
    columns = {"item": list("aabbcc"), "source": list("xyxyxy"), "label": np.ma.masked_equal([0, 1, 9, 1, 0, 1], 9)}
    assert vd.judge(columns).class_names == ("0", "1")
    for name in ("item", "source"):
        masked = np.ma.masked_array(columns[name], [True, *[False] * 5])
        with pytest.raises(FileFormatError, match=f"row 1 of .* has no {name}"):
            vd.judge({**columns, "label": [0, 1, 0, 1, 0, 1], name: masked})


def test_missing_confidence_is_sure_and_missing_probability_is_an_abstention():
    frame = pd.DataFrame({"item": list("aabb"), "source": list("xyxy"), "label": [0, 1, 0, 1]})
    sure = vd.judge(frame).probs
    np.testing.assert_array_equal(vd.judge(frame.assign(confidence=pd.array([None] * 4, dtype="Float64"))).probs, sure)
    shares = frame.drop(columns="label").assign(p_0=pd.array([1, 0, 1, None], dtype="Float64"))
    shares["p_1"] = 1 - shares["p_0"]
    assert any("1 row has no probabilities" in note for note in vd.judge(shares).notes)


def test_missing_ids_of_items_are_refused():
    with pytest.raises(ParameterError, match="item_ids: the id of sample 1 is"):
        vd.judge(np.zeros((3, 2), int), item_ids=np.ma.masked_array([1, 2], [False, True]))


def test_missing_gold_answers_are_not_known():
    votes = np.arange(12).reshape(3, 4) % 2
    for gold in (pd.Series([0, None, 1, None], dtype="Int64"), {"0": 0, "1": pd.NA, "2": 1}):
        assert vd.judge(votes, gold).gold.tolist() == [0, -1, 1, -1]


def test_more_jurors_than_can_be_compared_are_refused():
    names = [f"juror {s}" for s in range(10_001)]
    with pytest.raises(ShapeError, match="there are 10,001 sources, and the consensus compares every pair of them"):
        vd.judge({"item": ["a"] * 10_001, "source": names, "label": [0, 1] * 5000 + [0]})


def test_confidences_of_too_many_classes_are_refused():
    n = 9000
    columns = {"item": range(n), "source": [s % 3 for s in range(n)], "label": range(n), "confidence": [0.5] * n}
    with pytest.raises(ShapeError, match="9,000 votes with a confidence have too many probabilities of 9,000 classes"):
        vd.judge(columns)


def test_classes_of_very_long_numbers_are_in_alphabetical_order():
    labels = ["9" * 5000, "8"] * 3
    result = vd.judge({"item": list("aabbcc"), "source": list("xyxyxy"), "label": labels})
    assert result.class_names == ("8", "9" * 5000)


def test_gold_of_a_series_is_joined_by_its_index():
    votes = {"item": list("aabbcc"), "source": list("xyxyxy"), "label": [0, 0, 1, 1, 0, 1]}
    answers = pd.Series({"c": 1, "a": 0})
    assert vd.judge(votes, answers).gold.tolist() == [0, -1, 1]
    assert vd.judge(votes, pd.Series([1, 0, 1])).gold.tolist() == [1, 0, 1]  # an index that only counts
