"""Distinct rows with counts: how equal comparisons become one."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from penchant.errors import DataError
from penchant.numerics.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Table:
    """Columns of comparisons, one entry per row; the fields are those of `Comparisons`."""

    winner: IntArray
    loser: IntArray
    count: IntArray
    user: IntArray | None
    tie: BoolArray
    margin: FloatArray | None

    def take(self, rows: Any) -> "Table":
        """Return the rows that an index array, mask or slice selects."""
        chosen: dict[str, Any] = {
            name: None if values is None else values[rows] for name, values in vars(self).items()
        }
        return Table(**chosen)

    def join(self, more: "Table") -> "Table":
        """Return these rows and then those of `more`."""
        both: dict[str, Any] = {}
        for name, values in vars(self).items():
            added = vars(more)[name]
            if (values is None) != (added is None):
                raise DataError(
                    f"only one of the two sets of comparisons has a {name} for each row: both or "
                    "neither must; build both alike, or drop users with pooled()"
                )
            both[name] = None if values is None else np.concatenate([values, added])
        return Table(**both)

    def merge(self) -> "Table":
        """Merge equal rows, adding their counts, and sort; a tie's smaller index goes first.

        A sparse matrix does it in linear time: the user (without users, the winner) is its row,
        the rest of a comparison its column, and entries at the same place add up.
        """
        if not len(self.winner):
            return self
        margins, level = None, np.zeros(1, dtype=np.intp)
        if self.margin is not None:
            margins, level = np.unique(self.margin, return_inverse=True)
        place, sizes = self._places(level)
        first = place // math.prod(sizes[1:]) if self.user is None else self.user
        shape = (int(first.max()) + 1, math.prod(sizes))
        cells = sparse.coo_matrix((self.count, (first, place)), shape=shape).tocsr()
        rows = np.repeat(np.arange(shape[0]), np.diff(cells.indptr))
        winner, loser, tie, level = np.unravel_index(cells.indices, sizes)
        return Table(
            winner=winner,
            loser=loser,
            count=cells.data,
            user=None if self.user is None else rows,
            tie=tie.astype(bool),
            margin=None if margins is None else margins[level],
        )

    def _places(self, level: IntArray) -> tuple[IntArray, tuple[int, ...]]:
        """Number the possible (winner, loser, tie, margin) in their order, ties turned."""
        swap = self.tie & (self.winner > self.loser)
        n_items = 1 + int(max(self.winner.max(), self.loser.max()))
        sizes = (n_items, n_items, 2, int(level.max()) + 1)
        if math.prod(sizes) > np.iinfo(np.intp).max:
            raise DataError(
                f"{n_items} items and {sizes[3]} different margins make too many possible rows: "
                "round the margins to fewer values"
            )
        winner = np.where(swap, self.loser, self.winner)
        loser = np.where(swap, self.winner, self.loser)
        return ((winner * n_items + loser) * 2 + self.tie) * sizes[3] + level, sizes
