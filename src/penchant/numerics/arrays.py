"""Files of named arrays, written whole or not at all; an error says what to do."""

import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from penchant.errors import DataError

PARSER_RETRIES = 10
"""CPython's false error is rare: one retry almost always suffices."""

Read = TypeVar("Read")


def retry_parser_error(read: Callable[[], Read]) -> Read:
    """Call `read` again after a SystemError of CPython's parser, and return its result.

    NumPy parses the headers of arrays as Python code. CPython adds up the recursion depth of two
    threads that parse at the same time, and sometimes takes the sum for an error of its own (its
    issue 106905).
    """
    for _ in range(PARSER_RETRIES):
        try:
            return read()
        except SystemError:
            continue
    return read()


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write all arrays to the file, or nothing.

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
    """The arrays of a file; advice: what to do where the file is gone or damaged."""

    def read() -> dict[str, NDArray[Any]]:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}

    try:
        return retry_parser_error(read)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zipfile.error) as error:
        raise DataError(f"{path} is gone or damaged ({error}): {advice}") from None
