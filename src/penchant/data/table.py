"""Distinct rows with counts: how equal comparisons are found and become one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penchant.errors import DataError
from penchant.numerics.threads import for_row_blocks
from penchant.numerics.types import BoolArray, FloatArray, IntArray

_BITS = 62  # of a number
_EXACT = 2.0**53
_FOUND_AGAIN = 2**18  # different values that a search finds faster than a sort with its order
_CROWDED = 32  # steps through one cell of a grid; beyond them a search by halves is faster
_SMALLEST, _LARGEST = 1e-200, 1e200  # width of such a grid: cells of others have no number
_BLOCK = 2**15  # rows
_TABLE = 4  # times as many numbers as rows may be counted in a table; more are sorted


class Digit(NamedTuple):
    """A column as whole numbers from 0 on, in the order of its values.

    values : what the numbers stand for; None: they are the column.
    """

    code: NDArray[np.integer[Any]]
    values: NDArray[Any] | None
    bits: int


@dataclass(frozen=True)
class Numbered:
    """A number for each row, made of its digits, the last one lowest.

    digits : the columns. packed : which digits, from the first, were numbered anew because there
    were too many combinations, and what the new numbers stand for.
    """

    number: IntArray
    bits: int
    digits: tuple[Digit, ...]
    packed: tuple[tuple[int, IntArray], ...] = ()

    def columns(self) -> list[NDArray[Any]]:
        """Return what the numbers say, column by column."""
        kinds = [np.dtype(np.intp) if d.values is None else d.values.dtype for d in self.digits]
        found: list[NDArray[Any]] = [np.empty(len(self.number), dtype=kind) for kind in kinds]
        before = dict(self.packed)

        def read(rows: slice) -> None:
            number = self.number[rows].copy()
            for place in range(len(self.digits) - 1, -1, -1):
                number = before[place][number] if place in before else number
                digit = self.digits[place]
                code = number & ((1 << digit.bits) - 1)
                found[place][rows] = code if digit.values is None else digit.values[code]
                number >>= digit.bits

        for_row_blocks(read, len(self.number), _BLOCK)
        return found


def number_rows(columns: Sequence[NDArray[Any]]) -> Numbered:
    """Return one whole number a row; numbers are in the order of the rows.

    >>> rows = number_rows([np.array([1, 0, 1]), np.array([0.5, 7.0, 0.5])])
    >>> rows.number.tolist(), [column.tolist() for column in rows.columns()]
    ([2, 1, 2], [[1, 0, 1], [0.5, 7.0, 0.5]])
    """
    digits = tuple(map(_digit, columns))
    number, bits, packed = digits[0].code.astype(np.intp), digits[0].bits, []
    for place, digit in enumerate(digits[1:]):
        if bits + digit.bits > _BITS:
            distinct, number = np.unique(number, return_inverse=True)
            bits = len(distinct).bit_length()
            packed.append((place, distinct))
        number <<= digit.bits
        number |= digit.code
        bits += digit.bits
    return Numbered(number, bits, digits, tuple(packed))


def _digit(column: NDArray[Any]) -> Digit:
    if column.dtype == bool:
        return Digit(column.view(np.uint8), np.array([False, True]), 1)
    low, high = column.min().item(), column.max().item()
    narrow, is_integer = high - low <= _TABLE * len(column) + 1000, column.dtype.kind == "i"
    if is_integer and narrow and 0 <= low <= len(column):
        return Digit(column, None, int(high).bit_length())
    if narrow and (is_integer or _is_whole(column)):
        kind = np.intp if is_integer else column.dtype
        values = low + np.arange(int(high - low) + 1, dtype=kind)
        code = np.subtract(column, low, dtype=kind).astype(np.intp, copy=False)
        return Digit(code, values, int(high - low).bit_length())
    values = np.unique(column)
    if len(values) > _FOUND_AGAIN:
        values, code = np.unique(column, return_inverse=True)
    else:
        code = _places(values, column)
    return Digit(code, values, (len(values) - 1).bit_length())


def _is_whole(column: NDArray[Any]) -> bool:
    """Whether a column holds nothing but whole numbers; the first that is none ends the search."""
    blocks = (column[start : start + _BLOCK] for start in range(0, len(column), _BLOCK))
    return all(bool((some == np.rint(some)).all()) for some in blocks)


def _places(values: NDArray[Any], column: NDArray[Any]) -> NDArray[np.int32]:
    """Where each entry of the column stands among the sorted values, all of which it is one of.

    Cells of equal width say where to begin, a few steps upwards do the rest. The cell never falls
    as its argument rises, so an entry and the value that it equals are in the same one.
    """
    code = np.empty(len(column), dtype=np.int32)
    low, n_cells = values[0], 2 * len(values)
    spread = values[-1].item() - low.item()
    scale = (n_cells - 1) / spread if _SMALLEST < spread < _LARGEST else 0.0
    occupied = ((values - low) * scale).astype(np.intp)
    begin = np.searchsorted(occupied, np.arange(n_cells)).astype(np.int32)
    n_steps = int(np.bincount(occupied).max()) - 1

    def find(rows: slice) -> None:
        sought = column[rows]
        if n_steps > _CROWDED:
            code[rows] = np.searchsorted(values, sought)
            return
        place = begin[((sought - low) * scale).astype(np.intp)]
        for _ in range(n_steps):
            place += values[place] < sought
        code[rows] = place

    for_row_blocks(find, len(column), _BLOCK)
    return code


def add_up(rows: Numbered, count: IntArray) -> tuple[Numbered, IntArray]:
    """Return the distinct rows in their order, and the sum of the counts of each."""
    number, once = rows.number, bool((count == 1).all())
    exact = once or count.sum(dtype=np.float64) < _EXACT  # a table adds up in floating point
    if exact and 1 << rows.bits <= _TABLE * len(number) + 1000:
        total = np.bincount(number, None if once else count)
        number = np.flatnonzero(total)
        added = total[number].astype(np.intp, copy=False)
    else:
        order = None if once else np.argsort(number)
        number = np.sort(number) if order is None else number[order]
        starts = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
        added = (
            np.diff(starts, append=len(number))
            if order is None
            else np.add.reduceat(count[order], starts)
        )
        number = number[starts]
    return replace(rows, number=number), added


_IN_WORDS = {"user": "a user", "margin": "a margin", "time": "a time", "covariates": "covariates"}

_OPTIONAL: dict[str, Any] = {"first": np.intp, "both_bad": np.bool_}


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
        """Return these rows and then those of `more`.

        Where only one of them has `first` or `both_bad`, the rows of the other get 0 or False.
        """
        both: dict[str, Any] = {}
        for name, values in vars(self).items():
            added = vars(more)[name]
            if name in _OPTIONAL and (values is None) != (added is None):
                values = np.zeros(len(self.winner), _OPTIONAL[name]) if values is None else values
                added = np.zeros(len(more.winner), _OPTIONAL[name]) if added is None else added
            if (values is None) != (added is None):
                raise DataError(
                    f"only one of the two sets of comparisons has {_IN_WORDS[name]} for its rows: "
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
        """Return the same rows with the smaller index first in every tie; `first` and covariates of
        a tie that is turned change their sign."""
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
