"""Every setting of a study: wrong types and values are refused, and it changes something."""

import json
from dataclasses import fields

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

import penchant.study as ps
from penchant.ask import CRITERIA, Joint
from penchant.errors import DataError
from penchant.likelihoods import Probit
from penchant.study.store import learning, reports, studies

AGE = {"name": "age", "label": "Your age", "options": ["minor", "of age"]}
OUT = {"ask_first": [{**AGE, "screen_out": ["minor"]}]}
CHECK = {"prompt": "Take b.", "options": ["a", "b"], "right": 1}


# ---- what can be seen of a setting


def first_page(served, address="/s/drinks?PROLIFIC_PID=P1&code=Q2"):
    return served.browser(follow_redirects=False).get(address).text


def last_page(served):
    """The end of somebody's part, with the panel's id in their cookie."""
    browser = served.participant(panel="P1", consent="yes")
    for _ in range(2):
        (question, *_) = browser.next()["questions"]
        order = [[0], list(range(1, len(question["options"])))]
        browser.post("/s/drinks/answer", json={"question": question["id"], "order": order})
    served.database.write(studies.set_state, "drinks", "closed", 5.0)
    return browser.get("/s/drinks/done").text


def end_of_a_minor(served):
    browser = served.participant(panel="P1", **{"ask-age": "minor"})
    return browser.get("/s/drinks/done").text


def policy(served):
    return served.browser().get("/s/drinks").headers["content-security-policy"]


def questions(served):
    got = served.participant().next()["questions"]
    return [(q["form"], q["tie"], len(q["options"])) for q in got]


def after_a_skip(served):
    browser = served.participant()
    (question, *_) = browser.next()["questions"]
    skipped = browser.post("/s/drinks/answer", json={"question": question["id"], "order": None})
    return skipped.status_code, browser.next()["undo"] is None


def joining(served):
    return served.browser().post("/s/drinks/join", data={}).status_code


def prepared(served):
    served.participant()
    worker = served.step()
    queue = served.database.read(learning.queue_of, "drinks", worker.learner.config, served.clock())
    return sorted(queue.prepared.values())


def leases(served):
    """How many open questions still count two minutes later."""
    browser = served.participant()
    browser.get("/s/drinks/next")
    served.clock.time += 100.0
    queue = served.database.read(
        lambda c: learning.queue_of(
            c, "drinks", studies.get(c, "drinks").config, served.clock(), version=10**9
        )
    )
    return len(queue.pending)


def state_when_clear(served):
    """All say the same about every pair: enough is known."""
    names = [row.name for row in served.database.read(studies.items_of, "drinks")]
    rows = [
        {"items": [a, b], "order": [[0], [1]], "form": "pair", "count": 30, "user": f"u{k}"}
        for k in range(6)
        for number, a in enumerate(names)
        for b in names[number + 1 :]
    ]
    served.database.write(studies.import_answers, "drinks", rows, 5.0)
    served.step()
    return served.database.read(studies.get, "drinks").state


def options(served):
    return [
        set(option) for q in served.participant().next()["questions"] for option in q["options"]
    ]


def options_of_sound(served):
    served.database.write(lambda c: c.execute(sa.text("UPDATE item SET media = 'audio'")))
    return options(served)


def suggesting(served):
    return served.participant().get("/s/drinks/suggest").status_code


def results(served):
    return served.browser().get("/r/drinks").status_code


def kinds(config):
    return [ps.kind_of(config, "somebody", number) for number in range(200)]


def finished(config):
    return [ps.is_finished(config, answers, 60.0 * answers) for answers in (0, 5, 39, 40, 100)]


def picks(config):
    rng = np.random.default_rng(0)
    root = rng.standard_normal((6, 6))
    belief = Joint(2.0 * rng.standard_normal(6), root @ root.T, Probit())
    return [frozenset(items) for items in ps.best_questions(belief, list("abcdef"), config, 3)]


def learned(config):
    told = {"items": ["a", "b"], "order": [[0], [1]], "form": "pair", "kind": "normal"}
    events = [ps.Event(k, "add_item", payload={"item": item}) for k, item in enumerate("abc")]
    events += [ps.Event(3 + k, "answer", f"p{k % 3}", payload=told) for k in range(6)]
    learner = ps.StudyLearner(config, {item: {} for item in "abc"})
    learner.advance(events)
    verdict = learner.verdict()
    return type(learner.model).__name__, verdict.value, verdict.target


def money(config):
    return reports.plan(config, {"low": 10, "median": 20, "high": None})


HALF = "half \ud800 a character"
TEXT, NUMBER = (5, None, ["a"], HALF), ("2", None, True, [1], float("nan"), float("inf"))
FLAG = ("yes", 1, None)
OPTIONAL = tuple(value for value in NUMBER if value is not None)
SHARE = (*NUMBER, -0.1, 1.1)
CASES = {
    "question": ((*TEXT, "", "  "), {"question": "Which is heavier?"}, first_page),
    "format": ((*TEXT, "pairs", ""), {"format": "rank"}, questions),
    "size": ((*NUMBER, 2.5, 2.0, 0, 1, 9), {"format": "best", "size": 3}, questions),
    "tie": (FLAG, {"tie": False}, questions),
    "skip": (FLAG, {"skip": False}, after_a_skip),
    "undo": ((*NUMBER, 2.5, -1, 10**6), {"undo": 0}, after_a_skip),
    "repeat_share": (SHARE, {"repeat_share": 0.5}, kinds),
    "random_share": (SHARE, {"random_share": 0.5}, kinds),
    "check_share": (SHARE, {"checks": [CHECK], "check_share": 0.5}, kinds),
    "checks": (
        (
            *(5, None, "abc", [5], ["abc"], CHECK, [{**CHECK, "right": True}]),
            *([{**CHECK, "options": "ab"}], [{**CHECK, "options": ["a", ""]}]),
            *([{**CHECK, "options": [1, 2]}], [{**CHECK, "options": 5}]),
            *([{**CHECK, "prompt": None}], [{**CHECK, "right": 2}], [{"prompt": "x"}]),
        ),
        {"checks": [CHECK]},
        kinds,
    ),
    "apart": ((*NUMBER, -0.1, 0.5), {"apart": 0.4}, picks),
    "answers_per_person": ((*OPTIONAL, 2.5, 0), {"answers_per_person": 4}, finished),
    "minutes_per_person": ((*OPTIONAL, 2.5, 0), {"minutes_per_person": 4}, finished),
    "lease_seconds": ((*NUMBER, 9.5, 1, 10**6), {"lease_seconds": 60}, leases),
    "ahead": ((*NUMBER, 2.5, 0, 100), {"ahead": 5}, prepared),
    "model": ((*TEXT, "typo", ""), {"model": "personal"}, learned),
    "criterion": ((*TEXT, "typo", ""), {"criterion": "information_gain"}, picks),
    "goal": ((*TEXT, "typo", ""), {"goal": "order"}, picks),
    "stop_top": ((*NUMBER, 1.5, 0), {"stop_top": 2}, learned),
    "stop_level": ((*NUMBER, 0.2, 1.0), {"stop_level": 0.6}, learned),
    "close_when_enough": (FLAG, {"close_when_enough": True}, state_when_clear),
    "reward": ((*OPTIONAL, -1), {"reward": 2.5}, money),
    "open_link": (FLAG, {"open_link": False}, joining),
    "language": ((*TEXT, "typo", "", "FR"), {"language": "de"}, first_page),
    "welcome": (TEXT, {"welcome": "Hello **you**"}, first_page),
    "consent": (TEXT, {"consent": "I agree"}, first_page),
    "thanks": (TEXT, {"thanks": "Bye **now**"}, last_page),
    "completion_code": (TEXT, {"completion_code": "TEA-42"}, last_page),
    "redirect": (
        (*TEXT, "elsewhere", "javascript:alert(1)", "https://"),
        {"redirect": "https://panel.example/done?id={id}"},
        last_page,
    ),
    "panel_parameters": (
        (5, None, "abc", [5], [""], ["a", HALF], {"a": 1}),
        {"panel_parameters": ["code"]},
        first_page,
    ),
    "mark_differences": (FLAG, {"mark_differences": True}, options),
    "must_play": (FLAG, {"must_play": True}, options_of_sound),
    "suggestions": (FLAG, {"suggestions": True}, suggesting),
    "public_results": (FLAG, {"public_results": True}, results),
    "ask_first": (
        (
            *(5, None, "abc", [5], ["abc"], AGE, [AGE, AGE], [{"name": "age"}]),
            *([{**AGE, "name": name}] for name in ("", "Age", "a b", "winner", "user_id", HALF)),
            *(
                [{**AGE, "options": some}]
                for some in (5, "abc", [], ["a"], ["a", "a"], ["a", " b"])
            ),
            *([{**AGE, "options": some}] for some in ([1, 2], ["a", HALF], {"a": 1, "b": 2})),
            *([{**AGE, "label": label}] for label in ("", 5, HALF)),
            *([{**AGE, "screen_out": some}] for some in (["other"], "minor", 5)),
            *([{**AGE, "options": "text", "screen_out": ["a"]}], [{**AGE, "required": 1}]),
        ),
        {"ask_first": [AGE]},
        first_page,
    ),
    "screened_out_code": (TEXT, OUT | {"screened_out_code": "OUT-42"}, end_of_a_minor),
    "screened_out_redirect": (
        (*TEXT, "elsewhere", "javascript:alert(1)", "https://"),
        OUT | {"screened_out_redirect": "https://panel.example/out?id={id}"},
        end_of_a_minor,
    ),
    "frame_ancestors": (
        (
            *(5, None, "https://a.example", [5], [""], ["*"], ["'self'"], ["a.example"], [HALF]),
            *(["https://a.example/"], ["https://a.example/x"], ["https://*.example"]),
            *(["https://a.example; script-src *"], ["https://a@b.example"], ["ftp://a.example"]),
            *(["https://a.example:99999"], ["https://a b.example"], ["https://a.example\n"]),
        ),
        {"frame_ancestors": ["https://panel.example:8443"]},
        policy,
    ),
    "guard_joins": (FLAG, {"guard_joins": True}, joining),
}
"""By setting: what is refused, a change, and where that shows."""


def test_every_setting_is_here():
    assert set(CASES) == {field.name for field in fields(ps.Config)}
    assert set(ps.CRITERIA) == set(CRITERIA)


@pytest.mark.parametrize("name", CASES)
def test_wrong_types_and_values_are_refused(name):
    wrong, change, _ = CASES[name]
    values = {"question": "Which?"} | change
    ps.Config.from_json(values)
    for value in wrong:
        with pytest.raises(DataError, match=r"must (be|have)|needs|half a character|is empty"):
            ps.Config.from_json(values | {name: value})


@pytest.mark.parametrize("name", CASES)
def test_every_setting_changes_something(name, serve, tmp_path):
    _, change, look = CASES[name]
    seen = []
    others = {other: value for other, value in change.items() if other != name}
    for number, settings in enumerate((others, change)):
        values = {"question": "Which?"} | settings
        if look in (kinds, finished, picks, learned, money):
            seen.append(look(ps.Config.from_json(values)))
        else:
            seen.append(look(serve(path=tmp_path / str(number), **values)))
    assert seen[0] != seen[1]


def test_wrong_settings_are_refused_where_they_are_given(serve, tmp_path):
    """In the file of `new`, and over HTTP while a study runs; nothing of them is kept."""
    (tmp_path / "items.csv").write_text("name\ntea\nmilk\nwater\n")
    served = serve()
    browser = served.browser()
    for wrong in ({"size": 2.5}, {"criterion": "typo"}, {"panel_parameters": "abc"}):
        (name,) = wrong
        (tmp_path / "settings.json").write_text(json.dumps(wrong))
        arguments = ["new", str(tmp_path / "new"), "--items", str(tmp_path / "items.csv")]
        arguments += ["--question", "Which?", "--settings", str(tmp_path / "settings.json")]
        with pytest.raises(DataError, match=name):
            CliRunner().invoke(ps.command, arguments, catch_exceptions=False)
        assert not (tmp_path / "new").exists()
        got = browser.patch("/api/studies/drinks", json={"config": wrong}, headers=served.owner)
        assert got.status_code == 422
        assert name in got.json()["message"]
    it = served.database.read(studies.get, "drinks")
    assert it.config == ps.Config("Which would you rather drink?")
    served.step()
