"""What an owner edits while a study runs: excluded people, restored items, the goal."""

import threading
from dataclasses import replace

import numpy as np
import pytest

import penchant.study as ps
from penchant.study.store import learning, participants, reports, studies

ITEMS = tuple(f"item {k}" for k in range(8))


def by_id(item):
    """A worth of items, by their random ids."""
    return int.from_bytes(item.encode()[:6], "big")


@pytest.fixture
def voted(voting):
    """Three people, one of whom answers backwards, and a worker that knows of them."""
    study = voting(items=ITEMS, answers_per_person=None, repeat_share=0.0)
    worker, folk = study.worker(), [study.join() for _ in range(3)]
    for person, sign in zip(folk, (1, 1, -1), strict=True):
        study.answer_by(person, 18, lambda item, sign=sign: sign * by_id(item))
        worker.step()
    return study, worker, folk


def exclude(study, people, excluded=True):
    return study.write(participants.exclude, people, excluded, 2100.0)


def test_excluding_somebody_is_as_if_they_had_not_answered(voted, same_ranking):
    """The same as erasing them; bringing them back gives what it was."""
    study, worker, folk = voted
    before = worker.learner.ranking()
    assert exclude(study, folk[2:]).answers == 18
    worker.step()
    without = worker.learner.ranking()
    same_ranking(without, ps.replayed(study.database, "drinks").ranking())
    same_ranking(without, study.worker().learner.ranking())
    worth = [by_id(row["item"]) for row in without]
    assert np.corrcoef(worth, [row["utility"] for row in without])[0, 1] > 0.7
    assert {row["participant"] for row in study.saved(worker)["raters"]} == set(folk)
    assert exclude(study, folk[2:], excluded=False).people == folk[2:]
    worker.step()
    same_ranking(before, worker.learner.ranking())
    assert exclude(study, folk[2:]).people == folk[2:]
    study.write(participants.erase, folk[2], 2200.0)
    same_ranking(without, ps.replayed(study.database, "drinks").ranking())


def test_a_restart_does_not_use_what_was_learned_with_the_excluded(voted, same_ranking):
    study, worker, folk = voted
    study.saved(worker)
    exclude(study, folk[1:2])
    assert study.read(learning.last_snapshot) is None
    restarted = study.worker()
    assert restarted.learner.learned.at == 36
    same_ranking(restarted.learner.ranking(), ps.replayed(study.database, "drinks").ranking())
    study.answer_by(folk[1], 3, by_id)
    study.answer_by(folk[0], 3, by_id)
    study.saved(restarted)
    same_ranking(restarted.learner.ranking(), study.worker().learner.ranking())
    assert restarted.learner.record.n_taught == 39


def test_a_snapshot_of_a_model_that_knew_the_excluded_is_not_stored(voted):
    study, worker, folk = voted
    old = ps.Snapshot(worker.learner.record.seq, 30, b"a model", worker.summary())
    exclude(study, folk[2:])
    assert not study.write(learning.save_snapshot, old, 2100.0)
    assert study.read(learning.last_snapshot) is None


def test_people_who_are_not_here_are_refused_and_repeats_change_nothing(voted):
    study, _, folk = voted
    with pytest.raises(ps.Refusal):
        exclude(study, [folk[0], "nobody"])
    assert not any(row["excluded"] for row in study.read(participants.participants_of, 2000.0))
    exclude(study, [folk[0], folk[0]])
    seq = study.read(studies.get).seq
    assert exclude(study, folk[:1]) == participants.Exclusion([], True, 0)
    assert study.read(studies.get).seq == seq
    people = {row["id"]: row["excluded"] for row in study.read(participants.participants_of, 2.0)}
    assert people == {folk[0]: True, folk[1]: False, folk[2]: False}


def test_erasing_somebody_who_was_excluded_leaves_no_trace_of_them(voted):
    study, _, folk = voted
    exclude(study, folk[2:])
    study.write(participants.erase, folk[2], 2200.0)
    assert folk[2] not in str(study.read(studies.events_after))


def test_a_preview_changes_nothing_and_says_what_will_be(serve, same_ranking):
    served = serve(answers_per_person=None)
    browsers = [served.participant() for _ in range(3)]
    for browser in browsers:
        browser.answer(7)
    folk = [row["id"] for row in served.call("GET", "/participants").json()]
    worker, stop = ps.Worker(served.database, "drinks", served.clock), threading.Event()

    def work():
        while not stop.is_set():
            worker.step()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wanted = {"people": folk[:2], "excluded": True}
        seq = served.database.read(studies.get, "drinks").seq
        told = served.call("POST", "/participants/exclude", json=wanted | {"preview": True})
    finally:
        stop.set()
        thread.join()
    assert served.database.read(studies.get, "drinks").seq == seq
    told = told.json()
    assert (told["people"], told["answers"]) == (2, 14)
    done = served.call("POST", "/participants/exclude", json=wanted).json()
    assert (done["people"], done["answers"]) == (2, 14)
    worker.snapshot_due = 0.0
    worker.step()
    shown = served.call("GET").json()["ranking"]
    same_ranking(told["ranking"], shown)
    assert [row.keys() for row in told["ranking"]] == [row.keys() for row in shown]
    assert [row["name"] for row in told["ranking"]] == [row["name"] for row in shown]


def test_a_restored_item_is_asked_about_again(serve):
    served = serve(answers_per_person=None, random_share=0.0)
    first = served.call("GET", "/items").json()[0]["id"]
    for method, path, active in (("DELETE", "", False), ("POST", "/restore", True)):
        for _ in range(2):  # a second time it changes nothing
            assert served.call(method, f"/items/{first}{path}").status_code == 200
        assert served.call("GET", "/items").json()[0]["active"] is active
        learner = ps.replayed(served.database, "drinks")
        assert (first in learner.record.active()) is active
    assert served.database.read(studies.get, "drinks").seq == 7
    assert served.call("POST", "/items/none/restore").status_code == 404


def test_a_goal_decides_about_questions_and_about_enough():
    told = {"items": ["a", "b"], "order": [[0], [1]], "form": "pair", "kind": "normal"}
    events = [ps.Event(k, "add_item", payload={"item": item}) for k, item in enumerate("abc")]
    events += [ps.Event(3 + k, "answer", f"p{k}", payload=told) for k in range(12)]
    reasons, values = {}, {}
    for goal, asked_by in (
        *(("best", "expected_best"), ("top", "information_gain")),
        ("order", "information_gain"),
    ):
        config = ps.Config("Which?", goal=goal, stop_top=2)
        assert config.asked_by == asked_by
        assert replace(config, criterion="thompson").asked_by == "thompson"
        learner = ps.StudyLearner(config, {item: {} for item in "abc"})
        learner.advance(events)
        verdict = learner.verdict()
        reasons[goal], values[goal] = verdict.reason, verdict.value
        assert learner.one_future(0) != 0
    assert reasons == {
        "best": "probability that the top 1 are settled",
        "top": "probability that the top 2 are settled",
        "order": "expected share of pairs in the right order",
    }
    # of three pairs one is known, and the third item is as likely above a pair's as below
    assert 0.5 < values["order"] < 1.0
    assert len(set(values.values())) == 3


def test_settings_without_a_goal_mean_what_they_meant(serve):
    assert ps.Config.from_json({"question": "Which?"}).goal == "best"
    assert ps.Config.from_json({"question": "Which?", "stop_top": 3}).goal == "top"
    served = serve()
    for change, goal in (
        *(({"stop_top": 2}, "top"), ({"goal": "best"}, "best"), ({"goal": "order"}, "order")),
        ({"stop_top": 3}, "order"),
    ):
        changed = served.call("PATCH", json={"config": change}).json()["config"]
        assert changed["goal"] == goal


def test_the_export_says_who_is_excluded(voted, tmp_path):
    study, _, folk = voted
    exclude(study, folk[2:])
    counted = study.read(lambda c, name: list(reports.export_rows(c, name)))
    assert folk[2] not in {row["user"] for row in counted}
    rows = study.read(lambda c, name: list(reports.export_rows(c, name, everybody=True)))
    assert len(rows) == len(counted) + 18
    assert {row["user"] for row in rows if row["excluded"]} == {folk[2]}
    assert sum(row["excluded"] for row in rows) == 18
    ps.write_votes(rows, tmp_path / "votes.csv")
    votes, is_export = ps.read_votes((tmp_path / "votes.csv").read_bytes())
    assert is_export
    assert {row["user"] for row in votes} == set(folk[:2])
