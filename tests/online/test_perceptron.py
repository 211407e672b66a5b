"""The compiled loops against plain NumPy loops, and how orders are presented."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant.errors import DataError
from penchant.online import (
    LOSSES,
    UPDATES,
    UpdateRule,
    discounts,
    learn,
    new_state,
    present_greedily,
    present_sorted,
    swap_neighbours,
)

SLOPES = {
    "linear": lambda m: 1.0,
    "perceptron": lambda m: float(m <= 0),
    "hinge": lambda m: float(m < 1),
    "logistic": lambda m: 1.0 / (1.0 + np.exp(m)),
}


def make_rule(loss="linear", update="additive", rate=1.0, average=False, k=5):
    return UpdateRule(discounts(k), LOSSES[loss], UPDATES[update], rate, average)


class PlainPerceptron:
    """The same rules written as directly as they can be."""

    def __init__(self, d, loss, update, rate):
        self.loss, self.update, self.rate = loss, update, rate
        self.log_w = np.zeros(d)
        self.w = np.full(d, 1.0 / d) if update == "exponentiated" else np.zeros(d)
        self.squares = np.zeros(d)
        self.total = np.zeros(d)

    def learn(self, delta):
        gradient = SLOPES[self.loss](self.w @ delta) * delta
        if self.update == "additive":
            self.w = self.w + self.rate * gradient
        elif self.update == "adaptive":
            self.squares = self.squares + gradient**2
            moved = gradient != 0
            self.w[moved] += self.rate * gradient[moved] / np.sqrt(self.squares[moved])
        else:
            self.log_w = self.log_w + self.rate * gradient
            self.w = np.exp(self.log_w) / np.exp(self.log_w).sum()
        self.total += self.w


def relative_error(got, expected):
    return np.linalg.norm(got - expected) / np.linalg.norm(expected)


def phi(docs, order, k=5):
    return sum(docs[j] / np.log2(i + 2) for i, j in enumerate(order[:k]))


every_rule = pytest.mark.parametrize(
    ("loss", "update"), [(loss, update) for loss in LOSSES for update in UPDATES]
)


@every_rule
def test_graded_rounds_equal_a_plain_loop(loss, update):
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 60, 40)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    docs = rng.standard_normal((starts[-1], 13))
    grades = rng.integers(0, 5, starts[-1]).astype(float)
    rule = make_rule(loss, update, rate=0.3, average=True)
    state = learn("graded", rule, new_state(rule, 13, "float64"), docs, starts, grades, 25)

    plain = PlainPerceptron(13, loss, update, 0.3)
    for start, stop in pairwise(starts):
        block, labels = docs[start:stop], grades[start:stop]
        shown = np.argsort(-(block @ plain.w), kind="stable")
        seen = shown[:25]
        better = seen[np.argsort(-labels[seen], kind="stable")]
        plain.learn(phi(block, better) - phi(block, shown))
    assert relative_error(state.weights, plain.w) < 1e-12
    assert relative_error(state.total, plain.total) < 1e-12
    assert state.rounds[0] == 40


@every_rule
def test_pairs_equal_a_plain_loop(loss, update):
    rng = np.random.default_rng(2)
    docs = rng.standard_normal((40, 7)).astype(np.float32)
    winner, loser = rng.integers(0, 40, (2, 500))
    rule, docs64 = make_rule(loss, update, rate=0.05), docs.astype(np.float64)
    state = learn("pairs", rule, new_state(rule, 7, "float64"), docs64, winner, loser)
    plain = PlainPerceptron(7, loss, update, 0.05)
    for a, b in zip(winner, loser, strict=True):
        plain.learn(docs64[a] - docs64[b])
    assert relative_error(state.weights, plain.w) < 1e-12
    if loss == "logistic":  # its slope is continuous: single precision stays close
        single = learn("pairs", rule, new_state(rule, 7, "float32"), docs, winner, loser)
        assert single.weights.dtype == np.float32
        assert relative_error(single.weights, plain.w) < 1e-5


def test_logged_rounds_equal_a_plain_loop_and_single_differences():
    rng = np.random.default_rng(3)
    docs = rng.standard_normal((200, 9, 6))
    presented, feedback = (np.array([rng.permutation(9)[:5] for _ in range(200)]) for _ in range(2))
    rule = make_rule("hinge")
    state = learn("logged", rule, new_state(rule, 6, "float64"), docs, presented, feedback)
    plain = PlainPerceptron(6, "hinge", "additive", 1.0)
    one_by_one = new_state(rule, 6, "float64")
    for block, shown, better in zip(docs, presented, feedback, strict=True):
        delta = phi(block, better) - phi(block, shown)
        plain.learn(delta)
        one_by_one = learn("differences", rule, one_by_one, delta[None])
    assert relative_error(state.weights, plain.w) < 1e-12
    assert relative_error(one_by_one.weights, plain.w) < 1e-12


def test_the_state_that_went_in_stays_as_it_was():
    rule = make_rule(average=True)
    before = new_state(rule, 2, "float64")
    after = learn("pairs", rule, before, np.eye(2), np.array([0]), np.array([1]))
    assert after.weights.tolist() == [1.0, -1.0]
    for array in before:
        assert not array.any()


def test_rounds_in_two_calls_equal_rounds_in_one():
    rng = np.random.default_rng(5)
    docs, grades = rng.standard_normal((600, 4)), rng.integers(0, 3, 600).astype(float)
    starts = np.arange(0, 601, 20)
    rule = make_rule("logistic", "adaptive", average=True)
    start = new_state(rule, 4, "float64")
    whole = learn("graded", rule, start, docs, starts, grades, 25)
    half = learn("graded", rule, start, docs, starts[:12], grades, 25)
    resumed = learn("graded", rule, half, docs, starts[11:], grades, 25)
    for a, b in zip(whole, resumed, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_round_with_a_feature_that_is_not_finite_stops_the_loop(bad):
    """Wherever it stands, also in a document that would not move and at zero weights."""
    rule = make_rule()
    start = new_state(rule, 3, "float64")
    for place in (0, 4, 5, 19, 20, 27, 39):
        docs, grades = np.random.default_rng(place).standard_normal((40, 3)), np.arange(40.0) % 7
        docs[place, place % 3] = bad
        with pytest.raises(DataError, match=f"round {place // 20} of 2"):
            learn("graded", rule, start, docs, np.array([0, 20, 40]), grades, 5)
        with pytest.raises(DataError, match="round 0 of 1"):
            learn("pairs", rule, start, docs, np.array([place]), np.array([(place + 1) % 40]))
        with pytest.raises(DataError, match="round 1 of 2"):
            learn("differences", rule, start, np.vstack([np.ones(3), docs[place]]))
        order, other = np.arange(40)[None], np.roll(np.arange(40), 41 - place)[None]
        with pytest.raises(DataError, match="round 0 of 1"):
            learn("logged", rule, start, docs[None], order, other)
    assert not start.weights.any()


def test_exponentiated_weights_stay_a_convex_combination_at_any_rate():
    rng = np.random.default_rng(6)
    rule = make_rule(update="exponentiated", rate=100.0)
    state = new_state(rule, 8, "float64")
    docs = 50 * rng.standard_normal((100, 8))
    state = learn("pairs", rule, state, docs, np.arange(50), np.arange(50, 100))
    assert np.all(state.weights >= 0)
    assert state.weights.sum() == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(
    scores=st.lists(st.integers(-3, 3), min_size=1, max_size=40),
    grades=st.data(),
    depth=st.integers(1, 30),
    k=st.integers(1, 7),
)
def test_selection_breaks_ties_by_the_given_order(scores, grades, depth, k):
    """One feature equal to its score: the presented order, and so Δ, is known exactly."""
    docs = np.array(scores, dtype=float)[:, None]
    labels = np.array(
        grades.draw(st.lists(st.integers(0, 2), min_size=len(scores), max_size=len(scores))),
        dtype=float,
    )
    rule = make_rule(k=k)
    start = new_state(rule, 1, "float64")._replace(weights=np.ones(1))
    state = learn("graded", rule, start, docs, np.array([0, len(scores)]), labels, depth)
    shown = present_sorted(docs[:, 0])
    seen = shown[:depth]
    better = seen[np.argsort(-labels[seen], kind="stable")]
    n_top = min(k, depth, len(scores))
    expected = 1.0 + phi(docs, better, n_top) - phi(docs, shown, n_top)
    np.testing.assert_allclose(state.weights, expected, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_greedy_presentation_is_sorting_for_the_discounted_map(n, k, seed):
    rng = np.random.default_rng(seed)
    docs, weights = rng.standard_normal((n, 3)), rng.standard_normal(3)
    greedy = present_greedily(lambda d, order: phi(d, order, k), docs, weights, k)
    assert sorted(greedy) == list(range(n))
    # Where a score is below zero, leaving the place out would be better still; but every place
    # is filled, so the top k are the k best scores in order.
    assert greedy[:k].tolist() == present_sorted(docs @ weights)[:k].tolist()


def test_swapping_neighbours_happens_as_often_as_asked():
    rng = np.random.default_rng(7)
    order = np.arange(10_000)
    swapped = swap_neighbours(order, 0.3, rng)
    upper = swapped[::2] != order[::2]
    assert np.array_equal(np.sort(swapped), order)
    assert np.array_equal(swapped[1::2] != order[1::2], upper)
    assert abs(upper.mean() - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 5000)
    assert swap_neighbours(order, 0.0, rng).tolist() == order.tolist()


def test_loops_run_where_no_cache_can_be_written(monkeypatch, rng):
    """On a read-only installation; here they are not compiled at all, so that it takes no time."""
    deltas, rule = rng.standard_normal((20, 3)), make_rule("logistic")
    state = new_state(rule, 3, float)
    expected = learn("differences", rule, state, deltas)

    def without_cache(*, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr("numba.njit", without_cache)
    monkeypatch.delattr("penchant.online.compiled")
    monkeypatch.delitem(sys.modules, "penchant.online.compiled")
    found = learn("differences", rule, state, deltas)
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-12)
