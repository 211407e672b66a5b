"""A table in DuckDB, whatever file it came from, and how DuckDB reads text files."""

import csv
import gzip
import io
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any, Literal

from penchant.data import BrokenRow
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
INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
WIDE_INTEGERS = {"UBIGINT", "HUGEINT"}


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
        return self.type in INTEGERS or self.type in WIDE_INTEGERS

    @property
    def text(self) -> str:
        """SQL for the cell as plain text."""
        if self.cells == "json":
            return f"({self.sql} ->> '$')"
        return self.sql if self.cells == "text" else f"{self.sql}::VARCHAR"


@dataclass(frozen=True)
class Source:
    """A table in DuckDB.

    sql : the expression after FROM. name : what messages call the table. first_row : the number
    of its first row. unusable : columns whose values can be neither names nor numbers.
    broken : returns the rows that could not be parsed; known after the table was read.
    """

    sql: str
    columns: tuple[Column, ...]
    name: str
    first_row: int = 1
    unusable: tuple[str, ...] = ()
    broken: Callable[[], tuple[BrokenRow, ...]] = lambda: ()

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


TEXT = (".csv", ".tsv", ".txt")

_SEPARATORS = ",\t;|"
_USUAL_HEADER, _HEADER = 1 << 14, 4 << 20  # characters in which the first line must end
_LONGEST_NAME = 10_000
_QUOTED_CELL = re.compile(r'"(?:[^"]++|"")*+"')
_LINE_END = re.compile(r"\r\n?|\n")
_MENDED = 1 << 30  # bytes of a file with mixed line ends that are put right in memory


def open_text(duck: Duck, path: Path) -> Source:
    """Return the table in a text file: CSV with commas, semicolons, tabs or bars."""
    file = duck.unzipped(path) if path.suffix.lower() == ".gz" else path
    header, separator = _read_header(file, path)
    if _mixes_line_ends(file):
        file = _mended(duck, file, path, separator)
    types = ", ".join(f"'c{k}': 'VARCHAR'" for k in range(len(header)))
    options = (
        f"columns = {{{types}}}, delim = {literal(separator)}, header = true, auto_detect = false, "
        f"quote = '\"', escape = '\"', store_rejects = true, {NO_GUESSES}"
    )
    columns = tuple(Column(name, f"c{k}", "text") for k, name in enumerate(header))
    return Source(
        f"read_csv({duck.place(file)}, {options})",
        columns,
        path.name,
        broken=lambda: _broken_rows(duck.con, file, path.name, len(header), separator),
    )


def _read_header(file: Path, path: Path) -> tuple[list[str], str]:
    """Return the column names in the first line and the separator between them."""
    try:
        with file.open(encoding="utf-8-sig", newline="", errors="surrogateescape") as opened:
            head = opened.read(_USUAL_HEADER)
            if not _LINE_END.search(_QUOTED_CELL.sub("", head)):
                head += opened.read(_HEADER - _USUAL_HEADER)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error}): check the file") from None
    bare = _LINE_END.split(_QUOTED_CELL.sub("", head), maxsplit=1)
    if not _LINE_END.split(head, maxsplit=1)[0].strip():
        raise DataError(f"{path.name} begins with an empty line: the first must name the columns")
    separator = max(_SEPARATORS, key=bare[0].count)
    try:
        names = next(csv.reader(io.StringIO(head, newline=""), delimiter=separator))
    except (csv.Error, StopIteration) as error:
        raise DataError(
            f"the first line of {path.name} cannot be read ({error}): it must name the columns in "
            "a few words each; is a quotation mark not closed?"
        ) from None
    if len(bare) == 1 and len(head) == _HEADER:
        raise DataError(f"the first line of {path.name} does not end: it must name the columns")
    if any("\udc80" <= letter <= "\udcff" for name in names for letter in name):
        raise DataError(f"{path} is not text in UTF-8: save it as UTF-8 (in Excel as 'CSV UTF-8')")
    if max(map(len, names)) > _LONGEST_NAME:
        raise DataError(
            f"the first line of {path.name} cannot be read: a name in it has more than "
            f"{_LONGEST_NAME} characters; is a quotation mark not closed?"
        )
    names = [name.strip() for name in names]
    second = _LINE_END.split(bare[1], maxsplit=1)[0] if len(bare) > 1 else ""
    refuse_title(names, any(mark in second for mark in _SEPARATORS), path.name)
    refuse_repeated(names, str(path))
    return names, separator


def _mixes_line_ends(file: Path) -> bool:
    """Whether some lines end as in Windows and some do not."""
    with file.open("rb") as opened:
        if not any(b"\r" in chunk for chunk in iter(lambda: opened.read(_CHUNK), b"")):
            return False
        opened.seek(0)
        carriage, feed, both, before = 0, 0, 0, b""
        while chunk := opened.read(_CHUNK):
            carriage, feed = carriage + chunk.count(b"\r"), feed + chunk.count(b"\n")
            both += chunk.count(b"\r\n") + (before == b"\r" and chunk.startswith(b"\n"))
            before = chunk[-1:]
    return feed > 0 and not carriage == feed == both


def _mended(duck: Duck, file: Path, path: Path, separator: str) -> Path:
    """Return a scratch copy in which all lines end alike; quoted cells keep theirs."""
    if file.stat().st_size > _MENDED:
        raise DataError(
            f"{path.name} mixes lines that end in CR LF and in LF and is larger than "
            f"{_MENDED >> 30} GB: write all line ends alike"
        )
    sep = re.escape(separator).encode()
    token = re.compile(rb"(?<![^\r\n" + sep + rb'])"(?:[^"]++|"")*+"|\r\n?')
    copy = duck.folder / f"mended{file.suffix}"
    content = file.read_bytes()
    copy.write_bytes(token.sub(lambda m: m[0] if m[0][:1] == b'"' else b"\n", content))
    return copy


_BROKEN = {
    "MISSING COLUMNS": "has fewer cells than the first line names columns; add the separators",
    "TOO MANY COLUMNS": (
        "has more cells than the first line names columns; put quotes around text that holds a "
        "separator"
    ),
}


def _broken_rows(
    con: Any, file: Path, name: str, n_columns: int, separator: str
) -> tuple[BrokenRow, ...]:
    """Rows with a wrong number of cells; what hides other rows is an error at once."""
    found = con.execute(
        "SELECT line, list(error_type::VARCHAR) FROM reject_errors GROUP BY line ORDER BY line"
    ).fetchall()
    for line, kinds in found:
        if {"INVALID ENCODING", "INVALID UNICODE"} & set(kinds):  # as newer and older DuckDBs say
            raise DataError(
                f"{name}: row {_row_at(file, line)} is not text in UTF-8: save the file as UTF-8 "
                "(in Excel as 'CSV UTF-8')"
            )
        if "LINE SIZE OVER MAXIMUM" in kinds:
            raise DataError(
                f"{name}: row {_row_at(file, line)} is longer than 2,000,000 bytes: shorten it, or "
                "drop columns of long texts"
            )
        if not _BROKEN.keys() & set(kinds) or "UNQUOTED VALUE" in kinds:
            raise DataError(
                f"{name}: row {_row_at(file, line)} has a quotation mark that does not end where a "
                "cell ends, so the rows behind it cannot be told apart: close it, or double it "
                "inside a text"
            )
    rows = _miscounted(file, n_columns, separator) if found else []
    if len(rows) != len(found):
        rows = [_row_at(file, line) for line, _ in found]
    return tuple(
        BrokenRow(row, f"row {row} {next(_BROKEN[kind] for kind in kinds if kind in _BROKEN)}")
        for row, (_, kinds) in zip(rows, found, strict=True)
    )


def _miscounted(file: Path, n_columns: int, separator: str) -> list[int]:
    """Which rows have not one cell for each column: blank lines are none, and a row may span
    several lines."""
    rows, number = [], -1
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            for cells in csv.reader(opened, delimiter=separator):
                number += bool(cells) or n_columns == 1
                if cells and len(cells) != n_columns:
                    rows.append(number)
    except csv.Error:
        return []
    return rows


def _row_at(file: Path, line: int) -> int:
    """The number of the row at a line that is counted with blank ones and the header."""
    row = -1
    with file.open("rb") as opened:
        for _, content in zip(range(line), opened, strict=False):
            row += bool(content.strip())
    return row
