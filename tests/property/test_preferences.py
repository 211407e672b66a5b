"""Invariances that hold for any data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant as pc
from penchant.kernels import RBF, Independent

N = 5
edges = st.lists(
    st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)).filter(lambda e: e[0] != e[1]),
    min_size=1,
    max_size=12,
)
QUIET = pytest.mark.filterwarnings("ignore::penchant.DataWarning")
X = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [2.0, -1.0], [-1.0, 0.3]])


def fit(pairs, features=X, kernel=RBF(1.0, 2.0), **params):  # noqa: B008  # a frozen value
    winner, loser = np.array(pairs).T
    data = pc.Comparisons.from_pairs(winner, loser, items=range(N))
    return pc.PreferenceGP(kernel, optimize=None, **params).fit(features, data)


def all_pairs():
    return np.array([(i, j) for i in range(N) for j in range(N) if i != j])


@QUIET
@settings(max_examples=25, deadline=None)
@given(edges, st.permutations(range(N)), st.randoms())
def test_names_order_and_sides_are_arbitrary(pairs, order, random):
    model, every, order = fit(pairs), all_pairs(), np.array(order)
    known = model.predict()
    both = model.predict_proba(every) + model.predict_proba(every[:, ::-1])
    np.testing.assert_allclose(both, 1.0, atol=1e-12)
    renamed = fit(order[np.array(pairs)], X[np.argsort(order)])
    np.testing.assert_allclose(renamed.predict()[order], known, atol=1e-6)
    shuffled = random.sample(pairs, len(pairs))
    np.testing.assert_allclose(fit(shuffled).predict(), known, atol=1e-9)
    mirrored = fit(np.array(pairs)[:, ::-1])
    np.testing.assert_allclose(mirrored.predict(), -known, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 20), st.integers(0, 20))
def test_one_more_win_never_lowers_the_winner(wins, losses):
    def mean(w):
        pairs = [(0, 1)] * w + [(1, 0)] * losses
        data = pc.Comparisons.from_pairs(*np.array(pairs).T, items=range(2))
        return pc.PreferenceGP(Independent(2.0), optimize=None).fit(None, data).predict()[0]

    assert mean(wins + 1) > mean(wins)


@QUIET
@settings(max_examples=15, deadline=None)
@given(edges, st.sampled_from(["ep", "laplace", "variational"]))
def test_comparisons_only_ever_reduce_uncertainty(pairs, inference):
    _, std = fit(pairs, inference=inference).predict(return_std=True)
    assert np.all(std <= np.sqrt(2.0) + 1e-9)
