"""Statistical checks in standard errors; slow, so they have a target of their own."""

import numpy as np
import pytest
from scipy.special import ndtr

import penchant as pc
from penchant.kernels import RBF, Independent

pytestmark = pytest.mark.slow


def study(rng, n_items, n_pairs, kernel, X):
    """Utilities drawn from the prior, probit answers about random pairs."""
    f = np.linalg.cholesky(kernel(X) + 1e-9 * np.eye(n_items)) @ rng.standard_normal(n_items)
    a = rng.integers(n_items, size=n_pairs)
    b = (a + 1 + rng.integers(n_items - 1, size=n_pairs)) % n_items
    first = f[a] - f[b] + rng.standard_normal(n_pairs) > 0
    data = pc.Comparisons.from_pairs(
        np.where(first, a, b), np.where(first, b, a), items=range(n_items)
    )
    return f, data


@pytest.mark.parametrize("ratio", [1, 3, 10])
def test_intervals_of_differences_cover(ratio):
    """Over many studies, 50/90/95 % intervals hold the truth that often, within 4 sigmas."""
    rng = np.random.default_rng(ratio)
    n, n_studies = 15, 300
    kernel = RBF(1.0, 3.0)
    inside = {0.674: 0, 1.645: 0, 1.960: 0}
    for _ in range(n_studies):
        X = rng.standard_normal((n, 2))
        f, data = study(rng, n, ratio * n, kernel, X)
        posterior = pc.PreferenceGP(kernel, optimize=None).fit(X, data).posterior_
        i, j = rng.choice(n, 2, replace=False)
        mean, var = posterior.difference(np.array([i]), np.array([j]))
        z = abs(f[i] - f[j] - mean[0]) / np.sqrt(var[0])
        for reach in inside:
            inside[reach] += z < reach
    for reach, hits in inside.items():
        expected = 2 * ndtr(reach) - 1
        sigma = np.sqrt(n_studies * expected * (1 - expected))
        assert abs(hits - n_studies * expected) < 4 * sigma


def test_ranks_of_the_truth_are_uniform():
    """Simulation-based calibration of one utility difference: a χ² test over ten bins."""
    rng = np.random.default_rng(0)
    n, n_studies, n_bins = 8, 400, 10
    bins = np.zeros(n_bins)
    kernel = Independent(2.0)
    for _ in range(n_studies):
        f, data = study(rng, n, 24, lambda X: 2.0 * np.eye(n), None)
        posterior = pc.PreferenceGP(kernel, optimize=None).fit(None, data).posterior_
        mean, var = posterior.difference(np.array([0]), np.array([1]))
        level = ndtr((f[0] - f[1] - mean[0]) / np.sqrt(var[0]))
        bins[min(int(level * n_bins), n_bins - 1)] += 1
    expected = n_studies / n_bins
    chi2 = ((bins - expected) ** 2 / expected).sum()
    assert chi2 < (n_bins - 1) + 4 * np.sqrt(2 * (n_bins - 1))


def test_predicted_probabilities_are_calibrated():
    """Mean prediction equals the share of wins among held-out answers, bin by bin."""
    rng = np.random.default_rng(3)
    n = 40
    kernel = RBF(1.0, 3.0)
    predicted, happened = [], []
    for _ in range(40):
        X = rng.standard_normal((n, 2))
        f, data = study(rng, n, 120, kernel, X)
        gp = pc.PreferenceGP(kernel, optimize=None).fit(X, data)
        pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(250)])
        predicted.append(gp.predict_proba(pairs))
        happened.append(f[pairs[:, 0]] - f[pairs[:, 1]] + rng.standard_normal(250) > 0)
    p, y = np.concatenate(predicted), np.concatenate(happened)
    edges = np.quantile(p, np.linspace(0, 1, 11))
    which = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, 9)
    for k in range(10):
        here = which == k
        sigma = np.sqrt((p[here] * (1 - p[here])).sum())
        # pairs within a study share its posterior: allow for that correlation
        assert abs(y[here].sum() - p[here].sum()) < 6 * sigma
