"""Distinct rows with counts: how equal comparisons are found and become one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from penchant.data.names import Names
from penchant.errors import DataError
from penchant.numerics.types import BoolArray, FloatArray, IntArray

_KEY_BITS = 62  # bits of a row's key: it stays positive in a 64-bit integer
_WIDEST = 2.0**31  # whole numbers of a wider range are numbered by their distinct values


class ArrayRecord:
    """Base of frozen dataclasses of arrays: these are read-only and compared entry by entry."""

    __hash__ = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                view = values.view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        names = [field.name for field in fields(self) if field.compare]  # type: ignore[arg-type]
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)


class _Digit(NamedTuple):
    """A column as codes from 0 on, in the order of its values.

    decode : the value of each code, or of code 0 where the codes are whole numbers less an offset.
    """

    code: NDArray[np.integer[Any]]
    decode: Any
    bits: int


def _digit(column: NDArray[Any]) -> _Digit:
    if column.dtype == bool:
        return _Digit(column.view(np.uint8), np.array([False, True]), int(column.any()))
    is_integer = column.dtype.kind == "i"
    if is_integer or (column == np.rint(column)).all():
        kind: Any = np.intp if is_integer else np.float64
        low, high = min(column.min().item(), 0), column.max().item()
        if high - low < _WIDEST:
            code = np.subtract(column, low, dtype=kind) if low else column
            code = code if is_integer else code.astype(np.intp)
            return _Digit(code, kind(low), int(high - low).bit_length())
    values, code = np.unique(column, return_inverse=True)
    return _Digit(code, values, (len(values) - 1).bit_length())


@dataclass(frozen=True)
class _RowKeys:
    """One integer a row, made of the codes of its columns, the first column highest: keys are
    ordered as the rows are.

    packed : distinct keys of the columns before a place, where they were numbered anew because
    the next column would not have fitted into the bits.
    """

    key: IntArray
    digits: tuple[_Digit, ...]
    packed: dict[int, IntArray]

    @classmethod
    def of(cls, columns: Sequence[NDArray[Any]]) -> "_RowKeys":
        digits = tuple(map(_digit, columns))
        key, bits, packed = digits[0].code.astype(np.intp), digits[0].bits, {}
        for place, digit in enumerate(digits[1:], start=1):
            if not digit.bits:
                continue
            if bits + digit.bits > _KEY_BITS:
                packed[place], key = np.unique(key, return_inverse=True)
                bits = len(packed[place]).bit_length()
            key <<= digit.bits
            key |= digit.code
            bits += digit.bits
        return cls(key, digits, packed)

    def columns(self, key: IntArray) -> list[NDArray[Any]]:
        """Return the columns of the rows that have these keys."""
        found: list[NDArray[Any]] = []
        shift = 0
        for place in range(len(self.digits) - 1, -1, -1):
            _, decode, bits = self.digits[place]
            code = key >> shift
            code &= (1 << bits) - 1
            if isinstance(decode, np.ndarray):
                found.append(decode[code])
            else:
                found.append(code + decode if decode or decode.dtype.kind == "f" else code)
            shift += bits
            if place in self.packed:
                key, shift = self.packed[place][key >> shift], 0
        return found[::-1]

    def add_up(self, count: IntArray) -> tuple[IntArray, IntArray]:
        """Return the distinct keys in their order, and the sum of the counts of each."""
        order = None if (count == 1).all() else np.argsort(self.key)
        key = np.sort(self.key) if order is None else self.key[order]
        starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        if order is None:
            return key[starts], np.diff(starts, append=len(key))
        return key[starts], np.add.reduceat(count[order], starts)


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
        """Merge equal rows, adding their counts, and sort; a tie's smaller index goes first."""
        if not len(self.winner):
            return self
        self = self._with_ties_in_order()
        names, columns = self._columns()
        keys = _RowKeys.of(columns)
        distinct, count = keys.add_up(self.count)
        values = keys.columns(distinct)
        merged: dict[str, Any] = dict.fromkeys(vars(self)) | dict(zip(names, values, strict=False))
        if self.covariates is not None:
            merged["covariates"] = np.stack(values[len(names) :]).T
        return Table(**merged | {"count": count})

    def locate(self, others: "Table") -> IntArray:
        """Return for each row of `others` the row here that says the same, or −1.

        Both are merged, so no row occurs twice in either.
        """
        found = np.full(len(others.winner), -1, dtype=np.intp)
        if len(self.winner) and len(found):
            key = _RowKeys.of(self.join(others)._columns()[1]).key
            mine, theirs = np.split(key, [len(self.winner)])
            _, here, there = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
            found[there] = here
        return found

    def without(self, others: "Table", items: Names, users: Names) -> "Table":
        """Return the rows with `others` taken back; the names are for messages."""
        others = others.merge()

        def in_words(row: int) -> str:
            who = "" if others.user is None else f"{users[others.user[row]]!r} said: "
            verb = "tied with" if others.tie[row] else "beat"
            return f"{who}{items[others.winner[row]]!r} {verb} {items[others.loser[row]]!r}"

        alike = "by the same user and with the same tie, margin and covariates"
        count = count_left(self.count, self.locate(others), others.count, in_words, alike)
        return replace(self, count=count).take(count > 0)

    def times_compared(self, n_items: int) -> IntArray:
        """(n_items,) how often each item was compared."""
        ends = np.concatenate([self.winner, self.loser])
        return np.bincount(ends, np.tile(self.count, 2), n_items).astype(np.intp)

    def laplacian(self, n_items: int) -> sparse.csr_matrix:
        """Return the (n_items, n_items) Laplacian of the comparison graph, weighted by counts."""
        weight, shape = self.count.astype(np.float64), (n_items, n_items)
        met = sparse.coo_matrix((weight, (self.winner, self.loser)), shape=shape)
        return sparse.csr_matrix(csgraph.laplacian(met + met.T))

    def _columns(self) -> tuple[list[str], list[NDArray[Any]]]:
        """Everything but the count in the order of sorting, one column after the other; covariates
        come last and are not among the names."""
        order = dict.fromkeys(("user", "winner", "loser", "tie", *vars(self)))
        known = {name: getattr(self, name) for name in order if name not in ("count", "covariates")}
        known = {name: values for name, values in known.items() if values is not None}
        covariates = [] if self.covariates is None else list(self.covariates.T)
        return list(known), [*known.values(), *covariates]

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


def count_left(
    count: IntArray, at: IntArray, times: IntArray, in_words: Callable[[int], str], alike: str
) -> IntArray:
    """Return the counts after the answers at `at` are taken back, `times` times each.

    in_words : describes an answer that did not occur so often. alike : what has to be equal.
    """
    there = np.where(at < 0, 0, count[at] if len(count) else 0)
    for row in np.flatnonzero(times > there)[:1]:
        raise DataError(
            f"{in_words(int(row))} is to be taken back {times[row]} times, but occurred "
            f"{there[row]} times: take back only what was said, {alike}"
        )
    left = count.copy()
    left[at] -= times
    return left


def components(winner: IntArray, loser: IntArray, n: int) -> tuple[int, IntArray]:
    """Return the number of connected groups and the group of each of the n items."""
    if n * n < len(winner):  # then some pairs occur many times, and once is enough
        met = np.zeros(n * n, dtype=bool)
        met[winner * n + loser] = True
        winner, loser = np.divmod(np.flatnonzero(met), n)
    edges = sparse.coo_matrix((np.ones(len(winner)), (winner, loser)), shape=(n, n))
    n_groups, labels = csgraph.connected_components(edges, directed=False)
    return int(n_groups), labels.astype(np.intp)
