"""Writing files so that a reader finds the old content or the new, never a part."""

import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from penchant.data import Names
from penchant.io.source import identifier, literal, open_duck

if sys.platform != "win32":
    import fcntl


@contextmanager
def whole_file(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of `path` when all of it is on disk.

    Two writers at once each publish a whole file, the last one stays; after an error or an
    interrupt the old file is as it was, and nothing is left beside it.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "table.csv"
    >>> with whole_file(target) as file:
    ...     _ = file.write(b"a,b")
    >>> target.read_text()
    'a,b'
    """
    target = Path(path)
    if target.is_symlink():
        target = target.resolve()
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    # like any new file: what the umask leaves of 0666
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # the name must survive a power cut, where folders can be synced
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def take_lock(descriptor: int) -> None:
    """Take the file for this process until it is closed; BlockingIOError where another has it.
    File systems without locks have none."""
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        pass


def write_parquet(
    path: str | PathLike[str], columns: Mapping[str, NDArray[Any]], names: Mapping[str, Names]
) -> None:
    """Write a table of equally long columns; those of `names` are codes, and written as names.

    >>> from tempfile import mkdtemp
    >>> import duckdb
    >>> path = Path(mkdtemp()) / "table.parquet"
    >>> write_parquet(path, {"item": np.array([1, 0]), "mean": np.ones(2)}, {"item": ("a", "b")})
    >>> duckdb.sql(f"FROM '{path}'").fetchall()
    [('b', 1.0), ('a', 1.0)]
    """
    with open_duck(str(path)) as duck:
        table = {"row number": np.arange(len(next(iter(columns.values())))), **columns}
        duck.con.register("codes", table)
        cells, joins = [], []
        for number, column in enumerate(columns):
            cell = f"codes.{identifier(column)}"
            if column in names:
                code, is_text = f"names_{number}", any(isinstance(n, str) for n in names[column])
                known = np.array(names[column], dtype=object if is_text else None)
                duck.con.register(code, {"code": np.arange(len(known)), "name": known})
                joins.append(f"JOIN {code} ON {code}.code = {cell}")
                cell = f"{code}.name"
            cells.append(f"{cell} AS {identifier(column)}")
        query = f'SELECT {", ".join(cells)} FROM codes {" ".join(joins)} ORDER BY "row number"'
        part = duck.folder / "table.parquet"
        duck.con.execute(f"COPY ({query}) TO {literal(str(part))} (FORMAT parquet)")
        with whole_file(Path(path)) as file:
            file.write(part.read_bytes())
