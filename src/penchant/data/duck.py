"""The one DuckDB that every reader uses: closed to the network, and to clever guesses."""

import gzip
import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

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


def identifier(name: str) -> str:
    """Return `name` as an SQL column name."""
    return '"' + name.replace('"', '""') + '"'
