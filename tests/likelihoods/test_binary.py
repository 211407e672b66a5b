"""Probit and logit: closed forms, tails, and rules that meet without a seam."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from penchant.likelihoods import Likelihood, Logit, Probit


def test_tilted_is_the_closed_form():
    mean, var = np.array([-3.0, 0.0, 1.5]), np.array([0.2, 5.0, 100.0])
    root = np.sqrt(1 + var)
    z = mean / root
    h = norm.pdf(z) / norm.cdf(z)
    log_z, d1, d2 = Probit().tilted(mean, var)
    np.testing.assert_allclose(log_z, norm.logcdf(z))
    np.testing.assert_allclose(d1, h / root)
    np.testing.assert_allclose(d2, h * (z + h) / (1 + var))


def test_a_hopeless_answer_moves_the_mean_almost_all_the_way():
    """With m → −∞ the tilted mean m + v d1 tends to m/(1 + v), without overflow."""
    mean, var = np.array([-1e12]), np.array([4.0])
    _, d1, d2 = Probit().tilted(mean, var)
    np.testing.assert_allclose(mean + var * d1, mean / 5.0)
    np.testing.assert_allclose(var - var**2 * d2, var / 5.0)


def test_without_variance_it_is_the_logistic_function():
    g = np.linspace(-30, 30, 13)
    log_z, d1, d2 = Logit().tilted(g, np.zeros(g.size))
    np.testing.assert_allclose(np.exp(log_z), expit(g), rtol=1e-13)
    np.testing.assert_allclose(d1, expit(-g), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(d2, expit(g) * expit(-g), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("sd", [0.5, 1.0, 2.0, 4.0])
def test_no_seam_between_rules(sd):
    """Just below and just above each width another rule is in force; the answer is the same."""
    mean = np.linspace(-8, 8, 33)
    below, above = (Logit().tilted(mean, np.full(33, (sd * f) ** 2)) for f in (1 - 1e-9, 1 + 1e-9))
    np.testing.assert_allclose(below.log_z, above.log_z, atol=1e-8)
    np.testing.assert_allclose(below.d1 * sd, above.d1 * sd, atol=1e-8)
    np.testing.assert_allclose(below.d2 * sd**2, above.d2 * sd**2, atol=1e-7)


@pytest.mark.parametrize(("mean", "var"), [(-40.0, 9.0), (-3e3, 1e4), (-4900.0, 1e4), (50.0, 30.0)])
def test_far_tails_against_adaptive_integration(mean, var):
    sd = np.sqrt(var)
    own = Logit().tilted(np.array([mean]), np.array([var]))
    points = np.linspace(-60.0, 60.0, 13)

    def integrand(g, shift):
        return np.exp(-np.logaddexp(0.0, -g) + norm.logpdf(g, mean, sd) - shift)

    shift = own.log_z[0]
    window = (min(mean, mean + var) - 10 * sd, max(mean, mean + var) + 10 * sd)
    total = quad(integrand, *window, args=(shift,), points=points, limit=500, epsabs=1e-11)[0]
    assert abs(np.log(total)) < 1e-8


def test_deep_tail_falls_back_to_the_default():
    mean, var = np.array([-4e5, -3e5]), np.array([1e6, 1e6])
    own, default = Logit().tilted(mean, var), Likelihood.tilted(Logit(), mean, var)
    np.testing.assert_allclose(own.log_z, default.log_z, rtol=1e-12)
    np.testing.assert_allclose(own.d1, default.d1, rtol=1e-7)


def test_reflection_identity():
    """σ(g) = e^g σ(−g) makes Z(m) = exp(m + v/2) Z(−m − v)."""
    mean, var = np.array([-0.2, -1.0, -6.0]), np.array([0.3, 2.0, 12.5])
    left = Logit().tilted(mean, var)
    right = Logit().tilted(-mean - var, var)
    np.testing.assert_allclose(left.log_z, mean + var / 2 + right.log_z, atol=1e-10)
    np.testing.assert_allclose(left.d1, 1.0 - right.d1, atol=1e-9)
