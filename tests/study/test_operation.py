"""A year of operation: the log, health, numbers, backups, deleting, and what pictures hide."""

import io
import json
import logging
import os
import re
import signal
import sqlite3
import stat
import struct
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

import penchant as pc
import penchant.study as ps
from penchant.study.store import studies, tables, whole

LOCAL = {"client": ("127.0.0.1", 5000)}
SNAPSHOT_AGE, BACKUP_AGE = "penchant_snapshot_age_seconds", "penchant_backup_age_seconds"


def events_of(database):
    return database.read(studies.events_after, "drinks")


def wait_until(is_so, seconds=60.0):
    ends = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.02)


# ---- the log


def formatted(formatter, **about):
    record = logging.LogRecord("penchant.study", logging.INFO, "x", 1, "said", None, None)
    vars(record).update(about)
    return formatter.format(record)


def test_a_line_of_json_holds_the_facts_of_an_event():
    facts = {"seconds": 1.5, "status": 503}
    line = json.loads(formatted(ps.JsonLines(), event="slow_request", facts=facts))
    assert (line["event"], line["level"], line["message"]) == ("slow_request", "info", "said")
    assert facts.items() <= line.items()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", line["at"])


@pytest.mark.parametrize("form", [ps.Lines, ps.JsonLines])
def test_messages_of_errors_are_not_logged(form):
    """They may hold what was sent."""
    sent = "-".join(["5f0c", "panel", "id"])  # lines of source are in the log
    try:
        raise ValueError(sent)
    except ValueError:
        line = formatted(form(), exc_info=sys.exc_info())
    assert "ValueError" in line
    assert sent not in line


class Server:
    """`penchant study serve` with its log as JSON."""

    def __init__(self, folder, *options):
        with ps.Folder(folder).open() as database:
            self.key = database.write(studies.create_invite, "drinks", time.time(), "owner")
        with ps.listen("127.0.0.1", 0) as sock:
            port = sock.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        line = [sys.executable, "-m", "penchant", "study", "serve", str(folder), *options]
        line += ["--port", str(port), "--log", "json"]
        self.process = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def when(self, path, wanted=200, **options):
        """The reply, once the server is there."""
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            try:
                got = httpx.get(f"{self.address}{path}", timeout=10, **options)
                if got.status_code == wanted:
                    return got
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        raise AssertionError(f"no {wanted} from {path}")

    def lines(self):
        """What was logged, once it has ended."""
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=30)
        assert out == ""
        return [json.loads(line) for line in err.splitlines()]


def child_of(pid, role):
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if f"PPid:\t{pid}\n" in (entry / "status").read_text() and role.encode() in words:
                return int(entry.name)
        except OSError:
            continue
    raise AssertionError(f"no process {role}")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")
def test_a_server_logs_its_events_and_counts_in_all_its_processes(tmp_path):
    folder = tmp_path / "drinks"
    with ps.Folder.create(folder, "drinks", None).open() as database:
        new = [ps.NewItem(name) for name in ("tea", "milk", "water")]
        database.write(studies.create, "drinks", ps.Config("Which?"), new, time.time())
    backups = ["--backup-every", "24h", "--backups", str(tmp_path / "kept")]
    server = Server(folder, "--workers", "2", "--metrics", *backups)
    server.when("/readyz")
    os.kill(child_of(server.process.pid, "work"), signal.SIGKILL)
    own = {"origin": server.address}
    people = []
    for _ in range(6):
        with httpx.Client(base_url=server.address, headers=own) as browser:
            browser.post("/s/drinks/join", data={})
            (question,) = browser.get("/s/drinks/next?n=1").json()["questions"]
            said = {"question": question["id"], "order": [[0], [1]]}
            assert browser.post("/s/drinks/answer", json=said).status_code == 200
            people += [question["id"], *browser.cookies.values()]
    elsewhere = httpx.post(
        f"{server.address}/s/drinks/join?pid=ann", data={}, headers={"origin": "null"}
    )
    assert elsewhere.status_code == 403
    ends, found = time.monotonic() + 60, {}
    # the model process was killed: it starts again
    while not {name for name, _ in found} >= {SNAPSHOT_AGE, BACKUP_AGE}:
        assert time.monotonic() < ends
        found = numbers(server.when("/metrics").text)
    answered = {"method": "POST", "route": "/s/{study}/answer", "status": "200"}
    assert value(found, "penchant_requests_total", **answered) == 6
    assert value(found, "penchant_answers", study="drinks") == 6
    logged = server.lines()
    told = {line["event"]: line for line in logged}
    assert {
        "start",
        "child_ended",
        "write_refused",
        "backup_made",
        "snapshot_written",
        "stop",
    } <= set(told)
    assert told["child_ended"]["name"] == "model"
    assert told["write_refused"]["status"] == 403
    assert told["backup_made"]["bytes"] > 1000
    text = json.dumps(logged)
    secrets = [server.key, ps.Folder(folder).secret, "pid=ann", "127.0.0.1", *people]
    assert [secret for secret in secrets if secret in text] == []


def test_slow_requests_and_refused_writes_are_told_once_in_a_while(served, caplog, monkeypatch):
    monkeypatch.setattr("penchant.study.web.metrics.SLOW_SECONDS", 0.0)
    for _ in range(5):
        served.browser().post("/s/drinks/join", data={}, headers={"sec-fetch-site": "cross-site"})
        served.browser().get("/s/drinks?PROLIFIC_PID=5f0c-panel-id")
    told = [
        (r.event, r.facts["route"], r.facts["status"]) for r in caplog.records if "event" in vars(r)
    ]
    assert sorted(told) == [
        ("slow_request", "(no route)", 403),
        ("slow_request", "/s/{study}", 200),
        ("write_refused", "(no route)", 403),
    ]
    assert "5f0c-panel-id" not in "".join(
        r.getMessage() for r in caplog.records if "event" in vars(r)
    )


# ---- health and numbers


def test_healthz_does_not_write_and_readyz_does(served, monkeypatch):
    written = []
    submit = served.database.submit
    monkeypatch.setattr(
        served.database, "submit", lambda *a, **o: written.append(a[0]) or submit(*a, **o)
    )
    assert served.browser().get("/healthz").json() == {"ok": True, "problems": []}
    assert written == []
    assert served.browser().get("/readyz").json() == {"ok": True, "problems": []}
    assert written == [studies.rewrite]
    monkeypatch.setattr(type(served.database), "_lock", lambda *_: (_ for _ in ()).throw(OSError()))
    served.app.state.site._looked = -1.0
    assert served.browser().get("/readyz").status_code == 503
    assert served.browser().get("/healthz").status_code == 200


def test_a_write_that_was_given_up_is_not_made_and_stops_no_other(database, study):
    held, let_go = threading.Event(), threading.Event()
    first = database.submit(lambda conn: held.set() or let_go.wait(30))
    held.wait(30)
    given_up = database.submit(studies.set_state, study.name, "closed", 5.0)
    assert given_up.cancel()
    assert database.waiting == 1
    let_go.set()
    assert first.result()
    study.write(studies.set_state, "paused", 6.0)
    assert study.read(studies.get).state == "paused"


def numbers(text):
    """The samples of Prometheus' text format: (name, labels) and value; each kind told once."""
    found, kinds = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            assert name not in kinds
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            name, labels, number = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
            base = re.sub("_(bucket|sum|count)$", "", name)
            assert name in kinds or kinds[base] == "histogram"
            pairs = re.findall(r'(\w+)="([^"]*)"', labels or "")
            found[name, frozenset(pairs)] = float(number)
    return found


def value(found, name, **labels):
    return found[name, frozenset(labels.items())]


@pytest.fixture
def counted(served):
    """Two web processes of the study that count."""
    apps = [ps.create_app(served.folder, served.clock, metrics=2, number=k) for k in (0, 1)]
    browser = type(served.browser())
    yield [lambda app=app, **options: browser(app, **options) for app in apps]
    for app in apps:
        app.state.site.database.close()


def test_numbers_are_those_of_all_processes_and_survive_a_restart(served, counted):
    here, there = (make(**LOCAL) for make in counted)
    for browser, times in ((here, 3), (there, 2)):
        browser.post("/s/drinks/join", data={})
        browser.answer(times)
        browser.say({"id": "none"})
    there.get("/static/style.css")
    there.get("/nobody/knows/this")
    there.request("BREW", "/healthz")
    for _ in range(2):
        found = numbers(here.get("/metrics").text)
        about = {"method": "POST", "route": "/s/{study}/answer"}
        total = "penchant_requests_total"
        assert value(found, total, status="200", **about) == 5
        assert value(found, total, status="404", **about) == 2
        assert value(found, total, status="200", method="GET", route="/static") == 1
        assert value(found, total, status="404", method="GET", route="(no route)") == 1
        assert value(found, total, status="405", method="other", route="/healthz") == 1
        assert value(found, "penchant_request_seconds_count", **about) == 7
        of_answers = {
            float(dict(labels)["le"]): n
            for (name, labels), n in found.items()
            if name.endswith("_bucket") and about.items() <= set(labels)
        }
        heights = [of_answers[bound] for bound in sorted(of_answers)]
        assert len(heights) == 11
        assert heights == sorted(heights)
        assert heights[-1] == 7
        assert value(found, "penchant_request_seconds_sum", **about) > 0.0
        assert value(found, "penchant_answers", study="drinks") == 5
        for name in ("penchant_open_streams", "penchant_writer_queue"):
            assert value(found, name) == 0
        assert value(found, "penchant_disk_free_bytes") > 0
        # a process that is started again goes on counting
        again = ps.create_app(served.folder, served.clock, metrics=2, number=1)
        again.state.site.database.close()
    assert (served.folder.path / "numbers").stat().st_mode & 0o077 == 0


def test_ages_of_the_last_snapshot_and_backup(served, counted, tmp_path):
    here = counted[0](**LOCAL)
    names = (SNAPSHOT_AGE, BACKUP_AGE)
    found = numbers(here.get("/metrics").text)
    assert not [name for name, _ in found if name in names]
    served.participant().answer()
    served.step()
    served.database.write(
        whole.set_backup, "drinks", {"at": served.clock(), "file": "x", "bytes": 1}
    )
    served.clock.time += 90.0
    found = numbers(here.get("/metrics").text)
    assert [value(found, name, study="drinks") for name in names] == [90.0, 90.0]


def test_numbers_are_for_this_machine_and_the_owner_alone(served, counted):
    assert served.browser(**LOCAL).get("/metrics").status_code == 404  # off unless asked for
    for options, headers, status in (
        (LOCAL, {}, 200),
        (LOCAL, {"x-forwarded-for": "192.0.2.7"}, 403),  # a proxy of this machine passed it on
        (LOCAL, {"host": "study.example"}, 403),
        ({"client": ("192.0.2.7", 5)}, {}, 403),
        ({"client": ("192.0.2.7", 5)}, {"Authorization": "Bearer no"}, 403),
        ({"client": ("192.0.2.7", 5)}, served.owner, 200),
    ):
        assert counted[0](**options).get("/metrics", headers=headers).status_code == status


def test_more_routes_than_there_is_room_for_are_counted_together():
    counts = ps.Counts()
    for k in range(1000):
        counts.add("GET", f"/{k}", 200, 0.1)
    found = numbers("\n".join(counts.lines()))
    assert sum(n for (name, _), n in found.items() if name == "penchant_requests_total") == 1000


def test_prometheus_own_parser_reads_the_numbers(counted):
    parser = pytest.importorskip("prometheus_client.parser", reason="needs prometheus-client")
    counted[0]().post("/s/drinks/join", data={})
    families = parser.text_string_to_metric_families(counted[0](**LOCAL).get("/metrics").text)
    assert {family.name: family.type for family in families}[
        "penchant_request_seconds"
    ] == "histogram"


# ---- backups


@pytest.fixture(params=["sqlite", "postgres"])
def folder(request, tmp_path, voting_in):
    """A folder whose study is on SQLite or PostgreSQL, with answers."""
    url = request.getfixturevalue("postgres")() if request.param == "postgres" else None
    made = ps.Folder.create(tmp_path / "drinks", "drinks", url)
    (made.media / ("A" * 16 + ".png")).write_bytes(b"picture")
    with made.open() as database:
        study = voting_in(database)
        for _ in range(3):
            study.answer_by(study.join(), 4, len)
        study.saved(study.worker())
    return made


def test_a_backup_restores_every_row_here_and_on_postgresql(folder, tmp_path, postgres):
    with folder.open() as database:
        ps.backup_to(folder, database, tmp_path / "copy.zip")
        rows = database.read(rows_of)
    assert set(os.listdir(tmp_path)) == {"drinks", "copy.zip"}
    for number, url in enumerate((None, postgres())):
        again = ps.restore_from(tmp_path / "copy.zip", tmp_path / f"again {number}", url)
        assert (again.media / ("A" * 16 + ".png")).read_bytes() == b"picture"
        assert again.secret == folder.secret
        with again.open() as database:
            assert database.is_sqlite == (url is None)
            assert database.read(rows_of) == rows
            ranking = ps.replayed(database, "drinks").ranking()
        assert len(ranking) == 5
        with pytest.raises(pc.DataError, match="holds a study"):
            ps.restore_from(tmp_path / "copy.zip", tmp_path / f"again {number}", url)


def test_a_backup_is_of_one_moment_while_people_answer(folder, tmp_path):
    stop = threading.Event()

    def write(database):
        while not stop.is_set():
            database.write(studies.append, "drinks", "state", {"state": "running"}, 1.0)

    with folder.open() as database, folder.open(durable=False) as other:
        writing = threading.Thread(target=write, args=(other,))
        writing.start()
        try:
            for k in range(3):
                ps.backup_to(folder, database, tmp_path / f"{k}.zip")
        finally:
            stop.set()
            writing.join()
    for k in range(3):
        with ps.restore_from(tmp_path / f"{k}.zip", tmp_path / f"again {k}").open() as database:
            seqs = [event.seq for event in events_of(database)]
            assert seqs == list(range(1, database.read(studies.get, "drinks").seq + 1))


def rows_of(conn):
    return {
        table.name: sorted(map(str, conn.execute(table.select())))
        for table in tables.metadata.sorted_tables
    }


def test_dated_backups_are_made_when_due_and_the_newest_are_kept(folder, tmp_path):
    to = tmp_path / "kept"
    backups = ps.Backups(folder, to, every=3600.0, keep=2)
    assert backups.due_in() == 0.0
    to.mkdir()
    for day in (1, 2, 3):
        (to / f"drinks-2026010{day}T030000Z.zip").write_bytes(b"old")
        os.utime(to / f"drinks-2026010{day}T030000Z.zip", (day, day))
    (to / "drinks-x.part").mkdir()
    (to / "other-20260101T030000Z.zip").write_bytes(b"of another study")
    stop = threading.Event()
    making = threading.Thread(target=backups.run, args=(stop,), daemon=True)
    making.start()
    wait_until(lambda: backups.due_in() > 0.0 and len(ps.backups_of("drinks", to)) == 2)
    stop.set()
    making.join()
    old, new = ps.backups_of("drinks", to)
    assert old.name == "drinks-20260103T030000Z.zip"
    assert 3500.0 < backups.due_in() <= 3600.0
    assert sorted(os.listdir(to)) == sorted([old.name, new.name, "other-20260101T030000Z.zip"])
    with folder.open() as database:
        known = database.read(whole.last_backup, "drinks")
    assert (known["file"], known["bytes"]) == (str(new.resolve()), new.stat().st_size)
    assert len(events_of_backup(new, tmp_path)) == 5 + 12
    os.utime(new, (time.time() + 9999, time.time() + 9999))  # a clock that was set back
    assert backups.due_in() == 0.0


def events_of_backup(path, tmp_path):
    with ps.restore_from(path, tmp_path / "again").open() as database:
        return events_of(database)


def test_a_backup_that_fails_is_told_and_tried_again(folder, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("penchant.study.supervisor.RETRY_SECONDS", 0.01)
    (tmp_path / "kept").write_text("a file where the folder should be")
    stop = threading.Event()
    making = threading.Thread(
        target=ps.Backups(folder, tmp_path / "kept", 3600.0, 2).run, args=(stop,)
    )
    making.start()
    wait_until(lambda: caplog.text.count("no backup was made") > 1)
    (tmp_path / "kept").unlink()
    wait_until(lambda: ps.backups_of("drinks", tmp_path / "kept"))
    stop.set()
    making.join()


def test_a_damaged_database_replaces_no_backup(tmp_path, voting_in):
    folder = ps.Folder.create(tmp_path / "drinks", "drinks", None)
    with folder.open() as database:
        study = voting_in(database, items=[f"item {k}" for k in range(400)])
        study.join()
    good = tmp_path / "copy.zip"
    with folder.open() as database:
        ps.backup_to(folder, database, good)
    before = good.read_bytes()
    path = folder.path / "study.db"
    content = bytearray(path.read_bytes())
    for page in range(3 * 4096, len(content), 4096):
        content[page : page + 40] = b"\xff" * 40
    path.write_bytes(content)
    broken = pytest.raises((pc.DataError, sqlite3.DatabaseError))
    with ps.Database(f"sqlite:///{path}") as database, broken:
        ps.backup_to(folder, database, good)
    assert good.read_bytes() == before
    assert set(os.listdir(tmp_path)) == {"drinks", "copy.zip"}


# ---- files and deleting


def test_files_are_closed_to_others_also_those_of_earlier_versions(folder, tmp_path):
    old = os.umask(0o000)
    try:
        with folder.open() as database:
            ps.dated_backup(folder, database, tmp_path / "kept", 3)
            ps.backup_to(folder, database, tmp_path / "copy.zip")
        app = ps.create_app(folder, metrics=1)
        ps.write_deaths(folder.path, {})
        (folder.path / "media" / "old.png").write_bytes(b"")
        app.state.site.database.close()
        folder.path.chmod(0o755)
        folder.open().close()
    finally:
        os.umask(old)
    paths = [tmp_path / "copy.zip", tmp_path / "kept", *tmp_path.glob("kept/*")]
    paths += [folder.path, *folder.path.rglob("*")]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in paths}
    assert {n: oct(m) for n, m in modes.items() if m not in (0o600, 0o700)} == {}
    assert {"numbers", "limits", "secret", "study.json", "deaths.json", "old.png"} <= set(modes)


def call(*arguments, **options):
    result = CliRunner().invoke(ps.command, [str(a) for a in arguments], **options)
    if isinstance(result.exception, pc.DataError):
        raise result.exception
    return result


def test_a_study_is_deleted_when_asked_and_what_holds_it_still_is_told(folder, tmp_path):
    other = ps.Folder.create(tmp_path / "other", "other", folder.database_url)
    with folder.open() as database:
        shared = not database.is_sqlite
        default = ps.dated_backup(folder, database, tmp_path / "drinks-backups", 3)
        kept = ps.dated_backup(folder, database, tmp_path / "kept", 3)
        if shared:
            new = [ps.NewItem("tea"), ps.NewItem("milk")]
            database.write(studies.create, "other", ps.Config("Which?"), new, 1.0)
            before = {
                k: [r for r in rows if "'other'" in r] for k, rows in database.read(rows_of).items()
            }
    (folder.path / "notes.txt").write_text("of the owner")
    asked = call("delete", folder.path, input="n\n").output
    assert "12 answers of 3 people" in asked
    assert "nothing was deleted" in asked
    assert (folder.path / "study.json").exists()
    told = call("delete", folder.path, "--yes").output
    for path in (default, kept):
        assert f"still holds all of it: {path}" in told
    assert "notes.txt" in told
    assert os.listdir(folder.path) == ["notes.txt"]
    if shared:
        with other.open() as database:
            assert database.read(rows_of) == before
    with pytest.raises(pc.DataError, match="no folder of a study"):
        call("status", folder.path)
    assert len(events_of_backup(kept, tmp_path)) == 17


# ---- what people can have


def test_participants_get_what_they_said_and_nothing_of_others(serve):
    items = [ps.NewItem(f"secret name {k}", "markdown", f"shown *{k}*") for k in range(5)]
    check = {"prompt": "Take the second.", "options": ["one", "two"], "right": 1}
    served = serve(items=items, checks=[check])
    browser, other = served.participant(panel="5f0c"), served.participant()
    other.answer(3)
    served.step()
    browser.answer(2)
    browser.answer(order=None)
    last = browser.next()["undo"]
    browser.post("/s/drinks/undo", json={"question": last})
    assert 'href="/s/drinks/me"' in browser.get("/s/drinks/done").text
    got = browser.get("/s/drinks/me")
    assert got.headers["content-disposition"].startswith("attachment")
    mine = got.json()
    assert (mine["kind"], mine["study"], mine["consent"]) == ("panel", "drinks", None)
    assert [a["order"] for a in mine["answers"]] == [[[0], [1]], [[0], [1]], None]
    assert [a["withdrawn"] for a in mine["answers"]] == [False, False, True]
    assert all(len(a["options"]) == 2 for a in mine["answers"])
    ids = [row.id for row in served.database.read(studies.items_of, "drinks")]
    hidden = ["secret name", "p_before", "random", "5f0c", *ids]
    assert [word for word in hidden if word in got.text] == []
    assert served.browser().get("/s/drinks/me").status_code == 403


# ---- what pictures hide


def exif(orientation, order=">"):
    """EXIF with a maker, an orientation and a place."""
    pack = struct.pack
    head = b"MM\0*" if order == ">" else b"II*\0"
    entries = pack(f"{order}HHII", 0x010F, 2, 10, 50) + pack(
        f"{order}HHIHH", 0x0112, 3, 1, orientation, 0
    )
    return head + pack(f"{order}IH", 8, 2) + entries + bytes(16) + b"SecretCam\0"


def segment(code, body):
    return bytes((0xFF, code)) + (len(body) + 2).to_bytes(2, "big") + body


def chunk(kind, body):
    return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")


def riff(*parts):
    body = b"".join(k + len(b).to_bytes(4, "little") + b + b"\0" * (len(b) % 2) for k, b in parts)
    return b"RIFF" + (4 + len(body)).to_bytes(4, "little") + b"WEBP" + body


def jpeg(turned):
    hidden = segment(0xE1, b"Exif\0\0" + exif(turned)) + segment(
        0xE1, b"http://ns.adobe.com/Secret"
    )
    hidden += segment(0xED, b"Photoshop Secret") + segment(0xFE, b"Secret comment")
    shown = segment(0xE2, b"ICC_PROFILE\0\1\1profile") + segment(0xEE, b"Adobe\0\0\0\0\0\0\0")
    pixels = segment(0xDB, b"tables") + segment(0xDA, b"head") + b"\1\xff\0\2\xff\xd0\3"
    again = segment(0xC4, b"more tables") + segment(0xDA, b"head") + b"\4\xff\0"
    preview = segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\1\1Secret preview")
    return b"\xff\xd8" + preview + hidden + shown + pixels + again + b"\xff\xd9Secret trailer"


def png(turned):
    hidden = chunk(b"tEXt", b"Author\0Secret") + chunk(b"iTXt", b"XML:com.adobe.xmp\0Secret")
    shown = chunk(b"IHDR", b"0" * 13) + chunk(b"gAMA", b"1234")
    pixels = chunk(b"IDAT", b"pixels") + chunk(b"tIME", b"Secret.") + chunk(b"IEND", b"")
    return (
        b"\x89PNG\r\n\x1a\n"
        + shown
        + hidden
        + chunk(b"eXIf", exif(turned, "<"))
        + pixels
        + b"Secret"
    )


def webp(turned):
    flags = bytes((0x2C, 0, 0, 0, 9, 0, 0, 9, 0, 0))
    parts = [(b"VP8X", flags), (b"ICCP", b"colours"), (b"VP8 ", b"pixels!")]
    return riff(*parts, (b"EXIF", exif(turned)), (b"XMP ", b"Secret")) + b"Secret trailer"


def gif(_):
    loop = b"!\xff\x0bNETSCAPE2.0\3\1\0\0\0"
    hidden = b"!\xfe\x06Secret\0!\xff\x0bXMP DataXMP\6Secret\0"
    frame = b"!\xf9\4\0\0\0\0\0,\0\0\0\0\1\0\1\0\0\2\2L\1\0"
    return b"GIF89a\1\0\1\0\x80\0\0" + b"colour" + loop + hidden + frame + b";Secret trailer"


PICTURES = {".jpg": jpeg, ".png": png, ".webp": webp, ".gif": gif}


@pytest.mark.parametrize("ending", PICTURES)
@pytest.mark.parametrize("turned", [1, 6])
def test_pictures_keep_pixels_and_orientation_and_nothing_else(tmp_path, ending, turned):
    content = PICTURES[ending](turned)
    name = ps.store_media(tmp_path, content, ending, "image", "the picture")
    stored = (tmp_path / name).read_bytes()
    assert b"Secret" not in stored
    assert ps.without_metadata(stored, ending) == stored  # nothing more to remove
    parts = {
        ".jpg": (
            b"ICC_PROFILE\0\1\1profile",
            b"Adobe",
            b"\1\xff\0\2\xff\xd0\3",
            b"\4\xff\0\xff\xd9",
        ),
        ".png": (chunk(b"gAMA", b"1234"), chunk(b"IDAT", b"pixels"), chunk(b"IEND", b"")),
        ".webp": (b"ICCP\7\0\0\0colours", b"VP8 \7\0\0\0pixels!"),
        ".gif": (b"NETSCAPE2.0", b",\0\0\0\0\1\0\1\0\0\2\2L\1\0;"),
    }
    assert [part for part in parts[ending] if part not in stored] == []
    if ending != ".gif":
        where = {".jpg": b"Exif\0\0MM", ".png": b"eXIfMM", ".webp": b"EXIF"}[ending]
        assert (where in stored) == (turned != 1)
        at = stored.find(b"MM\0*")
        assert ps.orientation_of(stored[at:] if at >= 0 else b"") == turned
    if ending == ".webp":
        assert stored[20] == (0x28 if turned != 1 else 0x20)
        assert int.from_bytes(stored[4:8], "little") == len(stored) - 8


@pytest.mark.parametrize("ending", PICTURES)
def test_pictures_that_cannot_be_walked_are_refused(tmp_path, ending):
    whole_one = PICTURES[ending](6)
    end = len(ps.without_metadata(whole_one, ending))
    for content in (whole_one[: end // 2], whole_one[:14] + b"\x7f\0\x80junk" + whole_one[14:]):
        try:
            kept = ps.without_metadata(content, ending)
            assert b"Secret" not in kept
        except ValueError:
            with pytest.raises(ps.Refusal, match="save it anew"):
                ps.store_media(tmp_path, content, ending, "image", "the picture")
    assert not [file for file in tmp_path.iterdir() if b"Secret" in file.read_bytes()]


def test_pictures_stay_what_they_were_to_a_reader(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="needs Pillow")
    picture = image.effect_noise((50, 30), 90).convert("RGB")
    tags = image.Exif()
    tags[0x0112], tags[0x010F] = 6, "SecretCam"
    for ending, form in ((".jpg", "JPEG"), (".png", "PNG"), (".webp", "WEBP")):
        raw = io.BytesIO()
        picture.save(raw, form, exif=tags)
        name = ps.store_media(tmp_path, raw.getvalue(), ending, "image", "the picture")
        with image.open(raw) as before, image.open(tmp_path / name) as after:
            assert after.tobytes() == before.tobytes()
            assert dict(after.getexif()) == {0x0112: 6}
