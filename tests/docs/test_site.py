"""The site that `make docs` has built: links, images, anchors, search, every name."""

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.skipif(
    "PENCHANT_SITE" not in os.environ, reason="no fresh site: `make docs` builds and tests one"
)
SITE = Path(os.environ.get("PENCHANT_SITE", "no site")).resolve()
PAGES = sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)


class Page(HTMLParser):
    """Where a page links to, what it shows, and which places of it can be linked to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.shown, self.ids, self.without_alt = [], [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if given.get("id"):
            self.ids.add(given["id"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("img", "script", "link"):
            self.shown += [given[key] for key in ("src", "href") if given.get(key)]
            self.shown += [part.split()[0] for part in given.get("srcset", "").split(",") if part]
        if tag == "img" and "alt" not in given:
            self.without_alt.append(given.get("src"))


@pytest.fixture(scope="module")
def read():
    return {path: Page(path) for path in PAGES}


def _local(link):
    parts = urlsplit(link)
    return not parts.scheme and not parts.netloc


def _place_is_missing(place, page):
    return bool(place) and page is not None and place not in page.ids


def test_every_internal_link_and_image_resolves(read):
    broken = []
    for path, page in read.items():
        for link in (*page.links, *page.shown):
            if not _local(link):
                continue
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                broken.append(f"{path.relative_to(SITE)}: {link}")
            elif link in page.links and _place_is_missing(
                unquote(parts.fragment), read.get(target)
            ):
                broken.append(f"{path.relative_to(SITE)}: {link} (no such place)")
    assert broken == []


def test_every_image_says_what_it_shows(read):
    assert {path.name: page.without_alt for path, page in read.items() if page.without_alt} == {}


def test_the_search_index_knows_pages_and_names():
    text = (SITE / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(re.fullmatch(r"Search\.setIndex\((.*)\);?", text, flags=re.DOTALL)[1])
    titles = {title.casefold() for title in index["titles"]}
    assert {"five minutes", "a league over time", "glossary", "penchant.preferencegp"} <= titles


def test_every_public_name_is_documented(read):
    api = pytest.importorskip("_site.api")
    ids = set().union(*(page.ids for page in read.values()))
    for module, names in api.public_names().items():
        for name in names:
            assert f"{module}.{name}" in ids, f"{module}.{name}"


def test_every_example_has_a_picture_on_its_page(read):
    examples = Path(__file__).resolve().parents[2].glob("examples/plot_*.py")
    for example in examples:
        shown = read[SITE / "gallery" / f"{example.stem}.html"].shown
        assert any(f"sphx_glr_{example.stem}" in source for source in shown)
