"""Makes mcmc_reference.json: a long elliptical-slice run on a small probit problem.

Run by hand: `python tests/reference/make_mcmc_reference.py`. The evidence comes from importance
sampling with a widened Gaussian fitted to the chain; no part of penchant is used.
"""

import json
from pathlib import Path

import numpy as np
from scipy.special import log_ndtr, logsumexp
from scipy.stats import multivariate_normal

N_ITEMS, N_PAIRS = 6, 18
N_DRAWS, BURN = 200_000, 2_000


def problem():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N_ITEMS, 2))
    squared = ((X[:, None] - X[None]) ** 2).sum(-1)
    K = 2.0 * np.exp(-0.5 * squared / 1.2**2)
    f = np.linalg.cholesky(K + 1e-9 * np.eye(N_ITEMS)) @ rng.standard_normal(N_ITEMS)
    a = rng.integers(N_ITEMS, size=N_PAIRS)
    b = (a + 1 + rng.integers(N_ITEMS - 1, size=N_PAIRS)) % N_ITEMS
    first = f[a] - f[b] + rng.standard_normal(N_PAIRS) > 0
    return X, K, np.where(first, a, b), np.where(first, b, a)


def slice_step(f, log_like, lower, rng):
    """One elliptical slice update (Murray, Adams & MacKay 2010)."""
    nu = lower @ rng.standard_normal(len(f))
    level = log_like(f) + np.log(rng.random())
    angle = rng.random() * 2 * np.pi
    low, high = angle - 2 * np.pi, angle
    while True:
        proposal = f * np.cos(angle) + nu * np.sin(angle)
        if log_like(proposal) > level:
            return proposal
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = low + (high - low) * rng.random()


def chain(n_draws, lower, winner, loser, rng):
    def log_like(f):
        return log_ndtr(f[winner] - f[loser]).sum()

    f = np.zeros(len(lower))
    draws = np.empty((n_draws, len(lower)))
    for i in range(-BURN, n_draws):
        f = slice_step(f, log_like, lower, rng)
        if i >= 0:
            draws[i] = f
    return draws


def main():
    X, K, winner, loser = problem()
    lower = np.linalg.cholesky(K + 1e-9 * np.eye(N_ITEMS))
    rng = np.random.default_rng(11)
    draws = chain(N_DRAWS, lower, winner, loser, rng)
    proposal = multivariate_normal(draws.mean(0), 1.3 * np.cov(draws.T))
    f = proposal.rvs(1_000_000, random_state=rng)
    prior = multivariate_normal(np.zeros(N_ITEMS), K + 1e-9 * np.eye(N_ITEMS))
    log_weight = log_ndtr(f[:, winner] - f[:, loser]).sum(1) + prior.logpdf(f) - proposal.logpdf(f)
    log_z = float(logsumexp(log_weight) - np.log(len(f)))
    batches = draws.reshape(100, -1, N_ITEMS).mean(1)
    reference = {
        "mean": draws.mean(0).tolist(),
        "standard_error": (batches.std(0, ddof=1) / 10).tolist(),
        "sd": draws.std(0).tolist(),
        "log_evidence": log_z,
        "X": X.tolist(),
        "winner": winner.tolist(),
        "loser": loser.tolist(),
    }
    Path(__file__).with_name("mcmc_reference.json").write_text(json.dumps(reference, indent=1))


if __name__ == "__main__":
    main()
