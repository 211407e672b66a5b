"""The simulated tasks that contestants share."""

import time

import numpy as np
from scipy.special import expit, log_expit, ndtr

from penchant.datasets import load_regression


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


def regression_task(name, n_items, m, seed, n_test=20_000):
    """Pairs from a regression set (Chu & Ghahramani 2005): the larger target is preferred."""
    whole = load_regression(name)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(whole.y))[:n_items]
    X, y = whole.X[rows], whole.y[rows]
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0))[:, spread > 0] / spread[spread > 0]

    def pairs(k):
        a, b = rng.integers(len(y), size=(2, 3 * k))
        keep = np.flatnonzero(y[a] != y[b])[:k]
        a, b = a[keep], b[keep]
        first = y[a] > y[b]
        return np.where(first, a, b), np.where(first, b, a)

    winner, loser = pairs(m)
    test_winner, test_loser = pairs(n_test)
    return {
        "X": X,
        "winner": winner,
        "loser": loser,
        "test_winner": test_winner,
        "test_loser": test_loser,
        "ceiling": 0.0,
    }


def win_table(n, m, seed, n_test=100_000):
    """Items without features, u ~ N(0, 1), P(a ≻ b) = 1/(1 + exp(u_b − u_a)).

    X is there for its length only.
    """
    rng = np.random.default_rng(seed)
    utility = rng.standard_normal(n)
    a = rng.integers(n, size=m + n_test)
    b = (a + 1 + rng.integers(n - 1, size=m + n_test)) % n
    first = rng.random(m + n_test) < expit(utility[a] - utility[b])
    winner, loser = np.where(first, a, b), np.where(first, b, a)
    return {
        "X": np.zeros((n, 0)),
        "winner": winner[:m],
        "loser": loser[:m],
        "test_winner": winner[m:],
        "test_loser": loser[m:],
        "ceiling": np.mean(log_expit(utility[winner[m:]] - utility[loser[m:]])),
    }


def drift_task(n, weeks, games, seed, n_test=5000):
    """Utilities that drift: N(0, 1) for good plus an Ornstein–Uhlenbeck path, P = Φ(Δf).

    games: of every week. The path has variance 1 and a timescale of 20 weeks. The held-out games
    are those of the week after the last one.
    """
    rng = np.random.default_rng(seed)
    level, path = rng.standard_normal((2, n))
    keep = np.exp(-1.0 / 20.0)
    rows = []
    for week in range(weeks + 1):
        f, k = level + path, n_test if week == weeks else games
        a = rng.integers(n, size=k)
        b = (a + 1 + rng.integers(n - 1, size=k)) % n
        first = rng.random(k) < ndtr(f[a] - f[b])
        rows.append([np.where(first, a, b), np.where(first, b, a)])
        path = keep * path + np.sqrt(1.0 - keep**2) * rng.standard_normal(n)
    winner, loser = np.hstack(rows[:-1])
    test_winner, test_loser = rows[-1]
    return {
        "winner": winner,
        "loser": loser,
        "week": np.repeat(np.arange(weeks), games),
        "test_winner": test_winner,
        "test_loser": test_loser,
        "test_week": weeks,
        "n_items": n,
        "ceiling": np.mean(np.log(ndtr(f[test_winner] - f[test_loser]))),
    }


def best_time(repeats, work):
    """Least seconds of a few runs."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
