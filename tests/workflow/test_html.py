"""The page holds what it was given, escaped, in a structure that assistive software reads."""

from types import SimpleNamespace

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
    assert len(outline.find("script")) == 1  # its own, which holds nothing that was given
    assert "alert" not in html.SCRIPT
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


def test_cells_are_sorted_by_their_numbers(outline_of):
    rows = [("a", "1,200", "–", "7.5%", "x"), ("b", "+3.25", "2 to 4", "9%", "y")]
    cells = outline_of(html.table("t", rows, "nabcd", sortable=True)).find("td")
    assert [cell.get("data-sort") for cell in cells] == [
        *("1200", "", "7.5", None),
        *("3.25", "2", "9", None),
    ]
    assert [cell["data-label"] for cell in cells] == list("abcdabcd")


def test_an_interval_is_drawn_on_a_common_scale():
    row = SimpleNamespace(utility=1.0, low=0.0, high=4.0)
    drawn = html.interval(row, (-4.0, 4.0))
    assert drawn.sort == 1.0
    assert 'left:50.0%;width:50.0%"></i><b style="left:62.5%"' in drawn.html
    assert "+1.00" in drawn.html
