"""Comparisons whose truth is known: for tests, benchmarks and the demonstration."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.spatial import KDTree
from scipy.special import ndtr

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.types import BoolArray, FloatArray, IntArray


def simulate_pairs(
    utilities: ArrayLike, n_pairs: int, *, noise: float = 1.0, random_state: RandomState = None
) -> Comparisons:
    """Compare uniformly random pairs; `noise` is the variance on the difference of utilities.

    The first of a pair wins with probability Φ((f_first − f_second) / √noise).

    >>> data = simulate_pairs([0.0, 1.0, 5.0], 100, random_state=0)
    >>> data.n_comparisons, data.items
    (100, (0, 1, 2))
    """
    f = np.asarray(utilities, dtype=np.float64)
    if f.ndim != 1 or len(f) < 2 or not np.isfinite(f).all():
        raise DataError(f"utilities must be at least two finite numbers; got shape {f.shape}")
    if n_pairs < 1:
        raise DataError(f"n_pairs is {n_pairs}: it must be at least 1")
    if not noise > 0:
        raise DataError(f"noise is {noise}: it is a variance and must be positive")
    rng = as_rng(random_state)
    first, second = _random_pairs(len(f), n_pairs, rng)
    won = _first_wins(f[first] - f[second], noise, rng)
    winner, loser = np.where(won, first, second), np.where(won, second, first)
    return Comparisons.from_pairs(winner, loser, items=range(len(f)))


@dataclass(frozen=True, eq=False)
class SimulatedStudy:
    """A made-up study with its truth.

    item_features : (n_items, 4); links : symmetric adjacency between similar items;
    tastes : (n_users,) the community of each user; utilities : (n_tastes, n_items).

    >>> study = simulate_study(n_users=4, n_items=6, n_answers=5)
    >>> study.item_features.shape, study.utilities.shape
    ((6, 4), (3, 6))
    """

    comparisons: Comparisons
    item_features: FloatArray
    links: sparse.csr_matrix
    tastes: IntArray
    utilities: FloatArray
    item_names: tuple[str, ...]
    user_names: tuple[str, ...]


def simulate_study(
    n_users: int = 40,
    n_items: int = 30,
    n_tastes: int = 3,
    n_answers: int = 30,
    random_state: RandomState = 0,
) -> SimulatedStudy:
    """Simulate users of a few tastes who each answer `n_answers` random questions.

    Utilities are a smooth function of item features, different for each taste; a user adds a
    small deviation of their own; links join each item to the three most similar.

    >>> study = simulate_study(n_users=4, n_answers=5)
    >>> study.comparisons
    <Comparisons: 20 between 30 items, 4 users>
    """
    for name, value, least in (
        ("n_users", n_users, n_tastes),
        ("n_items", n_items, 5),
        ("n_tastes", n_tastes, 1),
        ("n_answers", n_answers, 1),
    ):
        if value < least:
            raise DataError(f"{name} is {value}: it must be at least {least}")
    rng = as_rng(random_state)
    features = rng.uniform(-1, 1, size=(n_items, 4))
    utilities = _smooth_utilities(features, n_tastes, rng)
    tastes = rng.permutation(np.arange(n_users) % n_tastes)
    personal = utilities[tastes] + rng.normal(scale=0.2, size=(n_users, n_items))
    user = np.repeat(np.arange(n_users), n_answers)
    first, second = _random_pairs(n_items, len(user), rng)
    won = _first_wins(personal[user, first] - personal[user, second], 1.0, rng)
    item_names = tuple(f"item {i + 1:0{len(str(n_items))}d}" for i in range(n_items))
    user_names = tuple(f"user {u + 1:0{len(str(n_users))}d}" for u in range(n_users))
    comparisons = Comparisons.from_pairs(
        np.take(item_names, np.where(won, first, second)),
        np.take(item_names, np.where(won, second, first)),
        user=np.take(user_names, user),
        items=item_names,
        users=user_names,
    )
    return SimulatedStudy(
        comparisons, features, _links(features), tastes, utilities, item_names, user_names
    )


def _random_pairs(
    n_items: int, n_pairs: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    first = rng.integers(n_items, size=n_pairs)
    return first, (first + rng.integers(1, n_items, size=n_pairs)) % n_items


def _first_wins(difference: FloatArray, noise: float, rng: np.random.Generator) -> BoolArray:
    return rng.random(len(difference)) < ndtr(difference / np.sqrt(noise))


def _smooth_utilities(features: FloatArray, n_tastes: int, rng: np.random.Generator) -> FloatArray:
    """A slope and a favourite spot per taste, scaled to a spread that answers can reveal."""
    slope = rng.normal(size=(n_tastes, features.shape[1]))
    favourite = rng.uniform(-1, 1, size=(n_tastes, 1, features.shape[1]))
    distance = np.square(features - favourite).sum(axis=2)
    raw = slope @ features.T + 2.0 * np.exp(-distance)
    centred: FloatArray = raw - raw.mean(axis=1, keepdims=True)
    centred *= 1.5 / raw.std(axis=1, keepdims=True)
    return centred


def _links(features: FloatArray, n_neighbours: int = 3) -> sparse.csr_matrix:
    n_items = len(features)
    _, nearest = KDTree(features).query(features, k=n_neighbours + 1)
    rows = np.repeat(np.arange(n_items), n_neighbours)
    ones = np.ones(len(rows))
    directed = sparse.csr_matrix((ones, (rows, nearest[:, 1:].ravel())), shape=(n_items, n_items))
    return sparse.csr_matrix(directed.maximum(directed.T))
