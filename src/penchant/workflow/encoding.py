"""Feature tables as matrices: numbers, categories (one column a level) and missing values."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from penchant.errors import DataError
from penchant.numerics.types import FloatArray

MISSING_WORDS = {"", "na", "<na>", "n/a", "nan", "nat", "null", "none", "?"}
ID_WORDS = {"id", "item", "itemid", "name", "user", "userid"}
MAX_LEVELS = 50
"""A text column with more levels, or with more than half as many as rows, is left out."""

Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class EncodedColumn:
    """How one column of the table becomes columns of the matrix.

    Numbers stay; a missing one becomes the median, and a further column marks it. A category
    becomes one 0/1 column a level; of two levels, one column is enough.
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
            for row in _words(cells):
                raise DataError(
                    f"column {self.name!r} row {row + 1} is {cells[row]!r}: the model was fitted "
                    "with numbers there; correct it or leave it empty"
                )
            values = [[self.median if number is None else number] for number in numbers]
        else:
            values = [[float(str(cell) == level) for level in self.levels] for cell in cells]
        matrix = np.array(values, dtype=np.float64).reshape(len(cells), -1)
        return np.column_stack([matrix, missing]) if self.marks_missing else matrix


@dataclass(frozen=True)
class Encoding:
    """How a table becomes a matrix: learned from one table, applied to others."""

    id_column: str | None
    columns: tuple[EncodedColumn, ...]

    def encode(self, table: Any) -> FloatArray:
        """(n, d) features of the rows of a table with the same columns."""
        given = as_columns(table)
        needed = [self.id_column, *(column.name for column in self.columns)]
        absent = [name for name in needed if name is not None and name not in given]
        if absent:
            raise DataError(
                f"{source_of(table)} lacks the columns {', '.join(map(repr, absent))}, which the "
                f"model was fitted with: it has {', '.join(map(repr, given))}"
            )
        return np.column_stack([column.encode(given[column.name]) for column in self.columns])

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Encoding":
        """From the JSON form of `dataclasses.asdict(encoding)`."""
        columns = (EncodedColumn(**{**c, "levels": tuple(c["levels"])}) for c in fields["columns"])
        return cls(fields["id_column"], tuple(columns))


@dataclass(frozen=True, eq=False)
class Encoded:
    """A feature table as numbers, to be given to models as X.

    values: (n, d). names: the item or user of each row. encoding: how the table became numbers.
    left_out: a sentence about each column that was left out.
    """

    values: FloatArray
    names: tuple[Any, ...]
    encoding: Encoding
    left_out: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the matrix columns."""
        return tuple(label for column in self.encoding.columns for label in column.labels)

    def like(self, table: Any) -> "Encoded":
        """Another table with the same columns, in the same encoding."""
        names = _names(as_columns(table), self.encoding.id_column)
        return Encoded(self.encoding.encode(table), names, self.encoding)

    def take(self, rows: Any) -> "Encoded":
        """Some rows, in another order."""
        return replace(self, values=self.values[rows], names=tuple(self.names[row] for row in rows))

    def joined(self, new: "Encoded") -> "Encoded":
        """These rows and then new ones; a new row replaces an old one of the same name."""
        kept = [k for k, name in enumerate(self.names) if name not in set(new.names)]
        names = (*(self.names[k] for k in kept), *new.names)
        return Encoded(np.concatenate([self.values[kept], new.values]), names, self.encoding)

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)


def encode(
    table: Any, names: Sequence[Any] | None = None, *, others: bool = False, what: str = "item"
) -> Encoded:
    """Encode a table of features of items or people as numbers, for X or `user_features`.

    table : a data frame, or columns by name. Numbers stay; a text column becomes one 0/1 column
        a level; a missing number becomes the median, and a further column marks it.
    names : whose rows to take, and in which order: `data.items` or `data.users`. The column that
        holds them is found by its cells. None: the rows of the table in their order.
    others : whether the table's other rows follow after those of `names`.
    what : "item" or "user", for messages.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"])
    >>> table = {"name": ["water", "milk", "tea"], "kcal": [0, 64, None], "hot": [0, 0, 1]}
    >>> X = pc.encode(table, data.items)
    >>> X.columns
    ('kcal', 'kcal is missing', 'hot')
    >>> X.names, X.values[2].tolist()
    (('milk', 'tea', 'water'), [0.0, 0.0, 0.0])
    """
    columns, source = as_columns(table), source_of(table)
    if names is None:
        id_column = next((name for name in columns if _is_called_id(name)), None)
    else:
        id_column = _find_id_column(columns, names, what, source)
    encoding, left_out = _learn(columns, id_column)
    listed = _names(columns, id_column)
    if not encoding.columns or not listed:
        beside = f" beside {id_column!r}" if id_column else ""
        raise DataError(f"{source} has no usable feature column{beside}: leave it out")
    encoded = Encoded(encoding.encode(table), listed, encoding, left_out)
    if names is None:
        return encoded
    row_of = {name: row for row, name in enumerate(as_names(listed, names))}
    absent = [name for name in names if name not in row_of]
    if absent:
        raise DataError(
            f"{len(absent)} of {len(names)} {what}s have no row in {source} (for example "
            f"{absent[0]!r}; its {what}s are in column {id_column!r}): add a row for each, its "
            "cells empty where nothing is known, or leave the table out"
        )
    everyone = tuple(dict.fromkeys((*names, *row_of)) if others else names)
    return replace(encoded.take([row_of[name] for name in everyone]), names=everyone)


def as_names(cells: Sequence[Any], like: Sequence[Any]) -> list[Any]:
    """Cells as names: the known name of the same text; else a whole number where all known names
    are whole numbers, else the text.

    >>> as_names(["2", "07", "4"], [1, 2, 3])
    [2, '07', 4]
    """
    known = {str(name): name for name in like}
    whole = all(isinstance(name, int) for name in like)

    def new_name(text: str) -> Any:
        return int(text) if whole and text.isdecimal() and str(int(text)) == text else text

    return [known.get(text, new_name(text)) for text in map(str, cells)]


def as_columns(table: Any) -> Columns:
    """Column name → cells, of a mapping, a data frame, or a table with a mapping `columns`."""
    named = table if isinstance(table, Mapping) else table.columns
    cells = named if isinstance(named, Mapping) else table
    return {str(name): list(cells[name]) for name in named}


def source_of(table: Any) -> str:
    """The name of a table's file for messages."""
    return str(getattr(table, "source", "the table"))


def is_missing(cell: Any) -> bool:
    """Whether a cell is empty or holds a word for a missing value."""
    return str(cell).strip().lower() in MISSING_WORDS


def _names(columns: Columns, id_column: str | None) -> tuple[Any, ...]:
    if id_column is None:
        return tuple(range(len(next(iter(columns.values()), ()))))
    return tuple(columns[id_column])


def _learn(columns: Columns, id_column: str | None) -> tuple[Encoding, tuple[str, ...]]:
    """The encoding of a table, and a sentence about each column that is left out."""
    kept, left_out = [], []
    for name, cells in columns.items():
        if name == id_column:
            continue
        present = [cell for cell in cells if not is_missing(cell)]
        numbers = [number for cell in present if (number := _number(cell)) is not None]
        levels = tuple(sorted({str(cell) for cell in present}))
        missing = len(present) < len(cells)
        if len(levels) < 2 and len(present) in (0, len(cells)):
            left_out.append(f"column {name!r} is the same in every row: left out")
        elif len(numbers) == len(present):
            kept.append(EncodedColumn(name, float(median(numbers)), (), missing))
        elif len(levels) > min(MAX_LEVELS, max(2, len(cells) // 2)):
            wrong = _words(cells)
            told = (
                f"has {len(levels)} different texts in {len(cells)} rows, too many for categories"
            )
            advice = ""
            if len(numbers) > len(wrong):
                told = f"row {wrong[0] + 1} is {cells[wrong[0]]!r} among numbers"
                advice = "; correct or empty such cells to use the column"
            left_out.append(f"column {name!r} {told}: left out{advice}")
        else:
            marked = levels[1:] if len(levels) == 2 and not missing else levels
            kept.append(EncodedColumn(name, None, marked, missing))
    return Encoding(id_column, tuple(kept)), tuple(left_out)


def _words(cells: Sequence[Any]) -> list[int]:
    """The rows that hold something that is no number."""
    return [row for row, c in enumerate(cells) if _number(c) is None and not is_missing(c)]


def _find_id_column(columns: Columns, names: Sequence[Any], what: str, source: str) -> str:
    """The column that holds most of the names."""
    wanted = {str(name) for name in names}
    found = {column: len(wanted & set(map(str, cells))) for column, cells in columns.items()}
    best = max(found, key=lambda column: (found[column], _is_called_id(column)), default="")
    if not found.get(best):
        raise DataError(
            f"no column of {source} holds the {what}s that were compared, such as {names[0]!r}: it "
            f"has {', '.join(map(repr, columns))}; one column must name the {what} of each row as "
            "the comparisons do"
        )
    (name, times), *_ = Counter(map(str, columns[best])).most_common(1)
    if times > 1:
        raise DataError(
            f"{source} has {times} rows for {what} {name!r} (column {best!r}): every {what} must "
            "have one row"
        )
    return best


def _is_called_id(column: str) -> bool:
    return re.sub(r"[\W_]+", "", column).casefold() in ID_WORDS


def _number(cell: Any) -> float | None:
    """The finite number in a cell; a truth value counts as 0 or 1."""
    if is_missing(cell):
        return None
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
