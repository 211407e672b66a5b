"""Distinct rows with counts: how equal comparisons become one."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from penchant.errors import DataError
from penchant.numerics.types import BoolArray, FloatArray, IntArray

_PLURAL = {"user": "a user", "margin": "a margin", "time": "a time", "covariates": "covariates"}

_UNTOLD: dict[str, Any] = {"first": np.intp, "both_bad": np.bool_}
_FURTHER = ("margin", "first", "time", "both_bad", "covariates")


@dataclass(frozen=True)
class Table:
    """Columns of comparisons, one entry per row; the fields are those of `Comparisons`."""

    winner: IntArray
    loser: IntArray
    count: IntArray
    user: IntArray | None
    tie: BoolArray
    margin: FloatArray | None
    first: IntArray | None = None
    time: FloatArray | None = None
    covariates: FloatArray | None = None
    both_bad: BoolArray | None = None

    def take(self, rows: Any) -> "Table":
        """Return the rows that an index array, mask or slice selects."""
        chosen: dict[str, Any] = {
            name: None if values is None else values[rows] for name, values in vars(self).items()
        }
        return Table(**chosen)

    def join(self, more: "Table") -> "Table":
        """Return these rows and then those of `more`; a side, or that both were bad, which only one
        tells is not known in the other."""
        both: dict[str, Any] = {}
        for name, values in vars(self).items():
            added = vars(more)[name]
            if name in _UNTOLD and (values is None) != (added is None):
                values = np.zeros(len(self.winner), _UNTOLD[name]) if values is None else values
                added = np.zeros(len(more.winner), _UNTOLD[name]) if added is None else added
            if (values is None) != (added is None):
                raise DataError(
                    f"only one of the two sets of comparisons has {_PLURAL[name]} for its rows: "
                    "both or neither must; build both alike, or drop users with pooled()"
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
        self = self._with_ties_in_order()
        level, example = self._levels()
        place, sizes = self._places(level)
        first = place // math.prod(sizes[1:]) if self.user is None else self.user
        shape = (int(first.max()) + 1, math.prod(sizes))
        cells = sparse.coo_matrix((self.count, (first, place)), shape=shape).tocsr()
        rows = np.repeat(np.arange(shape[0]), np.diff(cells.indptr))
        winner, loser, tie, level = np.unravel_index(cells.indices, sizes)
        further: dict[str, Any] = {
            name: None if values is None else values[example[level]]
            for name, values in self._further().items()
        }
        return Table(
            winner=winner,
            loser=loser,
            count=cells.data,
            user=None if self.user is None else rows,
            tie=tie.astype(bool),
            **further,
        )

    def locate(self, others: "Table") -> IntArray:
        """Return for each row of `others` the row here that says the same, or −1.

        Both are merged, so no row occurs twice in either.
        """
        n = len(self.winner)
        both = self.join(others)
        order = np.lexsort(list(both._keys()))
        keys = np.stack([key[order] for key in both._keys()])
        same = np.flatnonzero((keys[:, 1:] == keys[:, :-1]).all(axis=0))
        found = np.full(len(others.winner), -1, dtype=np.intp)
        one, two = order[same], order[same + 1]
        found[np.maximum(one, two) - n] = np.minimum(one, two)
        return found

    def _keys(self) -> Iterator[FloatArray]:
        """Everything but the count, column by column."""
        for name, values in vars(self).items():
            if values is not None and name != "count":
                yield from np.atleast_2d(values.T)

    def _further(self) -> dict[str, Any]:
        """The columns that say more than who preferred what, which are often absent."""
        return {name: getattr(self, name) for name in _FURTHER}

    def _with_ties_in_order(self) -> "Table":
        """Return the same rows, every tie with its smaller index first; what is odd in the pair
        changes its sign."""
        swap = self.tie & (self.winner > self.loser)
        if not swap.any():
            return self
        sign = np.where(swap, -1, 1)
        return replace(
            self,
            winner=np.where(swap, self.loser, self.winner),
            loser=np.where(swap, self.winner, self.loser),
            first=None if self.first is None else self.first * sign,
            covariates=None if self.covariates is None else self.covariates * sign[:, None] + 0.0,
        )

    def _levels(self) -> tuple[IntArray, IntArray]:
        """Number the distinct combinations of the further columns, in their order; return each
        row's number, and for each number a row that has it."""
        level, example = np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp)
        for values in self._further().values():
            for column in () if values is None else np.atleast_2d(values.T):
                _, code = np.unique(column, return_inverse=True)
                joint = level * (int(code.max()) + 1) + code
                _, example, level = np.unique(joint, return_index=True, return_inverse=True)
        return level, example

    def _places(self, level: IntArray) -> tuple[IntArray, tuple[int, ...]]:
        """Number the possible (winner, loser, tie, level) in their order."""
        n_items = 1 + int(max(self.winner.max(), self.loser.max()))
        sizes = (n_items, n_items, 2, int(level.max()) + 1)
        if math.prod(sizes) > np.iinfo(np.intp).max:
            raise DataError(
                f"{n_items} items and {sizes[3]} different margins, times and covariates make too "
                "many possible rows: round the margins, times and covariates to fewer values"
            )
        return ((self.winner * n_items + self.loser) * 2 + self.tie) * sizes[3] + level, sizes
