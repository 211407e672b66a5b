"""The files of a study: its folder, import and export of votes, backups."""

import json
import os
import secrets
import shutil
import sqlite3
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import penchant as pc
from penchant.errors import DataError
from penchant.study.events import UNNAMED
from penchant.study.logs import log, tell
from penchant.study.refusals import use_strings
from penchant.study.store import Database, studies, whole
from penchant.study.store.studies import NewItem

SETTINGS = "study.json"


class Folder:
    """A folder of `penchant study new`.

    study.json names the study and its database. `secret` signs cookies and hashes panels' ids.
    media/ holds files under random names.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            settings = json.loads((self.path / SETTINGS).read_text())
            self.study, self.database_url = str(settings["study"]), str(settings["database"])
            self.secret = (self.path / "secret").read_text().strip()
        except FileNotFoundError:
            raise DataError(
                f"{self.path} is no folder of a study: make one with `penchant study new "
                f"{self.path} --items items.csv --question '…'`"
            ) from None
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise DataError(
                f"{self.path / SETTINGS} cannot be read ({error}): it must name the study and its "
                "database, as `penchant study new` wrote it"
            ) from error
        self.media, self.strings = self.path / "media", self.path / "strings"
        use_strings(self.strings)

    @classmethod
    def create(cls, path: str | os.PathLike[str], study: str, database: str | None) -> "Folder":
        """Make the folder of a new study; it must not hold a study already."""
        path = Path(path)
        if (path / SETTINGS).exists():
            raise DataError(f"{path} holds a study already: choose another folder")
        make_private(path, path / "media")
        write_private(path / "secret", secrets.token_hex(32))
        settings: Mapping[str, Any] = {"study": study, "database": database or "sqlite:///study.db"}
        write_private(path / SETTINGS, json.dumps(settings, indent=2))
        return cls(path)

    def open(self, *, durable: bool = True, migrate: bool = True) -> Database:
        """Open the database and migrate its tables; a relative SQLite path lies in the folder."""
        prefix = "sqlite:///"
        url = self.database_url
        if url.startswith(prefix) and not url.startswith(f"{prefix}/"):
            url = f"{prefix}{(self.path / url.removeprefix(prefix)).resolve()}"
        database = Database(url, durable=durable)
        if migrate:
            self._close_to_others()
            database.migrate()
        return database

    def files(self) -> list[Path]:
        """Every file of the study in the folder."""
        names = (SETTINGS, "secret", "study.db*", "limits", NUMBERS, f"{DEATHS}*", "media/*")
        return sorted(file for name in names for file in self.path.glob(name))

    def _close_to_others(self) -> None:
        """Modes as this version sets them: earlier ones left some files readable to all."""
        for path in (self.path, self.media, *self.files()):
            with suppress(OSError):  # of another user
                if path.stat().st_mode & 0o077:
                    path.chmod(0o700 if path.is_dir() else 0o600)


def make_private(*folders: Path) -> None:
    """Make folders that only their owner can enter."""
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):  # of another user, as mounted volumes are
            folder.chmod(0o700)


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file that only its owner can read."""
    raw = content.encode() if isinstance(content, str) else content
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(raw)


MANY_DEATHS, RECENTLY = 3, 60.0
"""/healthz reports a process that ended so often within so many seconds."""
DEATHS, NUMBERS = "deaths.json", "numbers"


def write_deaths(folder: Path, deaths: dict[str, list[float]]) -> None:
    """Write the times at which processes ended, for /healthz."""
    try:
        part = folder / f"{DEATHS}.part"
        write_private(part, json.dumps({"supervisor": os.getpid(), "deaths": deaths}))
        part.replace(folder / DEATHS)
    except OSError as error:
        log.warning("%s cannot be written: %s", DEATHS, error.strerror)


def keeps_ending(folder: Path) -> list[str]:
    """Problems for /healthz: processes of this server that ended MANY_DEATHS times recently."""
    try:
        known = json.loads((folder / DEATHS).read_text())
        if known["supervisor"] != os.getppid():
            return []  # written by a server that has stopped
        recently = time.monotonic() - RECENTLY
        return [
            f"the process {name} keeps ending"
            for name, deaths in known["deaths"].items()
            if len(deaths) == MANY_DEATHS and deaths[0] > recently
        ]
    except (OSError, ValueError, KeyError):
        return []


FORMS = {".csv": "FORMAT csv, HEADER", ".jsonl": "FORMAT json", ".parquet": "FORMAT parquet"}
"""By ending: DuckDB's options."""


def write_votes(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write rows as CSV, JSON lines or Parquet, by the ending of the path."""
    import duckdb

    if path.suffix not in FORMS:
        raise DataError(f"{path.name} must end in one of {', '.join(FORMS)}")
    with tempfile.TemporaryDirectory(prefix="penchant-") as folder, duckdb.connect() as con:
        lines = Path(folder) / "votes.jsonl"
        lines.write_text("\n".join(json.dumps(row) for row in rows))
        votes = "FROM read_json(?, columns = ?, format = 'newline_delimited')"
        target = str(path).replace("'", "''")
        con.execute(
            f"COPY ({votes}) TO '{target}' ({FORMS[path.suffix]})", [str(lines), _columns(rows)]
        )


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The columns of pairs, or of ballots where the rows are such, with DuckDB's types."""
    pairs = {"winner": "VARCHAR", "loser": "VARCHAR", "tie": "BOOLEAN"}
    ballots = {"ballot": "BIGINT", "item": "VARCHAR", "position": "INTEGER", "tied": "BOOLEAN"}
    about = {"user": "VARCHAR", "count": "INTEGER", "kind": "VARCHAR", "form": "VARCHAR"}
    shown = {"ms": "INTEGER", "at": "DOUBLE", "excluded": "BOOLEAN"}
    if rows and "ballot" in rows[0]:
        known = ballots | about | {"shown": "INTEGER"} | shown
    else:
        known = pairs | about | {"question": "BIGINT", "shown_first": "VARCHAR"} | shown
    said_first = [name for name in (rows[0] if rows else ()) if name not in known]
    return known | {name: _type_of([row[name] for row in rows]) for name in said_first}


def _type_of(cells: Sequence[Any]) -> str:
    kinds = {type(cell) for cell in cells} - {type(None)}
    if not kinds or str in kinds:
        return "VARCHAR"
    return "BIGINT" if kinds == {int} else "DOUBLE"


LATER = {"excluded"}
"""Columns that older exports have not."""


def read_votes(content: bytes, ending: str = ".csv") -> tuple[list[dict[str, Any]], bool]:
    """The answers of a file, and whether a study exported it.

    Answers are rows with items, order, form, count, user, and whether the order of showing is
    known. Those of people whom a study excluded are left out. Rankings and choices of more than two
    items stay whole.
    """
    with tempfile.TemporaryDirectory(prefix="penchant-") as folder:
        path = Path(folder) / f"votes{ending}"
        path.write_bytes(content)
        columns = _columns_in(path) if ending in FORMS else set[str]()
        is_export = any(set(_columns(rows)) <= {*columns, *LATER} for rows in ([], [{"ballot": 1}]))
        where = "excluded = false" if is_export and "excluded" in columns else None
        data = pc.read_comparisons(str(path), where=where)
    return [*_pairs_of(data), *_rankings_of(data)], is_export


def _columns_in(path: Path) -> set[str]:
    import duckdb

    with duckdb.connect() as con:
        try:
            return {name for name, *_ in con.execute(f"DESCRIBE FROM '{path}'").fetchall()}
        except duckdb.Error:
            return set()  # no export of a study


# annotated by name, because evaluating the annotation would load SciPy into web processes
def _pairs_of(data: "pc.Comparisons") -> Iterator[dict[str, Any]]:
    pairs = data.single_pairs()
    users = [None] * len(pairs) if pairs.user is None else [pairs.users[u] for u in pairs.user]
    first = [0] * len(pairs) if pairs.first is None else pairs.first
    columns = zip(pairs.winner, pairs.loser, pairs.tie, pairs.count, first, users, strict=True)
    for winner, loser, tie, count, side, user in columns:
        names = [str(pairs.items[winner]), str(pairs.items[loser])]
        yield {
            "items": names[::-1] if side < 0 else names,
            "order": [[0, 1]] if tie else [[1], [0]] if side < 0 else [[0], [1]],
            "form": "pair",
            "count": int(count),
            "user": _user(user),
            "is_ordered": bool(side),
        }


def _user(name: Any) -> str | None:
    return None if name is None or name == UNNAMED else str(name)


def _rankings_of(data: "pc.Comparisons") -> Iterator[dict[str, Any]]:
    for tied in (False, True):
        for groups, user, count in data.named_rankings(tied):
            items = [str(name) for group in groups for name in group]
            places = iter(range(len(items)))
            is_best = not tied and len(groups) == 2 and len(groups[0]) == 1
            yield {
                "items": items,
                "order": [[next(places) for _ in group] for group in groups],
                "form": "best" if is_best else "rank",
                "count": int(count),
                "user": _user(user),
                "is_ordered": False,
            }


def backup_to(folder: Folder, database: Database, path: Path) -> None:
    """Write a consistent copy of database, media and secret into one file. The study may run.

    The copy is an SQLite database, also of a study on PostgreSQL.
    """
    with tempfile.TemporaryDirectory(".part", f"{path.stem}-", path.resolve().parent) as place:
        copy, scratch = Path(place) / "study.db", Path(place) / "backup.zip"
        write_private(copy, b"")
        _copy_database(database, copy, folder.study)
        write_private(scratch, b"")
        with zipfile.ZipFile(scratch, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(copy, "study.db")
            archive.writestr("study.json", json.dumps({"study": folder.study}))
            archive.writestr("secret", folder.secret)
            for file in sorted(folder.media.iterdir()):
                if not file.name.endswith(".part"):
                    archive.write(file, f"media/{file.name}")
            for file in sorted(folder.strings.glob("*.json")):
                archive.write(file, f"strings/{file.name}")
        with scratch.open("rb+") as written:
            os.fsync(written.fileno())
        scratch.replace(path)


def _copy_database(database: Database, copy: Path, study: str) -> None:
    """Copy a database into an SQLite file, and check that it can be read as a whole."""
    if database.is_sqlite:
        with (
            closing(sqlite3.connect(str(database.url.database))) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
    else:
        _move(database, f"sqlite:///{copy}", study)
    with closing(sqlite3.connect(copy)) as made:
        made.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
        found = made.execute("PRAGMA quick_check").fetchone()[0]
    if found != "ok":
        raise DataError(f"the database is damaged, and was not backed up: {found}")


def _move(source: Database, url: str, study: str) -> None:
    """Copy a study into another database, which may hold others."""
    with Database(url) as target:
        target.migrate()
        if study in target.read(studies.names):
            raise DataError(f"the database holds a study {study!r} already: choose another")
        target.write(lambda there: source.read(whole.copy_to, there, study))


def restore_from(path: Path, target: Path, database: str | None = None) -> Folder:
    """Make the folder of a study from a backup.

    database: the address of a database that takes in the answers; by default SQLite in the folder.
    """
    if (target / SETTINGS).exists():
        raise DataError(f"{target} holds a study already: restore into an empty folder")
    try:
        with zipfile.ZipFile(path) as archive:
            study = str(json.loads(archive.read("study.json"))["study"])
            make_private(target, target / "media")
            write_private(target / "study.db", archive.read("study.db"))
            for name in archive.namelist():
                kind = name.partition("/")[0]
                if kind in ("media", "strings") and name != kind:
                    make_private(target / kind)
                    # only the last part: a name with .. cannot leave the folder
                    write_private(target / kind / Path(name).name, archive.read(name))
            write_private(target / "secret", archive.read("secret").decode())
    except (zipfile.BadZipFile, KeyError, OSError, ValueError) as error:
        raise DataError(f"{path} is no backup of a study that can be read: {error}") from error
    if database is not None:
        copy = target / "study.db"
        with Database(f"sqlite:///{copy.resolve()}") as source:
            source.migrate()
            _move(source, database, study)
        for file in target.glob("study.db*"):
            file.unlink()
    found = {"study": study, "database": database or "sqlite:///study.db"}
    write_private(target / SETTINGS, json.dumps(found, indent=2))
    return Folder(target)


def backups_of(study: str, folder: Path) -> list[Path]:
    """The dated backups of a study in a folder, oldest first."""
    return sorted(folder.glob(f"{study}-{'[0-9]' * 8}T{'[0-9]' * 6}Z.zip"))


def dated_backup(folder: Folder, database: Database, to: Path, keep: int) -> Path:
    """Write a backup that is named by its time; of all of them the newest `keep` stay."""
    begun = time.time()
    make_private(to)
    for left in to.glob(f"{folder.study}-*.part"):  # of a backup that was killed
        shutil.rmtree(left, ignore_errors=True)
    path = to / time.strftime(f"{folder.study}-%Y%m%dT%H%M%SZ.zip", time.gmtime(begun))
    backup_to(folder, database, path)
    about = {"at": begun, "file": str(path.resolve()), "bytes": path.stat().st_size}
    database.write(whole.set_backup, folder.study, about)
    for old in backups_of(folder.study, to)[:-keep]:
        old.unlink()
    tell(
        "backup_made",
        "backup {file} made in {seconds} s, {bytes} bytes",
        file=path.name,
        seconds=round(time.time() - begun, 1),
        bytes=about["bytes"],
    )
    return path


def remove(folder: Folder) -> list[str]:
    """Delete the files of a study; return the names of what is left in its folder."""
    for file in folder.files():
        file.unlink(missing_ok=True)
    with suppress(OSError):
        folder.media.rmdir()
        folder.path.rmdir()
    return sorted(file.name for file in folder.path.iterdir()) if folder.path.exists() else []


def copy_without_answers(folder: Folder, target: Path) -> Folder:
    """A copy of a study on SQLite with its settings and items, without answers."""
    with folder.open() as source:
        config = source.read(studies.get, folder.study).config
        config = replace(config, ask_first=(), guard_joins=False)  # robots are no people
        rows = source.read(studies.items_of, folder.study)
    copy = Folder.create(target, folder.study, None)
    for file in folder.media.iterdir():
        shutil.copy2(file, copy.media / file.name)
    kept = ("name", "media", "body", "features", "caption")
    items = [NewItem(*(getattr(row, k) for k in kept)) for row in rows if row.active]
    with copy.open() as database:
        database.write(studies.create, copy.study, config, items, time.time())
    return copy
