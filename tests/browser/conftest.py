"""A real browser before a real server: skipped where there is no Chromium."""

import os
import shutil
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest

NEEDED = ("playwright", "sqlalchemy", "alembic", "fastapi", "httpx", "nh3", "itsdangerous")
HAS_ALL = all(find_spec(name) for name in NEEDED)
collect_ignore_glob = [] if HAS_ALL else ["test_*.py"]
if HAS_ALL:
    from playwright.sync_api import sync_playwright

    from penchant.study import Config, Folder, NewItem, replay, running
    from penchant.study.store import studies

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
ARGUMENTS += ["--disable-component-update", "--disable-sync"]
NAMES = ("tea", "coffee", "cocoa", "milk", "water", "juice", "cola", "mate")


@pytest.fixture(scope="session")
def chromium():
    path = (
        os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    )
    if path is None:
        pytest.skip("there is no Chromium: install it, or name it in CHROMIUM")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS, timeout=90_000)
        yield browser
        browser.close()


class Live:
    """A study that is being served."""

    def __init__(self, address, folder, key):
        self.address, self.folder, self.key = address, folder, key

    @property
    def link(self):
        return f"{self.address}/s/drinks"

    @property
    def owner_link(self):
        return f"{self.address}/o/drinks?key={self.key}"

    def answers(self):
        """What stands in the database: orders by question."""
        with self.folder.open(migrate=False) as database:
            events = database.read(studies.events_after, "drinks")
        return [answer.order for answer in replay(events).answers.values()]


@pytest.fixture
def serve(tmp_path):
    """Serves a study with the settings that a test wants."""
    with ExitStack() as stack:

        def make(items=None, **settings):
            folder = Folder.create(tmp_path / "drinks", "drinks", None)
            config = Config.from_json({"question": "Which would you rather drink?"} | settings)
            new = items(folder) if items else [NewItem(name) for name in NAMES]
            with folder.open() as database:
                database.write(studies.create, "drinks", config, new, 1.0)
                key = database.write(studies.create_invite, "drinks", 1.0, "owner", "", None)
            return Live(stack.enter_context(running(folder.path, seconds=90.0)), folder, key)

        yield make


@pytest.fixture
def axe():
    """The accessibility checker's source; a package for Python brings it along."""
    package = find_spec("axe_playwright_python")
    if package is None:
        pytest.skip("there is no axe-core: pip install axe-playwright-python")
    return (Path(package.submodule_search_locations[0]) / "axe.min.js").read_text()
