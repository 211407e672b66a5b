"""Text tables: CSV, with commas, semicolons, tabs or bars."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from penchant.data import BrokenRow
from penchant.errors import DataError
from penchant.io.source import (
    NO_GUESSES,
    Column,
    Duck,
    Source,
    literal,
    refuse_repeated,
    refuse_title,
)

SUFFIXES = (".csv", ".tsv", ".txt")

_SEPARATORS = ",\t;|"
_USUAL_HEADER, _HEADER = 1 << 14, 4 << 20  # characters in which the first line must end
_LONGEST_NAME = 10_000
_QUOTED = re.compile(r'"(?:[^"]++|"")*+"')
_LINE_END = re.compile(r"\r\n?|\n")
_MENDED = 1 << 30  # bytes of a file with mixed line ends that are put right in memory


def open_text(duck: Duck, path: Path) -> tuple[Source, Callable[[], tuple[BrokenRow, ...]]]:
    """Return the table, and a function that tells which rows could not be read, afterwards."""
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
    source = Source(f"read_csv({duck.place(file)}, {options})", columns, path.name)
    return source, lambda: _broken_rows(duck.con, file, path.name, len(header), separator)


def _read_header(file: Path, path: Path) -> tuple[list[str], str]:
    """Return the column names in the first line and the separator between them."""
    try:
        with file.open(encoding="utf-8-sig", newline="", errors="surrogateescape") as opened:
            head = opened.read(_USUAL_HEADER)
            if not _LINE_END.search(_QUOTED.sub("", head)):
                head += opened.read(_HEADER - _USUAL_HEADER)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error}): check the file") from None
    bare = _LINE_END.split(_QUOTED.sub("", head), maxsplit=1)
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
    if not any(b"\r" in chunk for chunk in _chunks(file)):
        return False
    carriage, feed, both, before = 0, 0, 0, b""
    for chunk in _chunks(file):
        carriage, feed = carriage + chunk.count(b"\r"), feed + chunk.count(b"\n")
        both += (before + chunk).count(b"\r\n")
        before = chunk[-1:] if chunk.endswith(b"\r") else b""
    return feed > 0 and not carriage == feed == both


def _chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while chunk := opened.read(1 << 20):
            yield chunk


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
