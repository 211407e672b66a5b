"""Rounds of documents, and simulated users."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant.errors import DataError
from penchant.online import (
    AlphaUser,
    ClickUser,
    ExpectedAlphaUser,
    LabelUser,
    Round,
    discounted,
    group,
    read_rounds,
)

RNG = np.random.default_rng(0)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 20),
    k=st.integers(1, 6),
    alpha=st.floats(0.01, 1.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_alpha_feedback_is_strict_and_no_deeper_than_needed(n, k, alpha, seed):
    rng = np.random.default_rng(seed)
    docs, weights = rng.standard_normal((n, 4)), rng.standard_normal(4)
    presented = rng.permutation(n)
    utility = docs @ weights
    feedback = AlphaUser(weights, alpha, k)(Round(docs), presented, rng)

    shown = discounted(utility, presented, k)
    wanted = alpha * (discounted(utility, np.argsort(-utility), k) - shown)
    assert sorted(feedback) == list(range(n))
    assert discounted(utility, feedback, k) - shown >= wanted

    # Walk down as the paper says: the first sufficient depth must give the same top.
    for depth in range(min(k, n), n + 1):
        seen = presented[:depth]
        top = seen[np.argsort(-utility[seen], kind="stable")[:k]]
        if discounted(utility, top, k) - shown >= wanted:
            break
    assert feedback[:k].tolist() == top.tolist()


def test_expected_alpha_feedback_gains_alpha_on_average():
    rng = np.random.default_rng(2)
    docs, weights = rng.standard_normal((10, 3)), rng.standard_normal(3)
    utility, presented = docs @ weights, np.arange(10)
    user = ExpectedAlphaUser(weights, alpha=0.3)
    gap = discounted(utility, np.argsort(-utility), 5) - discounted(utility, presented, 5)
    orders = [user(Round(docs), presented, rng) for _ in range(1000)]
    gains = np.array([discounted(utility, order, 5) for order in orders])
    gains -= discounted(utility, presented, 5)
    assert set(np.round(gains / gap, 12)) == {0.0, 1.0}
    assert abs(gains.mean() / gap - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 1000)


def test_labels_below_the_depth_are_not_seen_and_ties_keep_the_presented_order():
    grades = np.zeros(30)
    grades[[4, 9]] = 1.0
    grades[29] = 4.0
    presented = np.arange(30)
    feedback = LabelUser(k=5, depth=25)(Round(np.zeros((30, 1)), grades), presented, RNG)
    assert feedback[:5].tolist() == [4, 9, 0, 1, 2]
    assert sorted(feedback) == list(range(30))


def test_clicks_follow_position_and_label():
    user = ClickUser(bias=1.0, noise=0.1, best_grade=2.0)
    grades = np.array([2.0, 1.0, 0.0, 2.0])
    rng = np.random.default_rng(3)
    presented = np.array([3, 1, 2, 0])
    n_draws, first = 4000, np.zeros(4)
    for _ in range(n_draws):
        feedback = user(Round(np.zeros((4, 1)), grades), presented, rng)
        first[feedback[0]] += 1
    click = np.array([0.9, 0.5 / 2, 0.1 / 3, 0.9 / 4])  # by place: documents 3, 1, 2, 0
    expected = np.zeros(4)
    missed = 1.0
    for document, probability in zip(presented, click, strict=True):
        expected[document] = missed * probability
        missed *= 1.0 - probability
    expected[presented[0]] += missed  # nothing clicked: the order stays
    sigma = np.sqrt(expected * (1 - expected) / n_draws)
    assert np.all(np.abs(first / n_draws - expected) < 4.5 * sigma)


def test_users_say_what_is_wrong():
    with pytest.raises(DataError, match="no grades"):
        LabelUser()(Round(np.eye(2)), np.arange(2), RNG)
    for alpha in (0.0, 1.5, float("nan")):
        with pytest.raises(DataError, match="alpha"):
            AlphaUser(np.ones(1), alpha)
    with pytest.raises(DataError, match="noise"):
        ClickUser(noise=0.7)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_grouping_keeps_time_and_rows_together(qid):
    order, starts = group(qid)
    ids = np.array(qid)
    row = np.arange(len(qid)) if order is None else order
    assert sorted(row) == list(range(len(qid)))
    blocks = [row[a:b] for a, b in pairwise(starts)]
    assert [ids[block[0]] for block in blocks] == list(dict.fromkeys(qid))
    for block in blocks:
        assert len(set(ids[block])) == 1
        assert np.all(np.diff(block) > 0)


def test_a_file_streams_the_same_rounds_across_its_chunks(tmp_path):
    rng = np.random.default_rng(0)
    sizes = [2, 4, 1, *[1] * 1000, 3, 2]
    qid = np.repeat([3, 1, 3, *range(10, 1010), 8, 5], sizes)  # query 3 comes twice: two rounds
    docs, grades = rng.random((len(qid), 2)).round(3), rng.integers(0, 3, len(qid))
    file = tmp_path / "queries.txt"
    rows = zip(docs, grades, qid, strict=True)
    file.write_text("".join(f"{y} qid:{q} 1:{x[0]} 2:{x[1]}\n" for x, y, q in rows))
    rounds = list(read_rounds(file))
    assert [len(round_.docs) for round_ in rounds] == sizes
    assert np.array_equal(np.concatenate([round_.docs for round_ in rounds]), docs)
    assert np.array_equal(np.concatenate([round_.grades for round_ in rounds]), grades)
