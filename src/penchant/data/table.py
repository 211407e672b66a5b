"""Distinct rows with counts: how equal comparisons become one."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        """Return these rows and then those of `more`, which has the same columns."""
        both: dict[str, Any] = {
            name: None if values is None else np.concatenate([values, vars(more)[name]])
            for name, values in vars(self).items()
        }
        return Table(**both)

    def merge(self) -> "Table":
        """Merge equal rows, adding their counts, and sort; a tie's smaller index goes first."""
        swap = self.tie & (self.winner > self.loser)
        turned = replace(
            self,
            winner=np.where(swap, self.loser, self.winner),
            loser=np.where(swap, self.winner, self.loser),
        )
        key = _row_keys(turned)
        if (key[1:] > key[:-1]).all():
            return turned
        order = np.argsort(key)
        key = key[order]
        starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
        count = np.add.reduceat(self.count[order], starts)
        return replace(turned.take(order[starts]), count=count)


def _row_keys(rows: Table) -> NDArray[np.int64]:
    """Return one integer per row that orders rows by user, winner, loser, tie and margin."""
    columns = [] if rows.user is None else [rows.user]
    columns += [rows.winner, rows.loser, rows.tie.astype(np.intp)]
    if rows.margin is not None:
        columns.append(np.unique(rows.margin, return_inverse=True)[1])
    key, span = np.zeros(len(rows.winner), dtype=np.int64), 1
    for codes in columns:
        size = int(codes.max()) + 1
        if span * size > np.iinfo(np.int64).max:  # ranks order alike and are fewer than the rows
            distinct, key = np.unique(key, return_inverse=True)
            span = len(distinct)
        key *= size
        key += codes
        span *= size
    return key
