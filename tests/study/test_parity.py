"""The live model, the export and a model of the export learn from the same comparisons."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import penchant as pc
from penchant.gp.items import cluster_robust as model_people
from penchant.study import (
    UNNAMED,
    Config,
    Database,
    NewItem,
    Worker,
    comparisons,
    read_votes,
    write_votes,
)
from penchant.study.store import participants, reports, studies

NAMES = tuple(f"item {k}" for k in range(8))


@pytest.fixture(scope="module")
def eventful(tmp_path_factory):
    """Makes copies of studies in which all happens; each of them is run once."""
    kept, opened = {}, []

    def make(**settings):
        key = str(settings)
        if key not in kept:
            kept[key] = tmp_path_factory.mktemp("study") / "study.db"
            with Database(f"sqlite:///{kept[key]}") as database:
                database.migrate()
                run(database, **settings)
        copy = tmp_path_factory.mktemp("copy") / "study.db"
        shutil.copy(kept[key], copy)
        opened.append(Database(f"sqlite:///{copy}"))
        return opened[-1], Worker(opened[-1], "s", now=lambda: 2000.0)

    yield make
    for database in opened:
        database.close()


def answer_some(database, study, person, n, taste, rng):
    """Answer n questions by utilities that are the person's own, some of them as ties."""
    names = {row.id: row.name for row in database.read(studies.items_of, study)}
    for _ in range(n):
        turn = database.write(participants.turn, study, person, 1, 2000.0)
        if not turn.questions:
            return
        (question,) = turn.questions
        worth = [taste[names[item]] + 0.7 * rng.standard_normal() for item in question.shown]
        best = [int(k) for k in np.argsort(worth)[::-1]]
        order = [[k] for k in best]
        if question.form == "pair" and abs(worth[0] - worth[1]) < 0.2:
            order = [[0, 1]]
        if question.form == "best":
            order = [best[:1], best[1:]]
        given = (study, person, question.id, order, 900, 2000.0)
        database.write(participants.answer, *given)


def tastes(rng, spread):
    """Utilities of a person: what all share, and what is their own."""
    n = len(NAMES)
    own = np.linspace(1.0, 0.0, n) + spread * rng.standard_normal(n)
    return dict(zip(NAMES, own, strict=True))


def run(database, n_people=7, answers=12, **settings):
    """Ties, withdrawals, skips, an erased person."""
    config = Config.from_json({"question": "Which?", "answers_per_person": None} | settings)
    new = [NewItem(name) for name in NAMES]
    database.write(studies.create, "s", config, new, 1000.0)
    rng = np.random.default_rng(3)
    worker = Worker(database, "s", now=lambda: 2000.0)
    folk = [database.write(participants.join, "s", 2000.0) for _ in range(n_people)]
    own = {person: tastes(rng, 0.5) for person in folk}
    for n in (9, answers - 9):  # the worker has repeats prepared for the second part
        for person in folk:
            answer_some(database, "s", person, n, own[person], rng)
        worker.step()
    for person in folk[:2]:
        last = database.write(participants.turn, "s", person, 1, 2000.0).undo
        database.write(participants.undo, "s", person, last, 2000.0)
    question = database.write(participants.turn, "s", folk[3], 1, 2000.0).questions[0]
    skip = ("s", folk[3], question.id, None, 900, 2000.0)
    database.write(participants.answer, *skip)
    database.write(participants.erase, "s", folk[-1], 2001.0)


def exported(database, path):
    rows = database.read(lambda c: list(reports.export_rows(c, "s")))
    write_votes(rows, path)
    return pc.read_comparisons(str(path))


def live(database, worker):
    """What the model process learned from, its items by name."""
    worker.step()
    names = {row.id: row.name for row in database.read(studies.items_of, "s")}
    data = comparisons(worker.learner.record.taught(), list(worker.learner.record.items))
    learned = worker.learner.model.comparisons_
    assert learned == (data if learned.users else data.pooled())
    return data, names


def rows_of(data, names=None):
    """The comparisons as counted rows by name: whatever the numbers of items and people are."""
    found = {}
    pairs = data.single_pairs()
    first = np.zeros(len(pairs), dtype=int) if pairs.first is None else pairs.first
    name = (names or {}).get
    for k in range(len(pairs)):
        pair = [pairs.items[pairs.winner[k]], pairs.items[pairs.loser[k]]]
        pair = [name(item, item) for item in pair]
        side = int(first[k])
        if pairs.tie[k] and pair[0] > pair[1]:
            pair, side = pair[::-1], -side
        key = (pairs.users[pairs.user[k]], *pair, bool(pairs.tie[k]), side)
        found[key] = found.get(key, 0) + int(pairs.count[k])
    for tied in (False, True):
        for groups, user, count in data.named_rankings(tied):
            level = tied and any(len(group) > 1 for group in groups)
            key = (user, level, *(tuple(sorted(name(i, i) for i in group)) for group in groups))
            found[key] = found.get(key, 0) + int(count)
    return found


VOTES = {
    "pairs": "winner,loser,user\nitem 1,item 2,zoe\nitem 1,item 2,zoe\nitem 4,item 0,yan\n",
    "order": "winner,loser,user,shown_first\nitem 1,item 2,zoe,item 2\nitem 3,item 2,zoe,\n",
    "nobody": "winner,loser\nitem 1,item 2\nitem 5,item 2\nitem 5,item 2\n",
    "ranking": "ballot,item,position,user\n1,item 1,1,zoe\n1,item 2,2,zoe\n1,item 7,3,zoe\n",
}


@pytest.mark.parametrize(
    ("settings", "votes"),
    [
        *(({"repeat_share": 0.4}, votes) for votes in (None, *VOTES)),
        ({"format": "best", "size": 3}, "pairs"),
        ({"format": "rank", "size": 3}, "nobody"),
        ({"format": "rank", "size": 3}, "ranking"),
        ({"model": "personal"}, "order"),
    ],
    ids=["pair", *VOTES, "best-pairs", "rank-nobody", "rank-ranking", "personal-order"],
)
def test_the_live_model_learns_what_the_export_holds(eventful, tmp_path, settings, votes):
    """Names, order, ties, withdrawn answers, erased people, imported rows."""
    database, worker = eventful(**settings)
    if votes is not None:
        rows, _ = read_votes(VOTES[votes].encode())
        database.write(studies.import_answers, "s", rows, 2002.0)
    data, names = live(database, worker)
    for ending in (".csv", ".parquet"):
        held = exported(database, tmp_path / f"votes{ending}")
        assert rows_of(held) == rows_of(data, names)
        assert (held.first is None) == (data.first is None)


def test_imported_rows_have_no_invented_order(eventful, tmp_path):
    database, worker = eventful(repeat_share=0.4)
    before, _ = live(database, worker)
    for votes in ("nobody", "order"):
        rows, _ = read_votes(VOTES[votes].encode())
        database.write(studies.import_answers, "s", rows, 2002.0)
    data, names = live(database, worker)
    more = {k: n - rows_of(before, names).get(k, 0) for k, n in rows_of(data, names).items()}
    assert {key: n for key, n in more.items() if n} == {
        (UNNAMED, "item 1", "item 2", False, 0): 1,
        (UNNAMED, "item 5", "item 2", False, 0): 2,
        ("zoe", "item 1", "item 2", False, -1): 1,
        ("zoe", "item 3", "item 2", False, 0): 1,
    }
    assert rows_of(exported(database, tmp_path / "votes.csv")) == rows_of(data, names)


def test_nobody_is_called_as_models_call_them():
    assert UNNAMED == model_people.UNNAMED


def test_the_same_answers_give_the_same_ranking_live_and_offline(eventful, tmp_path):
    """With the study's own hyperparameters, a model of the export says the same."""
    database, worker = eventful(n_people=12, answers=22)
    live(database, worker)
    model = worker.learner.model
    held = exported(database, tmp_path / "votes.csv")
    settings = {"kernel": model.kernel_, "likelihood": model.likelihood_, "optimize": None}
    offline = pc.PreferenceGP(**settings, random_state=0).fit(None, held)
    names = {row.id: row.name for row in database.read(studies.items_of, "s")}
    shown = {names[row["item"]]: row for row in worker.learner.ranking()}
    for row in offline.rank().to_dicts():
        seen = shown[row["item"]]
        for column in ("utility", "low", "high"):
            assert seen[column] == pytest.approx(row[column], abs=1e-6)
        assert seen["prob_best"] == pytest.approx(row["prob_best"], abs=0.03)
    # the advice to stop speaks of the same belief
    best = max(row["prob_best"] for row in offline.rank().to_dicts())
    assert worker.learner.verdict().value == pytest.approx(best, abs=0.05)
    widened = offline.report_.widened
    assert model.report_.widened == pytest.approx(widened, rel=1e-6)
    assert model.report_.n_people == 11  # one was erased
    assert [effect.name for effect in model.effects_] == [e.name for e in offline.effects_] != []


def test_the_command_line_ranks_an_export_as_the_study_does(eventful, tmp_path):
    database, worker = eventful(n_people=12, answers=22)
    live(database, worker)
    exported(database, tmp_path / "votes.csv")
    command = [sys.executable, "-m", "penchant", "rank", str(tmp_path / "votes.csv")]
    done = subprocess.run(
        [*command, "--model", "gp", "--json"], capture_output=True, text=True, check=True
    )
    names = {row.id: row.name for row in database.read(studies.items_of, "s")}
    shown = {names[row["item"]]: row for row in worker.learner.ranking()}
    rows = json.loads(done.stdout)["rows"]
    assert {row["item"] for row in rows} == set(shown)
    widths = [
        (shown[row["item"]]["high"] - shown[row["item"]]["low"]) / (row["high"] - row["low"])
        for row in rows
    ]
    # hyperparameters were last learned from 230 of the 270 answers: not to the last digit
    assert np.mean(widths) == pytest.approx(1.0, abs=0.1)
    for row in rows:
        assert shown[row["item"]]["prob_best"] == pytest.approx(row["prob_best"], abs=0.1)
