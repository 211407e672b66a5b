"""The owner's pages in a browser: pictures with tables, thousands of items, forms, phones."""

import base64
import time

import pytest
from playwright.sync_api import Error

from penchant.study import NewItem, store_media
from penchant.study.store import participants, studies

PAGES = ("", "/items", "/people", "/questions", "/settings", "/data")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEU"
    "lEQVR42mPQiDqBFTEMLQkAFKhSgeoBy7EAAAAASUVORK5CYII="
)
"""A blue square of 8 x 8."""
PATIENCE = 90.0
SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}


def until(condition):
    """Wait until something holds; the page's own policy forbids to wait inside of it."""
    ends = time.monotonic() + PATIENCE
    while True:
        try:
            if condition():
                return
        except Error as error:
            # looked at in the moment in which the page gave way to the next
            if "context was destroyed" not in str(error) and "navigation" not in str(error):
                raise
        assert time.monotonic() < ends, "it never came to pass"
        time.sleep(0.05)


def text(page, selector):
    """What an element says, empty where there is none at this moment."""
    return "".join(page.locator(selector).all_text_contents()[:1])


@pytest.fixture
def open_as_owner(chromium):
    """Opens a study's pages for its owner; any error of a script fails the test."""
    contexts, errors = [], []

    def sign_in(live, **options):
        context = chromium.new_context(**options)
        context.set_default_timeout(60_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "console",
            lambda m: errors.append(m.text) if "Content Security Policy" in m.text else None,
        )
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(live.owner_link)
        page.click("button.primary")
        return page

    yield sign_in
    for context in contexts:
        context.close()
    assert errors == []


def posters(folder):
    """Items that are pictures, one with a long name."""
    names = ["a poster with a name that is far too long for one line of a phone", *"bcdefg"]
    return [
        NewItem(name, "image", store_media(folder.media, PNG, ".png", "image", ""))
        for name in names
    ]


def answer(live, people, n):
    """Answers of people, the name that comes first in the alphabet winning; people: ids, or how
    many new ones."""
    now = time.time()
    with live.folder.open(migrate=False) as database:
        names = {row.id: row.name for row in database.read(studies.items_of, "drinks")}
        if isinstance(people, int):
            people = [database.write(participants.join, "drinks", now) for _ in range(people)]
        for person in people * n:
            (q,) = database.write(participants.turn, "drinks", person, 1, now).questions
            order = [[at] for at in sorted((0, 1), key=lambda at, q=q: names[q.shown[at]])]
            database.write(participants.answer, "drinks", person, q.id, order, 900, now)
    return people


def count(page, number):
    """Wait until the overview shows so many answers, known to the model."""
    until(lambda: text(page, ".tile strong") == str(number) and text(page, "#link") == "current")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_and_nothing_is_a_fault_of_accessibility(serve, open_as_owner, axe, scheme):
    live = serve(posters, answers_per_person=None, random_share=0.5)
    answer(live, 4, 10)
    page = open_as_owner(live, color_scheme=scheme)
    count(page, 40)
    for name in PAGES:
        page.goto(f"{live.address}/o/drinks{name}")
        until(lambda: text(page, "#link") == "current")
        if name in ("", "/items"):
            page.wait_for_selector("#ranking tbody tr")
        if name == "/people":
            page.wait_for_selector("#people tbody tr")
        if name == "/questions":
            page.wait_for_selector("#kinds .bars")
        for size in SIZES.values():
            page.set_viewport_size(size)
            # beyond the window or beyond its own box: cut
            assert (
                page.evaluate(
                    """[...document.querySelectorAll("body *")].filter((node) => {
                  const { right, left, width } = node.getBoundingClientRect();
                  return width && !node.closest(".sr, .jump, .status, svg, details table")
                    && (right > innerWidth + 1 || left < -1);
                }).map((node) => node.outerHTML.slice(0, 80))"""
                )
                == []
            ), name
        page.context.new_cdp_session(page).send("Page.setBypassCSP", {"enabled": True})
        page.evaluate(axe)
        found = page.evaluate("axe.run()")["violations"]
        assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == [], name


def test_every_picture_has_its_table_and_the_axis_its_name(serve, open_as_owner):
    live = serve(posters, answers_per_person=None, random_share=0.5)
    people = answer(live, 3, 4)
    page = open_as_owner(live)
    count(page, 12)
    answer(live, people, 3)  # what the model has prepared for them, random questions among it
    count(page, 21)
    until(lambda: page.locator("#growth tbody tr").count() >= 2)
    assert text(page, "#growth svg .name") == "answers"
    rows = page.locator("#growth tbody tr").all_text_contents()
    assert any(row.startswith("21") for row in rows)
    head = page.locator("#ranking .axis-head")
    assert "utility relative to the average item" in head.inner_text()
    assert len(head.locator(".scale span").all()) >= 2
    assert page.locator("#ranking svg.interval").count() == 7
    assert page.locator("#ranking .figures").count() == 7
    first = page.locator("#ranking tbody tr").first
    assert "a poster with a name" in first.inner_text()
    until(lambda: first.locator("img").evaluate("node => node.naturalWidth") == 8)
    page.click("text=Questions")
    page.wait_for_selector("#calibration svg")
    for name in ("calibration", "kinds", "seconds"):
        assert page.locator(f"#{name} tbody tr").count() >= 1


def test_five_thousand_items_are_fifty_rows_at_once(serve, open_as_owner):
    live = serve(lambda _: [NewItem(f"item {k:04}") for k in range(5000)], model="shared")
    page = open_as_owner(live)
    page.goto(f"{live.address}/o/drinks/items")
    until(lambda: page.locator("#ranking tbody tr").count() == 50)
    assert "5,000 found" in text(page, "#found")
    page.click("#turn >> text=Last")
    until(lambda: "item 4999" in page.locator("#ranking tbody tr").last.inner_text())
    assert page.locator("#ranking tbody tr").count() == 50
    page.fill("#search", "item 123")
    until(lambda: page.locator("#ranking tbody tr").count() == 10)
    assert page.evaluate("document.querySelectorAll('*').length") < 1500


def test_items_are_added_and_retired(serve, open_as_owner):
    live = serve()
    page = open_as_owner(live)
    page.goto(f"{live.address}/o/drinks/items")
    until(lambda: page.locator("#ranking tbody tr").count() == 8)
    page.fill("#add [name=name]", "punch")
    page.click("#add button")
    until(lambda: page.locator("#ranking tbody tr").count() == 9)
    page.fill("#add [name=name]", "a cup")
    file = {"name": "cup.png", "mimeType": "image/png", "buffer": PNG}
    page.set_input_files("#add [type=file]", file)
    page.click("#add button")
    until(lambda: page.locator("#ranking tbody img").count() == 1)
    page.click("[aria-label='Retire punch']")
    until(lambda: page.locator("#ranking tr.retired").count() == 1)
    assert page.locator("[aria-label='Bring back punch']").count() == 1


def test_settings_are_changed_and_what_is_wrong_is_said(serve, open_as_owner):
    live = serve()
    page = open_as_owner(live)
    page.goto(f"{live.address}/o/drinks/settings")
    page.fill("#set-question", "Which one?")
    page.uncheck("#set-tie")
    page.click("#group-question button.primary")
    until(lambda: text(page, "#group-question .saved") == "Saved.")
    page.fill("#set-minutes_per_person", "7")
    page.fill("#set-answers_per_person", "")
    page.click("#group-part button.primary")
    until(lambda: text(page, "#group-part .saved") == "Saved.")
    page.fill("#set-redirect", "nowhere")
    page.fill("#set-panel_parameters", "one\ntwo")
    page.click("#group-panel button.primary")
    until(lambda: "redirect" in text(page, "#group-panel .saved"))
    page.fill("#set-redirect", "")
    page.click("#group-panel button.primary")
    until(lambda: text(page, "#group-panel .saved") == "Saved.")
    page.click(".new-check")
    page.fill("fieldset input >> nth=0", "Take b.")
    page.fill("fieldset textarea", "a\nb")
    page.fill("fieldset input[type=number]", "2")
    page.click("#group-quality button.primary")
    until(lambda: text(page, "#group-quality .saved") == "Saved.")
    with live.folder.open(migrate=False) as database:
        config = database.read(studies.get, "drinks").config
    assert (config.question, config.tie, config.redirect) == ("Which one?", False, "")
    assert (config.minutes_per_person, config.answers_per_person) == (7, None)
    assert config.panel_parameters == ("one", "two")
    (check,) = config.checks
    assert (check.prompt, check.options, check.right) == ("Take b.", ("a", "b"), 1)
    page.reload()
    assert page.input_value("#set-question") == "Which one?"
    assert page.input_value("fieldset input >> nth=0") == "Take b."


def test_leaving_people_out_shows_the_effect_before_it_is_taken(serve, open_as_owner):
    live = serve(answers_per_person=None)
    answer(live, 2, 6)
    page = open_as_owner(live)
    count(page, 12)
    asked = []

    def reply(route):
        asked.append(route.request.post_data_json)
        ranking = route.request.frame.page.request.get(f"{live.address}/api/studies/drinks/ranking")
        rows = [row | {"rank": 9 - row["rank"]} for row in ranking.json()["rows"]]
        route.fulfill(json={"answers": 6, "people": 1, "ranking": rows[::-1]})

    page.route("**/participants/exclude", reply)
    page.goto(f"{live.address}/o/drinks/people")
    until(lambda: page.locator("#people tbody tr").count() == 2)
    assert page.is_disabled("#exclude")
    page.check("#people tbody input >> nth=0")
    page.click("#exclude")
    page.wait_for_selector("#effect tbody tr")
    (first,) = asked
    assert (first["excluded"], first["preview"], len(first["people"])) == (True, True, 1)
    assert page.locator("#effect tbody tr").count() == 8
    assert page.locator("#effect tbody tr").first.inner_text().endswith("8 ↑")
    assert page.locator("#effect tbody tr").last.inner_text().endswith("1 ↓")
    page.click("#effect button.primary")
    # the page's own wait lets the route be served, which a plain sleep does not
    until(lambda: page.wait_for_timeout(50) or len(asked) == 2)
    assert asked[1] == first | {"preview": False}
    until(lambda: page.is_hidden("#effect"))


def test_links_are_made_votes_imported_and_the_study_closed(serve, open_as_owner):
    live = serve()
    page = open_as_owner(live, locale="de-DE")
    assert text(page, "nav.pages [aria-current]") == "Übersicht"
    page.goto(f"{live.address}/o/drinks/people")
    page.fill("#invite [name=n]", "3")
    page.fill("#invite [name=label]", "class 7b")
    page.click("#invite button")
    until(lambda: page.locator("#invites code").count() == 3)
    assert all("invite=" in code for code in page.locator("#invites code").all_inner_texts())
    until(lambda: page.locator("#invitations tbody tr").count() == 4)
    page.click("#invitations tbody tr:nth-child(1) button")
    until(lambda: page.locator("#invitations tbody tr").count() == 3)
    page.goto(f"{live.address}/o/drinks/data")
    votes = {"name": "v.csv", "mimeType": "text/csv", "buffer": b"winner,loser\ntea,milk\n"}
    page.set_input_files("#import input", votes)
    page.click("#import button")
    until(lambda: text(page, "#imported") == "1 Zeilen waren neu.")
    with page.expect_download() as download:
        page.click("text=CSV >> nth=0")
    assert "tea,milk" in download.value.path().read_text()
    until(lambda: text(page, "#state") == "läuft")
    page.click("#close")
    until(lambda: text(page, "#state") == "beendet")
