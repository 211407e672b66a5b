"""The web side: what participants and owners can do, and what nobody can."""

import base64
import io
import json
import logging
import re
import subprocess
import sys
from concurrent.futures import Future
from dataclasses import fields
from pathlib import Path

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings

import penchant as pc
import penchant.study
import penchant.study as ps
from penchant.study.store import reports, studies

NAMES = ("tea", "milk", "water", "juice", "cocoa")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="
)
HTML = {"accept": "text/html"}
SWEET = {"features": '{"sweet": 2.5}'}
API = "/api/studies/drinks"
PAGES = ("items", "people", "questions", "settings", "data")
WORDS = ("en", "de")
BUILT = ("set", "group", "groups", "page", "kind", "why", "goal", "role", "need", "forecast")
"""Words of the owner with such beginnings are looked up by a name that is put together."""


def shown_question(page):
    """The id of the question that a page without scripts asks."""
    return re.search(r'name="question" value="([^"]+)"', page.text)[1]


# ---- participants


def test_a_vote_from_the_link_to_the_thanks(serve):
    served = serve(answers_per_person=3, completion_code="C0DE", thanks="**Great.**")
    browser = served.browser()
    page = browser.get("/")
    assert page.url.path == "/s/drinks"
    assert "Which would you rather drink?" in page.text
    page = browser.post("/s/drinks/join", data={})
    assert page.url.path == "/s/drinks/vote"
    for done in range(3):
        turn = browser.next(2)
        assert turn["done"] == done
        assert len(turn["questions"]) == min(2, 3 - done)
        assert browser.say(turn["questions"][0]).json()["repeated"] is False
    assert browser.next()["finished"]
    page = browser.get("/s/drinks/vote")
    assert page.url.path == "/s/drinks/done"
    assert "C0DE" in page.text
    assert "<strong>Great.</strong>" in page.text


def test_everything_works_without_scripts(serve):
    served = serve(answers_per_person=4)
    browser = served.participant()
    for choice in ("0", "tie", "skip"):
        sent = {"question": shown_question(browser.get("/s/drinks/vote")), "n": "2"}
        sent["choice"] = choice
        assert browser.post("/s/drinks/vote", data=sent).url.path == "/s/drinks/vote"
    page = browser.get("/s/drinks/vote").text
    assert "2 of 4" in page
    undo = re.search(r'undo-form".*?value="([^"]+)"', page, re.DOTALL)[1]
    page = browser.post("/s/drinks/undo-form", data={"question": undo}).text
    assert f'name="question" value="{undo}"' in page
    record = served.step().learner.record
    assert [a.order for a in record.answers.values()] == [((0,), (1,)), ((0, 1),)]
    assert not record.skipped


def test_ranking_without_scripts(serve):
    served = serve(format="rank", size=3)
    browser = served.participant()
    sent = {"question": shown_question(browser.get("/s/drinks/vote"))}
    sent |= {"choice": "order", "place-0": "3", "place-1": "1"}
    double = browser.post("/s/drinks/vote", data=sent | {"place-2": "1"}, headers=HTML)
    assert double.status_code == 422
    assert "the same place" in double.text
    browser.post("/s/drinks/vote", data=sent | {"place-2": "2"})
    assert [a.order for a in served.step().learner.record.answers.values()] == [((1,), (2,), (0,))]


def test_any_web_process_will_do(serve):
    """Reloads get the same questions, retries count once, undo brings a question back first."""
    served = serve(answers_per_person=None)
    other = ps.create_app(served.folder, served.clock)
    try:
        here = served.participant()
        there = type(here)(other, cookies=here.cookies)
        served.step()
        first, second = here.next()["questions"]
        assert there.next()["questions"] == [first, second]
        said = there.say(first).json()
        for order in ([[0], [1]], [[1], [0]], None):
            assert here.say(first, order).json() == said | {"repeated": True}
        after = here.next()
        assert (after["done"], after["undo"], after["questions"][0]) == (1, first["id"], second)
        for browser in (here, there):  # a retry changes nothing
            undone = browser.post("/s/drinks/undo", json={"question": first["id"]})
            assert undone.status_code == 200
        back = there.next()
        assert (back["done"], back["undo"], back["questions"]) == (0, None, [first, second])
        clients = (here, there)
        one, two = (client.get(API, headers=served.owner).json()["counts"] for client in clients)
        assert one == two
    finally:
        other.state.site.database.close()


def test_consent_is_asked_for_and_needed(serve):
    browser = serve(consent="I *agree*.").browser()
    assert "I <em>agree</em>." in browser.get("/s/drinks").text
    refused = browser.post("/s/drinks/join", data={}, headers=HTML)
    assert refused.status_code == 422
    assert "consent" in refused.text
    assert browser.post("/s/drinks/join", data={"consent": "yes"}).url.path == "/s/drinks/vote"


def test_panels_bring_an_id_and_get_it_back(serve, tmp_path):
    served = serve(answers_per_person=1, redirect="https://panel.example/back?pid={id}&cc=1")
    page = served.browser().get("/s/drinks?PROLIFIC_PID=5f%26abc")
    assert 'name="panel" value="5f&amp;abc"' in page.text
    browser = served.participant(panel="5f&abc")
    browser.answer()
    assert "https://panel.example/back?pid=5f%26abc&amp;cc=1" in browser.get("/s/drinks/done").text
    again = browser.post("/s/drinks/join", data={"panel": "5f&abc"})
    assert again.url.path == "/s/drinks/done"  # the same person
    served.database.scrub()
    for file in (tmp_path / "drinks").glob("study.db*"):
        assert b"5f&abc" not in file.read_bytes()


def test_invites_are_exchanged_by_post_and_looking_changes_nothing(serve):
    served = serve(open_link=False)
    (path,) = served.call("POST", "/invites", json={"n": 1}).json()["paths"]
    browser = served.browser()
    for _ in range(3):  # mail scanners follow links
        page = browser.get(path)
        assert not browser.cookies
        assert "set-cookie" not in page.headers
    token = path.split("=")[1]
    assert browser.post("/s/drinks/join", data={"invite": token}).url.path == "/s/drinks/vote"
    late = served.browser().post("/s/drinks/join", data={"invite": token}, headers=HTML)
    assert late.status_code == 403
    assert "used already" in late.text


def test_paused_and_closed_studies_say_so_and_lose_nothing(served, browser):
    question = browser.next()["questions"][0]
    for state in ("paused", "closed"):
        served.database.write(studies.set_state, "drinks", state, 1.0)
        assert browser.next()["questions"] == []
        assert state in served.browser().get("/s/drinks").text
        late = served.browser().post("/s/drinks/join", data={})
        assert (late.status_code, late.json()["error"]) == (409, state)
    assert browser.say(question).status_code == 200
    assert browser.get("/s/drinks/vote").url.path == "/s/drinks/done"


def test_who_is_erased_can_begin_anew(served, browser):
    browser.answer()
    assert browser.delete("/s/drinks/me").json() == {"erased_events": 1}
    assert browser.get("/s/drinks/next").status_code == 403
    browser = served.participant()
    assert "has been removed" in browser.post("/s/drinks/erase").text
    assert served.call("GET", "/participants").json() == []
    browser = served.participant()
    person = served.call("GET", "/participants").json()[0]["id"]
    served.call("DELETE", f"/participants/{person}")
    assert browser.get("/s/drinks/vote").url.path == "/s/drinks"
    assert browser.post("/s/drinks/join", data={}).url.path == "/s/drinks/vote"


def test_languages(serve):
    names = [
        {key: set(re.findall(r"\{\w+\}", text)) for key, text in ps.strings(language).items()}
        for language in ("en", "de")
    ]
    assert names[0] == names[1]
    browser = serve().browser()
    assert "Beginnen" in browser.get("/s/drinks", headers={"accept-language": "de-AT"}).text
    assert "Beginnen" in browser.get("/s/drinks?lang=de").text
    for accepted, shown in (("xx", "en"), ("fr-FR, de-AT;q=0.8", "de")):
        page = browser.get("/s/drinks", headers={"accept-language": accepted}).text
        assert f'lang="{shown}"' in page


def test_refusals_are_in_the_language_of_whoever_reads_them(serve):
    served = serve(open_link=False)
    german = HTML | {"accept-language": "de"}
    browser = served.browser()
    for path, words in (("/s/none", "diese Studie gibt es nicht"), ("/none", "diese Seite")):
        for headers in (german, HTML):
            got = browser.get(path, headers=headers)
            assert got.status_code == 404
            assert (words[1:] in got.text) == (headers is german)
    got = browser.post("/s/drinks/join", data={}, headers=german)
    assert "wer eingeladen ist" in got.text
    plain = browser.post("/s/drinks/join", data={}, headers={"accept-language": "de"})
    assert plain.json() == {
        "error": "token",
        "message": "this study is by invitation: use the link that you were sent",
    }


def test_every_string_is_used(serve):
    """A language is one file, and nothing in it is there for nothing."""
    folder = Path(penchant.study.__file__).parent
    used = "".join(
        file.read_text()
        for ending in ("py", "js", "html")
        for file in sorted(folder.rglob(f"*.{ending}"))
    )
    known = {key.removeprefix("refused_") for key in ps.strings("en")}
    assert [key for key in known if not re.search(rf"\b{key}\b", used)] == ["language_name"]


def test_the_owners_words_are_the_same_in_every_language_and_all_used():
    one, other = (ps.strings(f"owner.{words}") for words in WORDS)
    assert one.keys() == other.keys()
    for key in one:
        assert set(re.findall(r"{(\w+)}", one[key])) == set(re.findall(r"{(\w+)}", other[key])), key
    folder = Path(penchant.study.__file__).parent / "web"
    files = [*folder.rglob("owner*.js"), *folder.rglob("*.html"), *folder.rglob("*.py")]
    files += [folder / "static" / "pictures.js", folder / "static" / "forms.js"]
    used = "".join(file.read_text() for file in files)
    written = [key for key in one if key.split("_")[0] not in BUILT]
    assert [key for key in written if not re.search(rf"\b{key}\b", used)] == []


def test_every_setting_has_a_name_and_a_form(serve):
    served = serve(answers_per_person=None)
    browser = served.browser()
    browser.post("/o/drinks/login", data={"key": served.key})
    page = browser.get("/o/drinks/settings").text
    for field in fields(ps.Config):
        assert f'data-name="{field.name}"' in page
        assert f"set_{field.name}" in ps.strings("owner.en"), field.name
    assert browser.get("/o/drinks/colours", headers=HTML).status_code == 404
    assert browser.get("/o/drinks/settings?lang=de").text.count("Einstellungen") >= 2
    assert served.browser().get("/o/drinks/settings", headers=HTML).status_code == 403


def test_the_last_answer_can_be_taken_back_after_the_end(serve):
    browser = serve(answers_per_person=1).participant()
    question = browser.next()["questions"][0]
    browser.say(question)
    page = browser.get("/s/drinks/vote")
    assert page.url.path == "/s/drinks/done"
    assert f'value="{question["id"]}"' in page.text
    page = browser.post("/s/drinks/undo-form", data={"question": question["id"]})
    assert page.url.path == "/s/drinks/vote"
    assert browser.next()["questions"][0] == question


def test_answers_that_are_none(shared):
    browser = shared.participant()
    (question,) = browser.next(1)["questions"]
    orders = ([[0, 1], []], [[5], [1]], "left", [[0] * 9] * 9, [[10**30], [1]])
    for body in (*({"order": order} for order in orders), {"ms": -1}, {"ms": 1e300}):
        assert browser.say(question, **body).status_code == 422
    for unknown in ("x" * 1000, None):
        assert browser.say({"id": unknown}).status_code == 422
    assert browser.next()["done"] == 0


def test_questions_of_others_and_unknown_ones(served):
    one, two = served.participant(), served.participant()
    question = one.next()["questions"][0]
    assert two.say(question).status_code == 404
    assert two.say({"id": "none"}).status_code == 404
    assert served.browser().say(question).status_code == 403


# ---- what participants must not learn


def test_nothing_but_what_is_shown_reaches_participants(serve):
    items = [ps.NewItem(f"secret name {k}", "markdown", f"shown *{k}*") for k in range(5)]
    served = serve(items=items)
    browser = served.participant()
    for _ in range(4):
        browser.answer()
        served.step()
    turn = browser.next()
    assert set(turn) == {"state", "questions", "done", "of", "finished", "undo"}
    assert set(turn["questions"][0]) == {"id", "prompt", "form", "tie", "options"}
    assert set(turn["questions"][0]["options"][0]) == {"kind", "html"}
    texts = [str(turn), *(browser.get(f"/s/drinks{p}").text for p in ("/vote", "/done", ""))]
    ids = [row.id for row in served.database.read(studies.items_of, "drinks")]
    hidden = ["secret name", "rank", "utility", "p_before", "model_version", *ids]
    for text in texts:
        text = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.DOTALL)
        assert [word for word in hidden if word in text] == []


def test_markdown_becomes_harmless(serve):
    markdown = [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "![x](https://elsewhere.example/pixel)",
        '<img src=x onerror="alert(1)">',
        "<a href='https://elsewhere.example'>x</a>",
        "```html\n<iframe src=x>\n```",
        "<style>*{display:none}</style>",
        "# one\n\n**two** *three*\n\n|a|b|\n|-|-|\n|1|2|",
    ]
    items = [ps.NewItem(f"{k}", "markdown", text) for k, text in enumerate(markdown)]
    served = serve(items=items, format="rank", size=8)
    (question,) = served.participant().next(1)["questions"]
    tags = {tag for o in question["options"] for tag in re.findall(r"<\s*/?\s*(\w+)", o["html"])}
    wanted = "code em h1 p pre strong table tbody td th thead tr"
    assert " ".join(sorted(tags)) == wanted
    for option in question["options"]:
        assert not re.search(r"<[^>]+(href|src|on\w+|style)\s*=", option["html"])


def test_html_of_owners_is_sandboxed(serve):
    served = serve(items=[ps.NewItem(n, "html", f"<script>{n}</script>") for n in ("a", "b")])
    browser = served.participant()
    option = browser.next()["questions"][0]["options"][0]
    assert option["kind"] == "html"
    got = browser.get(option["url"])
    policy = got.headers["content-security-policy"]
    assert policy.startswith("sandbox;")
    assert "allow-scripts" not in policy
    assert "default-src 'none'" in policy
    assert "<iframe sandbox title" in browser.get("/s/drinks/vote").text


# ---- safety


INLINE = r"""<style|<script(?![^>]*(src=|"application/json"))|<[^>]*\s(on\w+|style)\s*="""


STRICT = {
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


def test_headers_are_strict_and_pages_hold_no_inline_code(serve):
    served = serve(consent="x")
    browser = served.participant(consent="yes")
    browser.post("/o/drinks/login", data={"key": served.key})
    stranger = served.browser()
    seen = [stranger.get("/s/drinks"), browser.get("/s/drinks/vote"), browser.get("/s/drinks/done")]
    seen += [browser.get("/o/drinks"), browser.get("/o/drinks?key=x"), browser.get("/nowhere")]
    seen += [browser.get(f"/o/drinks/{name}?lang={words}") for name in PAGES for words in WORDS]
    seen += [stranger.get("/s/none", headers=HTML), browser.get("/s/drinks/next")]
    for got in seen:
        policy = got.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert STRICT.items() <= dict(got.headers).items()
        assert not re.search(INLINE, got.text), got.url
        assert len(got.content) < 30_000


def test_cookies_are_closed_to_scripts_and_other_sites(served):
    for scheme, secure in (("http", False), ("https", True)):
        browser = served.browser(f"{scheme}://127.0.0.1", follow_redirects=False)
        for path, form in (("/s/drinks/join", {}), ("/o/drinks/login", {"key": served.key})):
            cookie = browser.post(path, data=form).headers["set-cookie"].lower()
            assert "httponly" in cookie
            assert "samesite=lax" in cookie
            assert ("secure" in cookie) == secure


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1"}, 403),
        ({"origin": "http://127.0.0.1"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({}, 403),
    ],
)
def test_writes_from_other_sites_are_refused(shared, headers, status):
    browser = TestClient(shared.app, base_url="http://127.0.0.1")
    assert browser.post("/s/drinks/join", data={}, headers=headers).status_code == status


@pytest.mark.parametrize(
    ("proxies", "peer", "believed"),
    [("", "10.0.0.1", False), ("10.0.0.1", "10.0.0.1", True), ("10.0.0.1", "10.0.0.2", False)],
)
def test_forwarded_headers_are_believed_from_named_proxies_alone(served, proxies, peer, believed):
    config = ps.server_config(served.app, proxies)
    config.load()
    options = {"base_url": "http://study.example", "client": (peer, 1234)}
    browser = TestClient(config.loaded_app, follow_redirects=False, **options)
    forwarded = {"x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.7"}
    forwarded |= {"sec-fetch-site": "same-origin"}
    joined = browser.post("/s/drinks/join", data={}, headers=forwarded)
    assert ("secure" in joined.headers["set-cookie"].lower()) == believed
    came_from = "192.0.2.7" if believed else peer
    joins = served.app.state.site.joins
    for who in ("192.0.2.7", peer):
        assert (joins.numbers[joins._slot(who)] > 0) == (who == came_from)


def test_nothing_about_people_is_logged(serve, caplog):
    served = serve(panel_parameters=["PROLIFIC_PID"])
    token = served.call("POST", "/invites", json={}).json()["paths"][0].split("=")[1]
    with caplog.at_level(logging.DEBUG, "sqlalchemy"), caplog.at_level(logging.DEBUG):
        browser = served.participant(invite=token, panel="5f0c-panel-id")
        browser.answer()
        served.browser().post("/o/drinks/login", data={"key": served.key})
        served.browser().post("/o/drinks/login", data={"key": "a wrong key"})
        broken = sa.exc.OperationalError("SELECT 1", {"who": "5f0c-panel-id"}, Exception(token))
        served.database.submit = lambda *_, **__: failed(broken)
        assert served.browser().post("/s/drinks/join", data={"invite": token}).status_code == 503
    assert "unavailable: Exception" in caplog.text
    secrets = ["5f0c-panel-id", token, served.key, "a wrong key"]
    secrets += [cookie.value for cookie in browser.cookies.jar]
    # httpx, which plays the browser here, logs the addresses that it asks for
    logged = "".join(r.getMessage() for r in caplog.records if not r.name.startswith("http"))
    assert [secret for secret in secrets if secret in logged] == []


def failed(error):
    future = Future()
    future.set_exception(error)
    return future


def test_over_plain_http_on_a_network_forms_still_tell_their_origin(serve):
    browser = serve().browser("http://192.168.1.5:8000")
    assert browser.get("/s/drinks").headers["referrer-policy"] == "same-origin"


def test_secrets_are_private_and_in_the_database_as_hashes_only(served, tmp_path):
    made = served.call("POST", "/invites", json={"n": 3, "label": "x"}).json()["paths"]
    browser = served.participant()
    secrets = [path.split("=")[1] for path in made] + [served.key]
    secrets += [cookie.value for cookie in browser.cookies.jar]
    listed = served.call("GET", "/invites").text
    content = b"".join(f.read_bytes() for f in (tmp_path / "drinks").glob("study.db*"))
    for secret in secrets:
        assert secret not in listed
        assert secret.encode() not in content
    for name in ("secret", "study.json"):
        assert (tmp_path / "drinks" / name).stat().st_mode & 0o077 == 0


def test_forged_and_foreign_cookies_are_nothing(served, browser):
    mine = next(cookie.value for cookie in browser.cookies.jar)
    for value in ("", "x", mine[:-2], mine[1:], mine.replace(".", "-")):
        stranger = served.browser(cookies={"participant_drinks": value})
        assert stranger.get("/s/drinks/next").status_code == 403
    as_owner = served.browser(cookies={"owner_drinks": mine})
    assert as_owner.get(API).status_code == 403


def test_strangers_and_participants_get_nothing_of_the_owners(shared):
    shared.app.state.site.wrong_tokens = ps.Rate(1e9, 1.0)
    paths = ("", "/items", "/invites", "/participants", "/plan", "/export", "/backup", "/live")
    for browser in (shared.browser(), shared.participant()):
        for path in paths:
            for headers in ({}, {"Authorization": "Bearer no"}):
                got = browser.get(f"{API}{path}", headers=headers)
                assert got.status_code == 403


def without_refill(rate):
    """The same limit where no time passes: a slow machine refills it between two requests."""
    return ps.Rate(rate.burst, rate.per_second, clock=lambda: 0.0)


def test_guessing_tokens_is_slowed_down(served):
    served.app.state.site.wrong_tokens = without_refill(served.app.state.site.wrong_tokens)
    browser = served.browser()
    headers = [{"x-forwarded-for": f"10.0.0.{k}"} for k in range(40)]  # nobody named a proxy
    codes = [browser.post("/o/drinks/login", data={"key": "no"}, headers=h) for h in headers]
    assert [got.status_code for got in codes].count(403) == 20
    assert codes[-1].status_code == 429
    # the owner's own key, and people who join, are not kept out by what others do
    assert browser.post("/o/drinks/login", data={"key": served.key}).status_code == 200
    wrong = {"headers": {"Authorization": "Bearer no"}}
    codes = {browser.get(API, **wrong).status_code for _ in range(30)}
    assert codes == {429}
    assert served.call("GET").status_code == 200
    assert served.participant()
    (invite,) = served.call("POST", "/invites", json={}).json()["paths"]
    assert served.participant(invite=invite.split("=")[1])
    refused = served.browser().post("/s/drinks/join", data={"invite": "no"})
    assert refused.status_code == 429


def test_limits_are_shared_by_processes_and_survive_a_restart(tmp_path):
    here, there = (
        ps.Rate(5, 0.001, lambda: 100.0, ps.shared_numbers(tmp_path / "limits", 2)[1], b"key")
        for _ in range(2)
    )
    assert [rate.allows("ann") for rate in (here, there) * 4] == [True] * 5 + [False] * 3
    assert there.allows("bob")
    later = ps.Rate(5, 0.001, lambda: 1200.0, here.numbers.cast("B"), b"key")
    assert [later.allows("ann") for _ in range(2)] == [True, False]
    after_a_reboot = ps.Rate(5, 0.001, lambda: 7.0, there.numbers.cast("B"), b"key")
    assert [after_a_reboot.allows("ann") for _ in range(2)] == [True, True]
    assert (tmp_path / "limits").stat().st_mode & 0o077 == 0


def test_answering_and_joining_have_limits(served, browser):
    question = browser.next()["questions"][0]
    served.app.state.site.answers = without_refill(served.app.state.site.answers)
    codes = [browser.say(question).status_code for _ in range(80)]
    assert codes[0] == 200
    assert codes[-1] == 429
    served.app.state.site.joins = without_refill(ps.Rate(3, 0.001))
    codes = [served.browser().post("/s/drinks/join", data={}).status_code for _ in range(5)]
    assert codes == [200, 200, 200, 429, 429]


def test_revoking_an_invite_ends_the_sessions_that_came_from_it(served):
    browser = served.browser()
    browser.post("/o/drinks/login", data={"key": served.key})
    assert browser.get(API).status_code == 200
    invite = browser.get(f"{API}/invites").json()[0]["id"]
    assert browser.delete(f"{API}/invites/{invite}").status_code == 200
    assert browser.get(API).status_code == 403
    assert browser.get(API, headers=served.owner).status_code == 403


def test_no_path_of_a_client_touches_the_disk(shared):
    (shared.folder.media / "x.png").write_bytes(PNG)
    names = ["../secret", "..%2Fsecret", "%2e%2e/study.db", "study.json", "x.png"]
    names += ["a" * 16 + ".html", "A" * 16 + ".png", "A" * 16 + ".png/../../secret"]
    for name in (*names, "\\..\\secret", "A" * 16 + ".png%00"):
        got = shared.browser().get(f"/media/{name}")
        assert got.status_code in (404, 200)
        assert shared.folder.secret not in got.text
        assert got.status_code == 404 or got.url.path in ("/", "/s/drinks")


def test_uploads_get_a_random_name_and_a_fixed_type(served):
    browser = served.browser()

    def upload(name, content, medium="image", item="picture"):
        sent = {"files": {"file": (name, content, "text/html")}}
        return served.call("POST", "/items/upload", data={"name": item, "medium": medium}, **sent)

    assert upload("../../evil.png", PNG).status_code == 201
    stored = [f.name for f in served.folder.media.iterdir()]
    assert len(stored) == 1
    assert re.fullmatch(r"[\w-]{16}\.png", stored[0])
    got = browser.get(f"/media/{stored[0]}")
    assert got.headers["content-type"] == "image/png"
    assert got.headers["content-security-policy"].startswith("sandbox")
    for name, content, medium in (
        ("x.svg", b"<svg onload=alert(1)>", "image"),
        ("x.png", b"<script>alert(1)</script>", "image"),
        ("x.html", b"<p>", "image"),
        ("x.png", PNG, "page"),
        ("x.png", PNG, "video"),
    ):
        assert upload(name, content, medium, "other").status_code == 422
    assert upload("x.png", PNG, item="picture").status_code == 409  # the name is taken
    assert [f.name for f in served.folder.media.iterdir()] == stored


def test_uploads_bring_the_features_of_the_study(serve):
    served = serve(items=[ps.NewItem(name, features={"sweet": 1.0}) for name in NAMES])
    browser = served.browser()
    browser.post("/o/drinks/login", data={"key": served.key})
    for features, status in (({}, 422), ({"features": "sweet"}, 422), (SWEET, 201)):
        data = {"name": "cup", "medium": "image"} | features
        got = browser.post(f"{API}/items/upload", data=data, files={"file": ("a.png", PNG)})
        assert got.status_code == status
        assert features or "'sweet'" in got.json()["message"]
    assert browser.get(f"{API}/items").json()[-1]["features"] == {"sweet": 2.5}
    assert 'class="feature" name="sweet"' in browser.get("/o/drinks/items").text


def test_uploads_that_are_too_large_are_cut_off(served):
    browser = served.browser()
    url = f"{API}/import"
    announced = {**served.owner, "content-length": str(2 * 10**9)}
    assert browser.post(url, content=b"x", headers=announced).status_code == 413
    sent = 0

    def endless():
        nonlocal sent
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="v.csv"\r\n\r\n'
        while sent < 100_000_000:
            sent += 1_000_000
            yield b"x" * 1_000_000

    lying = {**served.owner, "content-type": "multipart/form-data; boundary=b"}
    assert browser.post(url, content=endless(), headers=lying).status_code == 413
    body = {"question": "x" * 70_000}
    assert served.participant().post("/s/drinks/answer", json=body).status_code == 413


# ---- owners


def test_the_dashboard_is_opened_by_a_button_not_by_a_link(served):
    browser = served.browser()
    assert browser.get("/o/drinks", headers=HTML).status_code == 403
    page = browser.get(f"/o/drinks?key={served.key}")
    assert "Open the dashboard" in page.text
    assert not browser.cookies
    assert browser.post("/o/drinks/login", data={"key": served.key}).url.path == "/o/drinks"


def test_an_owner_can_do_everything_by_program(serve, tmp_path):
    served = serve(reward=2.0)
    for _ in range(3):
        served.participant().answer(4)
    served.step()
    state = served.call("GET").json()
    assert state["counts"]["answers"] == 12
    assert [row["rank"] for row in state["ranking"]] == [1, 2, 3, 4, 5]
    assert {row["name"] for row in state["ranking"]} == set(NAMES)
    assert len(state["raters"]) == 3
    assert state["model"]["behind"] == 0
    changed = served.call("PATCH", json={"state": "paused", "config": {"apart": 0.1}}).json()
    assert (changed["state"], changed["config"]["apart"]) == ("paused", 0.1)
    for wrong in ({"size": 3}, {"apart": 7}, {"colour": "red"}, {"model": "personal"}):
        assert served.call("PATCH", json={"config": wrong}).status_code == 422
    ids = served.call("POST", "/items", json=[{"name": "cola"}]).json()["ids"]
    assert served.call("DELETE", f"/items/{ids[0]}").status_code == 200
    assert [row["active"] for row in served.call("GET", "/items").json()] == [True] * 5 + [False]
    person = served.call("GET", "/participants").json()[0]["id"]
    assert served.call("DELETE", f"/participants/{person}").json() == {"erased_events": 4}
    served.step()
    assert served.call("GET").json()["counts"]["answers"] == 8
    votes = io.BytesIO(b"winner,loser,user\ntea,milk,ann\ntea,water,bob\n")
    assert served.call("POST", "/import", files={"file": votes}).json() == {"rows": 2}
    for form in ("csv", "jsonl", "parquet"):
        path = tmp_path / f"votes.{form}"
        path.write_bytes(served.call("GET", f"/export?format={form}").content)
        assert pc.read_comparisons(str(path)).n_comparisons == 10
    for status, method, path, sent in (
        (422, "PATCH", "", {"json": {"state": "asleep"}}),
        (409, "POST", "/items", {"json": [{"name": "cola"}]}),
        (404, "DELETE", "/items/none", {}),
        (422, "GET", "/export?format=xlsx", {}),
        (422, "POST", "/import", {"files": {"file": io.BytesIO(b"winner,loser\ntea,beer\n")}}),
    ):
        assert served.call(method, path, **sent).status_code == status


def first_event(served):
    """The first event of the live stream."""
    state = served.database.read(reports.live, "drinks", served.clock())
    return json.loads(json.dumps(state))


def test_lists_of_thousands_are_read_by_the_page(serve):
    served = serve(items=[ps.NewItem(f"item {k:03}") for k in range(230)], answers_per_person=None)

    def listed(path):
        return served.call("GET", path).json()

    before = listed("/ranking?page=5")
    assert (before["n"], before["pages"], len(before["rows"]), before["low"]) == (230, 5, 30, None)
    assert {row["rank"] for row in before["rows"]} == {None}  # shown before the first answer
    assert before["rows"][-1]["name"] == "item 229"
    for _ in range(3):
        served.participant().answer(6)
    served.step()
    pages = [listed(f"/ranking?page={k}") for k in range(1, 6)]
    rows = [row for page in pages for row in page["rows"]]
    assert [row["rank"] for row in rows] == list(range(1, 231))
    assert max(len(page["rows"]) for page in pages) == reports.PAGE == 50
    assert {(page["low"], page["high"]) for page in pages} == {
        (min(row["low"] for row in rows), max(row["high"] for row in rows))
    }
    whole = listed("")["ranking"]
    assert rows == [row | {"media": "text", "picture": None} for row in whole]
    assert listed("/ranking?page=99")["page"] == 5
    found = listed("/ranking?q=ITEM%2012")
    assert {row["name"] for row in found["rows"]} == {f"item {k}" for k in range(120, 130)}
    assert [row["rank"] for row in found["rows"]] == sorted(row["rank"] for row in found["rows"])
    ids = served.call("POST", "/items", json=[{"name": "item new"}]).json()["ids"]
    last = listed("/ranking?page=5")["rows"][-1]
    assert (last["item"], last["rank"], last["active"]) == (ids[0], None, True)
    event = first_event(served)
    assert event["ranking"] == rows[:10]
    assert event["counts"]["items"] == 231
    assert len(json.dumps(event)) < 6_000


def test_people_to_look_at_come_first_and_questions_are_counted(serve):
    served = serve(answers_per_person=None, repeat_share=0.0, random_share=0.5, check_share=0.0)
    for _ in range(3):
        served.participant().answer(3)
    hasty, skipping = served.participant(), served.participant()
    for _ in range(6):
        hasty.say(hasty.next()["questions"][0], ms=100)
    skipping.answer(1, order=None)
    served.step()
    people = served.call("GET", "/people").json()
    assert (people["n"], people["pages"], people["map"]) == (5, 1, [])
    first = people["rows"][0]
    assert (first["answers"], first["look_closer"][0]) == (6, "fast")
    assert people["marked"] == [first["id"]]
    assert [row["answers"] for row in people["rows"]] == [6, 3, 3, 3, 0]
    (alone,) = served.call("GET", f"/people?q={first['id'][:8]}").json()["rows"]
    assert alone == first
    asked = served.call("GET", "/questions").json()
    assert sum(row["answered"] for row in asked["kinds"]) == 15
    assert sum(row["skipped"] for row in asked["kinds"]) == 1
    taken = {row["below"]: row["answers"] for row in asked["seconds"]}
    assert (taken[0.5], taken[2], sum(taken.values())) == (6, 9, 15)


def test_backups_restore_to_the_same_study(served, tmp_path):
    served.participant().answer(5)
    (served.folder.media / ("A" * 16 + ".png")).write_bytes(PNG)
    content = served.call("GET", "/backup").content
    file = tmp_path / "backup.zip"
    file.write_bytes(content)
    folder = ps.restore_from(file, tmp_path / "again")
    assert (folder.media / ("A" * 16 + ".png")).read_bytes() == PNG
    with folder.open() as database:
        events = database.read(studies.events_after, "drinks")
    assert events == served.database.read(studies.events_after, "drinks")
    with pytest.raises(pc.DataError, match="holds a study already"):
        ps.restore_from(file, tmp_path / "again")
    file.write_bytes(content[:500])
    with pytest.raises(pc.DataError, match="no backup"):
        ps.restore_from(file, tmp_path / "third")


def test_attention_checks_are_shown_as_written(serve):
    check = {"prompt": "Please take the second.", "options": ["one", "two", "three"], "right": 1}
    served = serve(checks=[check], check_share=0.9, random_share=0.0, repeat_share=0.0)
    browser = served.participant()
    for _ in range(6):
        served.step()
        question = browser.next(1)["questions"][0]
        texts = [option["text"] for option in question["options"]]
        if question["prompt"] == check["prompt"]:
            assert sorted(texts) == ["one", "three", "two"]
            assert not question["tie"]
            right = texts.index("two")
            order = [[right], [k for k in range(3) if k != right]]
        else:
            order = [[0], [1]]
        assert browser.say(question, order).status_code == 200
    worker = served.step()
    row = worker.summary()["raters"][0]
    assert row["checks"]["right"] >= 3
    assert row["checks"]["wrong"] == 0


def test_a_web_process_starts_without_what_only_models_need():
    """After a crash people wait for it."""
    heavy = "{'numpy', 'scipy', 'duckdb', 'httpx', 'matplotlib'}"
    found = f"import sys, penchant.study.web; print({heavy} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", found], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def test_the_interface_is_described_and_keeps_to_it(shared):
    schema = shared.browser().get("/openapi.json").json()
    paths = {path.removeprefix("/api/studies/{study}") for path in schema["paths"]}
    wanted = {"/s/{study}/next", "/s/{study}/answer", "/s/{study}/undo", "/items", "/invites"}
    assert wanted | {"/participants", "/import", "/export", "/live", "/plan", "/backup"} <= paths


def test_the_interface_survives_made_up_requests(serve):
    schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")
    served = serve()
    served.app.state.site.owners = ps.Rate(1e9, 1.0)
    served.app.state.site.joins = ps.Rate(1e9, 1.0)
    schema = schemathesis.openapi.from_asgi("/openapi.json", served.app)
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path.endswith("/live"):
            continue  # it has no end

        @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def check(case):
            case.path_parameters = {**(case.path_parameters or {}), "study": "drinks"}
            got = case.call(headers=served.owner, base_url="http://127.0.0.1")
            assert got.status_code < 500, case.as_curl_command()

        check()
