"""Where the public data sets are kept, and what to say when they are not there."""

import os
from pathlib import Path

from penchant.errors import DataError

VARIABLE = "PENCHANT_DATA"


def data_folder() -> Path:
    """Return the folder of public data sets.

    The environment variable PENCHANT_DATA names it; without it `../shared/data` is tried,
    seen from the current folder and from the source checkout.

    >>> data_folder().name  # doctest: +SKIP
    """
    named = os.environ.get(VARIABLE)
    if named:
        if not Path(named).is_dir():
            raise DataError(
                f"{VARIABLE} is {named!r}, which is not a folder: it must be the folder that holds "
                "the public data sets"
            )
        return Path(named)
    checkout = Path(__file__).resolve().parents[3]
    for start in (Path.cwd(), checkout):
        folder = start.parent / "shared" / "data"
        if folder.is_dir():
            return folder
    raise DataError(
        f"there is no folder of public data sets: make one and name it in the environment variable "
        f"{VARIABLE}"
    )


def find(file: str, what: str, where: str) -> Path:
    """Return the path of a data set's file, or say which data set to get and where to put it."""
    try:
        path = data_folder() / file
    except DataError as error:
        raise DataError(f"{error}; then get {what} from {where} and put it at {file}") from None
    if not path.is_file():
        raise DataError(
            f"there is no file {path}: get {what} from {where} and put it there, or point the "
            f"environment variable {VARIABLE} to the folder that holds {file}"
        )
    return path


def expect(found: object, expected: object, path: Path, what: str) -> None:
    """Raise where a file does not hold what the published data set holds."""
    if found != expected:
        raise DataError(
            f"{path} has {what} {found} where the published data set has {expected}: it is "
            "another edition or damaged; get it again"
        )
