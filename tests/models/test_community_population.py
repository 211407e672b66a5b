"""CommunityGP of people at large: the mean over people, and their spread around it."""

import numpy as np
import pytest

import penchant as pc
from penchant.communities.population import Population
from penchant.gp import Normal
from penchant.kernels import Independent
from tests.simulation import duels

TASTES = np.array([[1.5, 0.5, 0.0, -0.5, -1.5], [0.5, -1.5, 0.0, 1.5, -0.5]])


def answers(n_users, each=15, seed=0):
    """People of two tastes, half of them of either."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(n_users), each)
    return pc.Comparisons.from_pairs(*duels(rng, TASTES, user=user % 2), user=user, items=range(5))


def in_order(ranking):
    return sorted(ranking, key=lambda row: row.item)


def fit(data, **how):
    return pc.CommunityGP(progress=False, random_state=0, **how).fit(None, data)


PLAIN, PERSONAL = {"personal": False}, {"personal": True, "n_communities": 2}


@pytest.mark.parametrize("how", [PLAIN, PERSONAL], ids=str)
def test_intervals_narrow_with_people_and_their_spread_stays(how):
    few, many = (fit(answers(n), **how).rank() for n in (60, 600))
    widths = [np.mean(table["high"] - table["low"]) for table in (few, many)]
    assert 2.6 < widths[0] / widths[1] < 3.8  # about √10
    spread = np.array([row.spread for row in in_order(many)])
    np.testing.assert_allclose(spread, TASTES.std(axis=0), atol=0.35)
    truth = TASTES.mean(axis=0)
    utility = np.array([row.utility for row in in_order(many)])
    np.testing.assert_allclose(utility - utility.mean(), truth, atol=0.2)
    assert many["prob_best"].max() > 0.99


@pytest.mark.parametrize("how", [PLAIN, PERSONAL, {"n_communities": 1}], ids=str)
def test_all_that_is_said_of_people_at_large_is_one_belief(how):
    model = fit(answers(60), **how)
    belief, ranking = model.belief(), in_order(model.rank(n_samples=20_000))
    half = np.array([row.high - row.low for row in ranking]) / 2.0
    np.testing.assert_allclose(half, 1.959964 * np.sqrt(belief.contrast_var), rtol=1e-6)
    off = model.predict() - belief.mean
    np.testing.assert_allclose(off, off.mean(), atol=1e-12)
    draws = belief.sample(20_000, np.random.default_rng(1))
    best = np.bincount(draws.argmax(axis=1), minlength=5) / len(draws)
    np.testing.assert_allclose([row.prob_best for row in ranking], best, atol=0.02)
    np.testing.assert_allclose(np.cov(draws.T), belief.covariance(), atol=0.02)


class Known:
    """Utilities that are known for sure."""

    def __init__(self, mean):
        self.mean, self.var = mean, np.zeros_like(mean)

    def covariance(self):
        return np.zeros((len(self.mean), len(self.mean)))

    def relative_to(self, others):
        return Normal(self.mean - others.mean.mean(), self.var)


def test_shares_are_as_uncertain_as_a_sample_of_people():
    people = Population.of_communities((Known(TASTES[0]), Known(TASTES[1])), np.array([30.0, 10.0]))
    shares = np.random.default_rng(0).beta(30.0, 10.0, 200_000)
    draws = shares[:, None] * TASTES[0] + (1.0 - shares)[:, None] * TASTES[1]
    mean, var = people.relative_to(people)
    less = draws - draws.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(mean, less.mean(axis=0), atol=5e-3)
    np.testing.assert_allclose(var, less.var(axis=0), rtol=0.02, atol=1e-12)
    np.testing.assert_allclose(people.covariance, np.cov(draws.T), rtol=0.02, atol=1e-9)
    np.testing.assert_allclose(
        people.spread, np.sqrt(3.0 / 16.0) * np.abs(TASTES[0] - TASTES[1]), atol=1e-12
    )


def test_spread_is_a_column_where_people_are_told_apart():
    data = answers(40)
    pooled = pc.PreferenceGP().fit(None, data).rank()
    assert [row.spread for row in pooled] == [None] * 5
    assert "spread" not in str(pooled)
    model = fit(data, **PLAIN)
    assert "spread" in str(model.rank()).splitlines()[0]
    assert [row.spread for row in model.rank(0)] == [None] * 5
    one = fit(data, personal=True, n_communities=1).rank()
    people = pc.MultiUserGP(progress=False, random_state=0).fit(None, data).rank()
    np.testing.assert_allclose(one["spread"], people["spread"], rtol=1e-6)
    table = model.rank()
    np.testing.assert_allclose(table.to_elo()["spread"], table.per_unit * table["spread"])


def test_items_have_an_effect_of_their_own_beside_features():
    X = np.random.default_rng(0).standard_normal((5, 2))
    data = answers(20)
    model = pc.CommunityGP(personal=False, progress=False).fit(X, data)
    assert any(isinstance(part, Independent) for part in model.kernel_.parts)
    bounded = pc.CommunityGP(personal=False, max_rank=3, progress=False).fit(X, data)
    assert not any(isinstance(part, Independent) for part in bounded.kernel_.parts)
    mean, std = model.predict(X, return_std=True)
    assert len(mean) == 5
    assert (std > 0.0).all()
