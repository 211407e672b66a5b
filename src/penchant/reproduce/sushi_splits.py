"""Sushi for experiments: training and test pairs, features, scores, tables."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import OneHotEncoder

from penchant.data import Comparisons
from penchant.datasets.people import Sushi
from penchant.metrics import calibration, log_loss, pair_error
from penchant.numerics.types import FloatArray, IntArray
from penchant.reproduce.page import spread

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
