"""Files and data frames of comparisons, in any shape that is recognised."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from penchant.data.build import build
from penchant.data.coding import BrokenRow
from penchant.data.conditions import Where, filtered, segments_of, within, written
from penchant.data.duck import Duck, open_duck
from penchant.data.expand import merge_rankings
from penchant.data.formats import sheets, text, typed
from penchant.data.formats.ballots import read_ballots
from penchant.data.formats.frames import open_frame
from penchant.data.names import Names
from penchant.data.rankings import Rankings
from penchant.data.recognise import ROW_BY_ROW, Reading, check_shape, recognise, unrecognised
from penchant.data.source import Source
from penchant.data.sql import (
    Further,
    fetch_rows,
    refuse_other_outcomes,
    with_shown_first,
    with_strength,
)
from penchant.data.table import Table
from penchant.errors import DataError

SUFFIXES = (*text.SUFFIXES, *typed.JSON, *typed.PARQUET, *sheets.SUFFIXES)
"""How the names of tables end; .gz may follow text and JSON."""


@dataclass(frozen=True)
class Wish:
    """What the caller said about a table: columns by role, its shape, what else to read."""

    columns: Mapping[str, str | None]
    shape: str | None = None
    further: Further = field(default_factory=Further)
    skip_bad: bool = False
    where: Where = ()


@dataclass(frozen=True)
class ReadRows:
    """What was read, ready to become comparisons."""

    table: Table
    items: Names
    users: Names
    said: str
    rankings: Rankings | None = None


def read_file(path: str | PathLike[str], wish: Wish) -> ReadRows:
    """Read a table from a file."""
    path = check_file(Path(path))
    with open_duck(str(path)) as duck:
        source, broken = open_file(duck, path)
        return _read(duck, filtered(duck.con, source, wish.where), wish, broken)


def find_segments(path: Path, wish: Wish, by: str) -> dict[str, Wish]:
    """Return what to wish for to read each segment of a file, the largest first."""
    with open_duck(str(path)) as duck:
        source, _ = open_file(duck, path)
        column, values = segments_of(duck.con, filtered(duck.con, source, wish.where), by)
    return {value: replace(wish, where=within(wish.where, column, value)) for value in values}


def read_frame(frame: Any, wish: Wish) -> ReadRows:
    """Read a data frame."""
    with open_duck("the data frame") as duck:
        return _read(duck, open_frame(duck, frame), wish, lambda: ())


def open_file(duck: Duck, path: Path) -> tuple[Source, Callable[[], tuple[BrokenRow, ...]]]:
    """Return the table in a file, and a function that tells afterwards which rows were broken."""
    suffix = table_suffix(path)
    if suffix in text.SUFFIXES:
        return text.open_text(duck, path)
    if suffix in typed.JSON:
        return typed.open_json(duck, path), lambda: ()
    if suffix in sheets.SUFFIXES:
        return sheets.open_sheet(duck, path), lambda: ()
    return typed.open_parquet(duck, path), lambda: ()


def check_file(path: Path) -> Path:
    """Return the path of a file that is there and holds something."""
    if path.is_dir():
        raise DataError(f"{path} is a folder: give the path of one file in it")
    if not path.exists():
        raise DataError(f"there is no file {path} (looked in {Path.cwd()}): check the path")
    if not path.stat().st_size:
        raise DataError(f"{path} is empty: it must hold at least one comparison")
    return path


def table_suffix(path: Path, others: Sequence[str] = ()) -> str:
    """Return how a file's name ends, without .gz, where that tells its format."""
    zipped = path.suffix.lower() == ".gz"
    suffix = Path(path.stem).suffix.lower() if zipped else path.suffix.lower()
    if suffix in (*text.SUFFIXES, *typed.JSON) or (suffix in (*SUFFIXES, *others) and not zipped):
        return suffix
    raise DataError(
        f"{path.name} does not say its format: it must end in one of "
        f"{' '.join((*SUFFIXES, *others))} (.gz may follow text and JSON); rename or convert it"
    )


def _read(
    duck: Duck, source: Source, wish: Wish, broken: Callable[[], tuple[BrokenRow, ...]]
) -> ReadRows:
    check_shape(wish.shape)
    reading = None
    if wish.shape is None or wish.shape in ROW_BY_ROW:
        reading = recognise(source, wish.columns, wish.shape)
    if reading is None:
        return _read_ballots(duck, source, wish, broken)
    if wish.shape is None:
        refuse_other_outcomes(duck.con, source, reading, wish.further)
    further = with_strength(duck.con, source, reading, wish.further)
    further = with_shown_first(duck.con, source, reading, further)
    rows = fetch_rows(duck.con, source, reading, further)
    rows = replace(rows, broken=broken())
    table, items, users = build(rows, skip_bad=wish.skip_bad)
    return ReadRows(table, items, users, _said(reading, table, further) + only_where(wish))


def only_where(wish: Wish) -> str:
    """Which rows were read, where not all were."""
    return f"; only where {written(wish.where)}" if wish.where else ""


def _said(reading: Reading, table: Table, further: Further) -> str:
    """How a table was read, in a line: '5,000 battles; 1,234 ties; shown first = model_a'."""
    columns = reading.columns
    what = "comparisons" if reading.shape == "pairs" else "battles"
    parts = [f"{table.count.sum():,} {what}", f"{table.count[table.tie].sum():,} ties"]
    if table.both_bad is not None:
        parts[-1] += f", {table.count[table.both_bad].sum():,} of them both bad"
    if reading.shape == "pairs":
        parts.append(f"winner = {columns['winner']}, loser = {columns['loser']}")
    else:
        parts.append(f"shown first = {columns['winner']}")
        decided = columns.get("outcome") or f"{columns['score']} and {columns['other score']}"
        parts.append(f"outcome = {decided}")
    if "user" in columns:
        parts.append(f"{columns['user']} = user")
    if "count" in columns:
        parts.append(f"{columns['count']} = count")
    parts += [f"shown first = {further.first}"] if further.first else []
    parts += [f"margin = {further.margin}"] if further.margin else []
    parts += [f"time = {further.time}"] if further.time else []
    parts += [f"covariates = {', '.join(further.covariates)}"] if further.covariates else []
    return "; ".join(parts)


def _read_ballots(
    duck: Duck, source: Source, wish: Wish, broken: Callable[[], tuple[BrokenRow, ...]]
) -> ReadRows:
    ballots = read_ballots(duck.con, source, wish.columns, wish.shape, wish.skip_bad)
    if ballots is None:
        raise unrecognised(source, wish.columns)
    if wish.further != Further():
        raise DataError(
            f"{source.name} is read as {ballots.said}: time=, margin=, first= and covariates= "
            "belong to single comparisons, and a ballot has none; leave them out"
        )
    if hidden := broken():
        raise DataError(f"{source.name}: {hidden[0].why} (rows are counted from 1)")
    try:
        count = None if ballots.count is None else np.array(ballots.count, dtype=np.intp)
        orders = merge_rankings(
            ballots.rankings, ballots.users, None, count=count, tied=ballots.tied
        )
    except DataError as error:
        raise DataError(f"{source.name}, read as {ballots.said}: {error}") from None
    said = ballots.said + only_where(wish)
    return ReadRows(orders.pairs, orders.items, orders.users, said, orders.rankings)
