"""The simulated tasks that contestants share."""

import numpy as np
from scipy.special import ndtr


def gp_task(n, m, seed, n_test=5000):
    """x ~ U[0,1]⁵, f ~ GP(0, 4·RBF(ℓ = 0.5)), P(a ≻ b) = Φ(Δf/√2); held-out pairs of items."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 5))
    sq = ((X[:, None, :] - X[None, :, :]) ** 2).sum(-1)
    K = 4.0 * np.exp(-0.5 * sq / 0.25)
    values, vectors = np.linalg.eigh(K)
    f = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(n))

    def pairs(k):
        a = rng.integers(n, size=k)
        b = (a + 1 + rng.integers(n - 1, size=k)) % n
        first = rng.random(k) < ndtr((f[a] - f[b]) / np.sqrt(2.0))
        return np.where(first, a, b), np.where(first, b, a)

    winner, loser = pairs(m)
    test_winner, test_loser = pairs(n_test)
    ceiling = np.mean(np.log(ndtr((f[test_winner] - f[test_loser]) / np.sqrt(2.0))))
    return {
        "X": X,
        "winner": winner,
        "loser": loser,
        "test_winner": test_winner,
        "test_loser": test_loser,
        "ceiling": ceiling,
    }
