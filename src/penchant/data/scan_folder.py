"""A scan that is kept: whoever scans the same files into the same folder finds it done."""

import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from shutil import rmtree
from typing import Any, BinaryIO, NamedTuple

from penchant.data.comparisons import Comparisons
from penchant.data.files import take_lock, whole_file
from penchant.data.names import Names
from penchant.data.remote import RemoteFile
from penchant.data.table import Table
from penchant.errors import DataError
from penchant.numerics.arrays import read_arrays, write_arrays
from penchant.numerics.types import IntArray

FORMAT = 1
MANIFEST, EVERYBODY, LOCK = "scan.json", "everybody.npz", "penchant-scan.lock"
UNFINISHED = ("file-*", "bucket-*.npz", EVERYBODY)


class Scanned(NamedTuple):
    """What a scan found beside its buckets; see `ShardedComparisons`."""

    items: Names
    sizes: IntArray
    everybody: Comparisons
    source: str


def fingerprint(files: Sequence[Path | RemoteFile]) -> list[list[Any]]:
    """What tells whether files are as they were: names, sizes, times of the last change."""
    return [_stamp(file) if isinstance(file, Path) else file.stamp for file in files]


def _stamp(path: Path) -> list[Any]:
    stat = path.stat()
    return [str(path.resolve()), stat.st_size, stat.st_mtime_ns]


class ScanFolder:
    """The folder, taken for this process alone. asked: what the buckets depend on."""

    def __init__(self, folder: str | PathLike[str], asked: dict[str, Any]) -> None:
        self.path, self._asked = Path(folder), {"format": FORMAT, **asked}
        try:
            self.path.mkdir(exist_ok=True)
            if not (self.path / LOCK).exists() and any(self.path.iterdir()):
                raise DataError(
                    f"resume={folder}: the folder holds other things than scanned comparisons; "
                    "name a new one"
                )
            self._lock: BinaryIO = (self.path / LOCK).open("ab")
        except OSError as error:
            raise DataError(
                f"resume={folder}: the folder cannot be used ({error.strerror}); name one inside a "
                "folder that exists and may be written to"
            ) from None
        try:
            take_lock(self._lock.fileno())
        except BlockingIOError:
            self._lock.close()
            raise DataError(
                f"resume={folder} is in use by another process: wait for it, or name another folder"
            ) from None

    def release(self) -> None:
        """Let others use it."""
        self._lock.close()

    def found(self) -> Scanned | None:
        """What was scanned here before, or None: what an interrupted scan left is removed."""
        manifest = self.path / MANIFEST
        if not manifest.exists():
            for pattern in UNFINISHED:
                for path in self.path.glob(pattern):
                    rmtree(path) if path.is_dir() else path.unlink()
            return None
        try:
            told = json.loads(manifest.read_text(encoding="utf-8"))
            items, source, asked = tuple(told["items"]), str(told["source"]), told["asked"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{manifest} is damaged ({error}): remove the folder") from None
        if asked != json.loads(json.dumps(self._asked)):
            raise DataError(
                f"{self.path} holds other comparisons: the files, or what is read of them, changed "
                "since they were scanned; remove the folder, or name another"
            )
        known = read_arrays(self.path / EVERYBODY, "remove the folder")
        table = Table(known["winner"], known["loser"], known["count"], None, known["tie"], None)
        return Scanned(items, known["sizes"], Comparisons.from_table(table, items, ()), source)

    def keep(self, scanned: Scanned) -> None:
        """Write down that all buckets are there."""
        every = scanned.everybody
        columns = {name: getattr(every, name) for name in ("winner", "loser", "count", "tie")}
        write_arrays(self.path / EVERYBODY, {"sizes": scanned.sizes, **columns})
        told = {"asked": self._asked, "items": scanned.items, "source": scanned.source}
        with whole_file(self.path / MANIFEST) as file:
            file.write(json.dumps(told).encode())
