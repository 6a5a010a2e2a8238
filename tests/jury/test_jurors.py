"""Jurors: what is shown of their skill and dependence, and whom to look at."""

import json

import naive_consensus
import numpy as np
import pytest
from programs import veridical_in_process as veridical
from scipy.stats import binomtest
from test_judge import simulated_votes, write_votes

import veridical as vd
from veridical.combine.across_samples.votes import sort_shares
from veridical.jury.pairs import MainAnswers
from veridical.report.jury_page import render_jury


def crowd(rng, n_jurors=120, n_batches=40, per_juror=6, accuracy=0.8):
    """(S, N) votes on batches of five items, some for each juror: few pairs share many items."""
    n_items = 5 * n_batches
    truth = rng.integers(0, 3, n_items)
    votes = np.full((n_jurors, n_items), -1)
    for s in range(n_jurors):
        items = (5 * rng.choice(n_batches, per_juror, replace=False)[:, None] + np.arange(5)).ravel()
        right = rng.random(len(items)) < accuracy
        votes[s, items] = np.where(right, truth[items], rng.integers(0, 3, len(items)))
    votes[0, (votes < 0).all(axis=0)] = 0
    return votes


def shared_items(votes):
    present = (votes >= 0).astype(int)
    return present @ present.T


def findings(result, problem):
    return [finding for finding in result.jurors_to_check if finding.problem == problem]


# --- dependence


def test_dependence_on_few_shared_items_is_not_shown(rng):
    votes = crowd(rng)
    result, shared = vd.judge(votes), shared_items(votes)
    few = (shared < 20) & ~np.eye(len(votes), dtype=bool)
    assert result.consensus.dependence[few].max() > 0.35  # chance on 5 to 15 items
    assert np.isnan(result.dependence[few]).all()
    for s, juror in enumerate(result.jurors):
        often = np.delete(shared[s] >= 20, s)
        if not often.any():
            assert (juror.dependence, juror.depends_on, juror.n_shared) == (None, None, 0)
        else:
            assert juror.n_shared >= 20
    assert not findings(result, "copy")
    hidden = next(juror.name for juror in result.jurors if juror.dependence is None)
    row = next(row for row in result.rows()[1] if row[0] == hidden)
    assert row[-3:] == ["–", "", ""]
    assert next(entry for entry in result.to_dict()["jurors"] if entry["name"] == hidden)["dependence"] is None


def test_dependence_is_that_of_the_consensus_with_the_items_shared(rng):
    votes, _ = simulated_votes(rng)
    result, shared = vd.judge(votes), shared_items(votes)
    np.testing.assert_array_equal(result.dependence, result.consensus.dependence.astype(np.float32))
    for s, juror in enumerate(result.jurors):
        others = result.consensus.dependence[s].copy()
        others[s] = -1
        assert juror.dependence == pytest.approx(others.max(), abs=1e-6)
        candidates = np.flatnonzero(others > others.max() - 1e-6)
        assert juror.n_shared == shared[s, candidates].max()


def test_copies_are_named_in_words(rng):
    votes, _ = simulated_votes(rng, absent=0.0)
    copy = votes[2].copy()
    copy[:8] = (copy[:8] + 1) % 3
    result = vd.judge(np.concatenate([votes, [copy]]), source_names=[*"abcdef", "copy of c"])
    assert [(f.juror, f.other) for f in findings(result, "copy")] == [("c", "copy of c")]
    assert "c and copy of c gave the same answer on 98% of 400 shared items: copies count once." in result.notes
    assert result.to_dict()["jurors_to_check"][0]["text"] == "same answer as copy of c on 98% of 400 shared items"
    assert "same answer as copy of c on 98% of 400 shared items" in render_jury(result)


def test_exact_copies_agree_on_all_items(rng):
    votes, _ = simulated_votes(rng)
    result = vd.judge(np.concatenate([votes, votes[:1], votes[:1], votes[:1], votes[:1]]))
    n = (votes[0] >= 0).sum()
    assert f"0 and 6 gave the same answer on 100% of {n} shared items: copies count once." in result.notes
    assert "1 more pair of jurors looks like copies." in result.notes


def test_good_jurors_who_agree_are_not_called_copies(rng):
    """With 30 items, jurors who are right 95 times of 100 often agree on all of them."""
    votes, _ = simulated_votes(rng, n_items=30, absent=0.0, accuracies=np.full(30, 0.95))
    result = vd.judge(votes)
    equal = sum((votes[s] == votes[t]).all() for s in range(30) for t in range(s))
    assert equal > 3
    assert max(juror.dependence for juror in result.jurors) > 0.5
    assert not findings(result, "copy")


def test_answers_of_draws_are_their_most_frequent_label():
    votes = sort_shares(
        np.array([0, 0, 1, 1, 2]), np.array([0, 0, 0, 1, 1]), np.array([1, 2, 0, 0, 2]), np.array([1.0, 3, 1, 1, 1]),
        (2, 3, 3),
    )  # fmt: skip
    answers = MainAnswers.of(votes)
    assert [part.tolist() for part in answers.of_source(0)] == [[0, 1], [2, 0]]
    assert answers.same(0, 1) == (1, 1)


# --- agreement


def test_agreement_is_with_the_other_jurors(rng):
    votes, _ = simulated_votes(rng, n_items=80)
    votes = np.concatenate([votes, votes[:1]])
    result = vd.judge(votes)
    weights, dependence = result.consensus.weights, result.consensus.dependence
    agreed, compared = np.zeros(len(votes)), np.zeros(len(votes))
    for item in votes.T:
        here = np.flatnonzero(item >= 0)
        shares = weights[here] * naive_consensus.distinctness_of(dependence[np.ix_(here, here)])
        for s in here:
            others = [
                sum(share for t, share in zip(here, shares, strict=True) if t != s and item[t] == l) for l in range(3)
            ]
            if max(others) > 0:
                best = [l for l in range(3) if others[l] > max(others) - 1e-9 * shares.sum()]
                agreed[s] += (item[s] in best) / len(best)
                compared[s] += 1
    for s, juror in enumerate(result.jurors):
        assert juror.agreement == pytest.approx(agreed[s] / compared[s])
        whole = int(agreed[s])
        if whole == agreed[s]:
            interval = binomtest(whole, int(compared[s])).proportion_ci(method="exact")
            assert juror.agreement_interval == pytest.approx((interval.low, interval.high))


def test_own_vote_does_not_count_as_agreement(rng):
    """Guessers agree with the majority of all five, of which they are one, more often than with the other four."""
    votes = rng.integers(0, 2, (5, 2000))
    result = vd.judge(votes)
    assert (votes == result.label).mean() > 0.58
    for juror in result.jurors:
        low, high = juror.agreement_interval
        assert juror.agreement == pytest.approx(0.5, abs=0.05)
        assert low < juror.agreement < high < low + 0.05


def test_agreement_of_a_juror_without_others_is_unknown():
    result = vd.judge([[0, 1, 0, 1, -1], [0, 1, 0, 1, -1], [-1, -1, -1, -1, 1]])
    alone = result.jurors[2]
    assert (alone.agreement, alone.agreement_interval) == (None, None)
    assert next(row for row in result.rows()[1] if row[0] == "2")[4] == "–"
    assert result.jurors[0].agreement_interval == pytest.approx((0.025 ** (1 / 4), 1.0))


# --- skill


def test_skill_of_few_votes_is_not_shown(rng):
    votes, _ = simulated_votes(rng, absent=0.0)
    short = np.full((2, 400), -1)
    short[0, :19] = votes[0, :19]
    short[1, :20] = votes[0, :20]
    result = vd.judge(np.concatenate([votes, short]))
    few, enough = result.jurors[-2:]
    assert few.skill is None
    assert enough.skill == result.consensus.skill[-1]
    shown = {row[0]: row[1] for row in result.rows()[1]}
    assert (shown["6"], shown["7"]) == ("–", f"{enough.skill:.2f}")
    assert "– : " not in str(result)
    assert "–: fewer than 20 votes or shared items" in str(result)


def test_useless_and_constant_jurors_are_to_be_looked_at(rng):
    votes, _ = simulated_votes(rng, absent=0.0)
    guess, constant, silent = rng.integers(0, 3, 400), np.full(400, 2), np.full(400, -1)
    silent[:5] = 1
    names = [*"abcdef", "guesser", "same", "five"]
    result = vd.judge(np.concatenate([votes, [guess, constant, silent]]), source_names=names)
    assert [finding.juror for finding in findings(result, "constant")] == ["same"]
    assert [finding.juror for finding in findings(result, "no skill")] == ["guesser"]
    agreement = 100 * next(juror.agreement for juror in result.jurors if juror.name == "same")
    assert (
        findings(result, "constant")[0].text == f"always '2': 400 votes, {agreement:.0f}% agree with the other jurors"
    )
    assert "1 juror gives one and the same answer to every item (same with 400 votes)." in result.notes
    share = 100 * 400 / (8 * 400 + 5)
    assert (
        f"1 juror has a skill near zero with 20 votes or more (guesser); {share:.0f}% of all votes are theirs, and "
        "hardly count."
    ) in result.notes
    page = render_jury(result)
    section = page[page.index('id="to-check"') : page.index('id="jurors"')]
    assert [name in section for name in (">guesser<", ">same<", ">five<")] == [True, True, False]


def test_answer_of_the_jury_to_all_items_is_not_constant(rng):
    """Twenty items of one class are answered alike by every juror."""
    votes, truth = simulated_votes(rng, absent=0.0, accuracies=np.full(6, 0.95))
    one_class = np.full(400, -1)
    one_class[np.flatnonzero(truth == 1)[:40]] = 1
    result = vd.judge(np.concatenate([votes, [one_class]]))
    assert not findings(result, "constant")


def test_nobody_is_useless_where_the_mean_is_returned():
    votes = np.tile([0, 1, 1, 0], (2, 20))
    votes[1] = np.roll(votes[1], 1)
    assert vd.judge(votes).jurors_to_check == ()


def test_command_shows_whom_to_look_at(rng, tmp_path):
    votes, _ = simulated_votes(rng, absent=0.0)
    votes = np.concatenate([votes, rng.integers(0, 3, (14, 400))])
    path = write_votes(tmp_path / "votes.csv", votes)
    done = veridical("jury", path)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "Jurors to look at" in text
    n_useless = len(findings(vd.judge(path), "no skill"))
    assert n_useless > 12
    assert f"Also to look at: {n_useless - 12} juror" in text
    document = json.loads(veridical("jury", path, "--json").stdout)
    assert len([entry for entry in document["jurors_to_check"] if entry["problem"] == "no skill"]) == n_useless


# --- how many are distinct


def test_distinct_jurors_are_counted_once_with_their_copies(rng):
    votes, _ = simulated_votes(rng)
    alone, twice = vd.judge(votes), vd.judge(np.concatenate([votes, votes]))
    assert alone.distinct_jurors_overall == pytest.approx(6.0, abs=0.1)
    assert twice.distinct_jurors_overall == pytest.approx(alone.distinct_jurors_overall, rel=1e-5)
    copied = vd.judge(np.concatenate([votes, *[votes[:1]] * 5]))
    assert copied.distinct_jurors_overall == pytest.approx(alone.distinct_jurors_overall, rel=1e-5)


def test_copies_with_few_votes_count_nearly_once(rng):
    votes = simulated_votes(rng, n_items=60, absent=0.0)[0]
    alone, twice = vd.judge(votes), vd.judge(np.concatenate([votes, votes]))
    assert twice.distinct_jurors_overall == pytest.approx(alone.distinct_jurors_overall, rel=0.05)


def test_number_of_distinct_jurors_is_that_of_an_item_with_all_votes(rng):
    votes, _ = simulated_votes(rng, absent=0.0)
    result = vd.judge(np.concatenate([votes, np.where(rng.random((2, 400)) < 0.9, votes[:2], 0)]))
    np.testing.assert_allclose(result.distinct_jurors, result.distinct_jurors_overall, rtol=1e-5)
    assert result.to_dict()["distinct_jurors"] == result.distinct_jurors_overall
    assert f"Distinct jurors overall: {result.distinct_jurors_overall:.1f}, of 8 with a weight" in (
        result.distinct_jurors_in_words()
    )
    assert "Distinct jurors overall" in render_jury(result)


def test_number_of_distinct_jurors_is_unknown_with_few_votes():
    result = vd.judge([[0, 1, 0, 1]] * 4)
    assert result.distinct_jurors_overall is None
    assert result.distinct_jurors_in_words().startswith("No juror has a weight and 20 votes")
    assert "Distinct jurors overall" not in render_jury(result)


# --- how many are independent


def test_error_correlation_is_the_mean_over_pairs_with_enough_known_answers(rng):
    votes, truth = simulated_votes(rng, n_items=200)
    known = np.where(rng.random(200) < 0.5, truth, -1)
    votes[5, known >= 0] = np.where(np.cumsum(known >= 0)[known >= 0] <= 19, votes[5, known >= 0], -1)
    result = vd.judge(votes, gold=known, classes=["A", "B", "C"])
    correlations, met = [], set()
    for s in range(len(votes)):
        for t in range(s):
            shared = (votes[s] >= 0) & (votes[t] >= 0) & (known >= 0)
            if shared.sum() >= 20:
                correlations.append(
                    np.corrcoef(votes[s, shared] != known[shared], votes[t, shared] != known[shared])[0, 1]
                )
                met |= {s, t}
    errors = result.error_correlation
    assert errors.mean == pytest.approx(np.mean(correlations))
    assert errors.n_jurors == len(met) == 5
    assert errors.n_independent == pytest.approx(5 / (1 + 4 * max(errors.mean, 0)))


def test_distinct_jurors_with_common_errors_are_worth_few_independent_ones(rng):
    truth = rng.integers(0, 2, 500)
    difficult = rng.random(500) < 0.3
    votes = np.where(rng.random((12, 500)) < np.where(difficult, 0.4, 0.95), truth, 1 - truth)
    alone, result = vd.judge(votes), vd.judge(votes, gold=truth)
    assert alone.error_correlation is None
    assert alone.to_dict()["error_correlation"] is None
    assert "only known answers can show" in alone.distinct_jurors_in_words()
    assert result.distinct_jurors_overall > 11
    assert result.error_correlation.n_independent < 4
    worth = f"{result.error_correlation.n_independent:.1f}"
    assert f"12 such jurors are worth {worth} with independent errors" in result.distinct_jurors_in_words()
    assert f"worth {worth} independent ones" in render_jury(result)
    assert result.to_dict()["error_correlation"]["n_independent"] == result.error_correlation.n_independent
