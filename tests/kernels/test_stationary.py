"""RBF and Matérn against their formulas, entry by entry, and under rounding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gamma, kv
from sklearn.gaussian_process.kernels import RBF as SklearnRBF

from penchant.kernels import RBF, Matern
from penchant.numerics import linalg


def _direct(U, V):
    return ((U[:, None] - V) ** 2).sum(axis=2)


@pytest.mark.parametrize("d", [1, 16, 17, 60])  # up to 16 features, one by one
def test_squared_distances(rng, d):
    U, V = rng.standard_normal((30, d)), rng.standard_normal((20, d))
    np.testing.assert_allclose(linalg.squared_distances(U, V), _direct(U, V), rtol=1e-12)
    np.testing.assert_allclose(linalg.squared_distances(U), _direct(U, U), rtol=1e-12, atol=0)


@pytest.mark.parametrize("d", [2, 60])
def test_near_identical_rows_far_from_zero(rng, d):
    U = 1e6 + rng.standard_normal((30, d))
    U[15:] = U[:15]
    U[20:25] += 1e-9
    squared = linalg.squared_distances(U)
    assert (squared >= 0.0).all()
    np.testing.assert_array_equal(squared[np.arange(5), np.arange(15, 20)], 0.0)
    np.testing.assert_allclose(squared, _direct(U, U), rtol=1e-12, atol=1e-12)


def test_rbf_agrees_with_scikit_learn(rng):
    X, lengthscale = rng.standard_normal((20, 4)), np.array([0.5, 1.0, 2.0, 4.0])
    np.testing.assert_allclose(RBF(lengthscale)(X), SklearnRBF(lengthscale)(X), rtol=1e-12)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern_is_the_bessel_formula(nu):
    x = np.linspace(0.05, 6.0, 40)[:, None]
    r = np.sqrt(2 * nu) * x[:, 0] / 1.3
    expected = 0.7 * 2 ** (1 - nu) / gamma(nu) * r**nu * kv(nu, r)
    np.testing.assert_allclose(Matern(nu, 1.3, 0.7)(x, np.zeros((1, 1)))[:, 0], expected)


@pytest.mark.parametrize("kernel", [RBF((0.5, 2.0)), Matern(0.5, (0.5, 2.0)), Matern(1.5)])
def test_duplicate_rows_have_a_finite_and_right_gradient(kernel, rng):
    X = np.repeat(rng.standard_normal((5, 2)), 3, axis=0)
    moves = 1e-5 * np.eye(len(kernel.theta))
    ahead, behind = (
        [kernel.with_theta(kernel.theta + s * move)(X).sum() for move in moves] for s in (1, -1)
    )
    expected = np.subtract(ahead, behind) / 2e-5
    np.testing.assert_allclose(kernel.pullback(X, np.ones((15, 15))), expected, rtol=1e-6)


def test_gradient_does_not_drown_when_every_item_stands_alone(rng):
    X = 1e3 * rng.standard_normal((40, 3))
    G = 1e3 * np.eye(40)
    gradient = RBF((1e-4, 1e-4, 1e-4)).pullback(X, G)
    np.testing.assert_array_equal(gradient[:3], 0.0)
    assert gradient[3] == pytest.approx(40e3)


def test_gradient_does_not_depend_on_where_zero_is(rng):
    X = rng.integers(-8, 8, (30, 2)) / 8.0
    G = rng.standard_normal((30, 30))
    G += G.T
    for kernel in (RBF((0.5, 2.0)), Matern(2.5)):
        np.testing.assert_allclose(
            kernel.pullback(X + 2.0**20, G), kernel.pullback(X, G), rtol=1e-9
        )


def test_wide_features_have_the_right_gradient(rng):
    X = rng.standard_normal((25, 40))
    kernel = RBF(tuple(rng.uniform(3.0, 9.0, 40)), 1.3)
    G = rng.standard_normal((25, 25))
    G += G.T
    K = kernel(X)
    differences = (X[:, None] - X) ** 2 / np.square(kernel.lengthscale)
    expected = np.einsum("ij,ij,ijd->d", G, K, differences)
    np.testing.assert_allclose(kernel.pullback(X, G), np.append(expected, np.vdot(G, K)))


@given(
    shift=st.floats(-1e3, 1e3), scale=st.floats(0.01, 100.0), nu=st.sampled_from([0.5, 1.5, 2.5])
)
def test_only_scaled_differences_count(shift, scale, nu):
    X = np.array([[0.0, 1.0], [0.5, -1.0], [2.0, 0.25]])
    for kernel in (RBF, lambda ell: Matern(nu, ell)):
        np.testing.assert_allclose(
            kernel((scale, 2 * scale))(scale * X + shift), kernel((1.0, 2.0))(X), rtol=1e-6
        )
