"""The commands of `penchant study`; `COMMANDS` holds their help."""

import asyncio
import json
import re
import shutil
import sys
import tempfile
import time
import webbrowser
from pathlib import Path
from typing import Any

import click

from penchant.errors import DataError
from penchant.study import folder as files
from penchant.study import logs
from penchant.study import supervisor as server
from penchant.study.config import FOLLOW_BROWSER, FORMATS, MODELS, Config
from penchant.study.folder import Folder
from penchant.study.items import read_items
from penchant.study.refusals import check_language, use_strings
from penchant.study.store import reports, studies, whole

DIRECTORY = click.Path(path_type=Path, file_okay=False)
FOLDER = click.argument("folder", type=DIRECTORY)


def note(text: str) -> None:
    """Print a note on stderr."""
    click.echo(text, err=True)


def suggest(text: str) -> None:
    """Print the last line, which suggests the next command."""
    click.secho(f"next: {text}", bold=True, err=True)


@click.command()
@FOLDER
@click.option("--items", required=True, type=click.Path(path_type=Path), help="CSV of the items.")
@click.option("--question", required=True, help="What people are asked.")
@click.option("--name", help="Name in the address; by default the folder's.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="pair", show_default=True)
@click.option("--size", type=int, help="Items a question, with best or rank.")
@click.option("--model", type=click.Choice(MODELS), default="shared", show_default=True)
@click.option("--language", default=FOLLOW_BROWSER, show_default=True, help="en, de, …")
@click.option("--answers", "answers_per_person", type=int, help="Answers a person gives.")
@click.option("--consent", type=click.Path(path_type=Path), help="Markdown to agree to.")
@click.option("--settings", type=click.Path(path_type=Path), help="JSON file of further settings.")
@click.option("--database", help="postgresql://… ; by default SQLite in the folder.")
def new(
    folder: Path,
    items: Path,
    question: str,
    name: str | None,
    form: str,
    size: int | None,
    settings: Path | None,
    consent: Path | None,
    database: str | None,
    **choices: Any,
) -> None:
    values: dict[str, Any] = {k: v for k, v in choices.items() if v is not None}
    values |= {"question": question, "format": form}
    values["size"] = (2 if form == "pair" else 4) if size is None else size
    if consent is not None:
        values["consent"] = _text(consent)
    if settings is not None:
        values |= _json(settings)
    config = Config.from_json(values)
    use_strings(folder / "strings")
    check_language(config.language)
    study = name or re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")
    if not re.fullmatch(r"[a-z0-9-]{1,40}", study):
        raise DataError(f"the name is {study!r}: it must be 1 to 40 of a–z, 0–9 and -; give --name")
    existed = folder.exists()
    it = Folder.create(folder, study, database)
    try:
        found, notes = read_items(items, it.media)
        if len(found) < config.size:
            raise DataError(f"{items} has {len(found)} items: a question shows {config.size}")
        with it.open() as store:
            store.write(studies.create, study, config, found, time.time())
    except BaseException:
        if not existed:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            (folder / "study.json").unlink(missing_ok=True)
        raise
    for text in notes:
        note(text)
    note(f"{len(found)} items, {len(found[0].features)} features each: study {study!r} in {folder}")
    suggest(f"penchant study serve {folder}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as text ({error})") from error


def _json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(_text(path))
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path} is no JSON ({error}): it must be one object of settings"
        ) from error
    if not isinstance(values, dict):
        raise DataError(
            f"{path} holds a {type(values).__name__}: it must be one object of settings"
        )
    return values


@click.command()
@FOLDER
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64))
@click.option("--proxies", default="", help="Addresses whose X-Forwarded-… headers are believed.")
@click.option("--public", help="The address that people use, for the links that are printed.")
@click.option("--log", default="plain", show_default=True, type=click.Choice(logs.FORMS))
@click.option("--metrics", is_flag=True, help="Numbers for Prometheus at /metrics.")
@click.option("--backup-every", help="Back up so often: 24h, 90m, 7d.")
@click.option("--backups", type=DIRECTORY, help="Where; by default FOLDER-backups.")
@click.option("--keep", default=7, show_default=True, type=click.IntRange(1), help="Backups kept.")
def serve(
    folder: Path,
    host: str,
    port: int,
    workers: int,
    proxies: str,
    public: str | None,
    log: str,
    metrics: bool,
    backup_every: str | None,
    backups: Path | None,
    keep: int,
) -> None:
    it, path, made = Folder(folder), folder.resolve(), None
    if backup_every is not None:
        to = backups.resolve() if backups else default_backups(folder)
        made = server.Backups(Folder(path), to, seconds_of(backup_every), keep)
    elif backups is not None:
        raise DataError("--backups says where, not when: give --backup-every 24h too")
    logs.set_up(log)
    with server.listen(host, port) as sock:
        supervisor = server.Supervisor(
            path, sock, workers, proxies, log=log, metrics=metrics, backups=made
        )
        server.stop_on_signals(supervisor.stopping)
        if log == "plain":  # a log of JSON is collected: it holds no links
            print_links(it, public or server.address_of(sock, host))
            if host not in server.LOOPBACK:
                note(
                    "this is plain HTTP on a network: put a server with TLS in front "
                    "(docs/study.md has nginx and Caddy) and give its address with --proxies"
                )
            note("Ctrl-C ends it; answers are on disk as soon as they are acknowledged")
        else:
            it.open().close()  # which migrates
        supervisor.run()


def default_backups(folder: Path) -> Path:
    """Where `serve` keeps backups unless told otherwise: beside the folder."""
    path = folder.resolve()
    return path.with_name(f"{path.name}-backups")


def seconds_of(text: str) -> float:
    """A time as people write it.

    >>> seconds_of("24h"), seconds_of("90m")
    (86400.0, 5400.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    seconds = (
        float(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86_400}[found[2]] if found else 0.0
    )
    if seconds <= 0.0:
        raise DataError(f"the time is {text!r}: it must look like 24h, 90m or 7d")
    return seconds


def print_links(it: Folder, address: str) -> str:
    """Print the participants' link and a new one of the owner; return the owner's."""
    invite = (it.study, time.time(), "owner", "serve", None, 30.0)
    with it.open() as database:
        link = f"{address}/o/{it.study}?key={database.write(studies.create_invite, *invite)}"
    click.echo(f"participants: {address}/s/{it.study}")
    click.echo(f"owner:        {link}")
    sys.stdout.flush()
    return link


@click.command()
@FOLDER
def work(folder: Path) -> None:
    server.run_model(folder)


@click.command()
@FOLDER
@click.option("-n", default=1, show_default=True, type=click.IntRange(1, 10_000))
@click.option("--uses", default=1, show_default=True, help="How often each serves.")
@click.option("--days", type=float, help="How long each serves.")
@click.option("--owner", is_flag=True, help="Links to the dashboard, not to the questions.")
@click.option("--public", default="http://127.0.0.1:8000", show_default=True)
def invite(folder: Path, n: int, uses: int, days: float | None, owner: bool, public: str) -> None:
    from penchant.study.web.owner import invite_path

    role = "owner" if owner else "participant"
    it = Folder(folder)
    with it.open() as database:
        given = (it.study, time.time(), role, "", None if owner else uses, days)
        for _ in range(n):
            token = database.write(studies.create_invite, *given)
            click.echo(public.rstrip("/") + invite_path(it.study, role, token))


@click.command()
@FOLDER
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def status(folder: Path, as_json: bool) -> None:
    it = Folder(folder)
    with it.open() as database:
        state = database.read(reports.overview, it.study, time.time())
    if as_json:
        click.echo(json.dumps(state, indent=2, ensure_ascii=False))
        return
    counts = state["counts"]
    click.echo(f"{it.study}: {state['state']}")
    click.echo(
        f"answers: {counts['answers']}, {counts['imported']} of them imported; "
        f"{counts['participants']} people took part"
    )
    for row in state["ranking"][:10]:
        click.echo(f"{row['rank']:>4}  {row['name']}  {row['utility']:+.2f}")
    suggest(f"penchant study export {folder} -o votes.csv")


@click.command()
@FOLDER
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path))
@click.option("--everybody", is_flag=True, help="The answers of excluded people, too.")
def export(folder: Path, output: Path, everybody: bool) -> None:
    it = Folder(folder)
    with it.open() as database:
        with studies.uncollected():
            rows = database.read(lambda c: list(reports.export_rows(c, it.study, everybody)))
        config = database.read(studies.get, it.study).config
    files.write_votes(rows, output)
    note(f"{len(rows)} comparisons in {output}")
    kind = "multi-user" if config.model == "personal" else "gp"
    suggest(f"penchant rank {output} --model {kind}")


@click.command("import")
@FOLDER
@click.argument("votes", type=click.Path(path_type=Path))
def import_(folder: Path, votes: Path) -> None:
    if not votes.is_file():
        raise DataError(f"there is no file {votes}: check the path")
    rows, is_export = files.read_votes(votes.read_bytes(), votes.suffix)
    it = Folder(folder)
    with it.open() as database:
        n = database.write(studies.import_answers, it.study, rows, time.time(), is_export)
    note(f"{n} distinct comparisons taken in" + (", others were here already" * (n < len(rows))))


@click.command()
@FOLDER
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path))
@click.option("--keep", type=click.IntRange(1), help="-o is a folder of dated ones: keep so many.")
def backup(folder: Path, output: Path, keep: int | None) -> None:
    it = Folder(folder)
    with it.open() as database:
        if keep is None:
            files.backup_to(it, database, output)
        else:
            output = files.dated_backup(it, database, output, keep)
    note(f"{output} holds answers and secrets: keep it as safe as {folder}")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@FOLDER
@click.option("--database", help="postgresql://… takes in the answers; by default SQLite.")
def restore(file: Path, folder: Path, database: str | None) -> None:
    files.restore_from(file, folder, database)
    suggest(f"penchant study serve {folder}")


@click.command()
@FOLDER
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(folder: Path, yes: bool) -> None:
    it = Folder(folder)
    with it.open() as database:
        counts = database.read(reports.counts, it.study, time.time())
        people = len(database.read(studies.people_of, it.study))
        last = database.read(whole.last_backup, it.study)
        what = f"the study {it.study!r}: {counts['answers']} answers of {people} people"
        if not (yes or click.confirm(f"Delete {what}, for ever?", err=True)):
            note("nothing was deleted")
            return
        database.write(whole.delete, it.study)
        database.scrub()
    left = files.remove(it)
    note(f"deleted {what}")
    if not database.is_sqlite:
        note("on PostgreSQL, VACUUM FULL removes the last of the rows from its files")
    if left:
        note(f"{folder} stays, as it holds what is not of the study: {', '.join(left)}")
    places = {default_backups(folder), *([Path(last["file"]).parent] if last else [])}
    for path in sorted(path for place in places for path in files.backups_of(it.study, place)):
        note(f"this backup still holds all of it: {path}")
    note("copies made by `backup -o FILE`, or from the owner's page, are where you put them")


DRINKS = ("tea", "coffee", "cocoa", "milk", "water", "juice", "lemonade", "cola", "mate", "cider")


@click.command()
@FOLDER
@click.option("--people", default=50, show_default=True, type=click.IntRange(1, 1000))
@click.option("--answers", default=40, show_default=True, type=click.IntRange(1, 1000))
@click.option("--seed", default=0, show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), help="Keep the simulated study here.")
def simulate(folder: Path, people: int, answers: int, seed: int, keep: Path | None) -> None:
    from penchant.study import robots
    from penchant.study.web.participant import option

    with tempfile.TemporaryDirectory(prefix="penchant-") as scratch:
        copy = files.copy_without_answers(Folder(folder), keep or Path(scratch) / "study")
        note(f"{people} robots answer a copy of {copy.study}; the study itself is not touched")
        plan = robots.RobotPlan(people, answers, ramp=0.04 * people, seed=seed)
        taste = robots.RobotTaste(seed)
        with server.running(copy.path) as address:
            crowd = asyncio.run(robots.simulate(address, copy.study, plan))
            state = _settled(copy)
        with copy.open() as database:
            rows = database.read(studies.items_of, copy.study)
        shown = {
            row.name: robots.shown_content(option(row.id, row.media, row.body)) for row in rows
        }
        truth = {name: taste.utility(content) for name, content in shown.items()}
    n = len(crowd.acknowledged)
    ranked = [row["name"] for row in state["ranking"]]
    best = sorted(truth, key=truth.__getitem__, reverse=True)
    top = min(10, len(best))
    failed = sum(times for status, times in crowd.statuses.items() if status >= 400)
    click.echo(f"{n} answers by {people} robots; failed requests: {failed}")
    both = len(set(ranked[:top]) & set(best[:top]))
    click.echo(f"of the {top} best in most robots' taste, {both} are the ranking's first {top}")
    if keep is not None:
        suggest(f"penchant study serve {keep}")


def _settled(folder: Folder, seconds: float = 30.0) -> dict[str, Any]:
    """The overview, once the model process has caught up."""
    ends = time.monotonic() + seconds
    with folder.open() as database:
        while True:
            state = database.read(reports.overview, folder.study, time.time())
            if not state["model"]["behind"] or time.monotonic() > ends:
                return state
            time.sleep(0.1)


@click.command()
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
@click.option("--seconds", type=float, help="End by itself after so long.")
@click.option("--browser/--no-browser", default=True, help="Open the dashboard.")
def demo(port: int, seconds: float | None, browser: bool) -> None:
    from penchant.study import robots

    with tempfile.TemporaryDirectory(prefix="penchant-") as scratch:
        items = Path(scratch) / "items.csv"
        items.write_text("\n".join(["name", *DRINKS]))
        folder = Path(scratch) / "drinks"
        about = {"question": "Which would you rather drink?", "form": "pair"}
        click.get_current_context().invoke(new, folder=folder, items=items, **about)
        with server.running(folder, port) as address:
            link = print_links(Folder(folder), address)
            if browser:
                webbrowser.open(link)
            note("robots answer meanwhile; Ctrl-C ends it")
            plan = robots.RobotPlan(people=20, answers=40, pause=2.0, deadline=seconds or 120.0)
            try:
                asyncio.run(robots.simulate(address, "drinks", plan))
                time.sleep(0.0 if seconds else 10**6)
            except KeyboardInterrupt:
                note("")
    suggest("penchant study new DIR --items items.csv --question '…'")
