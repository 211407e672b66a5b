"""Simulated users of a few tastes and mixtures of their answers, for the tests beside this file."""

import numpy as np

from penchant.communities import Answers, MixtureData
from penchant.data import Comparisons
from penchant.gp import ItemHyper
from penchant.kernels import Independent, Inputs
from penchant.likelihoods import Probit


def tastes(k, n_items, scale=1.5, seed=5):
    return scale * np.random.default_rng(seed).standard_normal((k, n_items))


def people(utilities, n_users, spread=0.0, seed=0):
    """(U, n) utilities of users with one of the tastes (K, n) each, in turn, who deviate."""
    own = spread * np.random.default_rng(seed).standard_normal((n_users, utilities.shape[1]))
    return utilities[np.arange(n_users) % len(utilities)] + own


def votes(utilities, n_votes, seed=0, noise=1.0):
    """So many answers of each user with these utilities (U, n), about random pairs."""
    rng, (n_users, n_items) = np.random.default_rng(seed), utilities.shape
    user = np.repeat(np.arange(n_users), n_votes)
    a = rng.integers(n_items, size=len(user))
    b = (a + rng.integers(1, n_items, size=len(user))) % n_items
    wins = utilities[user, a] - utilities[user, b] + noise * rng.standard_normal(len(user)) > 0
    winner, loser = np.where(wins, a, b), np.where(wins, b, a)
    return Comparisons.from_pairs(
        winner, loser, user=user, items=range(n_items), users=range(n_users)
    )


def mixture_of(data, kernel=None, likelihood=None, X=None, **options):
    """The mixture of the answers in some comparisons."""
    hyper = ItemHyper(kernel or Independent(), likelihood or Probit())
    items = Inputs(X, index=np.arange(data.n_items))
    return MixtureData(Answers.of(data), items, hyper, **options)


def planted(k, n_items, n_users, n_votes, seed=0, scale=1.5, kernel=None, **options):
    """A mixture of users of k tastes, and the taste of each."""
    data = votes(people(tastes(k, n_items, scale), n_users), n_votes, seed)
    return mixture_of(data, kernel, **options), np.arange(n_users) % k
