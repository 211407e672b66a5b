"""Tables from files: CSV (also Excel's), Parquet, JSON lines, gzip, and standard input."""

import csv
import gzip
import io
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import penchant as pc

_SEPARATORS = ",\t;|"
_TEXT = (".csv", ".tsv", ".txt")
_TYPED = {".parquet": "read_parquet", ".pq": "read_parquet", ".jsonl": "read_json_auto"}
_TYPED |= {".ndjson": "read_json_auto", ".json": "read_json_auto"}
_MAGIC = {b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz", b"{": ".jsonl", b"# FILE NAME": ".toi"}


@dataclass(frozen=True)
class FileTable:
    """Columns by name; a cell is text, a number, a truth value, or None."""

    source: str
    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))


@contextmanager
def local_file(path: str) -> Iterator[Path]:
    """The path itself, or for `-` a temporary file with what standard input holds.

    Standard input has no name to tell its format; its first bytes do.
    """
    if path != "-":
        yield Path(path)
        return
    content = sys.stdin.buffer.read()
    if not content.strip():
        raise pc.DataError("standard input is empty: pipe a table with a header line into it")
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")
    suffix = next((s for magic, s in _MAGIC.items() if start.startswith(magic)), ".csv")
    with tempfile.TemporaryDirectory(prefix="penchant-") as folder:
        file = Path(folder) / f"standard input{suffix}"
        file.write_bytes(content)
        yield file


def read_table(path: str) -> FileTable:
    """Read all columns of a table of features, links or pairs."""
    with local_file(path) as file:
        if not file.is_file():
            raise pc.DataError(f"there is no file {file} (looked in {Path.cwd()}): check the path")
        suffix = Path(file.name.removesuffix(".gz")).suffix.lower()
        if suffix in _TYPED:
            columns = _read_typed(file, _TYPED[suffix])
        elif suffix in _TEXT:
            columns = _read_text(file)
        else:
            known = " ".join((*_TEXT, *_TYPED))
            raise pc.DataError(f"{file.name} is no table that can be read: it must end in {known}")
        table = FileTable(file.name, columns)
        if not len(table):
            raise pc.DataError(f"{file.name} has no rows below its header: nothing can be read")
        return table


def _read_typed(file: Path, reader: str) -> dict[str, list[Any]]:
    import duckdb

    try:
        with duckdb.connect() as con:
            found = con.execute(f"SELECT * FROM {reader}(?)", [str(file)])
            names = [column[0] for column in found.description]
            rows = found.fetchall()
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise pc.DataError(f"{file.name} cannot be read ({reason}): check the format") from None
    return {name: [row[k] for row in rows] for k, name in enumerate(names)}


def _read_text(file: Path) -> dict[str, list[Any]]:
    raw = file.read_bytes()
    try:
        text = (gzip.decompress(raw) if file.suffix == ".gz" else raw).decode("utf-8-sig")
    except (UnicodeDecodeError, OSError, EOFError) as error:
        raise pc.DataError(
            f"{file.name} is not text in UTF-8 ({error}): save it as UTF-8"
        ) from None
    lines = text.splitlines()
    separator = max(_SEPARATORS, key=lines[0].count) if lines else ","
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if any(row)]
    header = [name.strip() for name in rows[0]] if rows else []
    if len(set(header)) < len(header):
        raise pc.DataError(f"{file.name} names a column twice: the names in its first line differ")
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != len(header):
            raise pc.DataError(
                f"{file.name} row {number} has {len(row)} cells and the header {len(header)}: "
                "every row needs one for each column; put quotes around text with separators"
            )
    columns = {name: [row[k].strip() for row in rows[1:]] for k, name in enumerate(header)}
    return _with_points(columns) if separator == ";" else columns


def _with_points(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Excel writes semicolons where the decimal mark is a comma: 1,5 is a number there."""
    return {name: [_with_point(cell) for cell in cells] for name, cells in columns.items()}


def _with_point(cell: str) -> str:
    whole, comma, decimals = cell.partition(",")
    is_number = comma and whole.removeprefix("-").isdigit() and decimals.isdigit()
    return f"{whole}.{decimals}" if is_number else cell
