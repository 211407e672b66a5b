"""Files of comparisons: CSV, Parquet, JSON lines and PrefLib."""

import csv
import glob
import gzip
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import IO, Any

from penchant.data.build import build
from penchant.data.coding import BrokenRow
from penchant.data.comparisons import Comparisons
from penchant.data.formats.preflib import SUFFIXES as PREFLIB
from penchant.data.formats.preflib import read_preflib
from penchant.data.sql import Source, connection, fetch_rows, literal
from penchant.errors import DataError

_TEXT = (".csv", ".tsv", ".txt")
_JSON = (".jsonl", ".ndjson", ".json")
_PARQUET = (".parquet", ".pq")
_SEPARATORS = ",\t;|"


def read_comparisons(
    path: str | PathLike[str],
    *,
    winner: str | None = None,
    loser: str | None = None,
    user: str | None = None,
    tie: str | None = None,
    count: str | None = None,
    skip_bad: bool = False,
) -> Comparisons:
    """Read comparisons from a CSV, Parquet, JSON-lines or PrefLib file.

    The keyword arguments name the columns; without them common spellings are recognised
    (winner/loser, chosen/rejected, preferred/other, …; user, rater, judge, …). Columns that
    nothing points to are ignored. Bad rows are an error that lists them, or with
    `skip_bad=True` they are left out with a DataWarning that lists them.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "votes.csv"
    ...     _ = path.write_text("chosen,rejected\\ntea,milk\\ntea,milk\\n")
    ...     data = read_comparisons(path)
    >>> data.items, data.count.tolist()
    (('milk', 'tea'), [2])
    """
    path = _check_file(Path(path))
    suffix = _suffix(path)
    if suffix in PREFLIB:
        return read_preflib(path)
    asked = {"winner": winner, "loser": loser, "user": user, "tie": tie, "count": count}
    with connection(str(path)) as con:
        rows = fetch_rows(con, _source(path, suffix), asked, guess=True)
        if suffix in _TEXT:
            rows = replace(rows, broken=_broken_rows(con, path))
    return Comparisons.from_table(*build(rows, skip_bad=skip_bad))


def _check_file(path: Path) -> Path:
    if path.is_dir():
        raise DataError(f"{path} is a folder: give the path of one file in it")
    if not path.exists():
        raise DataError(f"there is no file {path} (looked in {Path.cwd()}): check the path")
    if not path.stat().st_size:
        raise DataError(f"{path} is empty: it must hold at least one comparison")
    return path


def _suffix(path: Path) -> str:
    zipped = path.suffix.lower() == ".gz"
    suffix = Path(path.stem).suffix.lower() if zipped else path.suffix.lower()
    if suffix in (*_TEXT, *_JSON) or (suffix in (*_PARQUET, *PREFLIB) and not zipped):
        return suffix
    raise DataError(
        f"{path.name} does not say its format: it must end in one of "
        f"{' '.join((*_TEXT, *_JSON, *_PARQUET, *PREFLIB))} (.gz may follow text and JSON); "
        "rename or convert it"
    )


def _source(path: Path, suffix: str) -> Source:
    place = literal(glob.escape(str(path)))
    if suffix in _PARQUET:
        return Source(f"read_parquet({place})", "typed", 0, path.name)
    if suffix in _JSON:
        options = "maximum_depth = 1, sample_size = -1"
        return Source(f"read_json({place}, {options})", "json", 1, path.name)
    header, separator = _header(path)
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in header)
    options = (
        f"columns = {{{columns}}}, delim = {literal(separator)}, header = true, "
        "auto_detect = false, quote = '\"', escape = '\"', store_rejects = true"
    )
    return Source(f"read_csv({place}, {options})", "text", 1, path.name)


def _header(path: Path) -> tuple[list[str], str]:
    """Return the column names in the first line and the separator between them."""
    try:
        with _open(path) as file:
            line = file.readline().strip("\r\n")
    except (UnicodeDecodeError, OSError, EOFError) as error:
        raise DataError(
            f"{path} is not text in UTF-8 ({error}): save it as UTF-8, with .gz only if zipped"
        ) from None
    if not line.strip():
        raise DataError(f"{path.name} begins with an empty line: the first must name the columns")
    separator = max(_SEPARATORS, key=line.count)
    names = [name.strip() for name in next(csv.reader([line], delimiter=separator), [])]
    for name in names:
        if names.count(name) > 1:
            raise DataError(
                f"{path} has {names.count(name)} columns called {name!r}: the first line must "
                "name each column once"
            )
    return names, separator


def _open(path: Path) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")


_BROKEN = {
    "MISSING COLUMNS": "has fewer cells than the first line names columns; add the separators",
    "TOO MANY COLUMNS": (
        "has more cells than the first line names columns; put quotes around text that holds a "
        "separator"
    ),
}


def _broken_rows(con: Any, path: Path) -> tuple[BrokenRow, ...]:
    """Rows with a wrong number of cells; what hides other rows is an error at once."""
    found = con.execute(
        "SELECT line - 1, list(error_type::VARCHAR) FROM reject_errors GROUP BY line ORDER BY line"
    ).fetchall()
    for row, kinds in found:
        if "INVALID ENCODING" in kinds:
            raise DataError(
                f"{path.name}: row {row} is not text in UTF-8: save the file as UTF-8 (in Excel as "
                "'CSV UTF-8')"
            )
        if not _BROKEN.keys() & set(kinds) or "UNQUOTED VALUE" in kinds:
            raise DataError(
                f"{path.name}: row {row} has a quotation mark that does not end where a cell ends, "
                "so the rows behind it cannot be told apart: close it, or double it inside a text"
            )
    return tuple(
        BrokenRow(row, f"row {row} {next(_BROKEN[kind] for kind in kinds if kind in _BROKEN)}")
        for row, kinds in found
    )
