"""Inputs, operators, and what a leaf accepts as a parameter."""

import subprocess
import sys

import numpy as np
import pytest

from penchant.errors import DataError
from penchant.kernels import (
    RBF,
    CommonCause,
    Constant,
    Diffusion,
    Independent,
    Inputs,
    Linear,
    Matern,
    Product,
    RandomWalk,
    Sum,
    undirected,
)


def test_inputs_are_counted_and_taken():
    assert len(Inputs(index=np.arange(4))) == 4
    new = Inputs.of([[1, 2], [3, 4]])
    assert (len(new), new.X.dtype, new.index) == (2, np.float64, None)
    assert Inputs.of(new) is new
    items = Inputs(np.eye(3), {"r": undirected(np.zeros((3, 3)))}, np.arange(3))
    some = items.take(np.array([2, 0]))
    assert some.relations is items.relations
    np.testing.assert_array_equal(some.index, [2, 0])
    np.testing.assert_array_equal(some.X, np.eye(3)[[2, 0]])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda: Inputs(), "neither features X nor an index"),
        (lambda: Inputs(np.zeros(3)), r"reshape\(-1, 1\)"),
        (lambda: Inputs(np.zeros((3, 1)), index=np.arange(2)), "3 rows but index has 2"),
        (lambda: RBF()(Inputs(index=np.arange(2))), "pass X"),
        (lambda: RBF((1.0, 2.0))(np.zeros((3, 3))), "2 lengthscales, X has 3 features"),
        (lambda: Diffusion("r")(np.zeros((3, 3))), "relation 'r', but the relations given are"),
        (lambda: RBF(lengthscale=-1.0), "positive"),
        (lambda: RBF(lengthscale=(1.0, 0.0)), "positive"),
        (lambda: RBF(lengthscale=[[1.0]]), "positive"),
        (lambda: RBF(variance=np.inf), "finite"),
        (lambda: RBF(variance=(1.0, 2.0)), "must be a number"),
        (lambda: RBF(variance="1"), "must be a number"),
        (lambda: Matern(nu=2.0), "0.5, 1.5 or 2.5"),
        (lambda: RandomWalk("r", steps=0), "from 1"),
        (lambda: RandomWalk("r", steps=1.5), "whole number"),
        (lambda: RandomWalk("r", offset=1.9), "at least 2"),
        (lambda: CommonCause("r", per="triangle"), '"clique", "edge" or "auto"'),
        (lambda: RBF() + "a", "must be a number"),
        (lambda: -1.0 * RBF(), "positive"),
        (lambda: np.ones(2) * RBF(), "must be a number"),
    ],
)
def test_misuse_is_explained(bad, message):
    with pytest.raises(DataError, match=message):
        bad()


def test_parameters_become_plain_numbers():
    kernel = RBF(lengthscale=np.array([1, 2]), variance=np.float32(0.5))
    assert kernel.lengthscale == (1.0, 2.0)
    assert kernel == RBF((1.0, 2.0), 0.5)
    assert all(type(v) is float for v in (*kernel.lengthscale, kernel.variance))
    assert kernel.names == ("lengthscale[0]", "lengthscale[1]", "variance")
    assert type(RandomWalk("r", steps=np.int64(3)).steps) is int


def test_bounds_widen_to_hold_an_unusual_value():
    kernel = RBF(lengthscale=1e7)
    assert kernel.bounds[0, 1] > np.log(1e9)  # in units of the features, with room to be learned
    assert RBF(variance=1e-9).bounds[1, 0] == np.log(1e-9)
    assert kernel.bounds[1, 1] == RBF().bounds[1, 1]


def test_theta_at_the_bound_of_the_random_walk_is_accepted():
    kernel = RandomWalk("r", offset=2.0)
    assert kernel.with_theta(kernel.bounds[:, 0]).offset == 2.0


def test_sums_and_products_stay_flat():
    a, b, c = RBF(), Linear(), Independent()
    assert (a + b) + c == a + (b + c) == Sum((a, b, c))
    assert (a * b) * c == a * (b * c) == Product((a, b, c))
    assert repr((a + b) * c) == f"({a!r} + {b!r}) * {c!r}"
    assert (2.0 * a).kernels == (Constant(2.0), a)


def test_independent_items_are_told_apart_by_index():
    items = Inputs(np.zeros((3, 1)), index=np.array([4, 7, 9]))
    others = Inputs(np.zeros((2, 1)), index=np.array([9, 5]))
    kernel = Independent(2.0)
    np.testing.assert_array_equal(kernel(items), 2.0 * np.eye(3))
    np.testing.assert_array_equal(kernel(items, others), [[0, 0], [0, 0], [2, 0]])
    X = np.zeros((3, 1))
    np.testing.assert_array_equal(kernel(X, X), 2.0 * np.eye(3))
    np.testing.assert_array_equal(kernel(X, X.copy()), np.zeros((3, 3)))
    np.testing.assert_array_equal(kernel(items, X), np.zeros((3, 3)))


def test_importing_kernels_leaves_scikit_learn_alone():
    program = "import sys, penchant.kernels; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
