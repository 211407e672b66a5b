"""The site in a real Chromium, where `make docs` has built it: search, screens, accessibility."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

SITE = Path(__file__).resolve().parents[2] / "docs" / "_build" / "html"
PAGES = (
    "index.html",
    "which_model.html",
    "tutorials/arena.html",
    "gallery/index.html",
    "gallery/plot_league.html",
    "api/penchant.PreferenceGP.class.html",
    "cli_reference.html",
    "project/BENCHMARKS.html",
)
pytestmark = pytest.mark.skipif(
    not (SITE / "index.html").is_file(), reason="no site here: `make docs` builds one"
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(params=["desk light", "desk dark", "phone light", "phone dark"])
def page(request, chromium, address):
    size, light = request.param.split()
    viewport = {"width": 1280, "height": 900} if size == "desk" else {"width": 390, "height": 844}
    context = chromium.new_context(viewport=viewport, color_scheme=light)
    page = context.new_page()
    page.route("**/*", lambda r: r.continue_() if r.request.url.startswith(address) else r.abort())
    yield page
    context.close()


def test_pages_are_accessible_and_never_wider_than_the_screen(page, address):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for name in PAGES:
        page.goto(f"{address}/{name}")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1"), name
        found = axe.run(page).response["violations"]
        serious = [v["id"] for v in found if v["impact"] in ("serious", "critical")]
        assert serious == [], name


def test_search_finds_names_and_pages(page, address):
    for words, first in (("PreferenceGP", "penchant.PreferenceGP"), ("Glicko", "Coming from …")):
        page.goto(f"{address}/search.html?q={words}")
        page.wait_for_selector("#search-results ul.search li a")
        assert page.locator("#search-results ul.search li a").first.inner_text() == first
