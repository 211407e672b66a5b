"""A table in DuckDB, whatever file or frame it came from: its columns and how to read a cell."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penchant.data.duck import identifier
from penchant.data.names import closest
from penchant.errors import DataError

Cells = Literal["text", "json", "typed"]

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_WIDE = {"UBIGINT", "HUGEINT"}
_NESTED = re.compile(r"\]$|^(STRUCT|MAP|UNION|LIST)\b")
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_SHOWN, _LONG = 30, 80  # columns that a message lists, and letters of each
_DIGITS_OF_A_DOUBLE = 15
EXACT = {"DOUBLE": 2**53, "FLOAT": 2**24}  # beyond it whole numbers merge in such a column


@dataclass(frozen=True)
class Column:
    """A column under the name that its file gives it.

    `text` cells hold what is written (CSV), `json` cells hold JSON values, `typed` cells have
    the type of their column (Parquet, data frames).
    """

    name: str
    sql: str
    cells: Cells
    type: str = "VARCHAR"

    @property
    def is_integer(self) -> bool:
        """Whether the column holds nothing but whole numbers."""
        return self.type in _INTEGERS or self.type in _WIDE

    @property
    def text(self) -> str:
        """SQL for the cell as plain text."""
        if self.cells == "json":
            return f"({self.sql} ->> '$')"
        return self.sql if self.cells == "text" else f"{self.sql}::VARCHAR"


@dataclass(frozen=True)
class Source:
    """Where rows come from: `sql` stands after FROM, `name` is what messages call it."""

    sql: str
    columns: tuple[Column, ...]
    name: str
    first_row: int = 1
    unusable: tuple[str, ...] = ()  # columns whose values can be neither names nor numbers

    @property
    def names(self) -> list[str]:
        """The columns that have a name."""
        return [column.name for column in self.columns if column.name]

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


def described(con: Any, sql: str, cells: Cells) -> tuple[Column, ...]:
    """Return the columns of a table that names them itself."""
    found = con.execute(f"DESCRIBE FROM {sql}").fetchall()
    return tuple(Column(name, identifier(name), cells, kind) for name, kind, *_ in found)


def refuse_repeated(names: Sequence[str], table: str) -> None:
    """Raise where two columns have one name; columns without a name may be many."""
    for name in names:
        if name and names.count(name) > 1:
            raise DataError(
                f"{table} has {names.count(name)} columns called {name!r}: the first line must "
                "name each column once"
            )


def refuse_title(names: Sequence[str], more_follows: bool, table: str) -> None:
    """Raise where the first line has one cell and the next has more: it names no columns."""
    written = [name for name in names if name]
    if len(written) == 1 and more_follows:
        raise DataError(
            f"the first line of {table} is {written[0]!r} alone, and the next has more cells: the "
            "first must name the columns; delete what stands above the names"
        )


def find_column(name: str, role: str, available: Sequence[str], table: str) -> str:
    """Return the column that is asked for, spelled as the table spells it."""
    if name in available:
        return name
    by_spelling = {plain(column): column for column in reversed(available)}
    if plain(name) in by_spelling:
        return by_spelling[plain(name)]
    raise DataError(
        f"{table} has no column {name!r} for the {role}{closest(name, available)}: its columns "
        f"are {listed(available)}"
    )


def plain(column: str) -> str:
    """A column's name without case, spaces, marks and a final "id"."""
    bare = re.sub(r"[\W_]+", "", column).casefold()
    return bare.removesuffix("id") or bare


def listed(available: Sequence[str]) -> str:
    """The columns' names as a message shows them."""
    shown = [repr(name if len(name) <= _LONG else f"{name[:_LONG]}…") for name in available]
    more = [f"… and {len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
    return ", ".join([*shown[:_SHOWN], *more]) if shown else "none"


def name_cells(con: Any, source: Source, columns: Sequence[Column]) -> tuple[list[str], Cells]:
    """Return SQL for the names in columns that share their names, and how to decode them.

    A cast that would merge or split names is refused.
    """
    if any(column.cells == "json" for column in columns):
        cells = [c.sql if c.cells == "json" else f"to_json({c.sql})" for c in columns]
        return [f"{cell}::VARCHAR" for cell in cells], "json"
    if columns[0].cells == "text":
        return [column.sql for column in columns], "text"
    kinds = [_name_type(con, source, column) for column in columns]
    if {"DOUBLE", "FLOAT"} & set(kinds) and "VARCHAR" in kinds:
        raise DataError(
            f"{source.name}: columns {listed([c.name for c in columns])} hold numbers with a point "
            "and text, so that 7.0 and '7' would be two names: give both as text or as whole "
            "numbers"
        )
    order = ("BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "VARCHAR")  # each can hold those before it
    common = max(kinds, key=order.index)
    common = "DOUBLE" if common == "FLOAT" else common
    for column, kind in zip(columns, kinds, strict=True):
        if common == "DOUBLE":
            _refuse_inexact(con, source, column, EXACT.get(kind, EXACT["DOUBLE"]))
    return [f"{column.sql}::{common}" for column in columns], "typed"


def _name_type(con: Any, source: Source, column: Column) -> str:
    """Return the type that names of a column are read as; what is no number becomes text."""
    if column.type in _INTEGERS:
        return "BIGINT"
    if column.type in _WIDE or column.type in EXACT:
        return "HUGEINT" if column.type in _WIDE else column.type
    if decimal := _DECIMAL.fullmatch(column.type):
        whole = f"SELECT bool_and({column.sql} = round({column.sql}, 0)) FROM {source.sql}"
        if decimal[2] == "0" or con.execute(whole).fetchone()[0] in (True, None):
            return "HUGEINT"
        if int(decimal[1]) > _DIGITS_OF_A_DOUBLE:
            raise DataError(
                f"column {column.name!r} of {source.name} holds decimal numbers of {decimal[1]} "
                "digits, which would be rounded: give names as text or whole numbers"
            )
        return "DOUBLE"
    if _NESTED.search(column.type):
        raise DataError(
            f"column {column.name!r} of {source.name} holds values of type {column.type}, which "
            "cannot be a name: names must be text or numbers"
        )
    return "VARCHAR"


def _refuse_inexact(con: Any, source: Source, column: Column, limit: int) -> None:
    value = f"max(abs({column.sql})) FILTER (NOT isnan({column.sql}::DOUBLE))"
    largest = con.execute(f"SELECT {value} FROM {source.sql}").fetchone()[0]
    if largest is not None and largest >= limit:
        raise DataError(
            f"column {column.name!r} of {source.name} holds {largest}: as floating-point numbers, "
            f"names from {limit} on can merge; give them as whole numbers or text in every column"
        )
