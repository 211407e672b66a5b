"""Files of comparisons into buckets of users, out of core: DuckDB reads, codes and sorts."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from glob import escape, glob
from operator import add
from os import PathLike, fspath
from pathlib import Path
from shutil import copyfileobj, rmtree
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from penchant.data import (
    MOST,
    BucketFiles,
    Comparisons,
    Encoder,
    Names,
    ShardedComparisons,
    Table,
    n_buckets,
    settle,
)
from penchant.errors import DataError, DataWarning, warn
from penchant.io.formats.rows import json_names, recognise_rows, rows_by_code
from penchant.io.read import check_file, open_file, read_file
from penchant.io.recognise import SHOWN_FIRST, ReadOptions, filtered, plain
from penchant.io.source import NO_GUESSES, literal, open_duck
from penchant.io.write import take_lock, whole_file
from penchant.numerics.arrays import read_arrays, write_arrays


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
        """Address, size and time of change, to detect a file that changed."""
        info = self.system.info(self.place)
        changed = next((info[key] for key in ("ETag", "mtime", "created") if info.get(key)), "")
        return [self.address, info.get("size"), str(changed)]

    def __str__(self) -> str:
        return self.address


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
def local_copy(file: Path | RemoteFile, folder: Path) -> Iterator[Path]:
    """Yield the path of a file on this machine: a remote file is copied, and the copy deleted."""
    if isinstance(file, Path):
        yield file
        return
    copy = folder / "fetched" / file.name
    copy.parent.mkdir(exist_ok=True)
    try:
        try:
            with file.system.open(file.place, "rb") as source, copy.open("wb") as target:
                copyfileobj(source, target, 1 << 22)
        except OSError as error:
            raise DataError(f"{file} cannot be fetched ({error}): try again") from error
        yield copy
    finally:
        copy.unlink(missing_ok=True)


FORMAT = 1
MANIFEST, POOLED, LOCK = "scan.json", "pooled.npz", "penchant-scan.lock"
UNFINISHED = ("file-*", "bucket-*.npz", POOLED)


def fingerprint(files: Sequence[Path | RemoteFile]) -> list[list[Any]]:
    """Names, sizes and times of the last change, to detect files that changed."""
    return [_stamp(file) if isinstance(file, Path) else file.stamp for file in files]


def _stamp(path: Path) -> list[Any]:
    stat = path.stat()
    return [str(path.resolve()), stat.st_size, stat.st_mtime_ns]


class ScanFolder:
    """The folder of a scan, locked for this process. asked: everything the buckets depend on."""

    def __init__(self, folder: str | PathLike[str], asked: dict[str, Any]) -> None:
        self.path, self._asked = Path(folder), {"format": FORMAT, **asked}
        try:
            self.path.mkdir(exist_ok=True)
            if not (self.path / LOCK).exists() and any(self.path.iterdir()):
                raise DataError(
                    f"resume={folder}: the folder holds other things than scanned comparisons; "
                    "name a new one"
                )
            self._lock: BinaryIO = (self.path / LOCK).open("ab")
        except OSError as error:
            raise DataError(
                f"resume={folder}: the folder cannot be used ({error.strerror}); name one inside a "
                "folder that exists and may be written to"
            ) from None
        try:
            take_lock(self._lock.fileno())
        except BlockingIOError:
            self._lock.close()
            raise DataError(
                f"resume={folder} is in use by another process: wait for it, or name another folder"
            ) from None

    def release(self) -> None:
        """Release the lock."""
        self._lock.close()

    def found(self, shards: int, max_memory: int) -> ShardedComparisons | None:
        """Return the finished scan in this folder, or None after deleting an interrupted one."""
        manifest = self.path / MANIFEST
        if not manifest.exists():
            for pattern in UNFINISHED:
                for path in self.path.glob(pattern):
                    rmtree(path) if path.is_dir() else path.unlink()
            return None
        try:
            saved = json.loads(manifest.read_text(encoding="utf-8"))
            items, source, asked = tuple(saved["items"]), str(saved["source"]), saved["asked"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{manifest} is damaged ({error}): remove the folder") from None
        if asked != json.loads(json.dumps(self._asked)):
            raise DataError(
                f"{self.path} holds other comparisons: the files, or what is read of them, changed "
                "since they were scanned; remove the folder, or name another"
            )
        known = read_arrays(self.path / POOLED, "remove the folder")
        table = Table(known["winner"], known["loser"], known["count"], None, known["tie"], None)
        pooled, files = Comparisons.from_table(table, items, ()), BucketFiles(self.path, items)
        return ShardedComparisons(files, known["sizes"], pooled, shards, max_memory, source)

    def keep(self, scanned: ShardedComparisons) -> None:
        """Write the manifest, which marks the scan as complete."""
        every = scanned.pooled
        columns = {name: getattr(every, name) for name in ("winner", "loser", "count", "tie")}
        write_arrays(self.path / POOLED, {"sizes": scanned.sizes, **columns})
        content = {"asked": self._asked, "items": scanned.items, "source": scanned.source}
        with whole_file(self.path / MANIFEST) as file:
            file.write(json.dumps(content).encode())


MAX_MEMORY = 4 << 30
"""Bytes of scanned comparisons, and of results derived from them, that a process keeps."""
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
    given = dict(locals())
    for name in ("files", "shards", "scratch", "resume", "max_memory"):
        del given[name]
    if not (isinstance(shards, int) and 1 <= shards <= MOST_SHARDS):
        raise DataError(f"shards is {shards!r}: it must be a whole number from 1 to {MOST_SHARDS}")
    if not (isinstance(max_memory, int) and max_memory >= 0):
        raise DataError(f"max_memory is {max_memory!r}: it must be a whole number of bytes")
    if scratch is not None and resume is not None:
        raise DataError("scratch and resume are both given: each names the folder to write to")
    if scratch is not None and not Path(scratch).is_dir():
        raise DataError(f"scratch: there is no folder {scratch}; make it first")
    options = ReadOptions.of(**given)
    paths = _find_files(files)
    if resume is not None:
        return _resume(paths, options, shards, max_memory, resume)
    folder = TemporaryDirectory(prefix="penchant-shards-", dir=scratch)
    try:
        scanned = _scan(paths, options, shards, max_memory, Path(folder.name))
    except BaseException:
        folder.cleanup()
        raise
    return replace(scanned, _finish=folder.cleanup)


def _find_files(files: Any) -> list[Path | RemoteFile]:
    """The files of a pattern or a list, in the order of their names."""
    if not isinstance(files, str | PathLike):
        return [file for path in files for file in _find_files(path)]
    found: list[Path | RemoteFile]
    if "://" in fspath(files):  # a Path never holds two slashes in a row
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


def _resume(
    paths: Files, options: ReadOptions, shards: int, max_memory: int, resume: str | PathLike[str]
) -> ShardedComparisons:
    """Return the scan that the folder holds, or scan the files into it."""
    asked = {"files": fingerprint(paths), "options": repr(options), "buckets": n_buckets(shards)}
    folder = ScanFolder(resume, asked)
    try:
        scanned = folder.found(shards, max_memory)
        if scanned is None:
            scanned = _scan(paths, options, shards, max_memory, folder.path)
            folder.keep(scanned)
    except BaseException:
        folder.release()
        raise
    return replace(scanned, is_kept=True, _finish=folder.release)


def _scan(
    paths: Files, options: ReadOptions, shards: int, max_memory: int, place: Path
) -> ShardedComparisons:
    before, n = fingerprint(paths), n_buckets(shards)
    dealt = []
    for i, path in enumerate(paths):
        with local_copy(path, place) as here:
            dealt.append(_bucket_file(here, options, place / f"file-{i:06d}", n))
    if changed := [p for p, b, a in zip(paths, before, fingerprint(paths), strict=True) if a != b]:
        raise DataError(f"{changed[0]} changed while it was read: scan again when it is complete")
    if not any(one.n_comparisons for one in dealt):
        raise DataError(f"{paths[0]}: there are no comparisons in {len(paths)} files")
    every = _AllFiles(paths, dealt)
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
    pooled = reduce(add, tables)
    said = f"{len(paths)} files" if len(paths) > 1 else paths[0].name
    return ShardedComparisons(files, sizes, pooled, shards, max_memory, said)


@dataclass(frozen=True)
class _BucketedFile:
    """A file's rows by bucket, in Parquet: user as text, items by their place in `items`.

    kind: of users' names; is_whole: whether all of them are whole numbers.
    """

    folder: Path
    items: Names
    kind: str
    is_whole: bool
    n_comparisons: int


def _bucket_file(path: Path, options: ReadOptions, folder: Path, n: int) -> _BucketedFile:
    """Read one file, check its rows, and write them by bucket."""
    with open_duck(str(path)) as duck:
        source = filtered(duck.con, open_file(duck, path), options.where)
        reading = recognise_rows(duck.con, source, options)
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
        named = any(plain(name) == SHOWN_FIRST for name in source.names)
        if reading.shape != "pairs" or named:
            warn(
                f"{path}: scanned comparisons keep who won, ties and counts, and leave out who was "
                "shown first; read_comparisons keeps all, in memory",
                DataWarning,
            )
        rows, items, kind = rows_by_code(duck.con, source, reading)
        n_good, n_bad, is_whole = _write(duck.con, rows, kind, folder, n)
        n_bad += len(source.broken())
    if n_bad:
        _report(path, options, n_good)
    return _BucketedFile(folder, items, kind, is_whole, n_good)


def _write(con: Any, rows: str, kind: str, folder: Path, n: int) -> tuple[int, int, bool]:
    """Write the good rows by bucket; return the comparisons in them, how many rows are bad, and
    whether all users are called by whole numbers."""
    text = "name ->> '$'" if kind == "json" else "name::VARCHAR"
    is_number = "NOT isnan(name)" if kind == "DOUBLE" else "true"
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
            FROM ({rows}) r LEFT JOIN people p ON r."user" = p.code"""
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


def _report(path: Path, options: ReadOptions, n_good: int) -> None:
    """Read the whole file, which raises or warns about its bad rows."""
    found = read_file(path, options)
    if found.n_comparisons != n_good:
        raise DataError(
            f"{path} changed while it was read, or some of its rows are read in two ways: "
            f"{found.n_comparisons} comparisons and {n_good}; read it with read_comparisons"
        )


class _AllFiles:
    """The rows of all files by bucket, with one code for each item over all of them."""

    def __init__(self, paths: Files, dealt: Sequence[_BucketedFile]) -> None:
        kinds = {one.kind: path for one, path in zip(dealt, paths, strict=True)}
        if len(kinds) > 1:
            (one, first), (two, second), *_ = kinds.items()
            raise DataError(
                f"users are called by {one} in {first.name} and by {two} in {second.name}: all "
                "files must have one format, and the same type in the column of users"
            )
        self.dealt, self.kind = dealt, dealt[0].kind
        self.is_whole = all(one.is_whole for one in dealt)
        by_file = [one.items for one in dealt]
        if len({type(name) for names in by_file for name in names}) > 1:
            by_file = [tuple(map(str, names)) for names in by_file]
        encoder = Encoder()
        codes = [encoder.encode(names, "items") for names in by_file]
        book = settle(encoder.names, None, "items")
        self.items, self.codes = book.names, [book.code[code] for code in codes]

    def users(self, texts: list[str]) -> tuple[Any, ...]:
        """Return users' names out of their texts."""
        if self.kind == "json":
            return tuple(json_names(texts))
        if self.kind == "DOUBLE":
            return tuple(map(float, texts))
        is_whole = self.kind in ("BIGINT", "HUGEINT") or (self.kind == "text" and self.is_whole)
        return tuple(map(int, texts)) if is_whole else tuple(texts)

    def bucket(self, con: Any, number: int) -> Comparisons:
        """The comparisons of one bucket's users, in the order of their names as text."""
        found = [
            (i, path)
            for i, one in enumerate(self.dealt)
            for path in sorted((one.folder / f"bucket={number}").glob("*.parquet"))
        ]
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
        users = self.users([name for (name,) in names])
        return Comparisons.from_table(table, self.items, users)
