"""Files of named arrays: all of a file is there, or an error says what to do."""

import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from penchant.errors import DataError

TRIES = 10

Read = TypeVar("Read")


def without_miscounts(read: Callable[[], Read]) -> Read:
    """What `read` returns, called again where CPython miscounts.

    NumPy parses the headers of arrays as Python does its own code, and CPython counts the depth of
    what two threads parse at a time as one: now and then it takes that for an error of its own
    (its issue 106905).
    """
    for _ in range(TRIES):
        try:
            return read()
        except SystemError:
            continue
    return read()


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """All of them under the file's name, or nothing.

    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "sums.npz"
    >>> write_arrays(path, {"total": 3.0, "each": [1.0, 2.0]})
    >>> read_arrays(path, "add up again")["each"]
    array([1., 2.])
    """
    scratch = path.with_suffix(f".{os.getpid()}.part")
    try:
        with scratch.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        os.replace(scratch, path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise DataError(
            f"{path.parent} cannot be written to ({error.strerror}): free some space there, or "
            "give another folder as scratch= or resume="
        ) from error


def read_arrays(path: Path, advice: str) -> dict[str, NDArray[Any]]:
    """What was written; advice: what to do where the file is gone or damaged."""

    def read() -> dict[str, NDArray[Any]]:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}

    try:
        return without_miscounts(read)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zipfile.error) as error:
        raise DataError(f"{path} is gone or damaged ({error}): {advice}") from None
