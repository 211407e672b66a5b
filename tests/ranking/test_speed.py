"""Cost: ratios measured side by side in one process."""

import tracemalloc

import numpy as np
import pytest
from scipy.linalg import eigh

from penchant.kernels import RBF
from penchant.models import KPCRank
from penchant.ranking import Groups, kernel_features, ridge_path

pytestmark = pytest.mark.slow


def data(n):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 10))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(n), np.arange(n) // 20


def test_all_ridges_cost_little_more_than_one_eigendecomposition(seconds):
    X, y, qid = data(2000)
    kernel = RBF(3.0)
    K = kernel(X, X)

    def path():
        solutions = ridge_path(kernel_features(kernel, X, X)[1], Groups(qid, y))
        return solutions.weights(solutions.default_alphas())

    assert seconds(path) <= 1.6 * seconds(lambda: eigh(K, driver="evr"))


def test_choosing_among_500_components_costs_little_more_than_one_fit(seconds):
    X, y, qid = data(2000)
    one = seconds(lambda: KPCRank(n_components=500).fit(X, y, qid))
    assert seconds(lambda: KPCRank().fit(X, y, qid)) <= 1.5 * one


def test_kpcrank_is_linear_in_rows(seconds):
    taken = []
    for n in (10_000, 20_000, 40_000):
        X, y, qid = data(n)
        model = KPCRank(n_components=100, random_state=0)
        taken.append(seconds(lambda model=model, X=X, y=y, qid=qid: model.fit(X, y, qid)))
    assert max(taken[1] / taken[0], taken[2] / taken[1]) <= 2.2


def test_kpcrank_on_20_000_rows_needs_less_than_2_gigabytes():
    X, y, qid = data(20_000)
    tracemalloc.start()
    KPCRank(n_components=100, random_state=0).fit(X, y, qid)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e9
