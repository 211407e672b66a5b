"""Users × answers: the sparse table, the shards, the assignment step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import chisquare

from penchant.communities import Answers, log_likelihoods
from penchant.communities import data as assignment
from penchant.communities.data import assign, count_pairs
from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.likelihoods import Probit, Ties

rows = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 3), st.booleans()).filter(
        lambda row: row[1] != row[2]
    ),
    min_size=1,
    max_size=40,
)


def build(rows):
    user, winner, loser, tie = zip(*rows, strict=True)
    return Comparisons.from_pairs(winner, loser, user=user, tie=tie, items=range(4), users=range(5))


@given(rows)
@settings(max_examples=60, deadline=None)
def test_every_vote_is_counted_where_it_belongs(rows):
    data = build(rows)
    answers = Answers.of(data)
    dense = answers.counts.toarray()
    tie = np.zeros(answers.n_answers, bool)
    if answers.outcomes.tie is not None:
        tie = answers.outcomes.tie
    seen = {}
    for u, a in zip(*dense.nonzero(), strict=True):
        seen[(u, answers.winner[a], answers.loser[a], tie[a])] = dense[u, a]
    expected = {
        key[:4]: key[4]
        for key in zip(data.user, data.winner, data.loser, data.tie, data.count, strict=True)
    }
    assert seen == expected


@pytest.mark.parametrize("few", [0, 8])
def test_distinct_answers_are_the_same_sorted_or_not(few, monkeypatch, rng):
    monkeypatch.setattr(assignment, "FEW_KEYS", few)
    key = rng.integers(50, size=40)
    row, which = assignment._distinct(key)
    distinct, place = np.unique(key, return_inverse=True)
    np.testing.assert_array_equal(key[row], distinct)
    np.testing.assert_array_equal(which, place)


def test_indices_and_values_take_four_bytes(rng):
    data = Comparisons.from_pairs([0, 1], [1, 0], user=[0, 1])
    counts = Answers.of(data).counts
    assert counts.indices.dtype == counts.indptr.dtype == np.int32
    assert counts.data.dtype == np.float32


def test_margins_tell_answers_apart():
    data = Comparisons.from_pairs([0, 0], [1, 1], user=[0, 1], margin=[1.0, 2.0])
    assert Answers.of(data).n_answers == 2


def test_users_without_votes_have_empty_rows():
    data = Comparisons.from_pairs([0], [1], user=["b"], users=["a", "b", "c"])
    assert np.diff(Answers.of(data).counts.indptr).tolist() == [0, 1, 0]


def test_anonymous_votes_are_refused():
    with pytest.raises(DataError, match="do not say who"):
        Answers.of(Comparisons.from_pairs([0], [1]))


def test_table_holds_log_probabilities_of_the_answers():
    data = Comparisons.from_pairs([0, 1], [1, 2], user=[0, 0], tie=[False, True])
    answers = Answers.of(data)
    f = np.array([[0.3, -0.2, 0.9]])
    likelihood = Ties()
    win = int(np.flatnonzero(~answers.outcomes.tie)[0])
    table = np.exp(answers.table(f, [likelihood]))
    assert table[win, 0] == pytest.approx(likelihood.prob(np.array([0.5]), np.zeros(1))[0], 1e-6)
    assert table[1 - win, 0] == pytest.approx(
        likelihood.prob_tie(np.array([-1.1]), np.zeros(1))[0], 1e-6
    )


@pytest.fixture
def votes(rng):
    user, winner = rng.integers(50, size=400), rng.integers(6, size=400)
    loser = (winner + rng.integers(1, 6, size=400)) % 6
    return Answers.of(Comparisons.from_pairs(winner, loser, user=user, items=range(6)))


def test_log_likelihoods_are_sums_over_votes(votes, rng):
    f = rng.standard_normal((3, 6))
    table = votes.table(f, [Probit()] * 3)
    found = log_likelihoods(votes.counts, table)
    dense = votes.counts.toarray().astype(float)
    for c in range(3):
        g = f[c][votes.winner] - f[c][votes.loser]
        np.testing.assert_allclose(found[c], dense @ Probit().log_prob(g).value, rtol=1e-5)


def test_shards_do_not_change_the_result(votes, rng):
    table = votes.table(rng.standard_normal((4, 6)), [Probit()] * 4)
    log_weight = np.log(np.full(4, 0.25, np.float32))
    uniform = (1.0 - rng.random(votes.n_users)).astype(np.float32)
    whole = assign(votes.counts, table, log_weight, uniform)
    parts = [assign(s, table, log_weight, uniform[p]) for p, s in votes.shards(size=7)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_pair_counts_are_a_one_hot_product(votes, rng):
    assignment = rng.integers(3, size=votes.n_users).astype(np.int32)
    expected = np.eye(3)[assignment].T @ votes.counts.toarray()
    np.testing.assert_allclose(count_pairs(votes.counts, assignment, 3), expected)


def test_users_are_drawn_with_the_right_probabilities(rng):
    n = 20_000
    shard = sparse.csr_array(np.ones((n, 1), np.float32))
    table = np.log(np.array([[0.5, 0.2, 0.8]], np.float32))
    log_weight = np.log(np.array([0.2, 0.5, 0.3], np.float32))
    uniform = (1.0 - rng.random(n)).astype(np.float32)
    drawn = np.bincount(assign(shard, table, log_weight, uniform), minlength=3)
    weight = np.array([0.1, 0.1, 0.24])
    assert chisquare(drawn, n * weight / weight.sum()).pvalue > 1e-4


@pytest.mark.parametrize("uniform", [np.finfo(np.float32).tiny, 1.0])
def test_the_impossible_is_never_drawn(uniform):
    shard = sparse.csr_array(np.ones((1, 1), np.float32))
    table = np.zeros((1, 3), np.float32)
    log_weight = np.array([-np.inf, 0.0, -np.inf], np.float32)
    drawn = assign(shard, table, log_weight, np.array([uniform], np.float32))
    assert drawn.tolist() == [1]
