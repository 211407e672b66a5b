"""What went wrong once in running studies: each has its test here."""

import dataclasses
import errno
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

import penchant.study as ps
from penchant.study.store import learning, reports, studies

API = "/api/studies/drinks"


def overview(served):
    return served.call("GET").json()


def health(served):
    """Look anew: the status, and what is wrong."""
    served.app.state.site._looked = -1.0
    got = served.browser().get("/readyz")
    assert str(served.folder.path) not in got.text
    return got.status_code, got.json().get("problems", [])


# ---- erasing


def test_erasing_somebody_without_answers_changes_nothing_that_was_learned(served, same_ranking):
    served.participant().answer(6)
    model = served.step()
    before = served.database.read(learning.last_snapshot, "drinks")
    skipper = served.participant()
    skipper.answer(2, order=None)
    for browser in (served.participant(), skipper):
        assert browser.delete("/s/drinks/me").status_code == 200
        assert served.database.read(learning.last_snapshot, "drinks") == before
    events = served.database.read(studies.events_after, "drinks")
    assert [event.payload["events"] for event in events if event.kind == "erase"] == [0, 2]
    assert len(overview(served)["ranking"]) == 5
    model.step()
    same_ranking(model.learner.ranking(), ps.Worker(served.database, "drinks").learner.ranking())


def test_an_erased_person_is_on_no_map(served):
    ann, bob = served.participant(), served.participant()
    for browser in (ann, bob):
        browser.answer(3)
    served.step()
    ids = [row["id"] for row in served.call("GET", "/participants").json()]
    saved = served.database.read(learning.last_snapshot, "drinks")
    places = [{"participant": person, "x": 0.5, "y": 0.1, "group": 0} for person in ids]
    known = {"verdict": "supported", "sentence": "", "groups": [], "divisive": [], "map": places}
    saved = dataclasses.replace(saved, summary=saved.summary | {"communities": known})
    served.database.write(learning.save_snapshot, "drinks", saved, served.clock() + 1)
    assert served.call("GET", "/people").json()["map"] == places
    assert "map" not in overview(served)["communities"]
    bob.delete("/s/drinks/me")
    (left,) = served.call("GET", "/people").json()["map"]
    assert left["participant"] in {row["id"] for row in served.call("GET", "/participants").json()}
    stored = served.database.read(learning.last_summary, "drinks")
    assert stored["communities"]["map"] == [left]


def test_the_ranking_stays_while_the_model_learns_without_an_erased_person(served):
    ann, bob = served.participant(), served.participant()
    ann.answer(6)
    model = served.step()
    first = served.database.read(learning.last_snapshot, "drinks")
    bob.answer(6)
    model.snapshot_due = 0.0
    model.step()
    ids = {row["participant"] for row in overview(served)["raters"]}
    assert len(ids) == 2
    bob.delete("/s/drinks/me")
    state = overview(served)
    assert len(state["ranking"]) == 5
    assert state["model"]["behind"] > 0
    (left,) = {row["participant"] for row in state["raters"]}
    # what was learned before they came stays; what knew them does not
    assert served.database.read(learning.last_snapshot, "drinks") == first
    (gone,) = ids - {left}
    assert gone not in str(served.database.read(learning.last_summary, "drinks"))
    model.snapshot_due = 0.0
    model.step()
    assert overview(served)["model"]["behind"] == 0
    assert overview(served)["counts"]["answers"] == 6


def test_the_ranking_is_renewed_however_often_people_are_erased(served):
    """What the model knew when somebody left is kept, without them and without its file."""
    served.participant().answer(6)
    model = served.step()
    for _ in range(3):
        passing = served.participant()
        passing.answer(2)
        model._catch_up(served.database.read(studies.get, "drinks"))
        passing.delete("/s/drinks/me")  # while the model was at work
        model.snapshot_seq, model.snapshot_due = -1, 0.0
        seq = model.learner.record.seq
        model._save(served.database.read(studies.get, "drinks"))
        summary = served.database.read(learning.last_summary, "drinks")
        assert summary["seq"] == seq
        assert len(summary["raters"]) == 1
        snapshot = served.database.read(learning.last_snapshot, "drinks")
        assert snapshot is None or snapshot.seq < seq


def test_erasing_is_limited_by_address(served):
    site = served.app.state.site
    site.erasures = ps.Rate(2, 0.001, clock=lambda: 0.0)
    codes = [served.participant().delete("/s/drinks/me").status_code for _ in range(3)]
    assert codes == [200, 200, 429]
    assert served.participant().post("/s/drinks/erase").status_code == 429
    person = served.call("GET", "/participants").json()[0]["id"]
    assert served.call("DELETE", f"/participants/{person}").status_code == 200  # the owner may


# ---- the end


@pytest.mark.parametrize("how", ["skipped", "late", "closed"])
def test_only_people_who_answered_get_the_completion_code(serve, how):
    settings = {"minutes_per_person": 1} if how == "late" else {}
    panel = "https://panel.example/back?pid={id}"
    served = serve(completion_code="TEA-42", redirect=panel, **settings)
    idle, busy = served.participant(panel="idle"), served.participant(panel="busy")
    if how == "skipped":
        idle.answer(10, order=None)
        busy.answer(9, order=None)
    busy.answer()
    served.clock.time += 61.0
    if how == "closed":
        served.database.write(studies.set_state, "drinks", "closed", 5.0)
    for browser, earned in ((idle, False), (busy, True)):
        page = browser.get("/s/drinks/done").text
        assert ("TEA-42" in page) == earned
        assert ("panel.example" in page) == earned


# ---- who is who


def test_a_clock_that_steps_back_loses_no_cookie(served):
    served.clock.time = time.time() + 3600.0
    browser = served.participant()
    served.clock.time -= 7 * 86_400.0
    browser.answer()
    login = browser.post("/o/drinks/login", data={"key": served.key})
    assert login.url.path == "/o/drinks"
    served.clock.time = time.time() + 91 * 86_400.0  # but they do not last for ever
    assert browser.get("/s/drinks/next").status_code == 403


def test_signing_takes_any_clock_of_the_machine(monkeypatch, browser):
    now = time.time
    monkeypatch.setattr("itsdangerous.timed.time.time", lambda: now() - 3600.0)
    browser.answer()


def test_knowing_a_panels_id_is_not_enough_to_act_as_its_owner(served):
    ann = served.participant(panel="ann-of-the-panel")
    ann.answer()
    thief = served.browser()
    got = thief.post("/s/drinks/join", data={"panel": "ann-of-the-panel"})
    assert got.status_code == 409
    assert "browser in which you began" in got.json()["message"]
    assert thief.get("/s/drinks/next").status_code == 403
    assert ann.next()["done"] == 1
    assert ann.get("/s/drinks?PROLIFIC_PID=ann-of-the-panel").url.path == "/s/drinks/vote"
    # another of the panel at the same browser is another person
    assert ann.get("/s/drinks?PROLIFIC_PID=bob-of-the-panel").url.path == "/s/drinks"
    ann.post("/s/drinks/join", data={"panel": "bob-of-the-panel"})
    assert ann.next()["done"] == 0


# ---- disks, health and processes


def test_the_room_of_the_limits_is_taken_at_once(tmp_path):
    """A hole in a mapped file is death by SIGBUS once the disk is full."""
    path = tmp_path / "limits"
    with path.open("wb") as file:
        file.truncate(100)  # as an earlier version left it
    ps.shared_numbers(path, 3)
    stat = path.stat()
    assert stat.st_size == 3 * 16 * 2**15
    assert 512 * stat.st_blocks >= stat.st_size


def test_without_room_for_the_limits_each_process_counts_for_itself(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(os, "posix_fallocate", fail_by(NO_SPACE))
    (numbers,) = ps.shared_numbers(tmp_path / "limits", 1)
    rate = ps.Rate(1, 0.001, lambda: 100.0, numbers, b"key")
    assert [rate.allows("ann") for _ in range(2)] == [True, False]
    assert "No space left" in caplog.text


NO_SPACE = OSError(errno.ENOSPC, "No space left on device")
DISK_FULL = sa.exc.OperationalError("INSERT", {}, Exception("database or disk is full"))


def fail_by(error):
    def fail(*_):
        raise error

    return fail


@pytest.mark.parametrize("error", [NO_SPACE, DISK_FULL])
def test_a_full_disk_is_a_moment_of_absence_and_seen_by_health(served, monkeypatch, error, browser):
    (question, *_) = browser.next()["questions"]
    assert health(served) == (200, [])
    with monkeypatch.context() as patch:
        patch.setattr(type(served.database), "_lock", fail_by(error))
        got = browser.say(question)
        assert (got.status_code, got.headers["retry-after"]) == (503, "1")
        assert health(served) == (503, ["answers cannot be written"])
    assert browser.say(question).json()["repeated"] is False


def test_health_tells_what_is_wrong(served, monkeypatch):
    now = time.monotonic()
    ps.write_deaths(served.folder.path, {"model": [now] * 3, "web 1": [now]})
    assert health(served) == (200, [])  # they are of a server that is no more
    monkeypatch.setattr(os, "getppid", os.getpid)
    ends = "the process model keeps ending"
    assert health(served) == (503, [ends])
    # its own small write may still succeed where an answer does not
    usage = shutil.disk_usage("/")._replace(free=8192)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert health(served) == (503, [ends, "the disk is full"])
    shutil.rmtree(served.folder.path)
    status, problems = health(served)
    assert status == 503
    assert "the folder of the study is gone" in problems


def test_a_process_that_ended_is_logged_and_started_again(caplog):
    child = ps.Child("model", ["no such command"])
    with caplog.at_level(logging.WARNING):
        child.keep_alive(())
        first = child.process
        first.wait()
        child.keep_alive(())
    assert "process model ended by itself" in caplog.text
    assert "exit status 2" in caplog.text
    assert (len(child.deaths), child.process) == (1, None)  # again after a pause
    child.started = 0.0
    child.keep_alive(())
    assert child.process is not first
    child.process.wait()


def test_an_idle_study_is_looked_at_less_and_less(served, monkeypatch):
    """A minute in which nothing happens: few looks; then an answer, and it is quick again."""
    monkeypatch.setattr("penchant.study.learner.warm_up", lambda: None)
    waits = []

    class Stop(threading.Event):
        def wait(self, timeout=None):
            waits.append(timeout)
            if len(waits) == 60:
                served.participant().answer()
            if len(waits) == 70:
                self.set()
            return self.is_set()

    ps.work(served.database, Stop())
    quiet = waits[20:60]
    assert quiet == [1.0] * 40
    assert min(waits[60:]) < 0.2


@pytest.mark.parametrize("error", [NO_SPACE, DISK_FULL])
def test_the_model_process_waits_for_a_disk_that_is_full(served, monkeypatch, caplog, error):
    monkeypatch.setattr("penchant.study.learner.warm_up", lambda: None)
    served.participant().answer(3)
    full = pytest.MonkeyPatch()
    full.setattr(type(served.database), "_lock", fail_by(error))

    class Stop(threading.Event):
        def wait(self, timeout=None):
            if caplog.text.count("the model waits") == 3:
                full.undo()
            if served.database.read(learning.last_summary, "drinks"):
                self.set()
            return self.is_set()

    try:
        ps.work(served.database, Stop())
    finally:
        full.undo()
    assert served.database.read(learning.last_summary, "drinks")["answers"] == 3


# ---- what is sent


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/s/drinks/answer", '{"question": VALUE, "order": [[0], [1]]}'),
        ("POST", "/s/drinks/answer", '{"question": "x", "order": VALUE}'),
        ("POST", "/s/drinks/answer", '{"question": "x", "order": [[VALUE], [1]]}'),
        ("POST", "/s/drinks/answer", '{"question": "x", "order": null, "ms": VALUE}'),
        ("POST", "/s/drinks/undo", '{"question": VALUE}'),
        ("PATCH", API, '{"state": VALUE}'),
        ("PATCH", API, '{"config": {"question": VALUE}}'),
        ("PATCH", API, '{"config": {"stop_level": VALUE}}'),
        ("PATCH", API, '{"config": {VALUE: 1}}'),
        ("PATCH", API, '{"config": {"panel_parameters": [VALUE]}}'),
        ("POST", f"{API}/items", '[{"name": VALUE}]'),
        ("POST", f"{API}/items", '[{"name": "x", "body": VALUE}]'),
        ("POST", f"{API}/items", '[{"name": "x", "features": {"a": VALUE}}]'),
        ("POST", f"{API}/items", '[{"name": "x", "features": {VALUE: 1}}]'),
        ("POST", f"{API}/invites", '{"label": VALUE}'),
        ("POST", f"{API}/invites", '{"days": VALUE}'),
        ("POST", f"{API}/invites", '{"n": VALUE}'),
    ],
)
def test_what_json_can_say_and_nobody_can_keep_is_refused(shared, method, path, body):
    """Half a character, and numbers beyond all numbers."""
    cookies = shared.participant().cookies
    browser = shared.browser(cookies=cookies, raise_server_exceptions=False)
    headers = {"content-type": "application/json"} | (shared.owner if path[1] == "a" else {})
    numbers = () if "{VALUE" in body else ("1e400", "-1e400", "NaN")  # names in JSON are texts
    for value in ('"\\ud800"', *numbers):
        got = browser.request(method, path, content=body.replace("VALUE", value), headers=headers)
        assert 400 <= got.status_code < 500, got.text
        json.loads(got.text)
    shared.step()


# ---- lists of items


@pytest.mark.parametrize(
    ("text", "names", "n_features"),
    [
        ("tea\nmilk\nwater\n", ["tea", "milk", "water"], 0),
        ("\ufefftea\nmilk\n", ["tea", "milk"], 0),
        ("name\ntea\nmilk\n", ["tea", "milk"], 0),
        ("Items\ntea\nmilk\n", ["tea", "milk"], 0),
        ("tea,1.5\nmilk,2\n", ["tea", "milk"], 1),
        ("drink,sweet\ntea,1.5\nmilk,2\n", ["tea", "milk"], 1),
        ("1\n2\n3\n", ["1", "2", "3"], 0),
    ],
)
def test_a_list_without_a_header_keeps_its_first_item(tmp_path, text, names, n_features):
    path = tmp_path / "items.csv"
    path.write_text(text)
    items, notes = ps.read_items(path, tmp_path)
    assert [item.name for item in items] == names
    assert [len(item.features) for item in items] == [n_features] * len(names)
    told = [note for note in notes if "every line is an item" in note]
    assert len(told) == (text.split("\n")[0].split(",")[0].strip("\ufeff") == names[0])


# ---- taking votes in


@pytest.mark.parametrize(
    ("form", "ending"),
    [("pair", ".csv"), ("pair", ".jsonl"), ("pair", ".parquet"), ("best", ".csv")],
)
def test_importing_ones_own_export_takes_nothing_in_twice(serve, tmp_path, ending, form):
    served = serve(format=form, size=2 if form == "pair" else 3)
    order = ((0,), (1,)) if form == "pair" else ((0,), (1, 2))
    for _ in range(2):
        served.participant().answer(4, order)
    elsewhere = b"winner,loser,user\ntea,milk,zoe\ntea,milk,zoe\nmilk,juice,yan\n"
    nobody = b"winner,loser\ntea,milk\ntea,milk\n"
    for votes in (elsewhere, nobody):
        take_in(served.database, "drinks", *ps.read_votes(votes))
    before = sorted(map(str, exported(served.database, "drinks")))
    path = tmp_path / f"votes{ending}"
    ps.write_votes(exported(served.database, "drinks"), path)
    rows, is_export = ps.read_votes(path.read_bytes(), ending)
    assert is_export
    for _ in range(2):
        assert take_in(served.database, "drinks", rows, is_export) == 0
    assert sorted(map(str, exported(served.database, "drinks"))) == before
    # in another study they are new, once
    items = [ps.NewItem(row.name) for row in served.database.read(studies.items_of, "drinks")]
    config = served.database.read(studies.get, "drinks").config
    served.database.write(studies.create, "other", config, items, 1.0)
    assert take_in(served.database, "other", rows, is_export) == len(rows)
    assert take_in(served.database, "other", rows, is_export) == 0
    total = sum(row["count"] for row in exported(served.database, "drinks"))
    assert sum(row["count"] for row in exported(served.database, "other")) == total
    # a withdrawn answer does not come back, and votes from elsewhere are always new
    assert take_in(served.database, "drinks", *ps.read_votes(nobody)) == 1


def exported(database, study):
    return database.read(lambda c: list(reports.export_rows(c, study)))


def take_in(database, study, rows, is_export):
    return database.write(studies.import_answers, study, rows, 5.0, is_export=is_export)


def test_an_answer_that_was_taken_back_does_not_come_back(served, tmp_path, browser):
    browser.answer(3)
    ps.write_votes(exported(served.database, "drinks"), tmp_path / "votes.csv")
    last = browser.next()["undo"]
    browser.post("/s/drinks/undo", json={"question": last})
    votes = ps.read_votes((tmp_path / "votes.csv").read_bytes())
    assert take_in(served.database, "drinks", *votes) == 0
    assert len(exported(served.database, "drinks")) == 2


def test_answers_are_counted_everywhere(served, browser, tmp_path):
    browser.answer(2)
    browser.answer(order=None)
    served.clock.time += 61.0
    served.step()
    browser.answer()
    (tmp_path / "votes.csv").write_text("winner,loser,count\ntea,milk,3\njuice,milk,4\n")
    folder = str(served.folder.path)
    done = CliRunner().invoke(ps.command, ["import", folder, str(tmp_path / "votes.csv")])
    assert done.exit_code == 0
    told = CliRunner().invoke(ps.command, ["status", folder]).stdout
    assert "answers: 10, 7 of them imported; 1 people took part" in told
    served.step()
    assert overview(served)["counts"] == {
        **{"answers": 10, "imported": 7, "answers_last_minute": 1, "skips": 1},
        **{"questions": 5, "without_model": 4, "participants": 1, "here": 1, "items": 5},
    }
    assert served.database.read(learning.last_summary, "drinks")["answers"] == 10
    assert sum(row["count"] for row in exported(served.database, "drinks")) == 10


# ---- without the extra

BLOCKED = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"sqlalchemy", "alembic", "fastapi", "httpx", "nh3"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from penchant.cli import main
main(sys.argv[1:], prog_name="penchant")
"""


def test_what_study_can_do_is_told_without_the_extra():
    def run(*arguments):
        line = [sys.executable, "-c", BLOCKED, "study", *arguments]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    for argument in ("--help", "-h"):
        told = run(argument)
        assert told.returncode == 0, told.stderr
        assert all(name in told.stdout for name in ps.COMMANDS)
    refused = run("serve", "drinks")
    assert refused.returncode == 3
    assert "pip install 'penchant[study]'" in refused.stderr


def test_every_command_that_is_listed_is_there():
    for name in ps.COMMANDS:
        assert ps.command.get_command(None, name).name == name
