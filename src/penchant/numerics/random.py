"""Generators from seeds, and random keys that do not depend on names or on the order of rows."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penchant.errors import DataError
from penchant.numerics.types import BoolArray, FloatArray, IntArray

KEY_ROUNDS = 3
"""Rounds of colour refinement: keys see three steps far in the graph of items and users."""

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
    """Pseudo-random 64-bit keys of items, users and answers, see `content_keys`."""

    item: KeyArray
    user: KeyArray
    answer: KeyArray


class Incidence(NamedTuple):
    """The items that each answer is about: (N,) answer, item, and a hash of the item's role."""

    answer: IntArray
    item: IntArray
    role: KeyArray


def content_keys(
    about: Incidence,
    user: IntArray,
    count: IntArray | FloatArray,
    n_items: int,
    n_users: int,
) -> ContentKeys:
    """Keys computed from who answered what with which outcome, not from names or order.

    Sorting by a key is a shuffle that stays the same when items, users or answers are renamed or
    permuted, and when equal answers are merged into a count. So no result depends on names where
    samples and folds are drawn by keys. Items, users or answers that the data do not distinguish
    have equal keys.

    user, count : (m,) of each answer.

    The method is colour refinement (Weisfeiler and Lehman): the key of an item or a user is a sum
    of hashes of its answers, the hash of an answer depends on the keys of its members, a few
    times over. Sums are modulo 2⁶⁴, so that they do not depend on the order of addition.
    """
    copies = np.rint(np.ldexp(count, 20)).astype(np.uint64)  # counts may be fractions
    items, users = np.zeros(n_items, dtype=np.uint64), np.zeros(n_users, dtype=np.uint64)
    for _ in range(KEY_ROUNDS):
        members = _sums(about.answer, hashed(about.role, items[about.item]), len(copies))
        answers = hashed(users[user], members)
        by_item = copies[about.answer] * hashed(about.role, answers[about.answer])
        items, users = _sums(about.item, by_item, n_items), _sums(user, copies * answers, n_users)
    return ContentKeys(items, users, answers)


def pair_keys(
    winner: IntArray,
    loser: IntArray,
    user: IntArray | None = None,
    count: IntArray | FloatArray | None = None,
    tie: BoolArray | None = None,
    values: Iterable[FloatArray | IntArray | None] = (),
) -> ContentKeys:
    """`content_keys` of comparisons of two; they do not change if all winners and losers swap.

    values : further columns (m,) of numbers that distinguish rows, or None.

    >>> a = pair_keys(np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([0, 1, 1]))
    >>> b = pair_keys(np.array([2, 2, 0]), np.array([0, 1, 1]), np.array([1, 0, 0]))
    >>> bool((a.item == b.item[[2, 0, 1]]).all()), bool((a.user == b.user[[1, 0]]).all())
    (True, True)
    """
    m = len(winner)
    user = np.zeros(m, dtype=np.intp) if user is None else user
    count = np.ones(m) if count is None else count
    is_tie = np.zeros(m, dtype=bool) if tie is None else tie
    item, answer = np.append(winner, loser), np.tile(np.arange(m), 2)
    sizes = 1 + int(item.max(initial=-1)), 1 + int(user.max(initial=-1))
    given = [column for column in values if column is not None]
    # a tie has no winner: both sides have one role
    roles = [hashed(np.where(is_tie, 3, role), *given) for role in (1, 2)]
    as_given, swapped = (
        content_keys(Incidence(answer, item, np.append(*pair)), user, count, *sizes)
        for pair in (roles, roles[::-1])
    )
    return ContentKeys(*(hashed(a) + hashed(b) for a, b in zip(as_given, swapped, strict=True)))


def hashed(*columns: NDArray[Any]) -> KeyArray:
    """One hash of several columns, row by row, by the finalizer of SplitMix64: every bit changes
    half of the bits of the hash."""
    key = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        if column.dtype.kind == "f":
            column = np.ascontiguousarray(column + 0.0, dtype=np.float64).view(np.uint64)  # −0 as 0
        key = (key ^ column.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        key ^= key >> np.uint64(31)
    return key


def _sums(where: IntArray, keys: KeyArray, n: int) -> KeyArray:
    """(n,) sums modulo 2⁶⁴."""
    total = np.zeros(n, dtype=np.uint64)
    np.add.at(total, where, keys)
    return total
