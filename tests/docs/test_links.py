"""Links of the Markdown pages lead somewhere, as GitHub follows them: no Sphinx needed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GENERATED = {"_build", "api", "gallery", "project"}
PAGES = [
    path
    for path in [*ROOT.glob("*.md"), *ROOT.glob("results/*.md"), *ROOT.glob("docs/**/*.md")]
    if not GENERATED & set(path.relative_to(ROOT).parts) and path.name != "cli_reference.md"
]
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
MADE = {"docs/cli_reference.md", "docs/api/index.rst"}
"""Pages that exist on the site alone."""


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_relative_link_resolves(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for found in LINK.finditer(text):
        link = found.group(1) or found.group(2)
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if target.relative_to(ROOT).as_posix() in MADE:
            continue
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in _anchors(target), link


def _anchors(page):
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def test_the_gallery_has_a_place_for_every_example():
    gallery = pytest.importorskip("_site.gallery")
    examples = {path.stem.removeprefix("plot_") for path in ROOT.glob("examples/plot_*.py")}
    assert set(gallery.ORDER) == examples
    assert len(examples) >= 15
