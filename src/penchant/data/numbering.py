"""Rows of several columns as one whole number each: how equal rows are found quickly."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penchant.numerics.threads import in_blocks
from penchant.numerics.types import IntArray

_BITS = 62  # of a number
_EXACT = 2.0**53
_FOUND_AGAIN = 2**18  # different values that a search finds faster than a sort with its order
_BLOCK = 2**15  # rows
_TABLE = 4  # times as many numbers as rows may be counted in a table; more are sorted


class Digit(NamedTuple):
    """A column as whole numbers from 0 on, in the order of its values.

    values : what the numbers stand for; None: they are the column.
    """

    code: IntArray
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
        number, found = self.number.copy(), []
        before = dict(self.packed)
        for place in range(len(self.digits) - 1, -1, -1):
            number = before[place][number] if place in before else number
            digit = self.digits[place]
            code = number & ((1 << digit.bits) - 1)
            found.append(code if digit.values is None else digit.values[code])
            number >>= digit.bits
        return found[::-1]


def number_rows(columns: Sequence[NDArray[Any]]) -> Numbered:
    """Return one whole number a row; numbers are in the order of the rows.

    >>> rows = number_rows([np.array([1, 0, 1]), np.array([0.5, 7.0, 0.5])])
    >>> rows.number.tolist(), [column.tolist() for column in rows.columns()]
    ([2, 1, 2], [[1, 0, 1], [0.5, 7.0, 0.5]])
    """
    digits = tuple(map(_digit, columns))
    number, bits, packed = digits[0].code.copy(), digits[0].bits, []
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
        return Digit(column.astype(np.intp), np.array([False, True]), 1)
    low, high = column.min(), column.max()
    narrow = high - low <= _TABLE * len(column) + 1000
    if column.dtype.kind == "i" and narrow and 0 <= low <= len(column):
        return Digit(column.astype(np.intp, copy=False), None, int(high).bit_length())
    if narrow and (column.dtype.kind == "i" or bool((column == np.rint(column)).all())):
        values = low + np.arange(int(high - low) + 1, dtype=column.dtype)
        return Digit((column - low).astype(np.intp), values, int(high - low).bit_length())
    values = np.unique(column)
    if len(values) > _FOUND_AGAIN:
        values, code = np.unique(column, return_inverse=True)
    else:
        code = np.empty(len(column), dtype=np.intp)

        def find(rows: slice) -> None:
            code[rows] = np.searchsorted(values, column[rows])

        in_blocks(find, len(column), _BLOCK)
    return Digit(code, values, (len(values) - 1).bit_length())


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
