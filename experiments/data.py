"""Data for experiments: simulated sets in the shape of public ones, and splits of rankings."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.preprocessing import OneHotEncoder

from experiments import FloatArray, IntArray
from experiments.page import spread
from penchant.data import Comparisons
from penchant.datasets import Cars, Cora, GradedParts, Sushi
from penchant.io import GradedDocuments
from penchant.metrics import calibration, log_loss, pair_error

# Data for quick runs: a part of the public sets, or simulated in their shape.


def linked_papers(n_papers: int = 240, n_topics: int = 3, seed: int = 0) -> Cora:
    """Papers of a few topics: words lean towards the topic, citations mostly stay within it.

    >>> linked_papers(60).citations.shape
    (60, 60)
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_topics, size=n_papers)
    leaning = 0.05 + 0.15 * (rng.random((n_topics, 80)) < 0.2)
    words = rng.random((n_papers, 80)) < leaning[labels]
    same = labels[:, None] == labels
    cites = rng.random((n_papers, n_papers)) < np.where(same, 8.0, 1.0) / n_papers
    np.fill_diagonal(cites, False)
    return Cora(
        sparse.csr_matrix(cites.astype(float)),
        sparse.csr_matrix(words.astype(float)),
        labels,
        tuple(f"paper {i}" for i in range(n_papers)),
        tuple(f"topic {k}" for k in range(n_topics)),
    )


def graded_documents(
    n_queries: int = 12, n_documents: int = 60, n_features: int = 12, seed: int = 0
) -> GradedParts:
    """Documents graded 0–2 by a noisy linear score, three quarters of the queries for training.

    >>> graded_documents().whole().n_queries
    12
    """
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal(n_features)
    X = rng.random((n_queries, n_documents, n_features))
    score = X @ weights + 0.5 * rng.standard_normal((n_queries, n_documents))
    y = np.digitize(score, np.quantile(score, [0.6, 0.85])).astype(float)
    qid = np.repeat(np.arange(n_queries), n_documents)
    rows, grades = X.reshape(-1, n_features), y.ravel()
    known = qid < 3 * n_queries // 4
    train, test = (GradedDocuments(rows[part], grades[part], qid[part]) for part in (known, ~known))
    return GradedParts(train, test, None)


def first_queries(documents: GradedDocuments, n_queries: int) -> GradedDocuments:
    """The documents of the first queries of a file.

    >>> first_queries(graded_documents().whole(), 3).n_queries
    3
    """
    queries, start = np.unique(documents.qid, return_index=True)
    rows = np.isin(documents.qid, queries[np.argsort(start)[:n_queries]])
    return GradedDocuments(documents.X[rows], documents.y[rows], documents.qid[rows])


def rankings_like_sushi(n_users: int = 600, n_items: int = 10, seed: int = 0) -> Sushi:
    """Rankings of ten items by people with a common taste, one of their own, and noise.

    >>> rankings_like_sushi(5).rankings.shape
    (5, 10)
    """
    rng = np.random.default_rng(seed)
    common = rng.standard_normal(n_items)
    utilities = common + rng.standard_normal((n_users, n_items))
    seen = rng.permuted(np.tile(np.arange(n_items), (n_users, 1)), axis=1)[:, :10]
    heard = np.take_along_axis(utilities, seen, axis=1) + rng.gumbel(scale=0.5, size=seen.shape)
    rankings = np.take_along_axis(seen, np.argsort(-heard, axis=1), axis=1)
    about_items = ("style", "minor group", "price")
    about_users = ("gender", "age", "childhood in the west", "in the west", "moved")
    return Sushi(
        rankings,
        None,
        tuple(f"item {i}" for i in range(n_items)),
        _codes(rng, n_items, len(about_items)),
        about_items,
        _codes(rng, n_users, len(about_users)),
        about_users,
    )


def choices_like_cars(n_users: int = 60, n_answers: int = 45, seed: int = 0) -> Cars:
    """Choices between ten cars by people of three tastes: each likes other attributes.

    >>> choices_like_cars(5).comparisons.n_users
    5
    """
    rng = np.random.default_rng(seed)
    attributes = ("BodyType", "Transmission", "Engine Capacity", "Fuel Consumed")
    about_users = ("Education", "Age", "Gender", "Region")
    X = 1.0 + _codes(rng, 10, len(attributes))
    X[:, 2] = rng.integers(5, 13, size=10) / 2.0
    tastes = 3.0 * rng.standard_normal((3, len(attributes)))
    utilities = tastes[np.arange(n_users) % 3] @ ((X - X.mean(axis=0)) / X.std(axis=0)).T
    user = np.repeat(np.arange(n_users), n_answers)
    a = rng.integers(10, size=len(user))
    b = (a + 1 + rng.integers(9, size=len(user))) % 10
    a_wins = utilities[user, a] - utilities[user, b] + rng.logistic(size=len(user)) > 0
    choices = Comparisons.from_pairs(
        np.where(a_wins, a, b), np.where(a_wins, b, a), user=user, items=range(10)
    )
    return Cars(
        comparisons=choices,
        controls=choices,
        item_features=X,
        item_feature_names=attributes,
        user_features=_codes(rng, n_users, len(about_users)),
        user_feature_names=about_users,
    )


def _codes(rng: np.random.Generator, n_rows: int, n_columns: int) -> FloatArray:
    """Two-valued features, every column with both values."""
    codes = rng.integers(2, size=(n_rows, n_columns)).astype(float)
    codes[0], codes[1] = 0.0, 1.0
    return codes


# Sushi for experiments: training and test pairs, features, scores, tables.

USER_COLUMNS = ("gender", "age", "childhood in the west", "in the west", "moved")


class Columns(NamedTuple):
    """Comparisons as columns: the user of each, the winner, the loser."""

    user: IntArray
    winner: IntArray
    loser: IntArray

    @property
    def pairs(self) -> IntArray:
        """(k, 2), winner first."""
        return np.column_stack([self.winner, self.loser])

    def comparisons(self, n_items: int, n_users: int) -> Comparisons:
        """The same as data to fit."""
        return Comparisons.from_pairs(
            self.winner, self.loser, user=self.user, items=range(n_items), users=range(n_users)
        )


def split_rankings(
    rankings: IntArray, n_train: int, rng: np.random.Generator
) -> tuple[Columns, Columns]:
    """n_train random pairs of each user's ranking for training, the others for testing."""
    better, worse = np.triu_indices(rankings.shape[1], 1)
    columns = rng.permuted(np.tile(np.arange(len(better)), (len(rankings), 1)), axis=1)

    def part(chosen: IntArray) -> Columns:
        user = np.repeat(np.arange(len(rankings)), chosen.shape[1])
        winner = rankings[user, better[chosen.ravel()]]
        return Columns(user, winner, rankings[user, worse[chosen.ravel()]])

    return part(columns[:, :n_train]), part(columns[:, n_train:])


class Score(NamedTuple):
    """On test pairs: share predicted right, mean log-likelihood, calibration error."""

    accuracy: float
    log_likelihood: float
    calibration_error: float

    @classmethod
    def of(cls, p: FloatArray) -> "Score":
        """From probabilities of what happened."""
        return cls(1.0 - pair_error(p), -log_loss(p), calibration(p).error)


def user_features(sushi: Sushi) -> FloatArray:
    """What is known of people, without the codes of prefectures."""
    chosen = [sushi.user_feature_names.index(name) for name in USER_COLUMNS]
    return sushi.user_features[:, chosen]


def item_features(sushi: Sushi) -> FloatArray:
    """What is known of kinds of sushi, the minor group as one column a group."""
    group = sushi.item_feature_names.index("minor group")
    kinds = OneHotEncoder(sparse_output=False).fit_transform(sushi.item_features[:, [group]])
    return np.column_stack([np.delete(sushi.item_features, group, axis=1), kinds])


def score_rows(scores: Mapping[Any, Sequence[Score]]) -> list[list[str]]:
    """A row for each entry: its name (or names), then means with standard errors."""
    rows = []
    for name, each in scores.items():
        names = [str(part) for part in name] if isinstance(name, tuple) else [str(name)]
        rows.append([*names, *(spread(column, 4) for column in np.array(each).T)])
    return rows
