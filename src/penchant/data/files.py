"""Writing files so that a reader finds the old content or the new, never a part."""

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO

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
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """The new name itself must survive a power cut; where folders cannot be synced, so be it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
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
