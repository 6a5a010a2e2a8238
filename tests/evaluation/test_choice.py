"""Which pairs auto compares, and which one it takes."""

import numpy as np
import pytest

import veridical as vd
from veridical.evaluation.choice import Situation, choose_row, compare_losses, sources_change, standard_error

FEW, MANY = (Situation("distribution", n, 10) for n in (199, 200))


def rows_of(**losses):
    """Rows of pairs, named combine_method with "-" left out, from losses per sample."""
    names = {"logpool": "log-pool"}
    pairs = [tuple(names.get(part, part) for part in name.split("_")) for name in losses]
    return compare_losses(pairs, np.array([*losses.values()], dtype=float), [0.0] * len(pairs), None)


def test_few_labels_compare_methods_with_few_numbers():
    few, many = FEW.default_pairs(), MANY.default_pairs()
    assert ("log-pool", "log-pool") in few
    assert ("mean", "vector") not in few
    assert ("mean", "vector") in many
    assert set(few) <= {*many, ("mean", "identity")}


def test_confidence_compares_the_same_methods_with_few_labels():
    assert Situation("confidence", 20, 10).default_pairs() == Situation("confidence", 2000, 10).default_pairs()


def test_matrix_scaling_of_many_classes_must_be_asked_for():
    assert ("mean", "matrix") in MANY.default_pairs()
    assert ("mean", "matrix") not in Situation("distribution", 5000, 101).default_pairs()


def test_changing_sources_have_no_learned_weights():
    changing = Situation("distribution", 5000, 10, sources_change=True)
    assert not {combine for combine, _ in changing.default_pairs()} & {"linear-pool", "log-pool"}


def test_few_labels_take_the_log_pool_although_chance_is_against_it():
    rows = rows_of(
        mean_identity=[1, 1, 1, 1], mean_temperature=[0.9, 0.9, 0.9, 0.9], logpool_logpool=[0.1, 2, 1.6, 0.7]
    )
    assert rows[2]["score"] > rows[0]["score"]
    assert choose_row(rows, FEW.rule) == 2
    assert choose_row(rows, MANY.rule) == 1


def test_log_pool_that_is_surely_worse_is_not_taken():
    rows = rows_of(mean_identity=[1, 1, 1, 1], logpool_logpool=[2, 2.1, 2, 1.9])
    assert choose_row(rows, FEW.rule) == choose_row(rows, MANY.rule) == 0


def test_consensus_is_taken_where_sources_change():
    changing = Situation("distribution", 300, 10, sources_change=True)
    rows = rows_of(mean_identity=[1, 1, 1, 1], consensus_consensus=[1.2, 0.9, 1.2, 0.9], mean_temperature=[0.99] * 4)
    assert choose_row(rows, changing.rule) == 1
    assert choose_row(rows, MANY.rule) == 2


def test_best_row_is_behind_by_nothing():
    rows = rows_of(mean_identity=[1, 2, 3, 4], mean_temperature=[1, 1, 1, 1])
    assert [row["behind"] for row in rows] == [1.5, 0]
    assert rows[0]["behind_spread"] == pytest.approx(standard_error(np.array([0.0, 1, 2, 3]), None))


class TestSourcesChange:
    def predictions(self, absent_from):
        rng = np.random.default_rng(0)
        probs = rng.dirichlet(np.ones(3), (3, 400))
        chances = probs.mean(axis=0)
        for source, samples in absent_from.items():
            probs[source, samples] = np.nan
        labels = np.full(400, -1)
        labels[:100] = (chances[:100].cumsum(axis=1) < rng.random((100, 1))).sum(axis=1)
        return vd.Predictions(probs, labels).labelled()

    def test_source_that_comes_later(self):
        assert sources_change(self.predictions({2: slice(0, 100)}))

    def test_source_that_goes(self):
        assert not sources_change(self.predictions({2: slice(100, 400)}))

    def test_source_that_is_absent_now_and_then(self):
        assert not sources_change(self.predictions({2: np.random.default_rng(1).random(400) < 0.7}))

    def test_all_samples_labelled(self):
        probs = np.random.default_rng(0).dirichlet(np.ones(3), (3, 50))
        assert not sources_change(vd.Predictions(probs, np.zeros(50, int)).labelled())

    def test_auto_learns_no_weights_of_a_source_that_comes_later(self):
        auto = vd.Auto(objective="distribution", keep_labels=False, random_state=0, missing="skip")
        chosen = auto.fit(self.predictions({2: slice(0, 100)}))
        assert not {row["combine"] for row in chosen.table_} & {"linear-pool", "log-pool"}
