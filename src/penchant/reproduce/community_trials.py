"""Votes to learn communities from and votes to predict: simulated, sushi and cars (paper 004)."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from penchant.data import Comparisons
from penchant.datasets import load_cars, load_sushi_a
from penchant.datasets.people import Cars, Sushi
from penchant.numerics.types import FloatArray, IntArray

TRAIN_SHARE = 0.6


class Trial(NamedTuple):
    """Votes to learn from and votes to predict, with the truth where it is known.

    X: (n, d) item features or None; test: (k, 3) user, winner, loser; communities: (U,) or None;
    oracle: accuracy of somebody who knows every user's utilities, or NaN.
    """

    X: FloatArray | None
    train: Comparisons
    test: IntArray
    communities: IntArray | None = None
    oracle: float = float("nan")


def draw_synthetic(seed: int) -> Trial:
    """The paper's synthetic set: each of 10 items is liked by one of 4 communities of 15 users.

    Liked items have high utility and all others low; within high and low the order is random, and
    the same for all users of a community. Answers to all 45 pairs are free of noise.
    """
    rng = np.random.default_rng(seed)
    likers = rng.permutation(np.concatenate([np.arange(4), rng.integers(4, size=6)]))
    utilities = 10.0 * (likers == np.arange(4)[:, None]) + rng.random((4, 10))
    communities = rng.permutation(np.repeat(np.arange(4), 15))
    first, second = np.triu_indices(10, 1)
    own = utilities[communities]
    wins = own[:, first] > own[:, second]
    user = np.indices(wins.shape)[0]
    votes = np.stack([user, np.where(wins, first, second), np.where(wins, second, first)], axis=2)
    trial = _split(None, votes.reshape(-1, 3), 60, 10, rng)
    return trial._replace(communities=communities, oracle=1.0)


def draw_votes(n_votes: int, seed: int, n_users: int = 2000, n_test: int = 20) -> Trial:
    """Users of four tastes (40, 30, 20 and 10 %) who vote on random pairs of 100 items.

    Utilities are 2·features·w/√10 with w ~ N(0, I), plus a personal N(0, 0.4²) an item; votes
    are logistic.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((100, 10))
    tastes = 2.0 * rng.standard_normal((4, 10)) @ X.T / np.sqrt(10)
    communities = rng.choice(4, n_users, p=[0.4, 0.3, 0.2, 0.1])
    utilities = tastes[communities] + 0.4 * rng.standard_normal((n_users, 100))
    train, test = (_vote(utilities, n, rng) for n in (n_votes, n_test))
    data = Comparisons.from_pairs(
        train[:, 1], train[:, 2], user=train[:, 0], items=range(100), users=range(n_users)
    )
    lead = utilities[test[:, 0], test[:, 1]] > utilities[test[:, 0], test[:, 2]]
    return Trial(X, data, test, communities, float(lead.mean()))


def _vote(utilities: FloatArray, n_votes: int, rng: np.random.Generator) -> IntArray:
    """(U · n_votes, 3): user, winner, loser of uniformly random pairs."""
    n_users, n_items = utilities.shape
    user = np.repeat(np.arange(n_users), n_votes)
    first = rng.integers(n_items, size=len(user))
    second = (first + rng.integers(1, n_items, size=len(user))) % n_items
    wins = rng.random(len(user)) < expit(utilities[user, first] - utilities[user, second])
    return np.column_stack([user, np.where(wins, first, second), np.where(wins, second, first)])


def sushi_trial(
    seed: int, n_users: int = 1000, n_pairs: int | None = None, sushi: Sushi | None = None
) -> Trial:
    """Some users' rankings of ten kinds of sushi as 45 pairs each: 60 % (or n_pairs) to learn."""
    rng = np.random.default_rng(seed)
    rankings = (sushi or load_sushi_a()).rankings
    rankings = rankings[rng.choice(len(rankings), n_users, replace=False)]
    better, worse = np.triu_indices(10, 1)
    votes = np.stack(
        [np.indices((n_users, 45))[0], rankings[:, better], rankings[:, worse]], axis=2
    )
    n_train = round(TRAIN_SHARE * 45) if n_pairs is None else n_pairs
    order = rng.permuted(np.tile(np.arange(45), (n_users, 1)), axis=1)[:, :, None]
    shuffled = np.take_along_axis(votes, order, axis=1)
    train, test = shuffled[:, :n_train].reshape(-1, 3), shuffled[:, n_train:].reshape(-1, 3)
    return Trial(None, _comparisons(train, n_users, 10), test)


def cars_trial(seed: int, cars: Cars | None = None) -> Trial:
    """60 % of each person's choices between cars to learn from, the others to predict."""
    cars = cars or load_cars()
    data = cars.comparisons
    rows = np.column_stack([np.asarray(data.user), data.winner, data.loser])
    votes = np.repeat(rows, data.count, axis=0)
    rng = np.random.default_rng(seed)
    return _split(cars.item_features, votes, data.n_users, data.n_items, rng)


def _split(
    X: FloatArray | None, votes: IntArray, n_users: int, n_items: int, rng: np.random.Generator
) -> Trial:
    """Put a random 60 % of the votes (k, 3) into training."""
    order = rng.permutation(len(votes))
    cut = round(TRAIN_SHARE * len(votes))
    train, test = votes[order[:cut]], votes[order[cut:]]
    return Trial(X, _comparisons(train, n_users, n_items), test)


def _comparisons(votes: IntArray, n_users: int, n_items: int) -> Comparisons:
    user, winner, loser = votes.T
    return Comparisons.from_pairs(
        winner, loser, user=user, items=range(n_items), users=range(n_users)
    )
