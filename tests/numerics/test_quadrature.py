import numpy as np
import pytest
from scipy.special import expit, log_ndtr, ndtr
from scipy.stats import norm

from penchant.likelihoods import Probit
from penchant.numerics import quadrature

log_ndtr_derivatives = Probit().log_prob


@pytest.mark.parametrize("max_sd", [0.5, 1.0, 2.0, 4.0])
def test_normal_rule_has_the_moments_of_the_normal(max_sd):
    x, w = quadrature.normal_rule(max_sd, 0.63)
    assert x[-1] < 7.4 + 0.5 * max_sd + (x[1] - x[0])  # no further than the density reaches
    moments = [w @ x**k for k in range(9)]
    np.testing.assert_allclose(moments, [1, 0, 1, 0, 3, 0, 15, 0, 105], rtol=1e-6, atol=1e-12)


def test_normal_rule_error_shrinks_exponentially_with_the_resolution():
    sd, mean = 2.0, 1.3
    x, w = quadrature.normal_rule(sd, 0.1)
    exact = w @ expit(mean + sd * x)
    errors = []
    for resolution in (1.5, 1.25, 1.0, 0.75):
        x, w = quadrature.normal_rule(sd, resolution)
        errors.append(abs(w @ expit(mean + sd * x) - exact))
    assert np.all(np.diff(np.log(errors)) < -2.0)


def test_rules_are_shared_and_therefore_read_only():
    for array in (*quadrature.normal_rule(1.0, 0.63), *quadrature.logistic_rule(5)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


def test_logistic_rule_is_a_gauss_rule():
    s, w = quadrature.logistic_rule(6)
    # Even moments of the logistic density up to degree 10 = 2·6 − 2, in units of π^k.
    exact = [1, 1 / 3, 7 / 15, 31 / 21, 127 / 15, 2555 / 33]
    moments = [w @ (s / np.pi) ** (2 * k) for k in range(6)]
    np.testing.assert_allclose(moments, exact, rtol=1e-12)
    np.testing.assert_allclose(s, -s[::-1], atol=1e-12)


def test_groups_and_wide_rows_cover_every_row_once():
    sd = np.random.default_rng(1).gamma(1.0, 3.0, size=20_000)
    sd[[3, 7]] = 0.0, np.nan
    groups = [rows for rows, _, _ in quadrature.narrow_groups(sd, 0.63)]
    wide = quadrature.wide_rows(sd)
    covered = np.concatenate([*groups, wide])
    np.testing.assert_array_equal(np.sort(covered), np.arange(sd.size))
    assert 7 in wide
    assert max(rows.size for rows in groups) < sd.size / 4


def test_panels_integrate_kinks_at_their_cuts_and_at_a_given_one():
    low, high, mode = np.array([-20.0, 1.0]), np.array([30.0, 2.0]), np.array([5.0, 1.5])
    g, w = quadrature.panels(low, high, mode)
    kinked = np.abs(g) + np.abs(g - 3.0) + np.abs(g - mode)
    exact = [200 + 450 + (23**2 + 27**2) / 2 + (25**2 + 25**2) / 2, 1.5 + 1.5 + 0.25]
    np.testing.assert_allclose((w * kinked).sum(axis=0), exact, rtol=1e-13)


def test_panels_collapse_where_cuts_lie_outside():
    g, w = quadrature.panels(np.array([40.0]), np.array([41.0]))
    assert g.min() >= 40.0
    assert g.max() <= 41.0
    np.testing.assert_allclose(w.sum(), 1.0)


def test_wide_nodes_average_under_the_normal():
    mean, var = np.array([-8.0, 0.0, 8.0]), np.array([17.0, 64.0, 256.0])
    g, w = quadrature.wide_nodes(mean, var)
    np.testing.assert_allclose((w * ndtr(g)).sum(axis=0), ndtr(mean / np.sqrt(1 + var)), rtol=1e-10)


@pytest.mark.parametrize(
    ("mean", "var"),
    [(-1e5, 1.0), (-1e5, 256.0), (-1e3, 0.1), (-30.0, 1e-4), (-30.0, 256.0), (1e5, 256.0)],
)
def test_window_follows_the_tilted_mode(mean, var):
    """Far beyond ±8 the mass of Φ(g) N(g) lies many sd away from the prior's mean."""
    m, v = np.array([mean]), np.array([var])
    log_z, shift, ratio = quadrature.tilted_moments(log_ndtr_derivatives, m, v, True)
    scale = np.sqrt(1.0 + v)
    value, hazard, second, _ = log_ndtr_derivatives(m / scale)
    np.testing.assert_allclose(log_z, value, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(shift, hazard / scale * np.sqrt(v), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(1 - ratio, -second * v / (1 + v), rtol=1e-8, atol=1e-8)


def test_a_density_with_two_modes_is_integrated_over_the_whole_prior():
    def log_two_bumps(g):
        value = np.log(norm.pdf(g, -4.0) + norm.pdf(g, 4.0))
        return value, np.zeros_like(g), np.zeros_like(g)

    mean, var = np.array([0.5]), np.array([9.0])
    log_z, _, _ = quadrature.tilted_moments(log_two_bumps, mean, var, False)
    exact = norm.pdf(0.5, -4.0, np.sqrt(10)) + norm.pdf(0.5, 4.0, np.sqrt(10))
    np.testing.assert_allclose(np.exp(log_z), exact, rtol=1e-9)


def test_prior_centred_gauss_hermite_would_fail_where_panels_hold():
    """The trap that the panels avoid: it is why they are there."""
    mean, var = np.linspace(-8.0, 8.0, 65), np.full(65, 256.0)
    exact = log_ndtr(mean / np.sqrt(1 + var))
    x, w = np.polynomial.hermite_e.hermegauss(40)
    hermite = np.log(w @ ndtr(mean + 16.0 * x[:, None]) / w.sum())
    panelled = quadrature.tilted_moments(log_ndtr_derivatives, mean, var, True)[0]
    assert np.max(np.abs(hermite - exact)) > 0.05
    assert np.max(np.abs(panelled - exact)) < 1e-12
