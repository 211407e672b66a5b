"""What can be shown: captions, SVG, differences, media to play; results, suggestions, languages."""

import html
import json
import re
import zipfile

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import penchant.study as ps
from penchant.errors import DataError
from penchant.study.store import learning, studies, suggestions

PNG = bytes.fromhex(  # one grey point
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a494441"
    "54789c636000000002000148afa4710000000049454e44ae426082"
)
API = "/api/studies/drinks"
HTML = {"accept": "text/html"}


def options(browser):
    return [option for question in browser.next()["questions"] for option in question["options"]]


# ---- captions


def test_a_text_beside_a_picture_is_its_caption(tmp_path):
    (tmp_path / "tea.png").write_bytes(PNG)
    table = tmp_path / "items.csv"
    table.write_text('name,Image,text\ntea,tea.png,"Tea, <b>hot</b>"\nmilk,,White\nwater,,\n')
    items, notes = ps.read_items(table, tmp_path)
    assert notes == []
    assert [(i.media, i.caption) for i in items] == [
        ("image", "Tea, <b>hot</b>"),
        *(("text", ""), ("text", "")),
    ]
    assert items[1].body == "White"


def test_a_caption_is_shown_escaped_and_uploads_have_one(serve):
    served = serve(items=[ps.NewItem(n, "audio", f"{n}.mp3", {}, f"<b>{n}</b>") for n in "abc"])
    browser = served.participant()
    shown = options(browser)
    assert {o["caption"] for o in shown} <= {"<b>a</b>", "<b>b</b>", "<b>c</b>"}
    assert "<b>" not in browser.get("/s/drinks/vote").text.replace("&lt;b&gt;", "")
    about = {"name": "d", "medium": "image", "caption": "A cup"}
    sent = {"data": about, "files": {"file": ("d.png", PNG)}}
    assert served.call("POST", "/items/upload", **sent).status_code == 201
    assert served.call("GET", "/items").json()[-1]["caption"] == "A cup"


def test_options_without_a_caption_have_none(browser):
    assert all(set(option) == {"kind", "text"} for option in options(browser))


# ---- SVG

SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" %s</svg>'


def stored(tmp_path, text):
    content = text if isinstance(text, bytes) else text.encode()
    name = ps.store_media(tmp_path, content, ".svg", "image", "plot.svg")
    return (tmp_path / name).read_text()


@pytest.mark.parametrize(
    "inside",
    [
        "><script>alert(1)</script>",
        '><g><g><script href="https://x.example/a.js"/></g></g>',
        "><foreignObject><p>html</p></foreignObject>",
        ' onload="alert(1)">',
        '><rect ONCLICK="alert(1)"/>',
        '><image href="https://x.example/pixel.png"/>',
        '><image xlink:href="//x.example/pixel.png"/>',
        '><image href="data:image/svg+xml;base64,AAAA"/>',
        '><use href="other.svg#a"/>',
        '><set attributeName="href" to="javascript:alert(1)"/>',
        '><animate attributeName="xlink:href" values="javascript:alert(1)"/>',
        "><style>@import 'https://x.example/a.css';</style>",
        "><style>rect { fill: url( 'https://x.example/a.svg#b') }</style>",
        r"><style>rect { fill: u\72l(https://x.example/a) }</style>",
        "><style><![CDATA[ @IMPORT 'a.css' ]]></style>",
        '><rect style="fill:url(https://x.example/a.svg)"/>',
        '><rect fill="url(https://x.example/a.svg)"/>',
        '><g xml:base="https://x.example/"/>',
        ">" + "<g>" * 5000 + "</g>" * 5000,
    ],
)
def test_svg_that_can_run_or_load_is_refused_with_what_to_do(tmp_path, inside):
    with pytest.raises(DataError, match=r"plot.svg holds .*save it as plain SVG.*or as PNG"):
        stored(tmp_path, SVG % inside)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("<html><body/></html>", "no <svg> element"),
        ("<svg><path/></svg>", "no <svg> element"),
        ("<svg", "that can be read"),
        ((SVG % "/>").encode("utf-16"), "begin as"),
        (b"<svg>\xff</svg>", "UTF-8"),
        ('<!DOCTYPE svg [<!ENTITY a "aaaa">]>' + SVG % ">&a;", "entities"),
        ('<!DOCTYPE svg SYSTEM "file:///etc/passwd">' + SVG % ">&a;", "that can be read"),
    ],
)
def test_svg_that_is_none_is_refused(tmp_path, content, words):
    with pytest.raises(DataError, match=words):
        stored(tmp_path, content)


def test_svg_of_drawing_programs_becomes_plain(tmp_path):
    kept = stored(
        tmp_path,
        """<?xml version="1.0" encoding="UTF-8"?>
        <?xml-stylesheet href="https://x.example/a.css"?>
        <!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/svg.dtd">
        <svg xmlns="http://www.w3.org/2000/svg" xmlns:draw="http://draw.example/" draw:version="1"
             xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 40 30" width="100%">
          <draw:view zoom="2"/><metadata><draw:rdf>private</draw:rdf></metadata>
          <style>@font-face { src: url(data:font/woff2;base64,AA) } .a { fill: url(#c) }</style>
          <defs><linearGradient id="c"><stop offset="0" stop-color="red"/></linearGradient></defs>
          <a xlink:href="https://x.example/"><text class="a">tea<draw:x>no</draw:x> time</text></a>
          <image href="data:image/png;base64,AAAA"/><use xlink:href="#c"/>
        </svg>""",
    )
    assert 'width="40" height="30"' in kept
    assert 'class="a">tea time</text>' in kept
    assert "#c" in kept
    for gone in ("x.example", "draw", "metadata", "private", "DOCTYPE", "stylesheet"):
        assert gone not in kept
    again = stored(tmp_path, kept)
    assert again == kept  # a file that was taken is taken as it is


def test_svg_is_served_as_a_picture_in_which_nothing_runs(serve):
    served = serve()
    sent = {"data": {"name": "plot", "medium": "image"}}
    sent["files"] = {"file": ("plot.SVG", (SVG % 'width="4" height="3">').encode())}
    assert served.call("POST", "/items/upload", **sent).status_code == 201
    row = served.call("GET", "/items").json()[-1]
    got = served.browser().get(f"/media/{row['body']}")
    assert row["media"] == "image"
    assert got.headers["content-type"] == "image/svg+xml"
    assert "sandbox; default-src 'none'" in got.headers["content-security-policy"]
    assert got.headers["x-content-type-options"] == "nosniff"
    sent["files"] = {"file": ("plot.svg", (SVG % "><script/>").encode())}
    refused = served.call("POST", "/items/upload", **sent | {"data": sent["data"] | {"name": "b"}})
    assert refused.status_code == 422
    assert "save it as plain SVG" in refused.json()["message"]


# ---- differences

WORDS = st.lists(st.sampled_from(["tea", "<b>", "&amp;", "hot", "\n", "</mark>", "é"]), max_size=12)


@given(WORDS, WORDS)
def test_marked_texts_hold_the_same_words_and_no_other_tag(one, other):
    for text, marked in zip(
        texts := (" ".join(one), " ".join(other)), ps.marked_differences(*texts), strict=True
    ):
        assert html.unescape(re.sub("</?mark>", "", marked)) == text
        assert re.fullmatch(r"([^<>]|<mark>[^<>]*</mark>)*", marked)
        if texts[0].split() == texts[1].split():
            assert "<mark>" not in marked


def test_differences_of_pairs_of_texts_are_marked(serve):
    items = [ps.NewItem(f"{k}", "text", f"A cup of {k} <i>tea</i>") for k in ("hot", "cold")]
    browser = serve(items=items, mark_differences=True).participant()
    shown = {o["text"]: o["difference"] for o in options(browser)}
    assert shown["A cup of hot <i>tea</i>"] == ("A cup of <mark>hot</mark> &lt;i&gt;tea&lt;/i&gt;")
    assert "<i>" not in browser.get("/s/drinks/vote").text


@pytest.mark.parametrize(
    ("media", "settings"), [("markdown", {}), ("text", {"format": "best", "size": 3})]
)
def test_differences_are_of_two_texts_only(serve, media, settings):
    items = [ps.NewItem(name, media, f"a {name}") for name in "abc"]
    browser = serve(items=items, mark_differences=True, **settings).participant()
    assert not any("difference" in option for option in options(browser))


# ---- media that must be played


def test_audio_and_video_must_be_played(serve):
    kinds = ("audio", "video", "image", "text")
    items = [ps.NewItem(f"{kind} {k}", kind, f"{k}") for kind in kinds for k in range(2)]
    served = serve(items=items, must_play=True, format="best", size=8)
    browser = served.participant()
    shown = options(browser)
    assert {(o["kind"], o.get("must_play", False)) for o in shown} == {
        *(("audio", True), ("video", True), ("image", False), ("text", False))
    }
    # a page without scripts cannot know what was played: the answer counts
    order = ([0], [1, 2, 3, 4, 5, 6, 7])
    assert browser.say(browser.next()["questions"][0], order).status_code == 200


# ---- suggestions


def suggest(browser, text):
    return browser.post("/s/drinks/suggest", data={"text": text}, headers=HTML)


def test_a_suggestion_is_voted_on_once_the_owner_added_it(serve):
    served = serve(suggestions=True, answers_per_person=None)
    ann, bob = served.participant(), served.participant()
    assert "Suggest something" in ann.get("/s/drinks/vote").text
    for browser, text in ((ann, " iced \0\n <b>tea</b> "), (bob, "Iced <B>tea</B>"), (bob, "mud")):
        assert "Thank you" in suggest(browser, text).text
    seen = served.call("GET", "/suggestions").json()
    assert [(row["text"], row["times"]) for row in seen] == [("iced <b>tea</b>", 2), ("mud", 1)]
    for page in ("/s/drinks/suggest", "/s/drinks/vote", "/s/drinks/next?n=4"):
        assert "iced" not in ann.get(page).text  # nothing before it was decided
    added = served.call("POST", f"/suggestions/{seen[0]['id']}", json={"add": True}).json()["item"]
    row = served.call("GET", "/items").json()[-1]
    assert (row["id"], row["name"], row["active"]) == (added, "iced <b>tea</b>", True)
    refused = served.call("POST", f"/suggestions/{seen[0]['id']}", json={"add": False})
    assert refused.status_code == 404  # it was decided about
    served.call("POST", f"/suggestions/{seen[1]['id']}", json={"add": False})
    for text in ("MUD", "ICED <b>tea</b>"):  # the same again is decided already
        suggest(ann, text)
    assert served.call("GET", "/suggestions").json() == []
    assert "mud" not in [row["name"] for row in served.call("GET", "/items").json()]


def test_suggestions_bring_the_features_of_the_study(serve):
    served = serve(suggestions=True, items=[ps.NewItem(n, features={"sweet": 1.0}) for n in "ab"])
    suggest(served.participant(), "mate")
    (row,) = served.call("GET", "/suggestions").json()
    path = f"/suggestions/{row['id']}"
    refused = served.call("POST", path, json={"add": True})
    assert "the study's are ['sweet']" in refused.json()["message"]
    assert served.call("GET", "/suggestions").json() == [row]  # it waits still
    sent = {"add": True, "name": "Mate tea", "features": {"sweet": 0.5}}
    assert served.call("POST", path, json=sent).status_code == 200
    added = served.call("GET", "/items").json()[-1]
    assert (added["name"], added["body"]) == ("Mate tea", "mate")


def test_suggestions_have_limits_and_end_with_their_person(serve):
    served = serve(suggestions=True)
    browser = served.participant()
    for text in ("", " \n ", "x" * 201):
        assert suggest(browser, text).status_code == 422
    for k in range(20):
        assert suggest(browser, f"drink {k}").status_code == 200
    assert suggest(browser, "one more").status_code == 429
    assert len(served.call("GET", "/suggestions").json()) == 20
    kept = browser.get("/s/drinks/me").json()["suggestions"]
    assert sorted(kept) == sorted(f"drink {k}" for k in range(20))
    browser.delete("/s/drinks/me")
    assert served.call("GET", "/suggestions").json() == []
    with open(served.folder.path / "study.db", "rb") as file:
        assert b"drink 7" not in file.read()


def test_suggestions_are_off_by_default(browser):
    assert suggest(browser, "mud").status_code == 404
    assert "/suggest" not in browser.get("/s/drinks/vote").text


def test_suggestions_on_every_database(voting):
    study = voting(suggestions=True)
    ann, bob = study.join(), study.join()
    for person, text in ((ann, "Mate\0"), (bob, "mate"), (bob, "cola")):
        study.write(suggestions.suggest, person, text, study.now)
    first, second = study.read(suggestions.waiting)
    assert [(row["text"].lower(), row["times"]) for row in (first, second)] == [
        *(("mate", 2), ("cola", 1))
    ]
    item = study.write(suggestions.decide, first["id"], ps.NewItem(""), study.now)
    assert item in {row.id for row in study.read(studies.items_of)}
    study.write(suggestions.decide, second["id"], None, study.now)
    assert study.read(suggestions.waiting) == []
    record = ps.replay(study.read(studies.events_after))
    assert record.items[item]


def test_strangers_suggest_and_decide_nothing(serve):
    served = serve(suggestions=True)
    suggest(served.participant(), "mate")
    stranger = served.browser()
    assert suggest(stranger, "mud").status_code == 403
    assert stranger.get("/s/drinks/suggest").status_code == 403
    assert stranger.get(f"{API}/suggestions").status_code == 403
    (row,) = served.call("GET", "/suggestions").json()
    sent = stranger.post(f"{API}/suggestions/{row['id']}", json={"add": True})
    assert sent.status_code == 403


# ---- public results


def answered_by(served, people):
    """People who prefer what comes first in the alphabet."""
    for _ in range(people):
        browser = served.participant()
        for question in browser.next(4)["questions"]:
            texts = [option["text"] for option in question["options"]]
            order = [[0], [1]] if texts[0] < texts[1] else [[1], [0]]
            assert browser.say(question, order).status_code == 200
    served.step()


def test_results_are_off_by_default(shared):
    assert shared.browser().get("/r/drinks").status_code == 404
    assert shared.browser().get("/r/none").status_code == 404


def test_results_wait_for_enough_people_and_tell_nothing_of_them(serve):
    items = [ps.NewItem(n) for n in ("ale", "beer", "cola <3", "dew")]
    served = serve(items=items, public_results=True)
    answered_by(served, 4)
    early = served.browser().get("/r/drinks").text
    assert "no results yet" in early
    assert "<table" not in early
    answered_by(served, 3)
    # another process has not read the page before
    app = ps.create_app(served.folder, served.clock)
    try:
        page = type(served.browser())(app).get("/r/drinks")
        n = served.call("GET").json()["counts"]["answers"]
        assert f"{n} answers" in page.text
        names = re.findall(r"<span>(.*?)</span></th>", page.text)
        ranking = served.call("GET").json()["ranking"]
        assert [html.unescape(name) for name in names] == [row["name"] for row in ranking]
        assert "cola &lt;3" in names
        spans = re.findall(r'class="span" x1="([\d.]+)" x2="([\d.]+)"', page.text)
        assert len(spans) == 4
        assert min(float(low) for low, _ in spans) == 0.0
        assert max(float(high) for _, high in spans) == 100.0
        for person in served.call("GET", "/participants").json():
            assert person["id"] not in page.text
        for item in ranking:
            assert item["item"] not in page.text
        assert "<script" not in page.text
        assert "style=" not in page.text
        german = type(served.browser())(app).get("/r/drinks?lang=de").text
        assert f"{n} Antworten" in german
    finally:
        app.state.site.database.close()


def test_results_show_pictures_leave_out_retired_items_and_have_pages(serve):
    items = [ps.NewItem(f"drink {k}") for k in range(120)]
    served = serve(items=items, public_results=True)
    picture = {"data": {"name": "a", "medium": "image"}, "files": {"file": ("a.png", PNG)}}
    served.call("POST", "/items/upload", **picture)
    gone = served.call("GET", "/items").json()[0]
    served.call("DELETE", f"/items/{gone['id']}")
    rows = [
        {"items": [f"drink {k}", "a"], "order": [[1], [0]], "form": "pair", "count": 1, "user": "u"}
        for k in range(3)
    ]
    served.database.write(studies.import_answers, "drinks", rows, 5.0)
    for _ in range(5):
        browser = served.participant()
        browser.say(browser.next()["questions"][0])
    served.step()
    first = served.browser().get("/r/drinks").text
    second = served.browser().get("/r/drinks?n=2").text
    both = re.findall(r"<span>(.*?)</span></th>", first + second)
    assert len(both) == len(set(both)) == 120
    assert gone["name"] not in both
    assert '<img src="/media/' in first + second
    assert "Next page" in first
    assert "Next page" not in second
    assert served.browser().get("/r/drinks?n=3").status_code == 404
    assert served.database.read(learning.last_summary, "drinks")["answers"] == 8
    assert "8 answers" in first


# ---- languages

FRENCH = {"language_name": "Français", "start": "Commencer", "progress": "{done} sur {of}"}


@pytest.fixture
def french(tmp_path):
    """Puts French into the folder of the study that `serve` makes."""
    folder = tmp_path / "drinks" / "strings"
    folder.mkdir(parents=True)

    def write(content=FRENCH, name="fr.json"):
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text)

    write()
    yield write
    ps.Folder.create(tmp_path / "other", "other", None)  # the process serves another study


def test_a_file_makes_a_language(french, serve):
    served = serve(answers_per_person=5)
    browser = served.browser()
    assert "Commencer" not in browser.get("/s/drinks").text
    page = browser.get("/s/drinks", headers={"accept-language": "fr-CH, de;q=0.5"}).text
    assert 'lang="fr"' in page
    assert "Commencer" in page
    assert "There are no right or wrong answers" in page  # not in the file: English
    assert browser.post("/s/drinks/join", data={"lang": "fr"}).status_code == 200
    assert "0 sur 5" in browser.get("/s/drinks/vote").text
    assert served.call("PATCH", json={"config": {"language": "fr"}}).status_code == 200
    assert "Commencer" in served.browser().get("/s/drinks", headers={"accept-language": "de"}).text


def test_words_of_a_known_language_can_be_others(french, serve):
    french({"start": "Let's go"}, "en.json")
    page = serve().browser().get("/s/drinks").text
    assert "Let&#39;s go" in page
    assert "no right or wrong" in page


def test_a_language_without_a_file_is_refused(serve, tmp_path):
    served = serve()
    refused = served.call("PATCH", json={"config": {"language": "fr"}})
    assert refused.status_code == 422
    assert "put strings/fr.json into the study's folder" in refused.json()["message"]
    (tmp_path / "items.csv").write_text("name\ntea\nmilk\n")
    about = ["new", str(tmp_path / "new"), "--items", str(tmp_path / "items.csv")]
    about += ["--question", "Which?", "--language"]
    with pytest.raises(DataError, match=r"there are en, de; for another one put strings/fr.json"):
        CliRunner().invoke(ps.command, [*about, "fr"], catch_exceptions=False)
    assert CliRunner().invoke(ps.command, [*about, "de"]).exit_code == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "no JSON"),
        ("[]", "one object of texts"),
        ({"start": 5}, "one object of texts"),
        ({"progress": "{fait} sur {of}"}, r"may have {done}, {of}"),
        ({"progress": "{done.__class__}"}, r"may have {done}, {of}"),
        ({"progress": "{done} sur {"}, r"may have {done}, {of}"),
        ({"start": "{0}"}, "no {…}"),
    ],
)
def test_a_wrong_file_is_explained_when_the_study_opens(french, serve, content, words):
    served = serve()
    french(content)
    with pytest.raises(DataError, match=rf"strings/fr.json .*{words}"):
        ps.Folder(served.folder.path)


def test_backups_bring_languages_along(french, serve, tmp_path):
    served = serve()
    (tmp_path / "backup.zip").write_bytes(served.call("GET", "/backup").content)
    with zipfile.ZipFile(tmp_path / "backup.zip") as archive:
        assert "strings/fr.json" in archive.namelist()
    ps.restore_from(tmp_path / "backup.zip", tmp_path / "restored")
    kept = json.loads((tmp_path / "restored" / "strings" / "fr.json").read_text())
    assert kept == FRENCH


def test_without_its_file_a_language_becomes_english(french, serve, tmp_path):
    served = serve()
    served.call("PATCH", json={"config": {"language": "fr"}})
    (tmp_path / "drinks" / "strings" / "fr.json").unlink()
    ps.Folder(served.folder.path)
    assert 'lang="en"' in served.browser().get("/s/drinks").text
