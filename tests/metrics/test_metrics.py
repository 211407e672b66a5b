"""Metrics against brute force, scikit-learn and numbers worked out by hand."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from penchant.errors import DataError
from penchant.metrics import (
    adjusted_rand,
    auc,
    calibration,
    dcg,
    disagreement_error,
    kendall_tau,
    log_loss,
    mean_average_precision,
    ndcg,
    pair_error,
    regret,
)

probabilities = arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1))
small_tables = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), min_size=2, max_size=25
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@given(probabilities)
def test_swapping_every_pair_turns_right_into_wrong(p):
    assert pair_error(p) + pair_error(1.0 - p) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    "metric", [pair_error, log_loss, lambda p, c: calibration(p, counts=c).error]
)
def test_a_count_is_the_row_repeated(metric, rng):
    p, counts = rng.random(20), rng.integers(0, 4, 20)
    assert metric(p, counts) == pytest.approx(metric(np.repeat(p, counts), None))


def test_errors_of_pairs_by_hand():
    assert pair_error([0.51, 0.49, 0.5, 1.0]) == pytest.approx(1.5 / 4)  # a guess counts half
    assert log_loss([0.5, 0.125]) == pytest.approx(2.0 * np.log(2.0))
    assert log_loss([0.0, 1.0]) == np.inf
    assert log_loss([0.0, 1.0], counts=[0, 3]) == 0.0  # an impossibility that did not happen


def test_calibration_against_a_loop(rng):
    p, y = rng.random(300), rng.integers(0, 2, 300)
    result = calibration(p, y, n_bins=7)
    error = 0.0
    for b in range(7):
        inside = (p >= b / 7) & (p < (b + 1) / 7)
        assert result.count[b] == inside.sum()
        np.testing.assert_allclose(result.predicted[b], p[inside].mean())
        np.testing.assert_allclose(result.observed[b], y[inside].mean())
        error += inside.mean() * abs(p[inside].mean() - y[inside].mean())
    assert result.error == pytest.approx(error)
    np.testing.assert_allclose(result.centre, (np.arange(7) + 0.5) / 7)


@given(probabilities, st.integers(1, 12))
def test_oriented_calibration_is_symmetric(p, n_bins):
    result = calibration(p, n_bins=n_bins)
    assert result.count.sum() == 2 * p.size
    # p = 1/2 sits on an edge when the bins are even in number; its twin cannot be elsewhere.
    if not np.any(p == 0.5):
        np.testing.assert_allclose(result.count, result.count[::-1])
        np.testing.assert_allclose(result.observed, 1.0 - result.observed[::-1])


def test_calibrated_predictions_have_little_error(rng):
    p = rng.random(20_000)
    oriented = np.where(rng.random(p.size) < p, p, 1.0 - p)  # the winner named first
    result = calibration(oriented)
    sigma = np.sqrt(result.predicted * (1 - result.predicted) / result.count)
    assert np.all(np.abs(result.observed - result.predicted) < 4 * sigma)
    assert calibration(np.clip(oriented * 1.2 - 0.1, 0, 1)).error > 3 * result.error


@given(small_tables)
def test_disagreement_is_the_count_of_reversed_pairs(table):
    """Every pair of every group, one by one (001, Eq. 4); groups without a preference count not."""
    errors = []
    for q in {row[2] for row in table}:
        rows = [row for row in table if row[2] == q]
        pairs = [(a, b) for a, b in combinations(rows, 2) if a[0] != b[0]]
        wrong = [0.5 if a[1] == b[1] else float((a[0] > b[0]) != (a[1] > b[1])) for a, b in pairs]
        errors += [np.mean(wrong)] if pairs else []
    assume(errors)
    found = disagreement_error(*zip(*table, strict=True))
    assert found == pytest.approx(np.mean(errors), abs=1e-12)


def test_disagreement_takes_a_sort_on_long_lists(rng):
    y, score = rng.normal(size=(2, 100_000))  # 5e9 pairs
    assert abs(disagreement_error(y, score) - 0.5) < 0.01


def test_auc_agrees_with_sklearn_and_with_counting(rng):
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


def test_ndcg_of_ties_groups_and_gains():
    y, score = np.array([3.0, 0.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0, 0.0])
    broken = [dcg(y[[*order, 3]]) / dcg([3, 2, 1, 0]) for order in permutations(range(3))]
    assert ndcg(y, score) == pytest.approx(np.mean(broken))  # over all ways to break the tie
    grades, scores, qid = [1, 0, 0, 0, 2, 1], [1, 2, 1, 2, 3, 1], [7, 7, 8, 8, 9, 9]
    expected = np.mean([ndcg([1, 0], [1, 2]), 1.0])  # query 8 has no grades
    assert ndcg(grades, scores, qid=qid) == pytest.approx(expected)
    y, score = np.array([0, 3, 1, 2]), np.array([3.0, 2.0, 1.0, 0.0])
    expected = dcg(y, gain="exponential") / dcg([3, 2, 1, 0], gain="exponential")
    assert ndcg(y, score, gain="exponential") == pytest.approx(expected)


def test_mean_average_precision_agrees_with_sklearn_per_group(rng):
    y, score, qid = rng.random(60) < 0.3, rng.integers(0, 6, 60), rng.integers(0, 4, 60)
    expected = [average_precision_score(y[qid == q], score[qid == q]) for q in range(4)]
    assert mean_average_precision(y, score, qid) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("metric", [disagreement_error, ndcg, mean_average_precision])
def test_nothing_depends_on_the_order_of_the_rows(metric, rng):
    y, score, qid = rng.integers(0, 3, (3, 40))
    shuffle = rng.permutation(40)
    before, after = metric(y, score, qid=qid), metric(y[shuffle], score[shuffle], qid=qid[shuffle])
    assert before == pytest.approx(after, abs=1e-14)


def test_agreement_and_regret_by_hand(rng):
    a, b = rng.normal(size=(2, 15))
    signs = [np.sign((a[i] - a[j]) * (b[i] - b[j])) for i, j in combinations(range(15), 2)]
    assert kendall_tau(a, b) == pytest.approx(np.mean(signs))
    assert np.isnan(kendall_tau([1, 1, 1], [1, 2, 3]))  # a constant has no order
    assert adjusted_rand([0, 0, 1, 2], ["c", "c", "a", "b"]) == 1.0
    assert abs(adjusted_rand(*rng.integers(0, 4, (2, 5000)))) < 0.01
    running = regret(a, b)
    assert running == pytest.approx([np.mean(a[: t + 1] - b[: t + 1]) for t in range(15)])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pair_error([0.2, 1.5]), r"p of row 1 is 1.5.*within 0 and 1"),
        (lambda: pair_error([-0.1]), "p of row 0 is -0.1"),
        (lambda: pair_error([np.nan]), r"p of row 0 is nan"),
        (lambda: pair_error([]), r"shape \(0,\).*non-empty"),
        (lambda: pair_error([[0.5]]), r"shape \(1, 1\)"),
        (lambda: log_loss([0.5, 0.5], counts=[1]), r"counts has 1 entries: it must have 2"),
        (lambda: log_loss([0.5], counts=[0]), "not all zero"),
        (lambda: log_loss([0.5, 0.5], counts=[2, -1]), "must not be negative"),
        (lambda: calibration([0.5], n_bins=0), "at least one bin"),
        (lambda: calibration([0.5], [1, 0]), "outcome has 2 entries"),
        (lambda: auc([1, 2], [1, 1]), "relevant is True in every row"),
        (lambda: disagreement_error([1, 2], [1]), "y_score has 1 entries: it must have 2"),
        (lambda: disagreement_error([1, 2], [1, np.inf]), "y_score of row 1 is inf"),
        (lambda: disagreement_error([1, 1, 2], [1, 2, 3], qid=[0, 0, 1]), "nothing to rank"),
        (lambda: ndcg([1, 2], [1, 2], qid=[1]), r"qid has shape \(1,\)"),
        (lambda: ndcg([-1, 2], [1, 2]), "negative grades"),
        (lambda: ndcg([1, 2], [1, 2], k=0), "k is 0"),
        (lambda: dcg([1], gain="log"), "gain is 'log'"),
        (lambda: kendall_tau([1, 2, 3], [1, 2]), "b has 2 entries"),
        (lambda: regret([1, 2], [1]), "achieved has 1 entries: it must have 2"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(DataError, match=message):
        call()
