"""The live model, the export and a model of the export learn from the same comparisons."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import penchant as pc
import penchant.study as ps
from penchant.gp.items import cluster_robust as model_people
from penchant.study.store import participants, reports, studies

NAMES = tuple(f"item {k}" for k in range(8))


@pytest.fixture(scope="module")
def eventful(tmp_path_factory, voting_in):
    """Makes copies of studies in which all happens; each of them is run once."""
    kept, opened = {}, []

    def make(n_people=7, answers=12, **settings):
        key = str((n_people, settings))
        if key not in kept:
            kept[key] = tmp_path_factory.mktemp("study") / "study.db"
            with ps.Database(f"sqlite:///{kept[key]}") as database:
                database.migrate()
                study = voting_in(database, NAMES, answers_per_person=None, **settings)
                run(study, n_people, answers)
        copy = tmp_path_factory.mktemp("copy") / "study.db"
        shutil.copy(kept[key], copy)
        opened.append(ps.Database(f"sqlite:///{copy}"))
        return opened[-1], ps.Worker(opened[-1], "drinks", now=lambda: 2000.0)

    yield make
    for database in opened:
        database.close()


def run(study, n_people, answers):
    """Ties, withdrawals, repeats, a skip, an erased person."""
    rng = np.random.default_rng(3)
    names = {row.id: row.name for row in study.read(studies.items_of)}
    worker = study.worker()
    folk = [study.join() for _ in range(n_people)]
    shared = dict(zip(NAMES, np.linspace(1.0, 0.0, len(NAMES)), strict=True))
    own = {(who, name): 0.5 * rng.standard_normal() for who in folk for name in NAMES}
    for n in (9, answers - 9):  # the worker has repeats prepared for the second part
        for who in folk:

            def worth(item, who=who):
                noise = 0.7 * rng.standard_normal()
                return shared[names[item]] + own[who, names[item]] + noise

            study.answer_by(who, n, worth, tie_below=0.2)
        worker.step()
    for who in folk[:2]:
        study.undo(who)
    study.answer(folk[3], study.turn(folk[3]).questions[0], None)
    study.write(participants.erase, folk[-1], 2001.0)


def exported(database, path, everybody=False):
    rows = database.read(lambda c: list(reports.export_rows(c, "drinks", everybody)))
    ps.write_votes(rows, path)
    return pc.read_comparisons(str(path))


def edit(database):
    """Exclude the two who joined first, bring one back; retire an item and restore it."""
    folk = [row["id"] for row in database.read(participants.participants_of, "drinks", 0.0)][:2]
    for people, excluded in ((folk, True), (folk[1:], False)):
        database.write(participants.exclude, "drinks", people, excluded, 2002.0)
    item = database.read(studies.items_of, "drinks")[0].id
    for change in (studies.retire, studies.restore):
        database.write(change, "drinks", item, 2003.0)
    return folk[0]


def live(database, worker):
    """What the model process learned from, its items by name."""
    worker.step()
    names = {row.id: row.name for row in database.read(studies.items_of, "drinks")}
    data = ps.comparisons(worker.learner.record.taught(), list(worker.learner.record.items))
    learned = worker.learner.model.comparisons_
    assert rows_of(learned) == rows_of(data if learned.users else data.pooled())
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
        who = None if pairs.user is None else pairs.users[pairs.user[k]]
        key = (who, *pair, bool(pairs.tie[k]), side)
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
        rows, _ = ps.read_votes(VOTES[votes].encode())
        database.write(studies.import_answers, "drinks", rows, 2002.0)
    data, names = live(database, worker)
    for ending in (".csv", ".parquet"):
        held = exported(database, tmp_path / f"votes{ending}")
        assert rows_of(held) == rows_of(data, names)
        assert (held.first is None) == (data.first is None)


@pytest.mark.parametrize(
    "settings",
    [
        {"repeat_share": 0.4},
        {"format": "rank", "size": 3},
        {"model": "personal"},
        {"goal": "top", "stop_top": 2},
        {"goal": "order"},
    ],
    ids=["pair", "rank", "personal", "top", "order"],
)
def test_the_live_model_learns_what_an_edited_study_holds(eventful, tmp_path, settings):
    """Somebody excluded, somebody brought back, an item restored, each goal, a restart."""
    database, worker = eventful(**settings)
    live(database, worker)
    gone = edit(database)
    data, names = live(database, worker)
    held = exported(database, tmp_path / "votes.csv")
    assert rows_of(held) == rows_of(data, names)
    assert gone not in data.users
    everything = exported(database, tmp_path / "votes.parquet", everybody=True)
    assert set(everything.users) == {*data.users, gone}
    again = ps.comparisons(
        ps.replayed(database, "drinks").record.taught(), list(worker.learner.record.items)
    )
    assert rows_of(again) == rows_of(data)


def test_imported_rows_have_no_invented_order(eventful, tmp_path):
    database, worker = eventful(repeat_share=0.4)
    before, _ = live(database, worker)
    for votes in ("nobody", "order"):
        rows, _ = ps.read_votes(VOTES[votes].encode())
        database.write(studies.import_answers, "drinks", rows, 2002.0)
    data, names = live(database, worker)
    more = {k: n - rows_of(before, names).get(k, 0) for k, n in rows_of(data, names).items()}
    assert {key: n for key, n in more.items() if n} == {
        (ps.UNNAMED, "item 1", "item 2", False, 0): 1,
        (ps.UNNAMED, "item 5", "item 2", False, 0): 2,
        ("zoe", "item 1", "item 2", False, -1): 1,
        ("zoe", "item 3", "item 2", False, 0): 1,
    }
    assert rows_of(exported(database, tmp_path / "votes.csv")) == rows_of(data, names)


def test_nobody_is_called_as_models_call_them():
    assert ps.UNNAMED == model_people.UNNAMED


@pytest.mark.parametrize("is_edited", [False, True], ids=["plain", "edited"])
def test_the_same_answers_give_the_same_ranking_live_and_offline(eventful, tmp_path, is_edited):
    """With the study's own hyperparameters, a model of the export says the same."""
    database, worker = eventful(n_people=12, answers=22)
    if is_edited:
        edit(database)
    live(database, worker)
    model = worker.learner.model
    held = exported(database, tmp_path / "votes.csv")
    settings = {"kernel": model.kernel_, "likelihood": model.likelihood_, "optimize": None}
    offline = pc.PreferenceGP(**settings, random_state=0).fit(None, held)
    names = {row.id: row.name for row in database.read(studies.items_of, "drinks")}
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
    assert model.report_.n_people == 11 - is_edited  # one was erased
    assert [effect.name for effect in model.effects_] == [e.name for e in offline.effects_] != []


def test_the_command_line_ranks_an_export_as_the_study_does(eventful, tmp_path):
    database, worker = eventful(n_people=12, answers=22)
    edit(database)
    live(database, worker)
    # as many more as it takes until hyperparameters are learned from all of them
    n = worker.learner.record.n_taught
    missing = next(k for k in range(1, n) if ps.learning_point(n + k) == n + k)
    rng, rows = np.random.default_rng(0), []
    for k in range(missing):
        items = [NAMES[i] for i in sorted(rng.choice(len(NAMES), 2, replace=False))]
        order = [[0], [1]] if rng.random() < 0.8 else [[1], [0]]
        row = {"items": items, "order": order, "form": "pair", "count": 1, "user": f"u{k % 5}"}
        rows.append(row)
    database.write(studies.import_answers, "drinks", rows, 2002.0)
    live(database, worker)
    exported(database, tmp_path / "votes.csv")
    command = [sys.executable, "-m", "penchant", "rank", str(tmp_path / "votes.csv")]
    done = subprocess.run(
        [*command, "--model", "gp", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    names = {row.id: row.name for row in database.read(studies.items_of, "drinks")}
    shown = {names[row["item"]]: row for row in worker.learner.ranking()}
    rows = json.loads(done.stdout)["rows"]
    assert {row["item"] for row in rows} == set(shown)
    widths = [
        (shown[row["item"]]["high"] - shown[row["item"]]["low"]) / (row["high"] - row["low"])
        for row in rows
    ]
    assert np.mean(widths) == pytest.approx(1.0, abs=0.01)
    for row in rows:
        assert shown[row["item"]]["prob_best"] == pytest.approx(row["prob_best"], abs=0.05)
