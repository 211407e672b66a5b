"""Feature tables as matrices: numbers, categories (one column a level) and missing values."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

import penchant as pc
from penchant.cli.tables import Table

FloatArray = NDArray[np.float64]

MISSING_WORDS = {"", "na", "n/a", "nan", "null", "none", "?"}
MAX_LEVELS = 50
"""A text column with more levels, or with more than half as many as rows, describes nothing."""


@dataclass(frozen=True)
class Column:
    """How one column of the table becomes columns of the matrix.

    A number stays a number: missing ones become the median, and where there are any a further
    column marks them. A category becomes one 0/1 column a level; one level of two is enough.
    """

    name: str
    median: float | None
    levels: tuple[str, ...]
    marks_missing: bool

    @property
    def labels(self) -> list[str]:
        """Names of the matrix columns."""
        values = [self.name] if self.median is not None else []
        values += [f"{self.name} = {level}" for level in self.levels]
        return values + ([f"{self.name} is missing"] if self.marks_missing else [])

    def encode(self, cells: Sequence[Any]) -> FloatArray:
        """(n, len(labels)); a level that was never seen is zero in every column."""
        missing = np.array([is_missing(cell) for cell in cells])
        if self.median is not None:
            numbers = [_number(cell) for cell in cells]
            for row, (cell, number) in enumerate(zip(cells, numbers, strict=True)):
                if number is None and not missing[row]:
                    raise pc.DataError(
                        f"column {self.name!r} row {row + 1} is {cell!r}: the model was fitted "
                        "with numbers there; correct it or leave it empty"
                    )
            values = [[self.median if number is None else number] for number in numbers]
        else:
            values = [[float(str(cell) == level) for level in self.levels] for cell in cells]
        matrix = np.array(values, dtype=np.float64).reshape(len(cells), -1)
        return np.column_stack([matrix, missing]) if self.marks_missing else matrix


@dataclass(frozen=True)
class NamedMatrix:
    """A matrix that knows what its columns are called, as estimators expect of a data frame."""

    values: FloatArray
    columns: tuple[str, ...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)


@dataclass(frozen=True)
class Encoding:
    """How a table becomes a matrix; learned once, applied to new rows."""

    id_column: str
    columns: tuple[Column, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the matrix columns."""
        return tuple(label for column in self.columns for label in column.labels)

    def encode(self, table: Table) -> FloatArray:
        """(n, d) features of the rows of a table with the same columns."""
        needed = (self.id_column, *(column.name for column in self.columns))
        absent = [name for name in needed if name not in table.columns]
        if absent:
            raise pc.DataError(
                f"{table.source} lacks the columns {', '.join(map(repr, absent))}, which the model "
                f"was fitted with: it has {', '.join(map(repr, table.columns))}"
            )
        return np.column_stack([c.encode(table.columns[c.name]) for c in self.columns])

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Encoding":
        """From what `dataclasses.asdict` made of one, after a journey through JSON."""
        columns = (Column(**{**c, "levels": tuple(c["levels"])}) for c in fields["columns"])
        return cls(fields["id_column"], tuple(columns))


def named(matrix: FloatArray | None, encoding: Encoding | None) -> Any:
    """The matrix with the names of its columns, where they are known."""
    if matrix is None or encoding is None:
        return matrix
    return NamedMatrix(matrix, encoding.labels)


def learn_encoding(table: Table, id_column: str) -> tuple[Encoding, list[str]]:
    """How to encode a table, and a sentence about each column that is left out."""
    columns, left_out = [], []
    for name, cells in table.columns.items():
        if name == id_column:
            continue
        present = [cell for cell in cells if not is_missing(cell)]
        numbers = [number for cell in present if (number := _number(cell)) is not None]
        levels = tuple(sorted({str(cell) for cell in present}))
        if len(levels) < 2 and len(present) in (0, len(cells)):
            left_out.append(f"column {name!r} is the same in every row: left out")
        elif len(numbers) == len(present):
            missing = len(present) < len(cells)
            columns.append(Column(name, float(median(numbers)), (), missing))
        elif len(levels) > min(MAX_LEVELS, max(2, len(cells) // 2)):
            left_out.append(f"column {name!r} {_why_useless(cells, len(numbers), len(levels))}")
        else:
            missing = len(present) < len(cells)
            kept = levels[1:] if len(levels) == 2 and not missing else levels
            columns.append(Column(name, None, kept, missing))
    return Encoding(id_column, tuple(columns)), left_out


def _why_useless(cells: Sequence[Any], n_numbers: int, n_levels: int) -> str:
    """Why a column with many different texts is left out; a slip among numbers is pointed at."""
    wrong = [row for row, c in enumerate(cells) if _number(c) is None and not is_missing(c)]
    if n_numbers > len(wrong):
        return (
            f"row {wrong[0] + 1} is {cells[wrong[0]]!r} among numbers: left out; correct or empty "
            "such cells to use the column"
        )
    return f"has {n_levels} different texts in {len(cells)} rows, too many for categories: left out"


def find_id_column(table: Table, names: Sequence[Any], what: str) -> str:
    """The column that holds the names: the one in which most of them are found."""
    wanted = {str(name) for name in names}
    found = {column: len(wanted & set(map(str, cells))) for column, cells in table.columns.items()}
    best = max(found, key=lambda column: (found[column], _is_called_id(column)))
    if not found[best]:
        raise pc.DataError(
            f"no column of {table.source} holds the {what}s that were compared, such as "
            f"{names[0]!r}: it has {', '.join(map(repr, table.columns))}; one column must name the "
            f"{what} of each row as the comparisons do"
        )
    (name, times), *_ = Counter(map(str, table.columns[best])).most_common(1)
    if times > 1:
        raise pc.DataError(
            f"{table.source} has {times} rows for {what} {name!r} (column {best!r}): every {what} "
            "must have one row"
        )
    return best


def is_missing(cell: Any) -> bool:
    """Whether a cell says nothing."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return True
    return isinstance(cell, str) and cell.strip().lower() in MISSING_WORDS


def _is_called_id(column: str) -> bool:
    return re.sub(r"[\W_]+", "", column).casefold() in {
        "id",
        "item",
        "itemid",
        "name",
        "user",
        "userid",
    }


def _number(cell: Any) -> float | None:
    """The finite number in a cell; a truth value counts as 0 or 1."""
    if is_missing(cell):
        return None
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
