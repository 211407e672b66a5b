"""What every kernel promises; a kernel without an example here fails the first test."""

import copy
import importlib
import pkgutil

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import penchant.kernels
from penchant.errors import DataError
from penchant.kernels import (
    RBF,
    CommonCause,
    Constant,
    Diffusion,
    FreeCovariance,
    Independent,
    Inputs,
    Linear,
    LinearRBF,
    LowRankCovariance,
    Matern,
    Product,
    RandomWalk,
    RegularizedLaplacian,
    Sum,
    directed,
    known_kernels,
    undirected,
)

BAND = np.eye(48) + 0.5 * np.eye(48, k=1) + 0.5 * np.eye(48, k=-1)
EXAMPLES = [
    Constant(1.5),
    RBF(0.8, 1.7),
    RBF((0.6, 1.2, 3.0), 0.4),
    LinearRBF(0.8, 1.7, 0.3),
    LinearRBF((0.6, 1.2, 3.0), 0.4, 0.3),
    Matern(0.5, (0.6, 1.2, 3.0), 1.7),
    Matern(1.5, 0.8, 1.7),
    Matern(1.5, (0.6, 1.2, 3.0)),
    Matern(2.5, (0.6, 1.2, 3.0), 1.7),
    Linear(0.7),
    Independent(0.3),
    RegularizedLaplacian("links", beta=0.7, iota=1.6),
    RegularizedLaplacian("walk", beta=0.7, iota=1.6),
    CommonCause("links", 1.4),
    CommonCause("links", 1.4, per="clique"),
    CommonCause("links", 1.4, per="edge"),
    Diffusion("links", beta=0.6, variance=1.4),
    Diffusion("walk", beta=0.6, variance=1.4),
    RandomWalk("links", steps=1, offset=2.5, variance=1.4),
    RandomWalk("links", steps=3, offset=3.0),
    RandomWalk("walk", steps=2, offset=2.2),
    Sum((RBF((0.6, 1.2, 3.0)), Linear(0.2), Diffusion("links"))),
    Product((RBF(0.8), Matern(1.5), RegularizedLaplacian("links", iota=2.0))),
    Product((Constant(2.0), Sum((Linear(), RandomWalk("walk", offset=3.0))), CommonCause("links"))),
    FreeCovariance.of(BAND),
    FreeCovariance.of(BAND).around(FreeCovariance.of(2.0 * np.eye(48) + 0.1)),
    LowRankCovariance.begin(np.arange(48), 2, 0.7),
]
N_ITEMS = 48

each_kernel = pytest.mark.parametrize("kernel", EXAMPLES, ids=repr)
each_of_few_parameters = pytest.mark.parametrize(
    "kernel",
    [k for k in EXAMPLES if not isinstance(k, FreeCovariance | LowRankCovariance)],
    ids=repr,
)
"""A learned covariance has a parameter an entry: tests/kernels/test_covariance.py knows it."""


def _universe():
    """Features, an undirected graph with isolated items, and a directed one."""
    rng = np.random.default_rng(7)
    upper = np.triu(rng.random((N_ITEMS, N_ITEMS)) < 0.08, k=1) * rng.uniform(
        0.5, 2.0, (N_ITEMS, N_ITEMS)
    )
    upper[:, 40:] = 0.0
    arrows = (rng.random((N_ITEMS, N_ITEMS)) < 0.06) * (1.0 - np.eye(N_ITEMS))
    relations = {"links": undirected(upper + upper.T), "walk": directed(arrows, "chung")}
    return Inputs(rng.standard_normal((N_ITEMS, 3)), relations, np.arange(N_ITEMS))


@pytest.fixture(scope="module")
def items():
    return _universe()


@pytest.fixture
def subset(items):
    return items.take(np.array([44, 3, 17, 8, 30, 21]))


def test_no_kernel_is_left_out():
    for module in pkgutil.iter_modules(penchant.kernels.__path__, "penchant.kernels."):
        importlib.import_module(module.name)
    known = {
        name
        for name, cls in known_kernels().items()
        if cls.__module__.startswith("penchant.kernels")
    }
    assert known == {type(kernel).__name__ for kernel in EXAMPLES}
    assert known <= set(penchant.kernels.__all__)


@each_kernel
def test_symmetric_positive_semi_definite(kernel, items):
    K = kernel(items)
    assert K.shape == (N_ITEMS, N_ITEMS)
    np.testing.assert_allclose(K, K.T, rtol=1e-13, atol=1e-15)
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] >= -1e-10 * eigenvalues[-1]


@each_kernel
def test_diag_is_the_diagonal(kernel, items, subset):
    for some in (items, subset):
        np.testing.assert_allclose(kernel.diag(some), np.diagonal(kernel(some)), rtol=1e-12)


@each_kernel
def test_subsets_and_crosses_are_blocks_of_the_whole(kernel, items):
    K = kernel(items)
    few, many = np.array([44, 3, 17, 3]), np.arange(0, N_ITEMS, 2)  # one item is there twice
    for rows, columns in ((few, many), (many, few), (few, few), (many, many)):
        block = kernel(items.take(rows), items.take(columns))
        np.testing.assert_allclose(block, K[np.ix_(rows, columns)], atol=1e-12)
    np.testing.assert_allclose(kernel(items.take(few)), K[np.ix_(few, few)], atol=1e-12)


@each_kernel
def test_the_answer_is_fresh(kernel, items):
    before = kernel(items)
    kernel(items)[:] = np.nan
    kernel.diag(items)[:] = np.nan
    np.testing.assert_array_equal(kernel(items), before)


def _finite_differences(kernel, A, G, B, step=1e-5):
    slopes = []
    for move in step * np.eye(len(kernel.theta)):
        ahead, behind = (kernel.with_theta(kernel.theta + s * move) for s in (1.0, -1.0))
        slopes.append(np.vdot(G, ahead(A, B) - behind(A, B)) / (2.0 * step))
    return np.array(slopes)


@each_kernel
@pytest.mark.parametrize("part", ["all", "subset", "crossed"])
def test_pullback_is_the_derivative(kernel, items, subset, part, rng):
    some = items if part == "all" else subset
    others = items.take(np.array([3, 40, 9])) if part == "crossed" else None
    G = rng.standard_normal((len(some), len(some if others is None else others)))
    G = G if part == "crossed" else G + G.T
    untouched = G.copy()
    gradient = kernel.pullback(some, G, others)
    expected = _finite_differences(kernel, some, G, others)
    np.testing.assert_array_equal(G, untouched)
    assert gradient.shape == kernel.theta.shape
    scale = np.abs(G).sum() * kernel.diag(some).max()
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-9 * scale)


@each_of_few_parameters
def test_theta_round_trip(kernel):
    theta = kernel.theta
    assert theta.shape == (len(kernel.names),)
    assert len(set(kernel.names)) == len(kernel.names)
    assert kernel.bounds.shape == (len(theta), 2)
    assert (kernel.bounds[:, 0] <= theta).all()
    assert (theta <= kernel.bounds[:, 1]).all()
    np.testing.assert_allclose(kernel.with_theta(theta).theta, theta, atol=1e-15)
    moved = kernel.with_theta(theta + 0.1)
    assert type(moved) is type(kernel)
    np.testing.assert_allclose(moved.theta, theta + 0.1)
    assert moved == kernel or len(theta)
    with pytest.raises(DataError, match="theta has shape"):
        kernel.with_theta(np.zeros(len(theta) + 1))


@each_of_few_parameters
def test_names_are_attribute_paths(kernel):
    values = [eval(f"kernel.{name}", {"kernel": kernel}) for name in kernel.names]
    np.testing.assert_allclose(np.log(values), kernel.theta)


@each_kernel
def test_plus_and_times_are_pointwise(kernel, items):
    other = RBF(2.0)
    K, L = kernel(items), other(items)
    np.testing.assert_allclose((kernel + other)(items), K + L)
    np.testing.assert_allclose((other * kernel)(items), K * L)
    np.testing.assert_allclose((2.5 * kernel)(items), 2.5 * K)
    np.testing.assert_allclose((np.float64(0.5) + kernel)(items), K + 0.5)
    np.testing.assert_array_equal((2.5 * kernel).theta, kernel.theta)


class _Holder(BaseEstimator):
    def __init__(self, kernel=None):
        self.kernel = kernel


@each_of_few_parameters
def test_copies_are_equal_and_repr_tells_all(kernel):
    for twin in (
        copy.deepcopy(kernel),
        clone(kernel, safe=False),
        clone(_Holder(kernel)).kernel,
        eval(repr(kernel), vars(penchant.kernels).copy()),
    ):
        assert twin == kernel
        assert hash(twin) == hash(kernel)
    assert kernel != kernel + Linear(0.123)


@each_kernel
def test_a_kernel_cannot_be_changed(kernel):
    field = next(iter(vars(kernel)))
    with pytest.raises(AttributeError):
        setattr(kernel, field, None)
