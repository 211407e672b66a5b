"""A table in DuckDB, whatever it came from: its columns, its cells, and which rows to read."""

import gzip
import re
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from glob import escape
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from penchant.data import closest
from penchant.errors import DataError

_MEMORY_LIMIT = "1GB"  # beyond it DuckDB spills to a temporary folder
_SETTINGS = {
    "memory_limit": f"'{_MEMORY_LIMIT}'",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",  # an extension is what could reach the network
    "enable_progress_bar": "false",
}
_CHUNK = 1 << 20
_UNZIPPED_FREELY = 64 << 20  # bytes; more must not be too good to be true
_MOST_UNZIPPED = 200  # times the zipped size: text reaches 5 to 50, a bomb 1000

NO_GUESSES = "hive_partitioning = false"  # else a folder called winner=x replaces a column


@dataclass(frozen=True)
class Duck:
    """An open connection, and a folder for scratch files that lives as long."""

    con: Any
    folder: Path

    def place(self, path: Path) -> str:
        """Return a literal file name for SQL, by which DuckDB finds this very file.

        DuckDB takes names for patterns (* ? [), schemes (s3:) and columns (a=b/); so it gets to
        see a plain link, where links can be made.
        """
        link = self.folder / f"{len(list(self.folder.iterdir()))}{path.suffix.lower()}"
        try:
            link.symlink_to(path.resolve())
        except OSError:
            return literal(escape(str(path.resolve())))
        return literal(str(link))

    def unzipped(self, path: Path) -> Path:
        """Return a scratch copy of what a .gz file holds, checked to its last byte."""
        copy = self.folder / Path(path.stem).name
        try:
            with path.open("rb") as zipped, gzip.open(zipped) as file, copy.open("wb") as target:
                while chunk := file.read(_CHUNK):
                    target.write(chunk)
                    refuse_bomb(path, target.tell(), zipped.tell())
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(
                f"{path} is damaged or not zipped at all ({error}): copy it again; a name ends "
                "with .gz only if zipped"
            ) from None
        return copy


def refuse_bomb(path: Path, unzipped: int, zipped: int) -> None:
    """Raise where so many unzipped bytes from so few zipped ones cannot be text."""
    if unzipped > max(_UNZIPPED_FREELY, _MOST_UNZIPPED * zipped):
        raise DataError(
            f"{path} unzips to more than {_MOST_UNZIPPED} times its size, which text hardly does: "
            f"beyond {_UNZIPPED_FREELY >> 20} MB that is the limit; if it is right, unzip it and "
            "read the plain file"
        )


@contextmanager
def open_duck(what: str) -> Iterator[Duck]:
    """Open an in-memory DuckDB; what goes wrong inside becomes a DataError about `what`."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="penchant-") as folder, duckdb.connect() as con:
        for name, value in _SETTINGS.items():
            con.execute(f"SET {name} = {value}")
        con.execute(f"SET temp_directory = {literal(folder + '/spill')}")
        try:
            yield Duck(con, Path(folder))
        except duckdb.Error as error:
            reason = " ".join(str(error).split("Possible")[0].split("LINE 1:")[0].split())
            reason = re.sub(rf'{re.escape(folder)}[^\s"\']*', Path(what).name, reason)
            raise DataError(f"{what} cannot be read: {reason}") from error


def literal(text: str) -> str:
    """Return `text` as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def as_number(cell: str) -> str:
    """Return SQL for the number in a cell, NULL where it is none."""
    return f"try_cast({cell} AS DOUBLE)"


def identifier(name: str) -> str:
    """Return `name` as an SQL column name."""
    return '"' + name.replace('"', '""') + '"'


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


_QUOTED = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
_TEST = re.compile(
    rf"\s*(?P<column>{_QUOTED}|[^=<>!'\"();]+?)\s*(?P<op>==|!=|<>|<=|>=|=|<|>)\s*"
    rf"(?P<value>{_QUOTED}|[^=<>!'\"();]*?)\s*(?:\b(?P<join>and|or)\b|$)",
    re.IGNORECASE | re.DOTALL,
)
_SQL = {"==": "=", "!=": "<>"}
_FORM = (
    "it must look like language = en and turns > 2 (and, or; = != < <= > >=; quotes are optional)"
)
_MOST_SEGMENTS = 100


@dataclass(frozen=True)
class CellTest:
    """A cell of a column held against a value."""

    column: str
    op: str
    value: str

    def sql(self, source: Source) -> str:
        """Return SQL that is true or false for every row, never NULL: an empty cell is ''."""
        column = source[find_column(self.column, "where", source.names, source.name)]
        cell = f"coalesce(trim({column.text}), '')"
        value, number = literal(self.value), _finite(self.value)
        op = _SQL.get(self.op, self.op)
        if number is None:  # texts, such as dates, are in the order of their letters
            return f"({cell} {op} {value})"
        holds = f"(coalesce({as_number(cell)} {op} {number!r}, false))"
        if op == "=":
            return f"({cell} = {value} OR {holds})"
        if op == "<>":
            same = f"coalesce({as_number(cell)} = {number!r}, false)"
            return f"({cell} <> {value} AND NOT {same})"
        return holds


Where = tuple[tuple[CellTest, ...], ...]
"""Any of these, each of which is all of its tests."""


def parse_where(text: str | None) -> Where:
    """Return the tests in a text; `and` binds closer than `or`.

    >>> [[(t.column, t.op, t.value) for t in each] for each in parse_where("a = x or n >= 2")]
    [[('a', '=', 'x')], [('n', '>=', '2')]]
    """
    if text is None:
        return ()
    found, place, every = [[]], 0, True  # type: ignore[var-annotated]
    while every:
        match = _TEST.match(text, place)
        if match is None:
            raise DataError(f"where is {text!r}, which cannot be read at {text[place:]!r}: {_FORM}")
        found[-1].append(CellTest(_bare(match["column"]), match["op"], _bare(match["value"])))
        found += [[]] if (match["join"] or "").casefold() == "or" else []
        place, every = match.end(), bool(match["join"])
    return tuple(map(tuple, found))


def _bare(word: str) -> str:
    word = word.strip()
    mark = word[:1]
    return word[1:-1].replace(mark * 2, mark) if mark in ("'", '"') else word


def _finite(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if isfinite(number) else None


def filtered(con: Any, source: Source, where: Where) -> Source:
    """Return the rows of a table that pass; what is said about them names the condition."""
    if not where:
        return source
    either = " OR ".join("(" + " AND ".join(t.sql(source) for t in each) + ")" for each in where)
    rows = f"(SELECT * FROM {source.sql} WHERE {either})"
    if not con.execute(f"SELECT count(*) FROM {rows}").fetchone()[0]:
        raise DataError(f"no row of {source.name} is one where {written(where)}: {_FORM}")
    return replace(source, sql=rows, name=f"{source.name} where {written(where)}")


def written(where: Where) -> str:
    """Return the condition as a person would write it."""
    return " or ".join(" and ".join(f"{t.column} {t.op} {t.value}" for t in each) for each in where)


def segments_of(con: Any, source: Source, by: str) -> tuple[str, list[str]]:
    """Return the column's name and the different texts in it, those of most rows first."""
    name = find_column(by, "by", source.names, source.name)
    cell = f"coalesce(trim({source[name].text}), '')"
    found = con.execute(
        f"SELECT {cell} AS cell FROM {source.sql} GROUP BY cell ORDER BY count(*) DESC, cell "
        f"LIMIT {_MOST_SEGMENTS + 1}"
    ).fetchall()
    if len(found) > _MOST_SEGMENTS:
        raise DataError(
            f"column {name!r} of {source.name} has more than {_MOST_SEGMENTS} different values: "
            "segments must be fewer; choose another column, or select some rows with where="
        )
    return name, [cell for (cell,) in found]


def within(where: Where, column: str, value: str) -> Where:
    """Return the rows of `where` in one segment."""
    test: Sequence[CellTest] = (CellTest(column, "=", value),)
    return tuple((*each, *test) for each in where or ((),))
