"""Tables that the user points at: a file, or standard input."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import penchant as pc

_MAGIC = {b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz", b"{": ".jsonl", b"# FILE NAME": ".toi"}


@contextmanager
def local_file(path: str) -> Iterator[Path]:
    """The path itself, or for `-` a temporary file with what standard input holds.

    Standard input has no name to tell its format; its first bytes do.
    """
    if path != "-":
        yield Path(path)
        return
    if sys.stdin is None:
        raise pc.DataError("standard input is closed: give the path of a file instead of -")
    content = sys.stdin.buffer.read()
    if not content.strip():
        raise pc.DataError("standard input is empty: pipe a table with a header line into it")
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")
    suffix = next((s for magic, s in _MAGIC.items() if start.startswith(magic)), ".csv")
    with tempfile.TemporaryDirectory(prefix="penchant-") as folder:
        file = Path(folder) / f"standard input{suffix}"
        file.write_bytes(content)
        yield file


def read_table(path: str) -> pc.io.CellTable:
    """All columns of a table of features or pairs."""
    with local_file(path) as file:
        return pc.io.read_table(file)


def read_links(path: str, names: tuple[object, ...]) -> pc.io.Links:
    """Links between items, by the names that are known already."""
    with local_file(path) as file:
        return pc.io.read_relation(file, names)
