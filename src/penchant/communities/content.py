"""Draws that follow from what was answered: neither names nor the order of anything decide them.

An answer gets a key by the keys of the users who gave it, a user by those of their answers, in
turn. Keys of the same content are the same wherever it stands, and look like random numbers.
Their sums wrap around, so that they do not depend on the order of addition.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from penchant.data import Comparisons
from penchant.numerics.types import IntArray

Keys = NDArray[np.uint64]

ROUNDS = 2
"""Of keys of answers by those of users and the reverse: after two, users differ who answered
differently, or along with others, but for symmetries of small data."""
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)


class Content(NamedTuple):
    """Keys of users (U,), and of distinct answers (m,)."""

    users: Keys
    answers: Keys

    @classmethod
    def of(cls, times: sparse.csr_array) -> Self:
        """Of users × answers, (U, m) in unsigned whole numbers: how often each was given."""
        users = np.ones(times.shape[0], dtype=np.uint64)
        for _ in range(ROUNDS):
            answers = mixed(times.T @ users)
            users = mixed(times @ answers)
        return cls(users, answers)


def mixed(keys: Keys) -> Keys:
    """Keys whose bits depend on all bits of the given ones (SplitMix64)."""
    keys = keys + _STEP
    keys = (keys ^ (keys >> np.uint64(30))) * _FACTORS[0]
    keys = (keys ^ (keys >> np.uint64(27))) * _FACTORS[1]
    return keys ^ (keys >> np.uint64(31))


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
        entries = (2 * data.count + 1).astype(np.uint64), (user, answer)
        content = Content.of(sparse.csr_array(entries, shape=(data.n_users, len(first))))
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
