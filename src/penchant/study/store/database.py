"""One database: many readers, one writer at a time; a write returns when it is on disk.

Every change is a job, a function of a connection. Each process has one writer thread. It takes
all waiting jobs, runs each in a savepoint and commits them together, with one flush to the disk.
Between processes the database's lock keeps writers apart. It is taken at the start of a
transaction (SQLite: BEGIN IMMEDIATE; PostgreSQL: an advisory lock), so that events are committed
in the order of their numbers.
"""

import os
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, event

from penchant.errors import DataError

try:
    import fcntl
except ImportError:  # Windows: SQLite's own waiting serves, less evenly
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")
P = ParamSpec("P")
Job = Callable[Concatenate[Connection, P], T]
"""A function of a connection and further arguments."""

LOCK = 0x70656E63
"""The advisory lock of PostgreSQL that all writers take: "penc" in ASCII."""
LARGEST_BATCH = 200
"""Jobs of one transaction: the first one waits for all of them."""
BUSY_SECONDS = 30
"""SQLite's patience with a locked file."""
SCRUBS = 5
"""Attempts to truncate SQLite's log, each of which a reader may prevent."""


class Database:
    """A database of studies.

    url: "sqlite:///path" or "postgresql+psycopg://…". durable=False omits the flush after each
    commit: a crash of the machine, not of the process, may lose the last commits. The model
    process uses it, because its results can be made again.
    """

    def __init__(self, url: str, *, durable: bool = True) -> None:
        try:
            self.url = sa.make_url(url)
        except sa.exc.ArgumentError as error:
            raise DataError(
                f"{url!r} is no address of a database: it must look like sqlite:///study.db or "
                "postgresql+psycopg://user@host/name"
            ) from error
        if self.url.get_backend_name() == "postgresql":
            self.url = self.url.set(drivername="postgresql+psycopg")
        elif self.url.get_backend_name() != "sqlite":
            raise DataError(
                f"the database is {self.url.get_backend_name()}: it must be sqlite or postgresql"
            )
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite:
            # SQLite gives its log the same mode; where this fails, it says why
            with suppress(OSError):
                os.close(os.open(str(self.url.database), os.O_RDWR | os.O_CREAT, 0o600))
        self._readers = _engine(self.url, "BEGIN", durable)
        self._writers = _engine(self.url, "BEGIN IMMEDIATE", durable)
        self._jobs: queue.SimpleQueue[tuple[Job[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._work, name="writer", daemon=True)
        self._writer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, job: Job[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Run a job that changes nothing, on one consistent state."""
        with self._readers.connect() as conn, conn.begin():
            return job(conn, *args, **options)

    def write(self, job: Job[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Run a job and return its result once it is committed; its errors are raised here."""
        return self.submit(job, *args, **options).result()

    def submit(self, job: Job[P, T], *args: P.args, **options: P.kwargs) -> "Future[T]":
        """Queue a job for the writer thread."""
        future: Future[T] = Future()
        self._jobs.put((lambda conn: job(conn, *args, **options), future))
        return future

    @property
    def waiting(self) -> int:
        """Jobs that wait for the writer thread."""
        return self._jobs.qsize()

    def migrate(self) -> None:
        """Bring the tables to the newest version."""
        from alembic import command
        from alembic.config import Config as AlembicConfig

        config = AlembicConfig()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))

        with self._writers.connect() as conn, conn.begin():
            self._lock(conn)
            config.attributes["connection"] = conn
            command.upgrade(config, "head")

    def scrub(self) -> None:
        """Truncate SQLite's write-ahead log, so that it holds no deleted rows."""
        if self.is_sqlite:
            with self._writers.connect() as conn:
                for _ in range(SCRUBS):
                    done = conn.connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    if not done.fetchone()[0]:  # 1: a reader kept the log in use
                        return

    def close(self) -> None:
        """Finish submitted jobs, then close all connections."""
        self._jobs.put(None)
        self._writer.join()
        self._readers.dispose()
        self._writers.dispose()

    def _lock(self, conn: Connection) -> None:
        if not self.is_sqlite:  # BEGIN IMMEDIATE has it already
            conn.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))

    @contextmanager
    def _queued(self) -> Iterator[None]:
        """Wait in line with the writers of other processes for an SQLite file.

        SQLite's own waiting sleeps longer and longer: 30 ms a write between two processes. In
        line it is 1 ms.
        """
        if not self.is_sqlite or fcntl is None:
            yield
            return
        with os.fdopen(os.open(f"{self.url.database}-lock", os.O_RDWR | os.O_CREAT, 0o600)) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _work(self) -> None:
        batch: list[tuple[Job[[], Any], Future[Any]] | None] = []
        while None not in batch:  # which `close` puts at the end
            batch = [self._jobs.get()]
            while len(batch) < LARGEST_BATCH and not self._jobs.empty():
                batch.append(self._jobs.get())
            # who has gone away meanwhile has cancelled theirs
            kept = [e for e in batch if e is not None and e[1].set_running_or_notify_cancel()]
            if kept:
                self._commit(kept)

    def _commit(self, batch: list[tuple[Job[[], Any], "Future[Any]"]]) -> None:
        """Run jobs in one transaction. Each may fail alone; results are set after the commit."""
        outcomes: list[tuple[Any, Exception | None]] = []
        try:
            with self._queued(), self._writers.connect() as conn, conn.begin():
                self._lock(conn)
                outcomes = [_try(conn, job) for job, _ in batch]
        except Exception as error:
            outcomes = [(None, error)] * len(batch)
        for (_, future), (result, failure) in zip(batch, outcomes, strict=True):
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)


def _try(conn: Connection, job: Job[[], Any]) -> tuple[Any, Exception | None]:
    savepoint = conn.begin_nested()
    try:
        result = job(conn)
    except sa.exc.OperationalError:
        raise  # the database failed, not the job: the whole batch is rolled back
    except Exception as error:
        savepoint.rollback()
        return None, error
    savepoint.commit()
    return result, None


def _engine(url: sa.URL, begin: str, durable: bool) -> Engine:
    if url.get_backend_name() != "sqlite":
        engine = sa.create_engine(url, pool_pre_ping=True, pool_size=10, hide_parameters=True)
        if not durable:
            event.listen(engine, "connect", _postgres_without_flush)
        return engine
    waiting = {"timeout": BUSY_SECONDS}
    # hide_parameters: errors are logged, and logs hold nothing about people
    engine = sa.create_engine(url, connect_args=waiting, pool_size=10, hide_parameters=True)

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # we begin transactions, not the driver
        for pragma in (
            "journal_mode=WAL",
            f"synchronous={'FULL' if durable else 'NORMAL'}",
            "secure_delete=ON",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(conn: Connection) -> None:
        conn.exec_driver_sql(begin)

    return engine


def _postgres_without_flush(connection: Any, _record: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
    connection.commit()
