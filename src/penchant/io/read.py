"""Files and data frames of comparisons, in any shape that is recognised."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from importlib import import_module
from operator import add
from os import PathLike, fspath
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np

from penchant.data import Comparisons, ShardedComparisons, Table, build, merge_rankings
from penchant.errors import DataError
from penchant.io import formats, frames
from penchant.io.formats import preflib
from penchant.io.formats.ballots import read_ballots
from penchant.io.formats.rows import Reading, fetch_rows, recognise_rows, with_extra_columns
from penchant.io.recognise import (
    SHAPES,
    ReadOptions,
    choose_columns,
    filtered,
    segments_of,
    within,
    written,
)
from penchant.io.source import TEXT, Duck, Source, open_duck, open_text

for _module in iter_modules(formats.__path__):  # each registers its shapes when it is loaded
    import_module(f"{formats.__name__}.{_module.name}")

SUFFIXES = (*TEXT, *frames.JSON, *frames.PARQUET, *frames.SHEETS)
"""How the names of tables end; .gz may follow text and JSON."""


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
    options = dict(locals())
    path = check_file(Path(options.pop("path")))
    if _is_preflib(path):
        if given := [name for name, value in options.items() if value]:
            raise DataError(
                f"{path.name} has no columns, so {given[0]}= says nothing: leave it out"
            )
        return preflib.read_preflib(path)
    return read_file(path, ReadOptions.of(**options))


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
    if _is_preflib(path):
        raise DataError(f"{path.name} has no columns, so it has no segments by {by!r}")
    asked = ReadOptions.of(where=where, **options)
    with open_duck(str(path)) as duck:
        source = filtered(duck.con, open_file(duck, path), asked.where)
        column, values = segments_of(duck.con, source, by)
    parts = {
        value: read_file(path, replace(asked, where=within(asked.where, column, value)))
        for value in values
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
            "these comparisons were scanned and stay on disk, but must be in memory here: read the "
            "files with read_comparisons, or take `.pooled` of the scan, all users together"
        )
    if isinstance(data, str | PathLike):
        return read_comparisons(fspath(data))
    return read_frame(data)


def read_frame(frame: Any, **options: Any) -> Comparisons:
    """Read a data frame, for `Comparisons.from_frame`, which lists the options."""
    with open_duck("the data frame") as duck:
        return _read(duck, frames.open_frame(duck, frame), ReadOptions.of(**options))


def read_file(path: Path, options: ReadOptions) -> Comparisons:
    """Read a table from a file that was checked."""
    with open_duck(str(path)) as duck:
        return _read(duck, filtered(duck.con, open_file(duck, path), options.where), options)


def open_file(duck: Duck, path: Path) -> Source:
    """Return the table in a file."""
    suffix = _table_suffix(path)
    if suffix in TEXT:
        return open_text(duck, path)
    if suffix in frames.JSON:
        return frames.open_json(duck, path)
    if suffix in frames.SHEETS:
        return frames.open_sheet(duck, path)
    return frames.open_parquet(duck, path)


def check_file(path: Path) -> Path:
    """Return the path of a file that is there and holds something."""
    if path.is_dir():
        raise DataError(f"{path} is a folder: give the path of one file in it")
    if not path.exists():
        raise DataError(f"there is no file {path} (looked in {Path.cwd()}): check the path")
    if not path.stat().st_size:
        raise DataError(f"{path} is empty: it must hold at least one comparison")
    return path


def _is_preflib(path: Path) -> bool:
    return _table_suffix(path, preflib.SUFFIXES) in preflib.SUFFIXES


def _table_suffix(path: Path, others: Sequence[str] = ()) -> str:
    """Return how a file's name ends, without .gz, where that tells its format."""
    zipped = path.suffix.lower() == ".gz"
    suffix = Path(path.stem).suffix.lower() if zipped else path.suffix.lower()
    if suffix in (*TEXT, *frames.JSON) or (suffix in (*SUFFIXES, *others) and not zipped):
        return suffix
    raise DataError(
        f"{path.name} does not say its format: it must end in one of "
        f"{' '.join((*SUFFIXES, *others))} (.gz may follow text and JSON); rename or convert it"
    )


def _read(duck: Duck, source: Source, options: ReadOptions) -> Comparisons:
    reading = recognise_rows(duck.con, source, options)
    if reading is None:
        data = _read_ballots(duck, source, options)
    else:
        reading = with_extra_columns(duck.con, source, reading, options)
        rows = replace(fetch_rows(duck.con, source, reading), broken=source.broken())
        table, items, users = build(rows, skip_bad=options.skip_bad)
        data = Comparisons.from_table(table, items, users, covariate_names=reading.covariates)
        data = replace(data, source=_described(reading, table))
    only = f"; only where {written(options.where)}" if options.where else ""
    return replace(data, source=data.source + only) if only else data


def _described(reading: Reading, table: Table) -> str:
    """Return how a table was read: '5,000 battles; 1,234 ties; shown first = model_a'."""
    columns = reading.columns
    what = "comparisons" if reading.shape == "pairs" else "battles"
    ties = table.count[table.tie].sum()
    parts = [f"{table.count.sum():,} {what}", f"{ties:,} ties"]
    if table.both_bad is not None:
        parts[-1] += f", {table.count[table.both_bad].sum():,} of them both bad"
    if reading.shape == "pairs":
        parts.append(f"winner = {columns['winner']}, loser = {columns['loser']}")
    else:
        parts.append(f"shown first = {columns['winner']}")
        decided = columns.get("outcome") or f"{columns['score']} and {columns['other score']}"
        parts.append(f"outcome = {decided}")
    parts += [f"{columns[role]} = {role}" for role in ("user", "count") if role in columns]
    called = {"first": "shown first", "margin": "margin", "time": "time"}
    parts += [f"{name} = {columns[role]}" for role, name in called.items() if role in columns]
    parts += [f"covariates = {', '.join(reading.covariates)}"] if reading.covariates else []
    return "; ".join(parts)


def _read_ballots(duck: Duck, source: Source, options: ReadOptions) -> Comparisons:
    ballots = read_ballots(duck.con, source, options)
    if ballots is None:
        shapes = f"say its shape=, one of {', '.join(map(repr, SHAPES))}"
        try:
            choose_columns(source.names, options.columns, source.name)
        except DataError as error:
            raise DataError(f"{error}; or {shapes}") from None
        raise DataError(f"{source.name} is not recognised: {shapes}")
    if options.covariates or any(options.columns.get(n) for n in ("time", "margin", "first")):
        raise DataError(
            f"{source.name} is read as {ballots.said}: time=, margin=, first= and covariates= "
            "belong to single comparisons, and a ballot has none; leave them out"
        )
    if hidden := source.broken():
        raise DataError(f"{source.name}: {hidden[0].why} (rows are counted from 1)")
    try:
        count = None if ballots.count is None else np.array(ballots.count, dtype=np.intp)
        orders = merge_rankings(
            ballots.rankings, ballots.users, None, count=count, tied=ballots.tied
        )
    except DataError as error:
        raise DataError(f"{source.name}, read as {ballots.said}: {error}") from None
    return replace(Comparisons.from_table(*orders), source=ballots.said)
