import numpy as np
import pytest

from penchant.errors import DataError
from penchant.likelihoods import Gaussian, Outcomes


def test_tilted_moments_are_the_conjugate_posterior():
    mean, var, y, noise = np.array([0.4]), np.array([2.0]), np.array([1.7]), 0.5
    _, d1, d2 = Gaussian(noise).tilted(mean, var, Outcomes(margin=y))
    precision = 1 / var + 1 / noise
    np.testing.assert_allclose(mean + var * d1, (mean / var + y / noise) / precision)
    np.testing.assert_allclose(var - var**2 * d2, 1 / precision)


def test_margins_are_required_and_must_be_finite():
    with pytest.raises(DataError, match=r"without margins.*likelihood='probit'"):
        Gaussian().check(Outcomes())
    with pytest.raises(DataError, match=r"margin of comparison 1 is nan"):
        Gaussian().check(Outcomes(margin=np.array([0.5, np.nan])))
    with pytest.raises(DataError, match="margins"):
        Gaussian().log_prob(np.zeros(2))


@pytest.mark.parametrize("noise", [0.0, -1.0, np.inf, np.nan])
def test_noise_must_be_a_variance(noise):
    with pytest.raises(DataError, match="positive variance"):
        Gaussian(noise)


def test_evidence_gradient_vanishes_at_the_best_noise():
    rng = np.random.default_rng(3)
    outcomes = Outcomes(margin=rng.normal(0.0, np.sqrt(0.7), size=500))
    mean, var = np.zeros(500), np.full(500, 1e-9)
    best = float(np.mean(outcomes.margin**2))
    gradient = Gaussian(best).tilted_gradient(mean, var, outcomes)
    assert abs(gradient.sum()) < 1e-5
