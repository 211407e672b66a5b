"""Generators from seeds, and shuffles that do not depend on names."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penchant.errors import DataError
from penchant.numerics.types import BoolArray, FloatArray, IntArray

KEY_ROUNDS = 3
"""Of colour refinement: keys see three steps far in the graph of items and users."""

KeyArray = NDArray[np.uint64]
RandomState = None | int | np.integer | np.random.Generator


def as_rng(random_state: RandomState) -> np.random.Generator:
    """Return a NumPy generator for None, an integer seed, or a generator (passed through).

    >>> bool(as_rng(3).integers(100) == as_rng(3).integers(100))
    True
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None or isinstance(random_state, int | np.integer):
        return np.random.default_rng(random_state)
    raise DataError(
        f"random_state is {random_state!r}: it must be None, an integer or a numpy Generator"
    )


class ContentKeys(NamedTuple):
    """Pseudo-random 64-bit keys of items, users and rows, see `content_keys`."""

    item: KeyArray
    user: KeyArray
    row: KeyArray


def content_keys(
    winner: IntArray,
    loser: IntArray,
    user: IntArray | None = None,
    count: IntArray | FloatArray | None = None,
    tie: BoolArray | None = None,
    values: Iterable[ArrayLike | None] = (),
) -> ContentKeys:
    """Keys that follow from who compared what with which outcome, not from names or order.

    Sorting by a key is a shuffle that stays the same when items, users or rows are renamed or
    permuted, when equal rows are merged into a count, and when winners and losers are exchanged.
    So samples and folds drawn by keys make no result depend on names. Equal keys belong to items
    or users that nothing tells apart.

    values: further columns (m,) of numbers that tell rows apart, or None.

    The method is colour refinement (Weisfeiler and Lehman): the key of an item or a user is a sum
    of hashes of its rows, the hash of a row depends on the keys of its members, a few times over.

    >>> a = content_keys(np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([0, 1, 1]))
    >>> b = content_keys(np.array([2, 2, 0]), np.array([0, 1, 1]), np.array([1, 0, 0]))
    >>> bool((a.item == b.item[[2, 0, 1]]).all()), bool((a.user == b.user[[1, 0]]).all())
    (True, True)
    """
    copies = np.ones(len(winner)) if count is None else count
    told = np.zeros(len(winner), dtype=np.uint64)
    for column in values:
        if column is not None:
            told = mixed(told + np.ascontiguousarray(column, dtype=np.float64).view(np.uint64))
    rows = _Rows(
        np.zeros(len(winner), dtype=np.intp) if user is None else user,
        np.rint(np.ldexp(copies, 20)).astype(np.uint64),  # counts may be fractions
        np.zeros(len(winner), dtype=bool) if tie is None else tie,
        told,
    )
    there, back = _refined(winner, loser, rows), _refined(loser, winner, rows)
    return ContentKeys(*(mixed(a) + mixed(b) for a, b in zip(there, back, strict=True)))


class _Rows(NamedTuple):
    """What stands in the rows beside their sides, (m,) each; told: a hash of further columns."""

    user: IntArray
    copies: KeyArray
    tie: BoolArray
    told: KeyArray


def _refined(winner: IntArray, loser: IntArray, rows: _Rows) -> ContentKeys:
    """Colour refinement of items and users by the rows that they are in."""
    # a tie has no winner: both sides have one role
    first, second = (np.where(rows.tie, 3, role).astype(np.uint64) for role in (1, 2))
    item = np.zeros(1 + max(winner.max(initial=-1), loser.max(initial=-1)), dtype=np.uint64)
    user = np.zeros(1 + rows.user.max(initial=-1), dtype=np.uint64)
    for _ in range(KEY_ROUNDS):
        sides = mixed(item[winner] ^ mixed(first)) + mixed(item[loser] ^ mixed(second))
        row = mixed(sides + mixed(user[rows.user]) + rows.told)
        item, user = np.zeros_like(item), np.zeros_like(user)
        np.add.at(item, winner, rows.copies * mixed(row + first))
        np.add.at(item, loser, rows.copies * mixed(row + second))
        np.add.at(user, rows.user, rows.copies * row)
    return ContentKeys(item, user, row)


def mixed(key: KeyArray) -> KeyArray:
    """The finalizer of SplitMix64: every bit of a key changes half of the bits of its hash."""
    key = key + np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))
