"""`penchant study simulate` and `demo`: a study with robots in it.

Robots and web are imported where they are used: every other command starts sooner without them.
"""

import asyncio
import tempfile
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from penchant.study import exchange
from penchant.study.folder import Folder
from penchant.study.management import (
    FOLDER,
    address_of,
    new,
    note,
    opened,
    owner_token,
    suggest,
)
from penchant.study.serve import Supervisor, listen, wait_until_up
from penchant.study.store import learning, reports, studies

DRINKS = ("tea", "coffee", "cocoa", "milk", "water", "juice", "lemonade", "cola", "mate", "cider")


@contextmanager
def running(folder: Path, port: int = 0, seconds: float = 30.0) -> Iterator[str]:
    """The address of a study that is served meanwhile, on this machine only.

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
            supervisor.stop()
            thread.join()


@click.command()
@FOLDER
@click.option("--people", default=50, show_default=True, type=click.IntRange(1, 1000))
@click.option("--answers", default=40, show_default=True, type=click.IntRange(1, 1000))
@click.option("--seed", default=0, show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), help="Keep the simulated study here.")
def simulate(folder: Path, people: int, answers: int, seed: int, keep: Path | None) -> None:
    """Let robots with known tastes answer a copy of a study, over HTTP."""
    from penchant.study.robots import RobotPlan, RobotTaste
    from penchant.study.robots import simulate as crowd_of

    with tempfile.TemporaryDirectory(prefix="penchant-") as scratch:
        copy = exchange.copy_without_answers(Folder(folder), keep or Path(scratch) / "study")
        note(f"{people} robots answer a copy of {copy.study}; the study itself is not touched")
        with running(copy.path) as address:
            crowd = asyncio.run(
                crowd_of(address, copy.study, RobotPlan(people, answers, seed=seed))
            )
            state = _settled(copy)
        truth = {row.name: RobotTaste(seed).utility(_content(row)) for row in _items(copy)}
    n = len(crowd.acknowledged)
    ranked = [row["name"] for row in state["ranking"]]
    best = sorted(truth, key=truth.__getitem__, reverse=True)
    top = min(10, len(best))
    click.echo(f"{n} answers by {people} robots; failed requests: {_failed(crowd.statuses)}")
    both = len(set(ranked[:top]) & set(best[:top]))
    click.echo(f"of the {top} best in most robots' taste, {both} are the ranking's first {top}")
    if keep is not None:
        suggest(f"penchant study serve {keep}")


def _failed(statuses: Any) -> int:
    return sum(n for status, n in statuses.items() if status >= 400)


def _items(folder: Folder) -> list[Any]:
    with opened(folder.path) as (it, database):
        return database.read(lambda c: studies.items_of(c, it.study))


def _content(row: Any) -> str:
    from penchant.study.web.participant import option

    shown = option(row.id, row.media, row.body)
    return shown.get("text") or shown.get("html") or shown["url"]


def _settled(folder: Folder, seconds: float = 30.0) -> dict[str, Any]:
    """The overview once the model process has seen everything."""
    ends = time.monotonic() + seconds
    with opened(folder.path) as (it, database):
        while True:
            state = database.read(lambda c: reports.overview(c, it.study, time.time()))
            summary = database.read(lambda c: learning.last_summary(c, it.study))
            if (summary and not state["model"]["behind"]) or time.monotonic() > ends:
                return state
            time.sleep(0.1)


@click.command()
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
@click.option("--seconds", type=float, help="End by itself after so long.")
@click.option("--browser/--no-browser", default=True, help="Open the dashboard.")
def demo(port: int, seconds: float | None, browser: bool) -> None:
    """Make a study, serve it, let robots answer, and open its dashboard."""
    from penchant.study.robots import RobotPlan
    from penchant.study.robots import simulate as crowd_of

    with tempfile.TemporaryDirectory(prefix="penchant-") as scratch:
        items = Path(scratch) / "items.csv"
        items.write_text("\n".join(["name", *DRINKS]))
        folder = Path(scratch) / "drinks"
        context = click.get_current_context()
        question = "Which would you rather drink?"
        context.invoke(new, folder=folder, items=items, question=question, form="pair")
        with opened(folder) as (it, database):
            token = owner_token(database, it.study)
        with running(folder, port) as address:
            click.echo(f"participants: {address}/s/drinks")
            link = f"{address}/o/drinks?key={token}"
            click.echo(f"owner:        {link}")
            if browser:
                webbrowser.open(link)
            note("robots answer meanwhile; Ctrl-C ends it")
            plan = RobotPlan(people=20, answers=40, pause=2.0, deadline=seconds or 120.0)
            try:
                asyncio.run(crowd_of(address, "drinks", plan))
                time.sleep(0.0 if seconds else 10**6)
            except KeyboardInterrupt:
                note("")
    suggest("penchant study new DIR --items items.csv --question '…'")
