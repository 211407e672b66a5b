"""Files of comparisons: CSV, Parquet, JSON lines, spreadsheets and PrefLib."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from penchant.data.comparisons import Comparisons
from penchant.data.conditions import parse_where
from penchant.data.formats.preflib import SUFFIXES as PREFLIB
from penchant.data.formats.preflib import read_preflib
from penchant.data.reading import Wish, check_file, find_segments, read_file, table_suffix
from penchant.data.shards import ShardedComparisons
from penchant.data.sql import Further
from penchant.errors import DataError


def read_comparisons(
    path: str | PathLike[str],
    *,
    winner: str | None = None,
    loser: str | None = None,
    user: str | None = None,
    tie: str | None = None,
    count: str | None = None,
    margin: str | None = None,
    first: str | None = None,
    time: str | None = None,
    covariates: Sequence[str] = (),
    shape: str | None = None,
    skip_bad: bool = False,
    where: str | None = None,
) -> Comparisons:
    """Read comparisons from a CSV, Parquet, JSON-lines, xlsx, ods or PrefLib file.

    The shape of the table is recognised from its columns (winner and loser; two items and an
    outcome; rankings; surveys …), or `shape` names it; `source` of the result tells how it was
    read. The other arguments name columns where spellings are unusual; in a table of two items
    and an outcome `winner` names the column of outcomes. `margin`, `first`, `time` and
    `covariates` are read only when named; a covariate is a column, or a difference such as
    "length_a - length_b". Columns that nothing points to are ignored. Bad rows are an error that
    lists them, or with `skip_bad=True` they are left out with a DataWarning that lists them.
    `where` reads some rows only: "language = en and turns > 2", tests of columns joined by `and`
    and `or`; bad rows are then counted among those.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "votes.csv"
    ...     _ = path.write_text("chosen,rejected\\ntea,milk\\ntea,milk\\n")
    ...     data = read_comparisons(path)
    >>> data.items, data.count.tolist()
    (('milk', 'tea'), [2])
    """
    path = check_file(Path(path))
    if table_suffix(path, PREFLIB) in PREFLIB:
        about_columns = {
            **{"winner": winner, "loser": loser, "user": user, "tie": tie, "count": count},
            **{"margin": margin, "first": first, "time": time, "covariates": covariates},
            **{"shape": shape, "skip_bad": skip_bad, "where": where},
        }
        if given := [name for name, value in about_columns.items() if value]:
            raise DataError(
                f"{path.name} has no columns, so {given[0]}= says nothing: leave it out"
            )
        return read_preflib(path)
    columns = {"winner": winner, "loser": loser, "user": user, "tie": tie, "count": count}
    wish = Wish(columns, shape, Further(time, margin, first, tuple(covariates)), skip_bad)
    wish = replace(wish, where=parse_where(where))
    return Comparisons.from_found(read_file(path, wish), wish)


def read_segments(
    path: str | PathLike[str], by: str, *, where: str | None = None, **options: Any
) -> dict[str, Comparisons]:
    """Read a file as `read_comparisons` does, apart by the values of a column, largest part first.

    All parts have the same items and users. options : what `read_comparisons` takes besides.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "votes.csv"
    ...     _ = path.write_text("winner,loser,lang\\na,b,en\\nb,a,de\\na,c,en\\n")
    ...     parts = read_segments(path, "lang")
    >>> {name: (part.items, part.n_comparisons) for name, part in parts.items()}
    {'en': (('a', 'b', 'c'), 2), 'de': (('a', 'b', 'c'), 1)}
    """
    path = check_file(Path(path))
    if table_suffix(path, PREFLIB) in PREFLIB:
        raise DataError(f"{path.name} has no columns, so it has no segments by {by!r}")
    shape, skip_bad = options.pop("shape", None), options.pop("skip_bad", False)
    further = Further(
        **{name: options.pop(name, None) for name in ("time", "margin", "first")},
        covariates=tuple(options.pop("covariates", ())),
    )
    wish = Wish(options, shape, further, skip_bad, parse_where(where))
    parts = {
        value: Comparisons.from_found(read_file(path, one), one)
        for value, one in find_segments(path, wish, by).items()
    }
    whole = reduce(add, parts.values())
    nothing = whole.without(whole)  # of all items and users
    return {value: replace(nothing + part, source=part.source) for value, part in parts.items()}


def as_comparisons(data: Any) -> Comparisons:
    """Return comparisons as they are, those in a file or those in a data frame.

    >>> as_comparisons(Comparisons.from_pairs(["a"], ["b"])).items
    ('a', 'b')
    """
    if isinstance(data, Comparisons):
        return data
    if isinstance(data, ShardedComparisons):
        raise DataError(
            "these comparisons were scanned and stay on disk, and here they are needed in memory: "
            "read the files with read_comparisons, or take `.everybody` of the scan, all people's "
            "together"
        )
    if isinstance(data, str | PathLike):
        return read_comparisons(fspath(data))
    return Comparisons.from_frame(data)
