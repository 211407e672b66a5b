"""Draws that follow from what was answered: neither names nor the order of anything decide them.

An answer gets a key by the keys of the users who gave it, a user by those of their answers, in
turn. Keys of the same content are the same wherever it stands, and look like random numbers.
Their sums wrap around, so that they do not depend on the order of addition.
"""

from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from penchant.data import Comparisons
from penchant.numerics.random import ContentKeys, KeyArray, mixed, pair_keys
from penchant.numerics.types import IntArray

ROUNDS = 2
"""Of keys of answers by those of users and the reverse: after two, users differ who answered
differently, or along with others, but for symmetries of small data."""


class Content(NamedTuple):
    """Keys of users (U,), and of distinct answers (m,)."""

    users: KeyArray
    answers: KeyArray

    @classmethod
    def of(cls, times: sparse.csr_array) -> Self:
        """Of users × answers, (U, m) in unsigned whole numbers: how often each was given."""
        users = np.ones(times.shape[0], dtype=np.uint64)
        for _ in range(ROUNDS):
            answers = mixed(times.T @ users)
            users = mixed(times @ answers)
        return cls(users, answers)


def keys_of(data: Comparisons) -> ContentKeys:
    """Keys of users, items and rows of single pairs, and of how they were made."""
    covariates = () if data.covariates is None else data.covariates.T
    values = (data.margin, data.first, *covariates)
    return pair_keys(data.winner, data.loser, data.user, data.count, data.tie, values)


def drawn_counts(data: Comparisons, share: float) -> IntArray:
    """(m,) how many of each row's answers are among a share of all, drawn by content."""
    row = np.repeat(np.arange(len(data)), data.count)
    copy = np.arange(len(row)) - np.repeat(np.cumsum(data.count) - data.count, data.count)
    keys = mixed(keys_of(data).answer[row], copy)
    drawn = np.argsort(keys, kind="stable")[: max(1, round(share * len(row)))]
    return np.bincount(row[drawn], minlength=len(data))
