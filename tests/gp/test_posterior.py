import numpy as np
import pytest

import penchant as pc
from penchant.data import Comparisons
from penchant.gp import summarize_ranks
from penchant.kernels import RBF, Independent
from tests.gp.problems import solved
from tests.simulation import duel_data


@pytest.fixture
def posterior(rng):
    """Eight items of which six were compared."""
    data = Comparisons.from_pairs([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 3], items=range(8))
    return solved(data, RBF(1.0, 2.0), X=rng.standard_normal((8, 2)))[2]


def test_covariance_variance_and_differences_agree(posterior):
    cov = posterior.covariance()
    np.testing.assert_allclose(np.diagonal(cov), posterior.var, atol=1e-10)
    first, second = np.array([0, 6, 6, 2]), np.array([5, 7, 1, 4])
    mean, var = posterior.difference(first, second)
    np.testing.assert_allclose(mean, posterior.mean[first] - posterior.mean[second])
    expected = cov[first, first] + cov[second, second] - 2 * cov[first, second]
    np.testing.assert_allclose(var, expected, atol=1e-9)
    part = np.array([7, 0, 6])
    np.testing.assert_allclose(posterior.covariance(part), cov[np.ix_(part, part)], atol=1e-10)
    seen = posterior.at(posterior.universe.take(part))
    np.testing.assert_allclose(seen.mean, posterior.mean[part], atol=1e-12)
    np.testing.assert_allclose(seen.covariance(), cov[np.ix_(part, part)], atol=1e-10)


def test_contrasts_are_relative_to_the_average_item(posterior):
    compared = posterior.at(posterior.universe.take(np.arange(6)))
    for each in (posterior, compared):
        C = np.eye(len(each)) - 1.0 / len(each)
        exact = np.diagonal(C @ each.covariance() @ C)
        np.testing.assert_allclose(each.contrast_var, exact, atol=1e-8)


def test_samples_have_the_moments(posterior):
    draws = posterior.sample(200_000, np.random.default_rng(0))
    sd = np.sqrt(posterior.var)
    assert np.all(np.abs(draws.mean(0) - posterior.mean) < 4.5 * sd / np.sqrt(len(draws)))
    np.testing.assert_allclose(np.cov(draws.T), posterior.covariance(), atol=0.03)


def test_rank_summary_counts_orders():
    """Two independent certain items and one in between: ranks are what the draws say."""
    data = Comparisons.from_pairs([0, 1], [1, 2], count=[400, 400], items=range(3))
    _, _, posterior = solved(data, Independent(9.0))
    ranks = summarize_ranks(posterior, 0.95, 500, np.random.default_rng(0))
    np.testing.assert_array_equal(ranks.prob_best, [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(ranks.rank_low, [1, 2, 3])
    np.testing.assert_array_equal(ranks.rank_high, [1, 2, 3])


def test_twins_differ_by_nothing_and_never_by_less():
    """Items with the same features: variances of differences are zero up to rounding, not below."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4, 2))[[0, 1, 0, 1, 2, 2, 3, 2]]
    data = duel_data(rng, np.zeros((3, 8)), user=rng.integers(3, size=60))
    pairs = [(i, j) for i in range(8) for j in range(8) if i != j]
    for likelihood in ("logit", "probit"):
        for model in (pc.PreferenceGP, pc.MultiUserGP):
            fitted = model(RBF(1.3, 0.65), likelihood=likelihood, optimize=None).fit(X, data)
            assert (fitted.belief().difference(*np.array(pairs).T).var >= 0.0).all()
            assert np.isfinite(fitted.predict_proba(pairs)).all()
