"""log Φ and log σ, and three derivatives of each, far into the tails."""

import numpy as np
import pytest
from scipy.special import log_expit, log_ndtr

from penchant.likelihoods import Logit, Probit

log_ndtr_derivatives, log_expit_derivatives = Probit().log_prob, Logit().log_prob
BULK = np.linspace(-40.0, 40.0, 2001)


def test_log_ndtr_agrees_with_scipy():
    np.testing.assert_allclose(
        log_ndtr_derivatives(BULK)[0], log_ndtr(BULK), rtol=1e-12, atol=1e-300
    )


@pytest.mark.parametrize("function", [log_ndtr_derivatives, log_expit_derivatives])
def test_derivatives_match_finite_differences(function):
    z, step = np.linspace(-20.0, 10.0, 301), 1e-4
    at, above, below = function(z), function(z + step), function(z - step)
    for order in range(3):
        slope = (above[order] - below[order]) / (2 * step)
        np.testing.assert_allclose(at[order + 1], slope, rtol=1e-7, atol=5e-9)


def test_log_ndtr_tail_follows_the_asymptotic_series():
    x = np.array([60.0, 200.0, 1e3, 1e5])
    _, hazard, second, third = log_ndtr_derivatives(-x)
    np.testing.assert_allclose(hazard - x, 1 / x - 2 / x**3 + 10 / x**5, atol=1e-16 * 1e5)
    np.testing.assert_allclose(second, -1 + 1 / x**2 - 6 / x**4, rtol=1e-8)
    np.testing.assert_allclose(third * x**3, 2 - 24 / x**2, rtol=1e-4)


def test_log_ndtr_has_no_seam_where_the_fraction_takes_over():
    z = -8.0 + np.linspace(-1e-6, 1e-6, 9)
    for derivative in log_ndtr_derivatives(z):
        line = np.polyval(np.polyfit(z + 8.0, derivative, 1), z + 8.0)
        np.testing.assert_allclose(derivative, line, rtol=5e-11)


def test_log_ndtr_is_finite_to_the_end_of_the_range():
    z = np.array([-1e150, -1e100, -1e20, -1e8, 0.0, 1e8, 1e150])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        value, hazard, second, third = log_ndtr_derivatives(z)
    assert np.isfinite([value, hazard, second, third]).all()
    np.testing.assert_allclose(hazard[:4], -z[:4])
    np.testing.assert_allclose(second[:4], -1.0)
    assert (hazard[-2:] == 0).all()


def test_log_ndtr_curvature_stays_between_minus_one_and_zero():
    second = log_ndtr_derivatives(np.linspace(-1e4, 30.0, 100_001))[2]
    assert second.min() >= -1.0
    assert second.max() <= 0.0


def test_log_ndtr_keeps_shape_and_does_not_depend_on_chunks():
    z = np.random.default_rng(0).normal(size=(3, 7001)) * 5
    whole = log_ndtr_derivatives(z)
    row = log_ndtr_derivatives(z[1])
    for a, b in zip(whole, row, strict=True):
        assert a.shape == z.shape
        np.testing.assert_array_equal(a[1], b)


def test_log_expit_agrees_with_scipy_and_survives_extremes():
    np.testing.assert_allclose(log_expit_derivatives(BULK)[0], log_expit(BULK), rtol=1e-13)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        far = log_expit_derivatives(np.array([-1e300, 1e300]))
    np.testing.assert_array_equal(far, [[-1e300, 0], [1, 0], [0, 0], [0, 0]])
