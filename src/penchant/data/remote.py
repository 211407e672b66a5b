"""Files on other file systems, by fsspec: fetched one at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj
from typing import Any, NamedTuple

from penchant.errors import DataError


class RemoteFile(NamedTuple):
    """A file that fsspec opens; address: with its protocol, as in s3://votes/may.parquet."""

    address: str
    system: Any
    place: str

    @property
    def name(self) -> str:
        """The last part of its address."""
        return self.address.rstrip("/").rpartition("/")[2]

    @property
    def stamp(self) -> list[Any]:
        """What tells whether it is as it was."""
        info = self.system.info(self.place)
        changed = next((info[key] for key in ("ETag", "mtime", "created") if info.get(key)), "")
        return [self.address, info.get("size"), str(changed)]

    def __str__(self) -> str:
        return self.address


def is_remote(files: Any) -> bool:
    """Whether a pattern names a protocol.

    >>> is_remote("s3://votes/*.parquet"), is_remote("votes/*.parquet")
    (True, False)
    """
    return isinstance(files, str) and "://" in files


def remote_files(pattern: str) -> list[RemoteFile]:
    """The files of a pattern, in the order of their names."""
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError as error:
        raise DataError(
            f"{pattern} needs fsspec, which is not installed: pip install 'penchant[cluster]', or "
            "mount the file system and give a path"
        ) from error
    protocol = pattern.partition("://")[0]
    try:
        system, place = fsspec.core.url_to_fs(pattern)
        places = sorted(system.glob(place)) if any(c in place for c in "*?[") else [place]
        found = [p for p in places if system.isfile(p)]
    except Exception as error:  # each file system has errors of its own
        raise DataError(
            f"{pattern} cannot be opened ({type(error).__name__}: {error}): check the address, the "
            f"access to it, and that what fsspec needs for {protocol}:// is installed"
        ) from error
    return [RemoteFile(f"{protocol}://{p.lstrip('/')}", system, p) for p in found]


@contextmanager
def at_hand(file: Path | RemoteFile, folder: Path) -> Iterator[Path]:
    """The file on this machine, under its own name: a local one is itself, another is a copy that
    stays no longer than it is needed."""
    if isinstance(file, Path):
        yield file
        return
    copy = folder / "fetched" / file.name
    copy.parent.mkdir(exist_ok=True)
    try:
        _fetch(file, copy)
        yield copy
    finally:
        copy.unlink(missing_ok=True)


def _fetch(file: RemoteFile, copy: Path) -> None:
    try:
        with file.system.open(file.place, "rb") as source, copy.open("wb") as target:
            copyfileobj(source, target, 1 << 22)
    except OSError as error:
        raise DataError(f"{file} cannot be fetched ({error}): try again") from error
