import numpy as np
from scipy.stats import norm

from penchant.likelihoods import Probit


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
