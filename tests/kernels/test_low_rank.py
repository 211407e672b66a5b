"""A covariance through few directions: its gradient, its prior, and its own items only."""

import numpy as np
import pytest

from penchant.errors import DataError
from penchant.kernels import Inputs, LowRankCovariance

KERNEL = LowRankCovariance(np.random.default_rng(0).standard_normal((5, 2)), 0.6)
ITEMS = Inputs(index=np.arange(5))


def slopes(function, theta, step=1e-6):
    moves = step * np.eye(len(theta))
    return np.array([(function(theta + d) - function(theta - d)) / (2 * step) for d in moves])


@pytest.mark.parametrize("crossed", [False, True])
def test_pullback_is_the_derivative(rng, crossed):
    A = ITEMS.take(np.array([3, 0, 4]))
    B = ITEMS.take(np.array([1, 3])) if crossed else None
    G = rng.standard_normal((3, 2 if crossed else 3))
    G = G if crossed else G + G.T
    expected = slopes(lambda t: np.vdot(G, KERNEL.with_theta(t)(A, B)), KERNEL.theta)
    np.testing.assert_allclose(KERNEL.pullback(A, G, B), expected, rtol=1e-6, atol=1e-7)


def test_slope_of_the_prior_is_its_derivative():
    start = LowRankCovariance.begin(np.arange(5), 2, 1.3)
    expected = slopes(lambda t: KERNEL.with_theta(t).log_prior(start)[0], KERNEL.theta)
    np.testing.assert_allclose(KERNEL.log_prior(start)[1], expected, rtol=1e-6, atol=1e-6)


def test_items_that_it_does_not_know():
    with pytest.raises(DataError, match="knows its 5 items only"):
        KERNEL(Inputs(index=np.array([5])))
