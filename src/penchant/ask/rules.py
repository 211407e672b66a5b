"""Which pairs may be asked: what a user restricts, and what remains of all pairs."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.numerics.types import BoolArray, FloatArray, IntArray

MOST_ITEMS = 5_000
"""More candidates than this make too many pairs: so many of them, drawn at random, are used."""


def is_whole(value: Any, least: int) -> bool:
    """Whether a value is a whole number of at least so much.

    >>> is_whole(2, 1), is_whole(0, 1), is_whole(True, 1)
    (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def is_number(value: Any) -> bool:
    """Whether a value is a finite number.

    >>> is_number(0.5), is_number("0.5")
    (True, False)
    """
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


@dataclass(frozen=True)
class Rules:
    """What may be asked.

    Parameters
    ----------
    items : sequence of names or indices, or None
        Only pairs of these; None for all items.
    avoid : sequence of pairs
        Not these, unless nothing else is left. `ask` adds what was told last, so that nobody
        is asked the same thing twice in a row.
    exposure : int
        Until every candidate was compared this often, each pair has at least one that was not.
    random_share : float in [0, 1]
        This share of the questions is drawn at random instead: data that nothing has selected,
        fit to check predictions on.

    >>> Rules(items=["tea", "milk", "water"], exposure=2).random_share
    0.0
    """

    items: tuple[Any, ...] | None = None
    avoid: tuple[tuple[Any, Any], ...] = ()
    exposure: int = 0
    random_share: float = 0.0

    def __post_init__(self) -> None:
        for name in ("items", "avoid"):
            value = getattr(self, name)
            if isinstance(value, str | bytes) or not isinstance(value, Iterable | None):
                raise DataError(f"Rules: {name} is {value!r}: it must be a sequence, or left out")
            object.__setattr__(self, name, value if value is None else tuple(value))
        if not is_whole(self.exposure, 0):
            raise DataError(f"Rules: exposure is {self.exposure!r}: it must be a whole number ≥ 0")
        if not is_number(self.random_share) or not 0.0 <= self.random_share <= 1.0:
            raise DataError(
                f"Rules: random_share is {self.random_share!r}: it must lie between 0 and 1"
            )

    def candidates(self, data: Comparisons, rng: np.random.Generator) -> IntArray:
        """Sorted positions of the items that may be asked about."""
        if self.items is None:
            items = np.arange(data.n_items)
        else:
            items = np.unique(data.item_index(self.items))
        if len(items) < 2:
            raise DataError(
                f"there is {len(items)} item to choose from: a question needs two; name more in "
                "Rules(items=…)"
            )
        if len(items) > MOST_ITEMS:
            items = np.sort(rng.choice(items, MOST_ITEMS, replace=False))
        return items


def all_pairs(n: int) -> IntArray:
    """(n(n−1)/2, 2) every pair once, each column contiguous.

    >>> all_pairs(3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    return np.array(np.triu_indices(n, 1)).T


def exposures(data: Comparisons) -> FloatArray:
    """(n_items,) in how many comparisons each item was.

    >>> exposures(Comparisons.from_pairs([0, 0], [1, 2])).tolist()
    [2.0, 1.0, 1.0]
    """
    n = data.n_items
    both = np.bincount(data.winner, data.count, n) + np.bincount(data.loser, data.count, n)
    return np.asarray(both, dtype=np.float64)


class Pool:
    """Candidate pairs during one `ask`: which are still open, and what the floor demands.

    >>> pool = Pool(all_pairs(3), np.zeros(3))
    >>> pool.avoid(np.array([[1, 0]]))
    >>> pool.pairs[pool.open].tolist()
    [[0, 2], [1, 2]]
    """

    def __init__(self, pairs: IntArray, exposed: FloatArray, floor: int = 0) -> None:
        self.pairs, self.exposed, self.floor = pairs, exposed.copy(), floor
        self.open: BoolArray = np.ones(len(pairs), dtype=bool)

    def avoid(self, pairs: IntArray) -> None:
        """Close pairs, in either orientation, unless that would close everything."""
        n = len(self.exposed)
        low, high = np.sort(pairs, axis=1).T
        own_low = np.minimum(self.pairs[:, 0], self.pairs[:, 1])
        own_high = np.maximum(self.pairs[:, 0], self.pairs[:, 1])
        left = self.open & ~np.isin(own_low * n + own_high, low * n + high)
        if left.any():
            self.open = left

    def eligible(self) -> BoolArray:
        """Open pairs, while the floor is not reached only those with an item below it."""
        short = self.exposed < self.floor
        if not short.any():
            return self.open
        urgent = self.open & (short[self.pairs[:, 0]] | short[self.pairs[:, 1]])
        return urgent if urgent.any() else self.open

    def take(self, row: int) -> IntArray:
        """Hand out a pair and close it."""
        self.open[row] = False
        pair: IntArray = self.pairs[row]
        self.exposed[pair] += 1.0
        return pair
