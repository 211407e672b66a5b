"""In a real browser: pictures that run nothing, a notebook's frame, pages beside the questions."""

import http.server
import threading
import time

import pytest

import penchant as pc
from penchant.study import NewItem

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 30 20" onload="document.title=1">'
    '<rect width="30" height="20" fill="red"/>%s</svg>'
)
PATIENCE = 90e3
"""Milliseconds for anything to come to pass."""


@pytest.fixture
def visit(chromium):
    contexts = []

    def open_page(address, **options):
        contexts.append(chromium.new_context(**options))
        contexts[-1].set_default_timeout(PATIENCE)
        page = contexts[-1].new_page()
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()


def test_an_svg_that_came_past_the_check_still_runs_nothing(serve, visit):
    def items(folder):
        name = "a" * 16 + ".svg"
        script = '<script>document.title = "ran"; fetch("/s/drinks")</script>'
        (folder.media / name).write_text(SVG % script)
        return [NewItem(f"{k}", "image", name) for k in range(2)]

    live = serve(items)
    page = visit(live.link)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{live.address}/media/{'a' * 16}.svg")
    time.sleep(0.5)
    assert page.evaluate("document.documentElement.tagName") == "svg"
    assert page.title() != "ran"
    assert [url for url in asked if "/media/" not in url and "icon" not in url] == []
    page.goto(live.link)
    page.get_by_role("button", name="Start").click()
    page.wait_for_selector("img")
    page.wait_for_function("[...document.images].every((i) => i.naturalWidth > 0)")
    assert page.title() == "Which would you rather drink?"


@pytest.fixture
def notebook():
    """A page on another port and under another name of this machine that shows an address."""
    shown = {}

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(shown.get("html", "").encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def show(content):
            shown["html"] = content
            return f"http://localhost:{server.server_address[1]}/"

        yield show
        server.shutdown()


def test_people_vote_in_the_frame_of_a_notebook(notebook, visit, tmp_path):
    with pc.study.serve(["tea", "milk", "mate"], "Which?", tmp_path / "drinks") as study:
        page = visit(notebook(study._repr_html_()))
        frame = page.frame_locator("iframe")
        frame.get_by_role("button", name="Start").click()
        for n in range(3):
            frame.get_by_text(f"{n} of 40").wait_for()
            time.sleep(0.5)  # a question takes input after a moment
            frame.locator(".choose").first.click()
        frame.get_by_role("heading", name="Thank you!").wait_for()
        assert len(study.answers()) == 3


def test_results_and_suggestions_are_accessible_without_scripts(serve, visit, axe):
    live = serve(public_results=True, suggestions=True, undo=0)
    small = {"viewport": {"width": 320, "height": 640}, "java_script_enabled": True}
    for _ in range(5):
        page = visit(live.link, bypass_csp=True, **small)
        page.get_by_role("button", name="Start").click()
        page.locator(".choose").first.wait_for()
        time.sleep(0.8)
        page.locator(".choose").first.click()
        page.get_by_text("1 of 40").wait_for()
    ends = time.monotonic() + PATIENCE / 1e3
    while page.goto(f"{live.address}/r/drinks") and not page.locator("table").count():
        assert time.monotonic() < ends, "there were never any results"
        time.sleep(1)
    for path in ("/r/drinks", "/s/drinks/suggest"):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.goto(live.address + path)
            page.evaluate(axe)
            found = page.evaluate("axe.run()")["violations"]
            assert [fault["id"] for fault in found] == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    plain = visit(f"{live.address}/r/drinks", java_script_enabled=False)
    assert plain.locator("tbody tr").count() == 8
