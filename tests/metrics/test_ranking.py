"""Metrics of scores, agreement of rankings, regret."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from penchant.errors import DataError
from penchant.metrics import (
    adjusted_rand,
    auc,
    dcg,
    disagreement_error,
    kendall_tau,
    mean_average_precision,
    ndcg,
    regret,
)

small_tables = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), min_size=2, max_size=25
)


def brute_disagreement(y, score, qid):
    """Every pair of every group, one by one."""
    errors = []
    for q in set(qid):
        rows = [i for i, label in enumerate(qid) if label == q]
        pairs = [(i, j) for i, j in combinations(rows, 2) if y[i] != y[j]]
        wrong = sum(
            0.5 if score[i] == score[j] else float((y[i] > y[j]) != (score[i] > score[j]))
            for i, j in pairs
        )
        if pairs:
            errors.append(wrong / len(pairs))
    return np.mean(errors) if errors else None


@given(small_tables)
def test_disagreement_is_the_count_of_reversed_pairs(table):
    y, score, qid = (list(column) for column in zip(*table, strict=True))
    expected = brute_disagreement(y, score, qid)
    assume(expected is not None)
    assert disagreement_error(y, score, qid) == pytest.approx(expected, abs=1e-12)


def test_disagreement_is_eq_4_of_the_paper_up_to_its_scale_when_nothing_is_tied():
    rng = np.random.default_rng(0)
    s, f = rng.normal(size=12), rng.normal(size=12)

    def sign(r):
        return np.where(r > 0, 1, -1)

    difference = sign(s[:, None] - s) - sign(f[:, None] - f)
    printed = 0.5 * np.abs(difference).sum()
    assert disagreement_error(s, f) == pytest.approx(printed / (12 * 11))


def test_disagreement_limits():
    y = np.arange(5.0)
    assert disagreement_error(y, y) == 0.0
    assert disagreement_error(y, -y) == 1.0
    assert disagreement_error(y, np.zeros(5)) == 0.5


def test_disagreement_leaves_out_groups_without_preferences():
    assert disagreement_error([1, 1, 2, 1], [5, 1, 2, 3], qid=["a", "a", "b", "b"]) == 1.0
    with pytest.raises(DataError, match="nothing to rank"):
        disagreement_error([1, 1, 2], [1, 2, 3], qid=[0, 0, 1])


def test_disagreement_is_fast_on_long_lists():
    rng = np.random.default_rng(4)
    y, score = rng.normal(size=(2, 200_000))  # 2e10 pairs: only a sort can do it
    assert abs(disagreement_error(y, score) - 0.5) < 0.01


def test_auc_agrees_with_sklearn_and_with_counting():
    rng = np.random.default_rng(5)
    score, relevant = rng.integers(0, 5, 40), rng.random(40) < 0.4
    assert auc(score, relevant) == pytest.approx(roc_auc_score(relevant, score))
    gap = score[relevant][:, None] - score[~relevant]
    assert auc(score, relevant) == pytest.approx(np.mean((gap > 0) + 0.5 * (gap == 0)))
    counts = rng.integers(0, 3, 40)
    repeated = auc(np.repeat(score, counts), np.repeat(relevant, counts))
    assert auc(score, relevant, counts) == pytest.approx(repeated)


def test_dcg_by_hand():
    assert dcg([3, 2, 1]) == pytest.approx(3 + 2 / np.log2(3) + 1 / 2)
    assert dcg([3, 2, 1], k=2) == pytest.approx(3 + 2 / np.log2(3))
    assert dcg([3, 0, 1], gain="exponential") == pytest.approx(7 + 1 / 2)
    assert dcg([1.0], k=10) == 1.0


@given(small_tables, st.one_of(st.none(), st.integers(1, 10)))
def test_ndcg_agrees_with_sklearn_ties_included(table, k):
    y, score, _ = (np.array(column, dtype=float) for column in zip(*table, strict=True))
    assume(y.max() > 0)
    assert ndcg(y, score, k) == pytest.approx(ndcg_score([y], [score], k=k))


def test_ndcg_of_ties_is_the_mean_over_ways_to_break_them():
    y, score = np.array([3.0, 0.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0, 0.0])
    ideal = dcg([3, 2, 1, 0])
    broken = [dcg(y[[*order, 3]]) / ideal for order in permutations(range(3))]
    assert ndcg(y, score) == pytest.approx(np.mean(broken))


def test_ndcg_averages_groups_and_skips_those_without_grades():
    y, score, qid = [1, 0, 0, 0, 2, 1], [1, 2, 1, 2, 3, 1], [7, 7, 8, 8, 9, 9]
    expected = np.mean([ndcg([1, 0], [1, 2]), 1.0])
    assert ndcg(y, score, qid=qid) == pytest.approx(expected)


def test_ndcg_with_exponential_gain():
    y, score = np.array([0, 3, 1, 2]), np.array([3.0, 2.0, 1.0, 0.0])
    expected = dcg(y, gain="exponential") / dcg([3, 2, 1, 0], gain="exponential")
    assert ndcg(y, score, gain="exponential") == pytest.approx(expected)


def test_mean_average_precision_agrees_with_sklearn_per_group():
    rng = np.random.default_rng(6)
    y, score, qid = rng.random(60) < 0.3, rng.integers(0, 6, 60), rng.integers(0, 4, 60)
    expected = [average_precision_score(y[qid == q], score[qid == q]) for q in range(4)]
    assert mean_average_precision(y, score, qid) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("metric", [disagreement_error, ndcg, mean_average_precision])
def test_nothing_depends_on_the_order_of_the_rows(metric):
    rng = np.random.default_rng(7)
    y, score, qid = rng.integers(0, 3, (3, 40))
    shuffle = rng.permutation(40)
    before, after = metric(y, score, qid=qid), metric(y[shuffle], score[shuffle], qid=qid[shuffle])
    assert before == pytest.approx(after, abs=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: auc([1, 2], [1, 1]), "relevant is True in every row"),
        (lambda: disagreement_error([1, 2], [1]), "y_score has 1 entries: it must have 2"),
        (lambda: disagreement_error([1, 2], [1, np.inf]), "y_score of row 1 is inf"),
        (lambda: ndcg([1, 2], [1, 2], qid=[1]), r"qid has shape \(1,\)"),
        (lambda: ndcg([-1, 2], [1, 2]), "negative grades"),
        (lambda: ndcg([1, 2], [1, 2], k=0), "k is 0"),
        (lambda: dcg([1], gain="log"), "gain is 'log'"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(DataError, match=message):
        call()


def test_kendall_tau_by_counting_pairs():
    a, b = np.random.default_rng(0).normal(size=(2, 15))
    signs = [np.sign((a[i] - a[j]) * (b[i] - b[j])) for i, j in combinations(range(15), 2)]
    assert kendall_tau(a, b) == pytest.approx(np.mean(signs))
    assert kendall_tau(a, -a) == pytest.approx(-1.0)


def test_kendall_tau_of_a_constant_is_undefined():
    assert np.isnan(kendall_tau([1, 1, 1], [1, 2, 3]))
    with pytest.raises(DataError, match="b has 2 entries"):
        kendall_tau([1, 2, 3], [1, 2])


def test_adjusted_rand_ignores_the_names_of_the_groups():
    assert adjusted_rand([0, 0, 1, 2], ["c", "c", "a", "b"]) == 1.0
    rng = np.random.default_rng(1)
    assert abs(adjusted_rand(*rng.integers(0, 4, (2, 5000)))) < 0.01


def test_regret_is_the_mean_loss_so_far():
    best, achieved = np.random.default_rng(0).random((2, 30))
    running = regret(best, achieved)
    for t in range(30):
        assert running[t] == pytest.approx(np.mean(best[: t + 1] - achieved[: t + 1]))


def test_lengths_must_match():
    with pytest.raises(DataError, match="achieved has 1 entries: it must have 2"):
        regret([1, 2], [1])
