"""Beliefs of expectation propagation about one utility per item are as wide as they should be."""

import numpy as np
import pytest

import penchant as pc
from penchant.kernels import RBF, Independent

pytestmark = [
    pytest.mark.slow,
    # with few answers, items often fall apart into groups: that is part of the test
    pytest.mark.filterwarnings("ignore::penchant.errors.DataWarning"),
]


def study(rng, n_items, n_pairs, K, noise):
    """Utilities drawn from N(0, K), and answers about random pairs with additive `noise(k)`."""
    f = np.linalg.cholesky(K + 1e-9 * np.eye(n_items)) @ rng.standard_normal(n_items)
    a = rng.integers(n_items, size=n_pairs)
    b = (a + 1 + rng.integers(n_items - 1, size=n_pairs)) % n_items
    first = f[a] - f[b] + noise(n_pairs) > 0
    data = pc.Comparisons.from_pairs(
        np.where(first, a, b), np.where(first, b, a), items=range(n_items)
    )
    return f, data


@pytest.mark.parametrize("ratio", [1, 3, 10])
def test_intervals_of_differences_cover(ratio, assert_covered):
    """Over many studies with `ratio` comparisons an item, of which some items have none."""
    rng = np.random.default_rng(ratio)
    n, kernel, z = 15, RBF(1.0, 3.0), []
    for _ in range(2000):
        X = rng.standard_normal((n, 2))
        f, data = study(rng, n, ratio * n, kernel(X), rng.standard_normal)
        posterior = pc.PreferenceGP(kernel, optimize=None).fit(X, data).posterior_
        i, j = rng.choice(n, 2, replace=False)
        mean, var = posterior.difference(np.array([i]), np.array([j]))
        z.append((f[i] - f[j] - mean[0]) / np.sqrt(var[0]))
    assert_covered(np.array(z))


@pytest.mark.parametrize("likelihood", ["probit", "logit"])
def test_the_truth_is_anywhere_in_the_belief(likelihood, assert_uniform, level_of):
    """Simulation-based calibration of a utility difference, without features."""
    rng = np.random.default_rng(0)
    n, levels = 8, []
    for _ in range(2000):
        noise = rng.standard_normal if likelihood == "probit" else lambda k: rng.logistic(size=k)
        f, data = study(rng, n, 24, 2.0 * np.eye(n), noise)
        model = pc.PreferenceGP(Independent(2.0), likelihood=likelihood, optimize=None)
        mean, var = model.fit(None, data).posterior_.difference(np.array([0]), np.array([1]))
        levels.append(level_of(f[0] - f[1], mean[0], var[0]))
    assert_uniform(levels)


def test_learned_hyperparameters_stay_calibrated(assert_frequencies):
    """With lengthscale and variance learned from each study's own 150 answers."""
    rng = np.random.default_rng(4)
    n, predicted, happened = 30, [], []
    for _ in range(400):
        X = rng.standard_normal((n, 2))
        f, data = study(rng, n, 150, RBF(1.0, 3.0)(X), rng.standard_normal)
        model = pc.PreferenceGP(RBF(1.0, 1.0)).fit(X, data)
        i, j = rng.choice(n, 2, replace=False)
        predicted.append(model.predict_proba([(i, j)])[0])
        happened.append(f[i] - f[j] + rng.standard_normal() > 0)
    assert_frequencies(predicted, happened)


def test_predicted_probabilities_are_calibrated(record_property):
    """Mean prediction equals the share of wins among held-out answers, bin by bin."""
    rng = np.random.default_rng(3)
    n, kernel = 40, RBF(1.0, 3.0)
    gaps = []  # (study, bin): wins less predicted wins
    for _ in range(200):
        X = rng.standard_normal((n, 2))
        f, data = study(rng, n, 120, kernel(X), rng.standard_normal)
        gp = pc.PreferenceGP(kernel, optimize=None).fit(X, data)
        pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(250)])
        p = gp.predict_proba(pairs)
        y = f[pairs[:, 0]] - f[pairs[:, 1]] + rng.standard_normal(250) > 0
        gaps.append(np.bincount((10 * p).astype(int), y - p, minlength=10))
    gaps = np.array(gaps)
    # pairs of a study share its posterior: the spread over studies is the honest standard error
    error = gaps.std(axis=0, ddof=1) / np.sqrt(len(gaps))
    z = gaps.mean(axis=0) / error
    record_property("gap of ten bins, in σ", " ".join(f"{value:+.1f}" for value in z))
    assert (np.abs(z) < 4).all()
