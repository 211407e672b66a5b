"""The supervisor of a study's processes: web processes and the model process.

It starts them, and starts them again when they end. Each of them is
`python -m penchant.study.supervisor web|work FOLDER`. A process imports only what it needs, because
people wait for it after a crash.
"""

import logging
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penchant.errors import DataError
from penchant.study import logs
from penchant.study.folder import (
    MANY_DEATHS,
    NUMBERS,
    Folder,
    backups_of,
    dated_backup,
    write_deaths,
)
from penchant.study.logs import tell

if TYPE_CHECKING:
    import uvicorn

LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::")
LONGEST_PAUSE = 2.0
"""Seconds before a process that keeps crashing is started again. People wait less than five,
the start included."""
STEADY_SECONDS = 5.0
"""A process that ran so long did not crash at its start."""
LOOK_SECONDS = 0.2
"""Seconds between two looks at the processes."""
SWITCH_SECONDS = 0.0005
"""Python's switch interval in web processes: a request waits so long for each busy thread. The
default is ten times as long."""
NICE = 5
"""Priority of the model process: below web processes, for which people wait."""
RETRY_SECONDS = 300.0
"""Seconds after which a backup that failed is tried again."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that the web processes share: requests wait in it while a process restarts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise DataError(
            f"port {port} of {host} cannot be used ({error.strerror}): give --port"
        ) from (error)
    sock.listen(2048)
    sock.set_inheritable(True)
    return sock


@dataclass
class Child:
    """A process that is started again when it ends."""

    name: str
    arguments: list[str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    failures: int = 0
    deaths: list[float] = field(default_factory=list)

    def keep_alive(self, descriptors: tuple[int, ...]) -> None:
        """Start the process if it does not run; after repeated crashes wait longer."""
        now = time.monotonic()
        if self.process is not None:
            if self.process.poll() is None:
                return
            lived = now - self.started
            tell(
                "child_ended",
                "the process {name} ended by itself after {seconds} s ({how}): it is started again",
                logging.WARNING,
                name=self.name,
                seconds=round(lived, 1),
                how=_how(self.process.returncode),
            )
            self.deaths = [*self.deaths, now][-MANY_DEATHS:]
            self.failures = 0 if lived > STEADY_SECONDS else self.failures + 1
            self.process = None
            self.started = now
        if now - self.started < min(LONGEST_PAUSE, 0.1 * (2**self.failures - 1)):
            return
        command = [sys.executable, "-m", "penchant.study.supervisor", *self.arguments]
        # a session of its own: an interrupt is for the supervisor, or for a notebook's cell
        self.process = subprocess.Popen(command, pass_fds=descriptors, start_new_session=True)
        self.started = now


def _how(code: int) -> str:
    return f"signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"exit status {code}"


@dataclass
class Backups:
    """Dated backups of a folder's study: one `every` so many seconds, the newest `keep` stay."""

    folder: Folder
    to: Path
    every: float
    keep: int

    def due_in(self) -> float:
        """Seconds until the next one by the time of the last, which a restart does not change."""
        now = time.time()
        ages = [now - path.stat().st_mtime for path in backups_of(self.folder.study, self.to)]
        # a clock may have been set back
        youngest = min((age for age in ages if age >= 0.0), default=math.inf)
        return max(0.0, self.every - youngest)

    def run(self, stop: threading.Event) -> None:
        """Make them until `stop` is set. What fails is logged and tried again."""
        while not stop.is_set():
            try:
                if not self.due_in():
                    with self.folder.open(durable=False, migrate=False) as database:
                        dated_backup(self.folder, database, self.to, self.keep)
                pause = min(60.0, self.due_in())
            except Exception as error:
                why = str(error) if isinstance(error, DataError) else type(error).__name__
                told = getattr(error, "strerror", None) or why
                tell("backup_failed", "no backup was made: {why}", logging.ERROR, why=told)
                pause = RETRY_SECONDS
            stop.wait(pause)


class Supervisor:
    """Runs the web processes and the model process of a folder until `stopping` is set.

    log: one of `logs.FORMS`. metrics: whether web processes count for /metrics.
    """

    def __init__(
        self,
        folder: Path,
        sock: socket.socket,
        workers: int = 1,
        proxies: str = "",
        *,
        log: str = "plain",
        metrics: bool = False,
        backups: Backups | None = None,
    ) -> None:
        self.sock, self.folder, self.backups = sock, folder, backups
        common = ["--parent", str(os.getpid()), "--log", log]
        web = ["web", str(folder), "--fd", str(sock.fileno()), *common]
        web += ["--proxies", proxies] if proxies else []
        counted = ["--metrics", str(workers), "--number"] if metrics else None
        self.children = [
            Child(f"web {k + 1}", [*web, *counted, str(k)] if counted else web)
            for k in range(workers)
        ]
        self.children.append(Child("model", ["work", str(folder), *common]))
        self.stopping = threading.Event()

    def run(self) -> None:
        """Start all processes and keep them running; in the end, end them."""
        # counts are those of this server
        (self.folder / NUMBERS).unlink(missing_ok=True)
        if self.backups is not None:
            making = threading.Thread(target=self.backups.run, args=(self.stopping,), daemon=True)
            making.start()
        tell("start", "started {processes} processes", processes=len(self.children))
        try:
            while not self.stopping.is_set():
                before = [child.deaths for child in self.children]
                for child in self.children:
                    child.keep_alive((self.sock.fileno(),))
                if [child.deaths for child in self.children] != before:
                    write_deaths(self.folder, {c.name: c.deaths for c in self.children})
                self.stopping.wait(LOOK_SECONDS)
        finally:
            self._end()
            tell("stop", "stopped")

    def _end(self) -> None:
        running = [child.process for child in self.children if child.process is not None]
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def stop_on_signals(stop: threading.Event) -> None:
    """Set `stop` on SIGINT and SIGTERM."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())


def wait_until_up(address: str, seconds: float = 30.0) -> None:
    """Wait until a server answers."""
    import httpx

    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        try:
            httpx.get(f"{address}/healthz", timeout=2)
            return
        except httpx.TransportError:
            time.sleep(0.05)
    raise DataError(f"no server answers at {address} after {seconds:.0f} s")


def address_of(sock: socket.socket, host: str) -> str:
    """The address of a socket; by the host name if it listens on all interfaces."""
    shown = socket.gethostname() if host in EVERYWHERE else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{sock.getsockname()[1]}"


@contextmanager
def running(folder: Path, port: int = 0, seconds: float = 30.0) -> Iterator[str]:
    """Serve a study on this machine only, and yield its address.

    seconds: how long it may take until it answers.
    """
    with listen("127.0.0.1", port) as sock:
        supervisor = Supervisor(folder.resolve(), sock)
        thread = threading.Thread(target=supervisor.run)
        thread.start()
        try:
            address = address_of(sock, "127.0.0.1")
            wait_until_up(address, seconds)
            yield address
        finally:
            supervisor.stopping.set()
            thread.join()


@click.command()
@click.argument("role", type=click.Choice(("web", "work")))
@click.argument("folder")
@click.option("--parent", required=True, type=int)
@click.option("--fd", type=int)
@click.option("--proxies", default="")
@click.option("--log", default="plain", type=click.Choice(logs.FORMS))
@click.option("--metrics", default=0, help="How many web processes count; 0: none.")
@click.option("--number", default=0, help="Which of them this is.")
def main(
    role: str, folder: str, parent: int, fd: int, proxies: str, log: str, metrics: int, number: int
) -> None:
    """A process of a study: serve on an inherited socket, or run the models."""
    die_with(parent)
    logs.set_up(log)
    if role == "work":
        run_model(folder, migrate=False)
        return
    import uvicorn

    from penchant.study.web import create_app

    sys.setswitchinterval(SWITCH_SECONDS)
    app = create_app(Folder(folder), migrate=False, metrics=metrics, number=number)
    config = server_config(app, proxies)
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=fd)])


def server_config(app: Any, proxies: str) -> "uvicorn.Config":
    """Settings of uvicorn; proxies: addresses whose forwarded headers are trusted."""
    import uvicorn

    return uvicorn.Config(
        app,
        access_log=False,  # addresses carry tokens and panels' ids
        log_level="warning",
        log_config=None,  # as the rest
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
        timeout_graceful_shutdown=2,
    )


def run_model(folder: str | Path, *, migrate: bool = True) -> None:
    """Run the models of a folder's studies until a signal ends it."""
    from penchant.study.learner import work

    if hasattr(os, "nice"):
        os.nice(NICE)
    with Folder(folder).open(durable=False, migrate=migrate) as database:
        stop = threading.Event()
        stop_on_signals(stop)
        work(database, stop)


def die_with(parent: int) -> None:
    """End this process when its supervisor is gone, so that nothing holds the port."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, name="watch parent", daemon=True).start()


if __name__ == "__main__":
    main()
