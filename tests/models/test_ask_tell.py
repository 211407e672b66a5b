"""Asking and telling through PreferenceGP."""

import numpy as np
import pytest

import penchant as pc
from penchant.kernels import RBF


@pytest.fixture
def gp(rng):
    X = rng.standard_normal((10, 2))
    a = rng.integers(10, size=25)
    b = (a + 1 + rng.integers(9, size=25)) % 10
    data = pc.Comparisons.from_pairs(a, b, items=range(10))
    return pc.PreferenceGP(RBF(1.0, 2.0), optimize=None, random_state=3).fit(X, data)


def test_the_papers_criterion_is_the_largest_ratio(gp):
    n = 10
    pairs = np.array([(i, j) for i in range(n) for j in range(i + 1, n)])
    mean, var = gp.posterior_.difference(pairs[:, 0], pairs[:, 1])
    best = pairs[np.argmax(var / mean**2)]
    assert set(gp.ask(1)[0]) == set(best.tolist())


def test_answers_join_the_pooled_comparisons_of_many_users():
    data = pc.Comparisons.from_pairs(["tea", "milk"], ["milk", "water"], user=["ann", "bob"])
    gp = pc.PreferenceGP(optimize=None).fit(None, data)
    before = gp.predict_proba([("tea", "water")])[0]
    gp.tell([("tea", "water")])
    assert gp.predict_proba([("tea", "water")])[0] > before
    more = pc.Comparisons.from_pairs(["tea"], ["milk"], user=["cem"])
    assert gp.tell(more).comparisons_.n_comparisons == 4


def test_an_answer_without_a_name_or_a_side_is_taken_back_from_a_pool_that_has_them():
    data = pc.Comparisons.from_pairs(
        ["a", "b", "a"], ["b", "c", "c"], user=["ann", "bob", "ann"], first=[1, -1, 1]
    )
    gp = pc.PreferenceGP(optimize=None).fit(None, data)
    before = gp.predict()
    gp.tell([("a", "b")]).withdraw([("a", "b")])
    assert gp.comparisons_ == data.pooled()
    np.testing.assert_allclose(gp.predict(), before, atol=1e-6)


def test_a_tie_is_taken_back_and_not_one_of_two_bad_items():
    data = pc.Comparisons.from_pairs(
        ["a", "a", "b"], ["b", "b", "c"], tie=["both bad", "yes", "no"], user=["ann", "bob", "ann"]
    )
    gp = pc.PreferenceGP(optimize=None, likelihood="ties").fit(None, data)
    gp.withdraw(pc.Comparisons.from_pairs(["a"], ["b"], tie=[True]))
    assert gp.comparisons_.tie_words.tolist() == ["both bad", False]


@pytest.mark.parametrize("raters", ["lapse", "noise"])
def test_reliabilities_stay_until_relearned(raters):
    data = pc.datasets.simulate_study(8, 5, 1, n_answers=20, random_state=1).comparisons
    train, more = data.split(0.25, random_state=0)
    whole = pc.PreferenceGP(raters=raters, random_state=0).fit(None, data)
    told = pc.PreferenceGP(raters=raters, random_state=0).fit(None, train)
    before = told.likelihood_
    told = told.tell(more)
    assert told.likelihood_ == before
    assert np.abs(told.predict() - whole.predict()).max() > 1e-4  # in that it differs from a refit
    again = pc.PreferenceGP(raters=raters, random_state=0).fit(None, train)
    again = again.tell(more, relearn=0.0)
    assert again.predict() == pytest.approx(whole.predict(), abs=1e-3)
    assert again.likelihood_ != before
