"""The users' factor by columns."""

import numpy as np
import pytest

from penchant.gp.users.nystrom import factor_users
from penchant.kernels import RBF, Constant, Inputs


@pytest.fixture
def users(rng):
    return Inputs(rng.standard_normal((40, 2)), index=np.arange(40))


def test_without_a_bound_the_factor_is_exact(users):
    kernel = 1.0 + RBF(1.0)
    factor = factor_users(kernel, users, 40, 1e-12)
    np.testing.assert_allclose(factor.rows @ factor.rows.T, kernel(users), atol=1e-7)
    np.testing.assert_allclose(np.triu(factor.lower, 1), 0.0)


def test_a_bound_leaves_the_variance_that_it_says(users):
    kernel = RBF(0.5)
    factor = factor_users(kernel, users, 5, 1e-12)
    left = kernel(users) - factor.rows @ factor.rows.T
    assert factor.rows.shape == (40, 5)
    assert len(set(factor.pivots)) == 5
    assert factor.residual == pytest.approx(np.diagonal(left).max())
    np.testing.assert_allclose(left[factor.pivots], 0.0, atol=1e-10)


def test_a_population_mean_is_one_column(users):
    factor = factor_users(Constant(1.0), users, 32, 1e-10)
    np.testing.assert_array_equal(factor.rows, np.ones((40, 1)))
    assert factor.residual == 0.0
