"""Several features: each its own lengthscale where the evidence is clear, else a common one."""

import numpy as np
import pytest

import penchant as pc
from penchant.kernels import RBF, Independent, Inputs, LinearRBF
from penchant.models import balanced_kernel
from tests.simulation import duel_data, duels


@pytest.mark.parametrize("d", [2, 40])
def test_the_prior_s_slope_is_its_derivative(d, rng):
    start = LinearRBF((3.0,) * d, 2.0) + Independent()
    kernel = start.with_theta(start.theta + rng.normal(size=d + 3))
    _, slope = kernel.log_prior(start)
    for k, step in enumerate(1e-6 * np.eye(d + 3)):
        ahead = kernel.with_theta(kernel.theta + step).log_prior(start)[0]
        behind = kernel.with_theta(kernel.theta - step).log_prior(start)[0]
        assert slope[k] == pytest.approx((ahead - behind) / 2e-6, abs=1e-5)


def test_one_feature_may_leave_where_all_but_few_stay():
    """Leaving alone costs a logarithm, not a square; all together it costs what one would."""
    start = RBF((3.0,) * 50)
    alone, further = np.zeros(51), np.zeros(51)
    alone[0], further[0] = 2.0, 4.0
    together = np.append(np.full(50, 2.0), 0.0)
    costs = [
        -start.with_theta(start.theta + move).log_prior(start)[0]
        for move in (alone, further, together)
    ]
    assert costs[1] < 1.6 * costs[0]
    assert costs[2] == pytest.approx(0.5 * (2.0 / 1.7) ** 2, rel=1e-2)


def test_the_scale_of_a_sum_is_as_free_as_that_of_one_part():
    """More parts do not hold the common scale tighter; their shares are held as each alone is."""
    one, three = Independent(), Independent() + LinearRBF(1.0)
    scale, share = np.array([2.0, 0.0, 2.0, 2.0]), np.array([2.0, 0.0, -1.0, -1.0])
    alone = one.with_theta(one.theta + 2.0).log_prior(one)[0]
    assert three.with_theta(three.theta + scale).log_prior(three)[0] == pytest.approx(alone)
    parted = -0.5 * float(share @ share) / 1.7**2
    assert three.with_theta(three.theta + share).log_prior(three)[0] == pytest.approx(parted)


def test_up_to_a_hundred_features_have_lengthscales_of_their_own(rng):
    for d, own in ((100, True), (101, False)):
        kernel = balanced_kernel(Inputs(rng.random((10, d)), index=np.arange(10)), None)
        assert isinstance(kernel.parts[0].lengthscale, tuple) is own


@pytest.mark.parametrize("d", [4, 30])
def test_features_that_matter_alike_share_one_lengthscale(rng, d):
    n = 60
    X = rng.standard_normal((n, d))
    f = X @ np.full(d, 2.0 / d**0.5)
    gp = pc.PreferenceGP().fit(X, duel_data(rng, f, 300))
    assert isinstance(gp.kernel_.parts[0].lengthscale, float)
    assert gp.shares_["features"].posterior > 0.9


def test_relevant_features_are_found_among_many(rng):
    """Two of 40 matter: theirs are the shortest lengthscales, and predictions gain by it."""
    n, d = 80, 40
    X = rng.standard_normal((n, d))
    f = 2.0 * X[:, 0] - 2.0 * X[:, 1]
    pairs = np.column_stack(duels(rng, f, 900))
    data = pc.Comparisons.from_pairs(*pairs[:400].T, items=range(n))
    gp = pc.PreferenceGP().fit(X, data)
    kernel = gp.kernel_.parts[0]
    assert set(np.argsort(kernel.lengthscale)[:2]) == {0, 1}
    common = pc.PreferenceGP(RBF(2.0 * d**0.5, 4.5)).fit(X, data)
    gain = np.log(gp.predict_proba(pairs[400:])) - np.log(common.predict_proba(pairs[400:]))
    assert gain.mean() > 2.0 * gain.std() / np.sqrt(len(gain))
