"""Files of comparisons into buckets of users, out of core: DuckDB reads, codes and sorts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from glob import escape, glob
from operator import add
from os import PathLike, fspath
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from penchant.data.build import MOST
from penchant.data.coding import settle
from penchant.data.columns import SHOWN_FIRST
from penchant.data.comparisons import Comparisons
from penchant.data.conditions import filtered, parse_where
from penchant.data.duck import NO_GUESSES, literal, open_duck
from penchant.data.json_names import json_names
from penchant.data.names import Encoder, Names
from penchant.data.reading import Wish, check_file, open_file, read_file
from penchant.data.recognise import ROW_BY_ROW, check_shape, recognise
from penchant.data.remote import RemoteFile, at_hand, is_remote, remote_files
from penchant.data.scan_folder import ScanFolder, Scanned, fingerprint
from penchant.data.shards import BucketFiles, ShardedComparisons, n_buckets
from penchant.data.source import plain
from penchant.data.sql import Further, RowsByCode, refuse_other_outcomes, rows_by_code
from penchant.data.table import Table
from penchant.errors import DataError, DataWarning, warn
from penchant.numerics.types import IntArray

MAX_MEMORY = 4 << 30
"""Bytes of scanned comparisons, and of what is worked out for them, that a process keeps."""
MOST_SHARDS = 1 << 14
Files = Sequence[Path | RemoteFile]


def scan_comparisons(
    files: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    shards: int = 64,
    scratch: str | PathLike[str] | None = None,
    resume: str | PathLike[str] | None = None,
    max_memory: int = MAX_MEMORY,
    winner: str | None = None,
    loser: str | None = None,
    user: str | None = None,
    tie: str | None = None,
    count: str | None = None,
    shape: str | None = None,
    skip_bad: bool = False,
    where: str | None = None,
) -> ShardedComparisons:
    """Read comparisons that need not fit in memory: from one file, some, or a pattern of names.

    Names like 's3://votes/*.parquet' are on file systems that fsspec opens.
    Files, columns and bad rows are as in `read_comparisons`, for tables that tell one comparison a
    row and who made it. Who won, ties and counts are read; who was shown first and margins are not.
    `shards` is how many parts may be worked on at once: it changes no result. They are written to
    a folder inside `scratch`, by default the system's temporary one; workers on other machines
    must see it. With `resume` they are written to that folder instead and stay there: the same
    call finds them again, and a fit that was interrupted goes on from its last sweep.
    `max_memory`: bytes that a process keeps of the data; the rest is read again for every sweep.
    `close`, or a `with` statement, removes the folder, but not that of `resume`.

    >>> with TemporaryDirectory() as folder:
    ...     for day, row in (("mon", "tea,milk,ann"), ("tue", "milk,tea,bob")):
    ...         _ = (Path(folder) / f"{day}.csv").write_text(f"winner,loser,user\\n{row}\\n")
    ...     with scan_comparisons(folder + "/*.csv") as votes:
    ...         votes.items, votes.n_users, votes.n_comparisons
    (('milk', 'tea'), 2, 2)
    """
    if not (isinstance(shards, int) and 1 <= shards <= MOST_SHARDS):
        raise DataError(f"shards is {shards!r}: it must be a whole number from 1 to {MOST_SHARDS}")
    if not (isinstance(max_memory, int) and max_memory >= 0):
        raise DataError(f"max_memory is {max_memory!r}: it must be a whole number of bytes")
    if scratch is not None and resume is not None:
        raise DataError("scratch and resume are both given: each names the folder to write to")
    if scratch is not None and not Path(scratch).is_dir():
        raise DataError(f"scratch: there is no folder {scratch}; make it first")
    check_shape(shape)
    columns = {"winner": winner, "loser": loser, "user": user, "tie": tie, "count": count}
    wish = Wish(columns, shape, Further(), skip_bad, parse_where(where))
    paths = _found(files)
    if resume is not None:
        return _resumed(paths, wish, shards, max_memory, resume)
    folder = TemporaryDirectory(prefix="penchant-shards-", dir=scratch)
    try:
        scanned = _scanned(paths, wish, shards, Path(folder.name))
    except BaseException:
        folder.cleanup()
        raise
    return _sharded(scanned, Path(folder.name), shards, max_memory, folder.cleanup)


def _found(files: Any) -> list[Path | RemoteFile]:
    """The files of a pattern or a list, in the order of their names."""
    if not isinstance(files, str | PathLike):
        return [file for path in files for file in _found(path)]
    found: list[Path | RemoteFile]
    if is_remote(files):
        found = [*remote_files(fspath(files))]
    elif Path(files).exists():
        found = [check_file(Path(files))]
    else:
        found = [check_file(Path(path)) for path in sorted(glob(fspath(files), recursive=True))]
    if not found:
        raise DataError(
            f"no file is called {files} (looked in {Path.cwd()}): check the pattern, such as "
            "'votes/*.parquet'"
        )
    return found


def _resumed(
    paths: Files, wish: Wish, shards: int, max_memory: int, resume: str | PathLike[str]
) -> ShardedComparisons:
    """What is in the folder already, or else scanned into it."""
    asked = {"files": fingerprint(paths), "wish": repr(wish), "buckets": n_buckets(shards)}
    folder = ScanFolder(resume, asked)
    try:
        scanned = folder.found()
        if scanned is None:
            scanned = _scanned(paths, wish, shards, folder.path)
            folder.keep(scanned)
    except BaseException:
        folder.release()
        raise
    return _sharded(scanned, folder.path, shards, max_memory, folder.release, is_kept=True)


def _sharded(
    scanned: Scanned,
    place: Path,
    shards: int,
    max_memory: int,
    finish: Callable[[], None],
    is_kept: bool = False,
) -> ShardedComparisons:
    items, sizes, everybody, source = scanned
    files = BucketFiles(place, items)
    return ShardedComparisons(files, sizes, everybody, shards, max_memory, source, is_kept, finish)


def _scanned(paths: Files, wish: Wish, shards: int, place: Path) -> Scanned:
    before, n = fingerprint(paths), n_buckets(shards)
    dealt = []
    for i, path in enumerate(paths):
        with at_hand(path, place) as here:
            dealt.append(_deal(here, wish, place / f"file-{i:06d}", n))
    if changed := [p for p, b, a in zip(paths, before, fingerprint(paths), strict=True) if a != b]:
        raise DataError(f"{changed[0]} changed while it was read: scan again when it is complete")
    if not any(one.n_comparisons for one in dealt):
        raise DataError(f"{paths[0]}: there are no comparisons in {len(paths)} files")
    every = _Everything.of(paths, dealt)
    files = BucketFiles(place, every.items)
    sizes, tables = np.zeros((n, 3), dtype=np.int64), []
    with open_duck("the scratch folder") as duck:
        for number in range(n):
            data = every.bucket(duck.con, number)
            files.save(number, data)
            sizes[number] = data.n_users, len(data), data.n_comparisons
            tables.append(data.pooled())
    for one in dealt:
        rmtree(one.folder, ignore_errors=True)
    everybody = reduce(add, tables)
    said = f"{len(paths)} files" if len(paths) > 1 else paths[0].name
    return Scanned(every.items, sizes, everybody, said)


@dataclass(frozen=True)
class _Dealt:
    """A file's rows by bucket, in Parquet: user as text, items by their place in `items`.

    kind: of users' names; is_whole: whether all of them are whole numbers.
    """

    folder: Path
    items: Names
    kind: str
    is_whole: bool
    n_comparisons: int


def _deal(path: Path, wish: Wish, folder: Path, n: int) -> _Dealt:
    """Read one file, check its rows, and write them by bucket."""
    with open_duck(str(path)) as duck:
        source, broken = open_file(duck, path)
        source = filtered(duck.con, source, wish.where)
        reading = None
        if wish.shape is None or wish.shape in ROW_BY_ROW:
            reading = recognise(source, wish.columns, wish.shape)
        if reading is None:
            raise DataError(
                f"{path} cannot be scanned: each of its rows must be one comparison, of a winner "
                "and a loser or of two items and an outcome; read rankings with read_comparisons"
            )
        if "user" not in reading.columns:
            raise DataError(
                f"{path} does not say who made each comparison: name the column, as in "
                "user='voter'; read_comparisons reads votes of nobody in particular"
            )
        lost = [role for role in ("margin", "time") if role in reading.columns]
        named = any(plain(name) == SHOWN_FIRST for name in source.names)
        if reading.shape != "pairs" or named:
            lost.append("who was shown first")
        if lost:
            warn(
                f"{path}: scanned comparisons keep who won, ties and counts, and leave out "
                f"{', '.join(lost)}; read_comparisons keeps all, in memory",
                DataWarning,
            )
        if wish.shape is None:
            refuse_other_outcomes(duck.con, source, reading, wish.further)
        rows = rows_by_code(duck.con, source, reading)
        n_good, n_bad, is_whole = _write(duck.con, rows, folder, n)
        n_bad += len(broken())
    if n_bad:
        _report(path, wish, n_good)
    return _Dealt(folder, rows.items.names, rows.kind, is_whole, n_good)


def _write(con: Any, rows: RowsByCode, folder: Path, n: int) -> tuple[int, int, bool]:
    """Write the good rows by bucket; return the comparisons in them, how many rows are bad, and
    whether all users are called by whole numbers."""
    text = "name ->> '$'" if rows.kind == "json" else "name::VARCHAR"
    is_number = "NOT isnan(name)" if rows.kind == "DOUBLE" else "true"
    con.execute(
        f"""CREATE TEMP TABLE people AS SELECT code, name::VARCHAR AS name,
                ('0x' || substr(md5({text}), 1, 16))::UBIGINT % {n} AS bucket
            FROM users WHERE NOT regexp_full_match({text}, '\\s*') AND {is_number}"""
    )
    right = (
        "winner >= 0 AND loser >= 0 AND winner <> loser AND tie >= 0 AND bucket IS NOT NULL "
        f'AND "count" BETWEEN 1 AND {MOST}'
    )
    con.execute(
        f"""CREATE TEMP VIEW judged AS
            SELECT bucket, name, winner, loser, tie, "count", coalesce({right}, false) AS is_right
            FROM ({rows.sql}) r LEFT JOIN people p ON r."user" = p.code"""
    )
    folder.mkdir()
    con.execute(
        f"""COPY (SELECT bucket, name, winner, loser, tie > 0 AS tie, sum("count")::BIGINT AS votes
                  FROM judged WHERE is_right GROUP BY ALL)
            TO {literal(str(folder))} (FORMAT parquet, PARTITION_BY (bucket))"""
    )
    good, bad = con.execute(
        """SELECT coalesce(sum("count") FILTER (is_right), 0)::HUGEINT,
                  count(*) FILTER (NOT is_right) FROM judged"""
    ).fetchone()
    (is_whole,) = con.execute(
        "SELECT coalesce(bool_and(regexp_full_match(name, '0|-?[1-9][0-9]{0,999}')), true) "
        "FROM people"
    ).fetchone()
    return int(good), int(bad), bool(is_whole)


def _report(path: Path, wish: Wish, n_good: int) -> None:
    """Say which rows of a file are bad, as whoever reads it whole says it."""
    found = read_file(path, wish)
    if found.table.count.sum() != n_good:
        raise DataError(
            f"{path} changed while it was read, or some of its rows are read in two ways: "
            f"{found.table.count.sum()} comparisons and {n_good}; read it with read_comparisons"
        )


@dataclass(frozen=True)
class _Everything:
    """All files, dealt, with one code for each item.

    codes: file by file, the place of its items among `items`. decode: texts to users' names.
    """

    dealt: Sequence[_Dealt]
    items: Names
    codes: Sequence[IntArray]
    decode: Callable[[list[str]], list[Any]]

    @classmethod
    def of(cls, paths: Files, dealt: Sequence[_Dealt]) -> "_Everything":
        """Names must be of one kind in all files, so that 7 and '7' are not two."""
        kinds = {one.kind: path for one, path in zip(dealt, paths, strict=True)}
        if len(kinds) > 1:
            (one, first), (two, second), *_ = kinds.items()
            raise DataError(
                f"users are called by {one} in {first.name} and by {two} in {second.name}: all "
                "files must have one format, and the same type in the column of users"
            )
        by_file = [one.items for one in dealt]
        if len({type(name) for names in by_file for name in names}) > 1:
            by_file = [tuple(map(str, names)) for names in by_file]
        encoder = Encoder()
        codes = [encoder.encode(names, "items") for names in by_file]
        book = settle(encoder.names, None, "items")
        is_whole = dealt[0].kind in _NUMBERS or (
            dealt[0].kind == "text" and all(one.is_whole for one in dealt)
        )
        decode = _DECODE.get(dealt[0].kind, _whole if is_whole else list)
        return cls(dealt, book.names, [book.code[code] for code in codes], decode)

    def bucket(self, con: Any, number: int) -> Comparisons:
        """The comparisons of one bucket's users, in the order of their names as text."""
        found = [(i, path) for i, one in enumerate(self.dealt) for path in _parts(one, number)]
        if not found:
            nothing = np.zeros(0, dtype=np.intp)
            table = Table(nothing, nothing, nothing, nothing, np.zeros(0, dtype=bool), None)
            return Comparisons.from_table(table, self.items, ())
        query = " UNION ALL ".join(
            f"SELECT {i} AS file, name, winner, loser, tie, votes "
            f"FROM read_parquet({literal(escape(str(path)))}, {NO_GUESSES})"
            for i, path in found
        )
        con.execute(f"CREATE OR REPLACE TEMP TABLE votes AS {query}")
        names = con.execute("SELECT DISTINCT name FROM votes ORDER BY name").fetchall()
        rows = con.execute(
            "SELECT * EXCLUDE name, dense_rank() OVER (ORDER BY name) - 1 AS who FROM votes"
        ).fetchnumpy()
        winner, loser = np.zeros((2, len(rows["who"])), dtype=np.intp)
        for i, codes in enumerate(self.codes):
            here = rows["file"] == i
            winner[here], loser[here] = codes[rows["winner"][here]], codes[rows["loser"][here]]
        count, who = rows["votes"].astype(np.intp), rows["who"].astype(np.intp)
        table = Table(winner, loser, count, who, rows["tie"].astype(bool), None).merge()
        users = tuple(self.decode([name for (name,) in names]))
        return Comparisons.from_table(table, self.items, users)


_NUMBERS = ("BIGINT", "HUGEINT")


def _whole(names: list[str]) -> list[Any]:
    return [int(name) for name in names]


_DECODE: Mapping[str, Callable[[list[str]], list[Any]]] = {
    "json": json_names,
    "DOUBLE": lambda names: [float(name) for name in names],
}


def _parts(one: _Dealt, number: int) -> list[Path]:
    return sorted((one.folder / f"bucket={number}").glob("*.parquet"))
