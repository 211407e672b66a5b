"""Distinct rows with counts: how equal comparisons become one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penchant.data.numbering import add_up, number_rows
from penchant.errors import DataError
from penchant.numerics.types import BoolArray, FloatArray, IntArray

_PLURAL = {"user": "a user", "margin": "a margin", "time": "a time", "covariates": "covariates"}

_UNTOLD: dict[str, Any] = {"first": np.intp, "both_bad": np.bool_}


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

        All that a row says is written as one whole number, in the order of rows: equal rows are
        equal numbers, and the distinct numbers say it all.
        """
        if not len(self.winner):
            return self
        self = self._with_ties_in_order()
        order = dict.fromkeys(("user", "winner", "loser", "tie", *vars(self)))  # the rest as it is
        told = {n: getattr(self, n) for n in order if n not in ("count", "covariates")}
        names = [name for name, values in told.items() if values is not None]
        columns = [told[name] for name in names]
        columns += [] if self.covariates is None else list(self.covariates.T)
        numbered, count = add_up(number_rows(columns), self.count)
        values = numbered.columns()
        merged: dict[str, Any] = dict.fromkeys(told) | dict(zip(names, values, strict=False))
        if self.covariates is not None:
            merged["covariates"] = np.stack(values[len(names) :]).T
        return Table(count=count, **merged)

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

    def _with_ties_in_order(self) -> "Table":
        """Return the same rows, every tie with its smaller index first; what is odd in the pair
        changes its sign."""
        swap = np.flatnonzero(self.tie & (self.winner > self.loser))
        if not len(swap):
            return self
        turned: dict[str, Any] = {
            name: values.copy()
            for name in ("winner", "loser", "first", "covariates")
            if (values := getattr(self, name)) is not None
        }
        turned["winner"][swap], turned["loser"][swap] = self.loser[swap], self.winner[swap]
        for name in turned.keys() & {"first", "covariates"}:
            turned[name][swap] = 0 - turned[name][swap]  # 0 - 0 is 0, and not -0
        return replace(self, **turned)
