"""The page holds what it was given, escaped, in a structure that assistive software reads."""

import pytest

from penchant.workflow import html

HOSTILE = '<script>alert("x")</script>&\''


@pytest.fixture(scope="module")
def page():
    from penchant.plots import plot_evidence

    body = html.table(HOSTILE, [(HOSTILE, "+1.5"), ("b", "-0.25 to 3")], ("item", HOSTILE))
    body += html.figure(plot_evidence([1, 2]), HOSTILE, HOSTILE, "10rem", dense=True)
    body += html.paragraph(HOSTILE, "warning")
    return html.page(HOSTILE, html.paragraph("lead"), [("First", body), (HOSTILE, "")], "foot")


def test_nothing_given_becomes_markup(page, outline_of):
    outline = outline_of(page)
    assert outline.find("script") == []
    assert "".join(outline.text).count(HOSTILE) == 9


def test_the_page_stands_alone(page, outline_of):
    outline = outline_of(page)
    sources = [a.get("src") or a.get("href") for _, a in outline.tags]
    assert all(s.startswith(("data:", "#")) for s in sources if s)
    assert "@import" not in page
    assert "url(" not in page


def test_structure_for_assistive_software(page, outline_of):
    outline = outline_of(page)
    assert outline.find("html")[0]["lang"] == "en"
    for landmark in ("title", "header", "nav", "main", "footer", "h1"):
        assert len(outline.find(landmark)) == 1
    ids = {a["id"] for a in outline.find("h2")}
    assert {a["href"][1:] for a in outline.find("a")} == ids
    assert all(a["alt"] for a in outline.find("img"))
    assert len(outline.find("caption")) == len(outline.find("table"))
    assert {a["scope"] for a in outline.find("th")} == {"row", "col"}


def test_numbers_stand_to_the_right(outline_of):
    text = html.table("t", [("a", "1,200", "x"), ("b", "–", "2")], ("n", "m", "o"))
    cells = outline_of(text).find("td")
    assert [cell.get("class") for cell in cells] == ["number", None] * 2


def test_names_stand_to_the_left_even_where_they_are_numbers(outline_of):
    heads = outline_of(html.table("t", [("1", "2")], ("n", "m"))).find("th")
    assert [head.get("class") for head in heads] == [None, "number", None]


@pytest.mark.parametrize(
    "cell", ["12", "+0.5", "-0.88 to +2.42", "7%", "3 (12%)", "0.6 ± 0.1", "–"]
)
def test_what_counts_as_a_number(cell):
    assert 'class="number"' in html.table("t", [("a", cell)], ("n", "m"))
