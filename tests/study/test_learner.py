"""The model process: the same from any beginning, and questions as they should be."""

from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa

import penchant.study as ps
from penchant.ask import Joint, Pool, all_pairs, choose
from penchant.likelihoods import Probit
from penchant.study.store import learning, participants, reports, studies, tables
from tests.simulation import random_belief

ITEMS = tuple(f"item {k}" for k in range(8))


def by_id(item):
    """A worth of items, by their random ids."""
    return int.from_bytes(item.encode()[:6], "big")


@pytest.fixture
def running(voting):
    return voting(items=ITEMS, answers_per_person=None, repeat_share=0.0)


@pytest.mark.parametrize("model", ["shared", "personal"])
def test_a_replay_gives_the_same_ranking_to_rounding(voting, same_ranking, model):
    """Whole, in pieces, with a snapshot between, after a withdrawal and with a new item."""
    running = voting(items=ITEMS, answers_per_person=None, repeat_share=0.0, model=model)
    worker = running.worker()
    ann, bob = running.join(), running.join()
    for person, n in ((ann, 9), (bob, 12), (ann, 14)):
        running.answer_by(person, n, by_id, tie_every=5)
        worker.step()
    running.undo(ann)
    running.write(studies.add_items, [ps.NewItem("late")], 2000.0)
    running.saved(worker)
    assert worker.learner.learned.at == 30
    restarted = running.worker()
    assert restarted.learner.learned == worker.learner.learned
    running.answer_by(bob, 12, by_id)
    worker.step()
    restarted.step()
    ranking = worker.learner.ranking()
    assert worker.learner.learned.at == 44
    assert {row["item"] for row in ranking} == set(worker.learner.record.items)
    same_ranking(ranking, restarted.learner.ranking())
    same_ranking(ranking, ps.replayed(running.database, "drinks").ranking())


@pytest.mark.parametrize(
    ("model", "form", "tie_share"),
    [("shared", "pair", 0.2), ("shared", "best", 0.0), ("personal", "pair", 0.2)],
)
def test_telling_and_withdrawing_equal_a_refit(model, form, tie_share, same_ranking):
    """In rounds of answers, imports, new people, and withdrawals that leave somebody none."""
    rng, n = np.random.default_rng(1), 2 if form == "pair" else 3
    events = [ps.Event(k + 1, "add_item", payload={"item": item}) for k, item in enumerate(ITEMS)]
    learner = ps.StudyLearner(ps.Config("Which?", model=model), {item: {} for item in ITEMS})
    learner.advance(events)
    live = []
    for size in (34, *[3] * 7):
        new = []
        for seq in range(len(events) + 1, len(events) + 1 + size):
            first, *others = (int(k) for k in rng.permutation(n))
            order = [[0, 1]] if rng.random() < tie_share else [[first], others]
            items = [str(item) for item in rng.choice(ITEMS, n, replace=False)]
            said = {"items": items, "order": order, "form": form, "kind": "normal"}
            if live and rng.random() < 0.15:
                new.append(ps.Event(seq, "withdraw", payload={"of": live.pop(0)}))
            elif rng.random() < 0.1:
                said |= {"count": 2, "user": None, "is_ordered": False}
                new.append(ps.Event(seq, "import", payload=said))
            else:
                new.append(ps.Event(seq, "answer", f"p{rng.integers(20)}", f"q{seq}", said))
                live.append(seq)
        events += new
        learner.advance(new)
        learner.learned = replace(learner.learned, at=10**6)  # once is enough
        anew = ps.StudyLearner(learner.config, learner.features, ps.replay(events), learner.learned)
        anew.advance([])
        same_ranking(learner.ranking(), anew.ranking())


def test_erasing_somebody_is_as_if_they_had_never_been(running, same_ranking):
    worker = running.worker()
    ann, bob = running.join(), running.join()
    running.answer_by(ann, 20, by_id)
    worker.step()
    running.answer_by(bob, 20, by_id)
    worker.step()
    running.write(participants.erase, bob, 2001.0)
    summary = running.saved(worker)
    assert worker.learner.record.n_taught < 30
    same_ranking(worker.learner.ranking(), ps.replayed(running.database, "drinks").ranking())
    assert bob not in str(summary)
    assert summary["answers"] == 20


def test_a_broken_snapshot_is_not_needed(running, same_ranking):
    ann = running.join()
    running.answer_by(ann, 24, by_id)
    worker = running.worker()
    worker.step()
    for content in (b"", b"junk", worker.learner.model_file()[:-30]):
        assert ps.learned_from_file(content, 30) is None
    running.write(learning.save_snapshot, ps.Snapshot(10**6, 30, b"junk", {}), 1.0)
    again = running.worker()
    same_ranking(again.learner.ranking(), worker.learner.ranking())


def test_everybody_who_is_here_has_questions_and_no_pair_is_open_twice(running):
    worker = running.worker()
    people_here = [running.join() for _ in range(3)]
    gone = running.write(participants.join, 1000.0)
    worker.step()
    config = running.read(studies.get).config
    queue = running.read(learning.queue_of, config, 2000.0)
    assert queue.prepared == dict.fromkeys(people_here, config.ahead)
    assert gone not in queue.prepared
    keys = [ps.pair_key(items) for items in queue.pending]
    assert len(keys) == 3 * config.ahead + ps.stock_for(len(ITEMS))
    assert len(set(keys)) == len(keys)
    got = [running.turn(p, 2) for p in people_here]
    assert all(question.model_version is not None for turn in got for question in turn.questions)


def test_the_stock_is_chosen_anew_when_much_was_learned(running):
    worker = running.worker()
    worker.step()

    def versions():
        q = tables.question.c
        stock = sa.select(q.model_version).where(q.participant.is_(None))
        return sorted(running.database.read(lambda conn: list(conn.execute(stock).scalars())))

    first = versions()
    assert set(first) == {worker.learner.record.seq}
    votes = [
        {"items": list(ITEMS[:2]), "order": [[0], [1]], "form": "pair", "count": 1, "user": "x"}
    ]
    running.write(studies.import_answers, votes, 5.0)
    worker.step()
    assert versions() == first  # one more among many changes little
    running.write(studies.import_answers, votes * 20, 6.0)
    worker.step()
    anew = versions()
    assert len(anew) == len(first)
    assert set(anew) == {worker.learner.record.seq}


def test_repeats_checks_and_random_questions_are_asked(voting):
    check = {"prompt": "Take the first.", "options": ["a", "b", "c"], "right": 0}
    shares = {"repeat_share": 0.3, "random_share": 0.2, "check_share": 0.2}
    study = voting(items=ITEMS, answers_per_person=None, checks=[check], **shares)
    worker = study.worker()
    ann = study.join()
    for _ in range(25):
        worker.step()
        study.answer_by(ann, 1, by_id)
    record = ps.replay(study.read(studies.events_after))
    said = record.answers.values()
    kinds = [answer.kind for answer in said]
    assert len(kinds) == 25
    assert set(kinds) == {"normal", "repeat", "random", "check"}
    asked = [ps.pair_key(a.items) for a in said if a.kind in ("normal", "random")]
    assert len(set(asked)) == len(asked)
    repeats = [ps.pair_key(a.items) for a in said if a.kind == "repeat"]
    assert set(repeats) <= set(asked)
    assert len(set(repeats)) == len(repeats)
    predicted = [a.p_before for a in said if a.kind == "random"]
    assert all(0.0 < p < 1.0 for p in predicted)
    summary = study.saved(worker)
    assert summary["raters"][0]["reliability"]["n"] == len(repeats)
    assert summary["calibration"]["n"] == len(predicted)


@pytest.mark.parametrize("form", ["best", "rank"])
def test_larger_questions(voting, form):
    study = voting(items=ITEMS, format=form, size=4)
    worker = study.worker()
    ann = study.join()
    worker.step()
    question = study.turn(ann).questions[0]
    assert len(set(question.shown)) == 4
    order = [[2], [0, 1, 3]] if form == "best" else [[2], [0], [1], [3]]
    study.answer(ann, question, order)
    worker.step()
    assert worker.learner.ranking()[0]["item"] == question.shown[2]


def test_new_items_are_ranked_on_arrival_from_their_features(voting):
    new = [ps.NewItem(f"{k}", features={"sweet": float(k), "same": 1.0}) for k in range(8)]
    study = voting(items=new, answers_per_person=None)
    worth = {row.id: int(row.name) for row in study.read(studies.items_of)}
    study.answer_by(study.join(), 28, worth.__getitem__)
    late = [ps.NewItem("sweetest", features={"sweet": 7.5, "same": 1.0})]
    late.append(ps.NewItem("bitter", features={"sweet": -0.5, "same": 1.0}))
    ids = study.write(studies.add_items, late, 2000.0)
    place = {row["item"]: row["rank"] for row in study.worker().learner.ranking()}
    assert place[ids[0]] <= 3
    assert place[ids[1]] >= 8


def test_looking_ahead_is_gathered_while_idle(running):
    running.answer_by(running.join(), 10, by_id)
    worker = running.worker()
    for _ in range(15):
        left = running.saved(worker)["left"]
    assert left["low"] is None or left["low"] <= (left["median"] or 10**9)


def test_the_schedule():
    assert ps.learning_point(10**6) <= 10**6 < 1.2 * ps.learning_point(10**6) + 1


def test_questions_are_those_of_ask_and_open_ones_count_as_answered():
    belief, items, config = random_belief(6), list("abcdef"), ps.Config("Which?", goal="order")
    first, second, third = ps.best_questions(belief, items, config, 3)
    pool = Pool(all_pairs(6), np.zeros(6))
    chosen = choose(belief, pool, 3, "information_gain", 0.0, np.random.default_rng(0))
    found = [ps.pair_key(pair) for pair in (first, second, third)]
    assert [ps.pair_key(items[k] for k in pair) for pair in chosen] == found
    after = ps.best_questions(belief, items, config, 2, pending=[first], seed=1)
    assert [ps.pair_key(pair) for pair in after] == found[1:]
    every = ps.best_questions(belief, items, config, 99)
    assert len({ps.pair_key(pair) for pair in every}) == 15
    assert ps.best_questions(belief, items, config, 1, pending=every)  # others hold all


def test_questions_for_the_top_are_about_its_edge():
    """Of 40 items on a line, the goal "top" of ten asks about those around the tenth."""
    belief = Joint(np.linspace(4.0, 0.0, 40), 0.3 * np.eye(40), Probit())
    items = [f"{k:02d}" for k in range(40)]
    for goal, is_about in (("top", True), ("order", False)):
        config = ps.Config("Which?", goal=goal, stop_top=10)
        asked = {item for pair in ps.best_questions(belief, items, config, 15) for item in pair}
        assert (asked <= set(items[:20])) is is_about
    config = ps.Config("Which?", goal="top", stop_top=40)
    assert len(ps.best_questions(belief, items, config, 3)) == 3


def test_sets_are_as_large_as_the_study_says():
    config = ps.Config("Which?", format="best", size=4)
    sets = ps.best_questions(random_belief(6), list("abcdef"), config, 3, pending=[tuple("abcd")])
    assert len(sets) == 3
    assert all(len(set(one)) == 4 for one in sets)


def test_where_nothing_is_known_any_pair_may_come_first():
    nothing_known = Joint(np.zeros(9), np.eye(9), Probit())
    first = [
        ps.best_questions(nothing_known, list("abcdefghi"), ps.Config("Which?"), 1, seed=seed)[0]
        for seed in range(6)
    ]
    assert len(set(map(ps.pair_key, first))) > 2


def test_nobody_is_asked_what_they_were_asked_and_what_is_open_comes_last():
    rng = ps.draw("test")
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    assert ps.take_new(list(pairs), {"a|b"}, {"a|c"}) == ("b", "c")
    assert ps.take_new(list(pairs), {"a|b", "b|c"}, {"a|c"}) is None
    for _ in range(20):
        assert ps.pair_key(ps.random_items("abc", 2, {"a|b"}, {"a|c"}, rng)) == "b|c"
        assert ps.pair_key(ps.random_items("abc", 2, {"a|b", "b|c"}, {"a|c"}, rng)) == "a|c"
    assert ps.random_items("abc", 2, {"a|b", "b|c", "a|c"}, set(), rng) is None


def test_the_dial_keeps_pairs_away_from_even():
    belief, items, config = random_belief(6), list("abcdef"), ps.Config("Which?", apart=0.2)

    def how_far(pair):
        return abs(ps.p_first(belief, {item: k for k, item in enumerate(items)}, pair) - 0.5)

    every = [how_far(pair) for pair in ps.best_questions(belief, items, config, 99)]
    n_apart = sum(far >= 0.2 for far in every)
    assert 0 < n_apart < len(every) == 15
    assert min(every[:n_apart]) >= 0.2
    assert every[n_apart:] == sorted(every[n_apart:], reverse=True)
    nothing_known = Joint(np.zeros(6), np.eye(6), Probit())
    assert ps.best_questions(nothing_known, items, config, 1)


def test_without_answers_there_is_no_ranking_but_there_are_questions():
    learner = ps.StudyLearner(
        ps.Config("Which?", checks=(ps.Check("a?", ("a", "b"), 0),)), {"a": {}, "b": {}}
    )
    learner.record.items = {"a": True, "b": True}
    assert learner.ranking() == []
    assert learner.verdict() is None
    assert ps.best_questions(learner.belief(), ["a", "b"], learner.config, 1)


def camps_of(tastes, n_answers):
    """Answers of people who each see the items in the order of their taste, with unit noise."""
    rng = np.random.default_rng(5)
    given = []
    for number, taste in enumerate(tastes):
        for _ in range(n_answers):
            a, b = rng.choice(len(ITEMS), size=2, replace=False)
            lead = 0.5 * (taste.index(b) - taste.index(a))
            order = ((0,), (1,)) if lead + rng.standard_normal() > 0 else ((1,), (0,))
            given.append(ps.Answer(len(given), f"p{number}", (ITEMS[a], ITEMS[b]), order))
    return given


def test_groups_are_told_when_they_are_real_and_only_then():
    upwards, downwards = list(range(8)), list(range(8))[::-1]
    two = ps.groups(camps_of([upwards] * 60 + [downwards] * 60, 20), ITEMS)
    assert two["verdict"] == "supported"
    assert [group["people"] for group in two["groups"]] == [60, 60]
    assert {group["best"][0] for group in two["groups"]} == {ITEMS[0], ITEMS[7]}
    # on the map the groups lie apart in the first direction, and everybody is there once
    places = {camp: [p["x"] for p in two["map"] if p["group"] == camp] for camp in (0, 1)}
    assert [len(xs) for xs in places.values()] == [60, 60]
    low, high = sorted(places.values(), key=min)
    assert max(low) < 0 < min(high)
    assert all(abs(p[name]) <= 1 for p in two["map"] for name in ("x", "y"))
    assert len({p["participant"] for p in two["map"]}) == 120
    one = ps.groups(camps_of([upwards] * 60, 20), ITEMS)
    assert one["verdict"] != "supported"
    assert one["groups"] == []
    assert ps.groups(camps_of([upwards] * 11, 20), ITEMS) is None
    assert ps.groups(camps_of([upwards] * 40, 4), ITEMS) is None


def test_the_owner_is_told_of_groups_by_the_names_of_items(running):
    worker = running.worker()
    for _ in range(12):
        running.answer_by(running.join(), 6, by_id)
        worker.step()
    worker.groups = (0, None)
    worker.groups_due = 0.0
    running.saved(worker)
    told = running.read(reports.overview, 2000.0)["communities"]
    assert told["verdict"] in ("personal", "too few")
    assert told["sentence"]


def test_larger_answers_are_whole_choices_and_rankings():
    items = list(ITEMS[:5])
    said = [
        ps.Answer(1, "ann", tuple(items[:4]), ((2,), (0, 1, 3)), form="best"),
        ps.Answer(2, "bob", tuple(items[1:5]), ((3,), (0,), (1,), (2,)), form="rank"),
        ps.Answer(3, "ann", (items[0], items[1]), ((0, 1),)),
        ps.Answer(4, None, (items[3], items[1]), ((0,), (1,)), count=3),
        ps.Answer(5, "bob", (items[3], items[2]), ((1,), (0,)), form="best"),
    ]
    data = ps.comparisons(said, items)
    assert list(data.items) == items
    assert set(data.users) == {"ann", "bob", ps.UNNAMED}
    assert data.single_pairs().n_comparisons == 5
    orders = [*data.named_rankings(tied=False), *data.named_rankings(tied=True)]
    whole = {who: places for places, who, _ in orders}
    assert whole["bob"] == [[items[4]], [items[1]], [items[2]], [items[3]]]
    assert whole["ann"][0] == [items[2]]
    assert set(whole["ann"][1]) == {items[0], items[1], items[3]}
    assert data.tie.sum() == 1  # what "best" left over is not tied
    held = zip(data.winner, data.loser, data.tie, strict=True)
    chosen, ranked = {(2, 0), (2, 1), (2, 3)}, {(4, 1), (4, 2), (4, 3), (1, 2), (1, 3), (2, 3)}
    assert {(w, b) for w, b, tie in held if not tie} == chosen | ranked | {(3, 1)}
