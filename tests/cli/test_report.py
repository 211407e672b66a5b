"""The report: complete, escaped, and honest about what the data cannot tell."""

import json
import os
import re
import shutil
import subprocess
from html import unescape

import pytest

import penchant as pc
from penchant.workflow import reporting

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def pages():
    return {}


@pytest.fixture(params=["gp", "multi-user", "community"])
def page(request, run, pages, folder):
    """A report by each kind of model, made once."""
    kind = request.param
    if kind not in pages:
        run("report", "votes.csv", "--model", kind, "-o", "r.html", "--title", HOSTILE)
        pages[kind] = (folder / "r.html").read_text(encoding="utf-8")
    return kind, pages[kind]


def test_the_page_has_every_section_and_needs_nothing_else(page, outline_of):
    kind, text = page
    outline = outline_of(text)
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", text)
    expected = ["Ranking", "Who beats whom", "Can it be trusted?", "The data", "What to ask next"]
    if kind == "community":
        expected.insert(3, "Communities of taste")
    else:
        expected.insert(3, "Raters")
    assert headings == expected
    assert outline.find("script") == [{}]  # inline, nothing is loaded
    assert outline.find("link") == []
    assert all(image["src"].startswith("data:image/svg+xml") for image in outline.find("img"))
    assert all(len(image["alt"]) > 20 for image in outline.find("img"))
    assert "http://" not in re.sub(r"data:[^\"]+", "", text)
    assert "item 01" in text


def test_the_average_item_is_zero(page):
    board = re.search("Items from best to worst</caption>(.*?)</table>", page[1], re.DOTALL)[1]
    cells = re.findall(r'data-label="utility" data-sort="(.*?)"', board)
    assert len(cells) == 10
    assert abs(sum(map(float, cells))) < 1e-9


AXE = os.environ.get("AXE_CORE", "")
"""Path of axe.min.js, from the npm package axe-core."""
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
CHECK = """axe.run().then(found => { document.title = JSON.stringify({
    barriers: found.violations.map(v => v.impact + ": " + v.id),
    sideways: document.documentElement.scrollWidth > innerWidth }) })"""


@pytest.mark.slow
@pytest.mark.skipif(not (AXE and CHROMIUM), reason="needs Chromium, and AXE_CORE=…/axe.min.js")
@pytest.mark.parametrize("width", [1200, 390])
def test_a_browser_finds_no_barriers_no_errors_and_nothing_too_wide(page, width, tmp_path):
    """axe-core looks at the rendered page. Chromium makes no window narrower than 500 pixels."""
    with open(AXE, encoding="utf-8") as file:
        scripts = f"<script>{file.read()}</script><script>{CHECK}</script></body>"
    (tmp_path / "page.html").write_text(page[1].replace("</body>", scripts), encoding="utf-8")
    options = f"--headless --no-sandbox --disable-gpu --window-size={width},900 --dump-dom"
    options += f" --virtual-time-budget=60000 --enable-logging=stderr --user-data-dir={tmp_path}"
    shown = subprocess.run(
        [CHROMIUM, *options.split(), (tmp_path / "page.html").as_uri()],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(unescape(re.search("<title>(.*?)</title>", shown.stdout)[1]))
    assert found == {"barriers": [], "sideways": False}
    assert "CONSOLE" not in shown.stderr


def test_hostile_names_stay_text(run, outline_of, folder):
    names = [HOSTILE, "$\\frac{", '"onload="alert(1)', "a & b"]
    lines = [
        f'"{a.replace(chr(34), chr(34) * 2)}","{b.replace(chr(34), chr(34) * 2)}"'
        for a in names
        for b in names
        if a < b
    ]
    (folder / "hostile.csv").write_text("winner,loser\n" + "\n".join(lines * 9) + "\n")
    run("report", "hostile.csv", "-o", "hostile.html")
    text = (folder / "hostile.html").read_text(encoding="utf-8")
    outline = outline_of(text)
    assert outline.find("script") == [{}]
    assert "alert(1)" not in re.search("<script>(.*?)</script>", text, re.DOTALL)[1]
    assert not any("onload" in attributes for _, attributes in outline.tags)
    shown = "".join(outline.text)
    assert all(name in shown for name in names)


def test_scores_without_probabilities_make_a_shorter_page(run, folder):
    run("report", "votes.csv", "--model", "rank-rls", "--items", "items.csv", "-o", "rls.html")
    text = (folder / "rls.html").read_text(encoding="utf-8")
    assert "scores highest" in text
    assert "84 of 100" not in text
    assert "Who beats whom" not in text


def test_health_counts_what_is_there():
    data = pc.Comparisons.from_pairs(
        ["a", "b", "a", "a", "x"],
        ["b", "a", "b", "c", "y"],
        user=["u", "u", "v", "v", "v"],
        tie=[False, False, False, True, False],
        items=["a", "b", "c", "x", "y", "z"],
    )
    assert {
        "comparisons": "5",
        "items never compared": "1",
        "groups of items connected by comparisons": "2",
        "ties": "1 (20%)",
        "pairs of items judged more than once": "1",
        "of these, judged both ways": "1",
        "times a person contradicted their own answer": "1",
    }.items() <= dict(reporting.facts(data)).items()
    concerns = reporting.concerns(data)
    assert len(concerns) == 2
    assert "never compared" in concerns[0]
    assert "2 groups" in concerns[1]
