"""What a jury says: answers, jurors, files and pages; Dawid and Skene's model; calibration on known answers."""

import csv
import json
import re

import numpy as np
import pytest
from programs import veridical_in_process as veridical
from test_judge import simulated_votes

import veridical as vd
from veridical.combine.across_samples.votes import sort_shares, sort_votes
from veridical.errors import FileFormatError, ParameterError
from veridical.jury.gold import GoldChoice, calibrate_on_gold
from veridical.jury.notes import note_on_confidence
from veridical.metrics.sample import Sample
from veridical.report.jury_page import order_by_dependence, render_jury, write_jury_report


@pytest.fixture(scope="module")
def judged():
    """(votes with an item that nobody answered, result with 40 known answers)."""
    votes, truth = simulated_votes(np.random.default_rng(5), n_items=120)
    votes[:, 7] = -1
    gold = np.where(np.arange(120) < 40, truth, -1)
    return votes, vd.judge(votes, gold, item_ids=[f"q{n}" for n in range(120)], classes=["A", "B", "C"])


# --- the result


def test_result_names_its_size(judged):
    _, result = judged
    distinct = result.distinct_jurors[result.answered].mean()
    expected = f"JuryResult(6 jurors, 120 items, 3 classes, {distinct:.3g} distinct jurors per item)"
    assert repr(result) == expected


def test_answer_is_found_by_its_id(judged):
    _, result = judged
    label, confidence = result.answer("q11")
    assert label == "ABC"[result.probs[11].argmax()]
    assert confidence == result.probs[11].max()
    assert result.answer("q7")[0] == ""
    assert np.isnan(result.answer("q7")[1])
    with pytest.raises(ParameterError, match="there is no item 'q999'; the first one is 'q0'"):
        result.answer("q999")


def test_item_without_votes_is_empty_everywhere(judged):
    _, result = judged
    assert not result.answered[7]
    assert (result.label[7], result.n_votes[7], result.distinct_jurors[7]) == (-1, 0, 0.0)
    assert np.isnan(result.probs[7]).all()
    assert result.answered.sum() == 119
    entry = result.to_dict()["answers"][7]
    assert entry["item"] == "q7"
    assert (entry["label"], entry["confidence"], entry["probs"], entry["votes"]) == (None, None, None, 0)
    json.dumps(result.to_dict(), allow_nan=False)


def test_shares_of_jurors_are_counted(judged):
    votes, result = judged
    for s, juror in enumerate(result.jurors):
        present = votes[s] >= 0
        assert juror.n_votes == present.sum()
        known = present & (result.gold >= 0)
        assert juror.n_gold == known.sum()
        assert juror.accuracy == pytest.approx((votes[s] == result.gold)[known].mean())


def test_jurors_without_gold_have_no_accuracy():
    votes = [[0, 1, 0, 1], [0, 1, 0, -1]]
    result = vd.judge(votes, [-1, -1, -1, 1])
    assert [juror.n_gold for juror in result.jurors] == [1, 0]
    assert [juror.accuracy for juror in result.jurors] == [1.0, None]
    heading, rows = result.rows()
    assert heading == ["juror", "skill", "weight", "votes", "agrees", "right", "dep.", "shared", "on"]
    assert {row[0]: row[5] for row in rows} == {"0": "100.0 of 1", "1": ""}
    assert "right" not in vd.judge(votes).rows()[0]


def test_ranked_jurors_are_by_weight_and_name():
    result = vd.judge([[0, 1, 0, 1]] * 2 + [[0, 1, 1, 1]], source_names=["b", "a", "c"])
    ranked = result.ranked_jurors()
    assert [juror.weight for juror in ranked] == sorted((juror.weight for juror in result.jurors), reverse=True)
    equal = [juror.name for juror in ranked if juror.name != "c"]
    assert equal == ["a", "b"]


def test_saved_answers_have_the_numbers_of_the_result(judged, tmp_path):
    _, result = judged
    result.save(tmp_path / "answers.csv")
    with (tmp_path / "answers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["item", "label", "confidence", "distinct_jurors", "votes", "gold", "p_A", "p_B", "p_C"]
    assert [row["item"] for row in rows] == list(result.item_ids)
    assert [row["gold"] for row in rows] == ["ABC"[g] if g >= 0 else "" for g in result.gold]
    for n, row in enumerate(rows):
        if n == 7:
            assert [row[name] for name in ("label", "confidence", "votes", "p_A")] == ["", "", "0", ""]
            continue
        assert row["label"] == "ABC"[result.label[n]]
        probs = [float(row[f"p_{name}"]) for name in "ABC"]
        np.testing.assert_allclose(probs, result.probs[n], atol=1e-6)
        assert float(row["distinct_jurors"]) == pytest.approx(result.distinct_jurors[n], rel=1e-3)
        assert int(row["votes"]) == result.n_votes[n]


def test_saved_answers_without_gold_have_no_column_of_it(tmp_path):
    vd.judge([[0, 1], [0, 1]]).save(tmp_path / "ANSWERS.CSV")
    assert (tmp_path / "ANSWERS.CSV").read_text().splitlines()[
        0
    ] == "item,label,confidence,distinct_jurors,votes,p_0,p_1"


def test_answers_are_saved_as_csv_only_and_not_over_the_votes(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("item,source,label\np,a,x\nq,a,y\n")
    result = vd.judge(path)
    with pytest.raises(
        FileFormatError, match=r"answers cannot be written to .*answers\.json'; use the extension \.csv"
    ):
        result.save(tmp_path / "answers.json")
    with pytest.raises(ParameterError, match="same file as the input"):
        result.save(path)
    assert path.read_text().startswith("item,source")


def test_names_of_items_and_jurors_are_quoted_in_the_file(tmp_path):
    ids = ['a,"b"', "line\nbreak"]
    vd.judge([[0, 1], [0, 1]], item_ids=ids).save(tmp_path / "answers.csv")
    with (tmp_path / "answers.csv").open(newline="") as file:
        assert [row["item"] for row in csv.DictReader(file)] == ids


def test_frame_of_jurors_has_their_numbers(judged):
    pytest.importorskip("pandas")
    _, result = judged
    frame = result.to_frame()
    ranked = result.ranked_jurors()
    assert frame["name"].tolist() == [juror.name for juror in ranked]
    assert frame["skill"].tolist() == [juror.skill for juror in ranked]
    assert "jurors by weight" in result._repr_html_()


# --- votes as shares


def test_opinions_of_a_source_are_normalised_per_item():
    votes = sort_shares(
        np.array([1, 0, 1, 1]),
        np.array([0, 1, 0, 0]),
        np.array([2, 0, 0, 2]),
        np.array([1.0, 5.0, 1.0, 2.0]),
        (2, 2, 3),
    )
    assert votes.items.tolist() == [0, 1]
    assert votes.sources.tolist() == [1, 0]
    assert votes.entries.tolist() == [0, 1, 1]
    assert votes.labels.tolist() == [0, 0, 2]
    assert votes.values.tolist() == [1.0, 0.25, 0.75]
    assert votes.starts.tolist() == [0, 1, 2]


# --- Dawid and Skene


def sparse(votes, n_classes):
    sources, items = np.nonzero(votes >= 0)
    return sort_votes(items, sources, votes[sources, items], (*votes.shape, n_classes))


def test_dawid_skene_describes_itself():
    votes = np.array([[0, 1, 0, 1, 0, 1]] * 3)
    model = vd.fit_dawid_skene(sparse(votes, 2))
    assert repr(model) == f"DawidSkene(3 sources, 6 items, 2 classes; converged in {model.n_iter} iterations)"
    assert model.prediction.tolist() == [0, 1, 0, 1, 0, 1]
    # 3 votes of each class per source and the pseudo-counts: 3.01 / 3.02.
    np.testing.assert_allclose(model.confusion[:, [0, 1], [0, 1]], 3.01 / 3.02, rtol=1e-6)
    np.testing.assert_allclose(model.priors, 0.5)


def test_dawid_skene_says_that_it_did_not_converge(rng, monkeypatch):
    monkeypatch.setattr("veridical.jury.dawid_skene._MOST_ITERATIONS", 2)
    votes, _ = simulated_votes(rng, n_items=50)
    model = vd.fit_dawid_skene(sparse(votes, 3))
    assert not model.converged
    assert repr(model).endswith("did not converge in 2 iterations)")


def test_dawid_skene_learns_whose_labels_are_exchanged(rng):
    truth = rng.integers(0, 2, 300)
    votes = np.where(rng.random((4, 300)) < 0.9, truth, 1 - truth)
    votes[3] = np.where(rng.random(300) < 0.95, 1 - truth, truth)  # says the opposite
    model = vd.fit_dawid_skene(sparse(votes, 2))
    assert (model.prediction == truth).mean() > 0.97
    assert model.confusion[3, 0, 1] > 0.9
    np.testing.assert_allclose(model.probs.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.priors.sum(), 1.0)


def test_dawid_skene_relabelled_classes_are_relabelled_answers(rng):
    votes, _ = simulated_votes(rng, n_items=100)
    order = np.array([2, 0, 1])
    plain, relabelled = (vd.fit_dawid_skene(sparse(each, 3)) for each in (votes, np.append(order, -1)[votes]))
    np.testing.assert_allclose(relabelled.probs[:, order], plain.probs, atol=1e-6)


# --- calibration on known answers


@pytest.fixture(scope="module")
def gold():
    """A consensus that is too sure by a power of four, a posterior that says nothing, and the right answers."""
    rng = np.random.default_rng(3)
    honest = rng.dirichlet(np.ones(3), 300)
    answers = (honest.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    sure = honest**4
    sure /= sure.sum(axis=1, keepdims=True)
    items = np.arange(0, 300, 2)
    return (
        honest,
        sure,
        items,
        answers,
        *calibrate_on_gold(sure, lambda: np.full((300, 3), 1 / 3), items, answers[items], 1),
    )


def test_known_answers_undo_what_is_too_sure(gold):
    honest, sure, items, answers, probs, choice = gold
    assert choice.method == "log-pool"
    assert choice.nll["log-pool"] < choice.nll["consensus"] - 0.1
    assert choice.nll["consensus"] == pytest.approx(-np.log(np.maximum(sure[items, answers[items]], 1e-9)).mean())
    assert np.abs(probs - honest).mean() < 0.25 * np.abs(sure - honest).mean()
    assert choice.to_dict() == {
        "method": choice.method, "n_gold": 150, "nll": choice.nll, "accuracy": choice.accuracy, "ece": choice.ece,
        "ece_floor": {"mean": choice.ece_floor.mean, "q95": choice.ece_floor.quantiles[0.95]},
    }  # fmt: skip


def test_few_mistakes_leave_the_posterior_out(rng):
    """Known answers that the consensus has right say nothing of Dawid and Skene's model, which may be wrong."""
    answers = rng.integers(0, 3, 60)
    consensus, opposite = (np.full((60, 3), 0.1) + 0.7 * np.eye(3)[(answers + k) % 3] for k in (0, 1))
    for posterior in (consensus, opposite):
        probs, choice = calibrate_on_gold(consensus, lambda p=posterior: p, np.arange(20), answers[:20])
        np.testing.assert_array_equal(probs.argmax(axis=1), answers)
        assert choice.accuracy == 1
    wrong = np.where(np.arange(60) < 30, (answers + 1) % 3, answers)
    posterior = np.full((60, 3), 0.1) + 0.7 * np.eye(3)[wrong]
    for known, is_used in ((np.arange(26, 60), False), (np.arange(20, 60), True)):  # four and ten mistakes
        before, after = (
            calibrate_on_gold(consensus, lambda p=each: p, known, wrong[known])[0] for each in (consensus, posterior)
        )
        assert np.array_equal(before, after) != is_used


def test_held_out_confidence_is_of_fits_without_the_answer(gold):
    *_, items, answers, probs, choice = gold
    confidence, correct = choice.held_out.confidence, choice.held_out.correct
    assert len(choice.held_out) == 150
    assert 1e-4 < np.abs(confidence - probs[items].max(axis=1)).max() < 0.1
    assert choice.accuracy == correct.mean()
    assert (correct == (probs.argmax(axis=1) == answers)[items]).mean() > 0.98
    assert choice.ece == vd.metrics.ece(correct, confidence)


@pytest.mark.parametrize(("n_gold", "has_diagram"), [(49, False), (50, True)])
def test_page_shows_reliability_on_known_answers(n_gold, has_diagram):
    votes, truth = simulated_votes(np.random.default_rng(2), n_items=120)
    result = vd.judge(votes, np.where(np.arange(120) < n_gold, truth, -1))
    page = render_jury(result)
    assert ('id="reliability"' in page) == has_diagram
    error = f"{100 * result.calibration.ece:.1f}%"
    assert f"Their ECE is {error}; of a perfectly calibrated confidence, {n_gold} answers show " in result.notes[-1]
    assert (f"The ECE is {error}" in page) == has_diagram


def test_note_tells_an_error_beyond_the_noise_floor():
    choice = GoldChoice("consensus", 100, {"consensus": 0.7}, Sample(np.full(100, 0.99), np.arange(100) % 2 == 0))
    note = note_on_confidence(choice, np.zeros(100, np.int64))
    assert "Their ECE is 49.0%" in note
    assert "the confidence is not calibrated" in note
    honest = GoldChoice("consensus", 100, {"consensus": 0.7}, Sample(np.full(100, 0.52), np.arange(100) % 2 == 0))
    assert "they show no miscalibration" in note_on_confidence(honest, np.zeros(100, np.int64))


def test_known_answers_do_not_replace_those_of_the_jury(judged):
    _, result = judged
    both = result.answered & (result.gold >= 0)
    n_different = int((result.label != result.gold)[both].sum())
    assert n_different == 1
    assert any(note.startswith(f"1 of the {both.sum()} known answers differs from the jury's") for note in result.notes)
    two = vd.judge([[0, 1, 1]] * 3, [0, 0, 0])
    assert any(note.startswith("2 of the 3 known answers differ from the jury's") for note in two.notes)
    right = vd.judge([[0, 1, 1]] * 3, [0, 1, 1])
    assert not any("differ" in note for note in right.notes)


@pytest.mark.parametrize(("n_gold", "is_calibrated"), [(9, False), (10, True)])
def test_ten_known_answers_are_enough(n_gold, is_calibrated):
    votes, truth = simulated_votes(np.random.default_rng(2), n_items=60)
    result = vd.judge(votes, np.where(np.arange(60) < n_gold, truth, -1))
    assert (result.calibration is not None) == is_calibrated
    if is_calibrated:
        assert result.notes[-1].startswith(f"The confidence is calibrated on {n_gold} known answers")
        np.testing.assert_array_equal(result.label, result.probs.argmax(axis=1))
    else:
        assert result.notes[-1].startswith("9 known answers are too few to calibrate on (10 are needed).")


def test_one_known_answer_is_too_few_in_words():
    votes, truth = simulated_votes(np.random.default_rng(2), n_items=60)
    assert vd.judge(votes, np.where(np.arange(60) < 1, truth, -1)).notes[-1].startswith("1 known answer is too few")


# --- order, page and program


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_sources_stay_in_order(n):
    assert order_by_dependence(np.eye(n)) == list(range(n))


def test_two_groups_of_copies_are_two_runs():
    groups = np.array([0, 1, 0, 1, 1, 0])
    order = order_by_dependence((groups[:, None] == groups).astype(float))
    assert np.count_nonzero(np.diff(groups[order])) == 1


def test_page_of_one_juror_has_no_matrix(tmp_path):
    result = vd.judge([[0, 1, 0]])
    page = render_jury(result, "My <b>jury</b>")
    assert "<svg" not in page
    assert "My &lt;b&gt;jury&lt;/b&gt;" in page
    write_jury_report(result, tmp_path / "page.html", title="My <b>jury</b>")
    assert (tmp_path / "page.html").read_text() == page


def test_page_lists_the_least_certain_items_first(judged):
    _, result = judged
    page = render_jury(result)
    least = np.argsort(result.confidence[result.answered], kind="stable")[:25]
    names = [np.array(result.item_ids)[result.answered][n] for n in least]
    places = [page.index(f">{name}<") for name in names]
    assert places == sorted(places)
    assert ">q7<" not in page
    assert "Right on known answers" in page
    assert "Right on known answers" not in render_jury(vd.judge([[0, 1], [0, 1]]))


def test_page_shows_the_jurors_with_the_most_votes(monkeypatch):
    monkeypatch.setattr("veridical.report.jury_page._MOST_IN_MATRIX", 2)
    monkeypatch.setattr("veridical.report.jury_page._MOST_JURORS", 2)
    votes = np.tile([0, 1], (4, 10))
    votes[1:3, 1:] = -1
    page = render_jury(vd.judge(votes, source_names=["often", "seldom", "once", "always"]))
    figure = page[page.index("<svg") : page.index("</svg>")]
    assert "often" in figure
    assert "always" in figure
    assert "seldom" not in figure
    table = page[page.index('id="juror-table"') : page.index("<figure>")]
    # The largest and the lowest by weight times votes; of equal ones the last.
    names = re.findall(r'<th scope="row"[^>]*>(\w+)<', table)
    assert names == ["always", "seldom"]
    assert "<p>Not shown, those in the middle by weight times votes: 2 jurors.</p>" in page


def test_many_jurors_are_counted_in_the_terminal(tmp_path):
    rng = np.random.default_rng(0)
    votes = rng.integers(0, 2, (33, 40))
    rows = [f"{n},juror-{s},{vote}" for s, row in enumerate(votes) for n, vote in enumerate(row)]
    (tmp_path / "votes.csv").write_text("item,source,label\n" + "\n".join(rows) + "\n")
    done = veridical("jury", tmp_path / "votes.csv")
    assert done.returncode == 0, done.stderr
    table = done.stdout[: done.stdout.index("Not shown")]
    assert sum(line.startswith("juror-") for line in table.splitlines()) == 30
    assert "Not shown, with smaller weights: 3 jurors; --json and --report show them." in " ".join(done.stdout.split())
    quiet = veridical("jury", tmp_path / "votes.csv", "--quiet", "-o", tmp_path / "answers.csv")
    assert (quiet.returncode, quiet.stdout) == (0, "")
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 41


def test_classes_and_outputs_of_the_command(tmp_path):
    (tmp_path / "votes.csv").write_text("item,source,label\np,a,x\nq,a,y\n")
    done = veridical("jury", tmp_path / "votes.csv", "--classes", "y, x,z", "--json")
    assert json.loads(done.stdout)["classes"] == ["y", "x", "z"]
    assert json.loads(done.stdout)["out"] is None
    twice = veridical("jury", tmp_path / "votes.csv", "--classes", "x,y,x")
    assert (twice.returncode, twice.stderr) == (2, "Error: two classes are called 'x'; give each its own name.\n")
    same = veridical("jury", tmp_path / "votes.csv", "-o", tmp_path / "a.csv", "--report", tmp_path / "a.csv")
    assert same.returncode == 2
    assert not (tmp_path / "a.csv").exists()
