"""Draws that follow from what was answered: neither names nor the order of anything decide them.

Everybody gets a key by whose answers theirs are, an answer by who gave it, in turn; keys of the
same content are the same wherever it stands, and look like random numbers. Sums of keys wrap
around, so that they do not depend on their order.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from penchant.data import Comparisons
from penchant.numerics.types import IntArray

Keys = NDArray[np.uint64]

ROUNDS = 3
"""Of keys of users by those of answers and the reverse: after three, users who differ in what
they answered, or in who else answered so, differ."""
_FACTORS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)


class Content(NamedTuple):
    """Keys of users (U,), and of distinct answers (m,)."""

    users: Keys
    answers: Keys

    @classmethod
    def of(cls, user: IntArray, answer: IntArray, times: IntArray, shape: tuple[int, int]) -> Self:
        """From entries of users × answers: how many `times` somebody gave an answer."""
        given = times.astype(np.uint64)
        users = np.zeros(shape[0], dtype=np.uint64)
        for _ in range(ROUNDS):
            answers = _gathered(answer, mixed(users[user] + given), shape[1])
            users = _gathered(user, mixed(answers[answer] + given), shape[0])
        return cls(users, answers)


def mixed(keys: Keys) -> Keys:
    """Keys whose bits depend on all bits of the given ones (the end of SplitMix64)."""
    keys = (keys ^ (keys >> np.uint64(30))) * _FACTORS[0]
    keys = (keys ^ (keys >> np.uint64(27))) * _FACTORS[1]
    return keys ^ (keys >> np.uint64(31))


def _gathered(place: IntArray, keys: Keys, n: int) -> Keys:
    total = np.zeros(n, dtype=np.uint64)
    np.add.at(total, place, keys)
    return mixed(total + np.uint64(1))


class PairContent(NamedTuple):
    """Keys of the users, of the items, and of every row of comparisons of pairs."""

    users: Keys
    items: Keys
    rows: Keys

    @classmethod
    def of(cls, data: Comparisons) -> Self:
        """data: single pairs, by users."""
        n, user = data.n_items, np.zeros(len(data), dtype=np.intp)
        user = user if data.user is None else data.user
        key = data.winner * n + data.loser + data.tie * n**2
        _, first, answer = np.unique(key, return_index=True, return_inverse=True)
        content = Content.of(user, answer, data.count, (data.n_users, len(first)))
        won, lost = mixed(content.answers), mixed(~content.answers)
        items = np.zeros(n, dtype=np.uint64)
        np.add.at(items, data.winner[first], won)
        np.add.at(items, data.loser[first], lost)
        rows = content.users[user] + mixed(content.answers[answer])
        covariates = () if data.covariates is None else data.covariates.T
        for column in (data.margin, data.first, *covariates):
            if column is not None:
                numbers = np.ascontiguousarray(column, dtype=np.float64)
                rows = mixed(rows + numbers.view(np.uint64))
        return cls(content.users, items, rows)


def drawn_counts(data: Comparisons, share: float) -> IntArray:
    """(m,) how many of each row's answers are among a share of all, drawn by content."""
    row = np.repeat(np.arange(len(data)), data.count)
    copy = np.arange(len(row)) - np.repeat(np.cumsum(data.count) - data.count, data.count)
    keys = mixed(PairContent.of(data).rows[row] + copy.astype(np.uint64))
    drawn = np.argsort(keys, kind="stable")[: max(1, round(share * len(row)))]
    return np.bincount(row[drawn], minlength=len(data))
