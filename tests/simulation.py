"""Simulated answers that tests of several folders share."""

import numpy as np

from penchant.ask import Joint
from penchant.data import Comparisons
from penchant.likelihoods import Probit

DRINKS = ("tea", "milk", "water", "juice", "wine")


def duels(rng, utilities, n=None, user=None):
    """Winners and losers of n random pairs of items, chosen with standard normal noise.

    utilities: (n_items,), or (n_users, n_items) where `user` says whose row decides each pair.
    """
    f = np.atleast_2d(utilities)
    who, n = (0, n) if user is None else (user, len(user))
    a = rng.integers(f.shape[1], size=n)
    b = (a + 1 + rng.integers(f.shape[1] - 1, size=n)) % f.shape[1]
    won = f[who, a] - f[who, b] + rng.standard_normal(n) > 0
    return np.where(won, a, b), np.where(won, b, a)


def duel_data(rng, utilities, n=None, user=None, **names):
    """The comparisons of `duels`, whose items are numbers."""
    items = range(np.shape(utilities)[-1])
    return Comparisons.from_pairs(
        *duels(rng, utilities, n, user), user=user, **{"items": items, **names}
    )


def opposite_votes(users, n_each, seed=0, tie_rate=0.0):
    """Every other user likes the drinks in order, the others the other way round."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(len(users)), n_each)
    a = rng.integers(5, size=len(user))
    b = (a + rng.integers(1, 5, size=len(user))) % 5
    first = np.where(user % 2 == 0, a < b, a > b) ^ (rng.random(len(user)) < 0.05)
    winner, loser = np.where(first, a, b), np.where(first, b, a)
    return Comparisons.from_pairs(
        [DRINKS[i] for i in winner],
        [DRINKS[i] for i in loser],
        user=[users[u] for u in user],
        tie=rng.random(len(user)) < tie_rate if tie_rate else None,
        items=DRINKS,
        users=users,
    )


def random_belief(n, seed=0, likelihood=None, scale=1.0):
    """A belief about n items, correlated at random."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((n, n))
    return Joint(scale * rng.standard_normal(n), root @ root.T / n, likelihood or Probit())
