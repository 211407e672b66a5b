"""Each command on a small study: what it writes, and that the library says the same."""

import csv
import io
import json
import shlex
import shutil
from pathlib import Path

import click
import duckdb
import numpy as np
import pytest

import penchant as pc
from penchant.cli import COMMANDS, main

QUICK = ("--set", "concentration=2.0")


def rows(result):
    return list(csv.DictReader(io.StringIO(result.stdout)))


def examples(name):
    """The command lines in the help of a command."""
    command = main.get_command(click.Context(main), name)
    lines = (command.epilog or "").splitlines()
    return [line.strip() for line in lines if line.strip().startswith("penchant ")]


@pytest.fixture(scope="module")
def little(tmp_path_factory, write_files):
    """A study so small that a model is chosen in a moment."""
    place = tmp_path_factory.mktemp("little")
    write_files(place, n_users=4, n_items=10, n_answers=6)
    return place


@pytest.mark.parametrize("line", [line for name in COMMANDS for line in examples(name)])
def test_every_example_in_a_help_text_runs(run, little, line, tmp_path, monkeypatch):
    for file in little.glob("*.*"):
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("penchant.cli.demo.N_USERS", 9)
    if "votes/*.parquet" in line:
        (tmp_path / "votes").mkdir()
        duckdb.sql("FROM 'votes.csv'").write_parquet("votes/all.parquet")
    result = run(*shlex.split(line)[1:])
    assert result.stderr.splitlines()[-1].startswith("next: ")


def test_every_command_has_an_example():
    # a study's commands are tested, with examples, in tests/study
    assert all(examples(name) for name in COMMANDS if name != "study")


def test_fit_saves_what_rank_reads(run, folder):
    run("fit", "votes.csv", "--model", "gp", "-o", "a.penchant", "--items", "items.csv")
    from_file = run("rank", "a.penchant", "--json").stdout
    at_once = run("rank", "votes.csv", "--model", "gp", "--items", "items.csv", "--json").stdout
    assert json.loads(from_file) == json.loads(at_once)
    assert type(pc.load(folder / "a.penchant")) is pc.PreferenceGP


def test_rank_says_what_the_library_says(run, folder):
    ranking = pc.load(folder / "model.penchant").rank(level=0.8)
    shown = rows(run("rank", "model.penchant", "--csv", "--level", "0.8"))
    assert [row["item"] for row in shown] == [row.item for row in ranking]
    assert [float(row["low"]) for row in shown] == [row.low for row in ranking]


def test_predict_says_what_the_library_says(run, folder):
    model = pc.load(folder / "model.penchant")
    shown = rows(run("predict", "model.penchant", "pairs.csv", "--csv"))
    expected = model.predict_proba([("item 01", "item 02"), ("item 03", "item 01")])
    assert [float(row["probability"]) for row in shown] == pytest.approx(expected)
    (one,) = rows(run("predict", "model.penchant", "--pair", "item 01", "item 02", "--csv"))
    assert float(one["probability"]) == pytest.approx(expected[0])


def test_everybody_is_written(run):
    run("fit", "votes.csv", "--model", "multi-user", "-o", "people.penchant")
    run("predict", "people.penchant", "--users", "all", "-o", "tastes.parquet")
    model, written = pc.load("people.penchant"), duckdb.sql("FROM 'tastes.parquet'").fetchall()
    users = model.comparisons_.users
    mean, sd = model.predict(users=list(users), return_std=True)
    expected = [
        (user, item, mean[i, j], sd[i, j])
        for i, user in enumerate(users)
        for j, item in enumerate(model.comparisons_.items)
    ]
    assert written == expected
    refused = run("predict", "model.penchant", "--users", "all", code=3)
    assert "takes everybody together" in refused.stderr
    refused = run("predict", "model.penchant", "pairs.csv", "--users", "all", code=2)
    assert "give no pairs" in refused.stderr


def test_new_items_are_placed_by_their_features(run):
    Path("new.csv").write_text(Path("items.csv").read_text().replace("item ", "new "))
    source = ("votes.csv", "--items", "items.csv", "--model", "gp")
    old = {row["item"]: row for row in rows(run("rank", *source, "--csv"))}
    new = rows(run("predict", *source, "--new-items", "new.csv", "--csv"))
    twins = [old[row["item"].replace("new", "item")] for row in new]
    utilities = [[float(row["utility"]) for row in table] for table in (new, twins)]
    assert np.corrcoef(utilities)[0, 1] > 0.9  # an item's own effect is not known of new ones
    asked = ("--pair", "new 01", "item 01", "--pair", "new 01", "item 02")
    mixed = rows(run("predict", *source, "--new-items", "new.csv", *asked, "--csv"))
    assert float(mixed[0]["probability"]) == pytest.approx(0.5, abs=0.1)
    plain = rows(run("predict", *source, "--pair", "item 01", "item 02", "--csv"))
    assert float(mixed[1]["probability"]) == pytest.approx(float(plain[0]["probability"]), abs=0.1)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["votes.csv", "--relation", "near=links.csv"], "community"),
        (["votes.csv", "--users", "users.csv"], "multi-user"),
        (["pairs.csv", "--column", "winner=first", "--column", "loser=second"], "gp"),
    ],
)
def test_auto_chooses_by_the_data_and_says_why(run, arguments, kind):
    result = run("fit", *arguments, "-o", "auto.penchant", "--json")
    facts = json.loads(result.stdout)
    assert facts["model"] == kind
    assert f"model: {kind} ({facts['why']})" in result.stderr


@pytest.mark.parametrize(
    ("kind", "more"),
    [("multi-user", []), ("community", []), ("community", ["--set", "personal=true"])],
)
def test_models_of_people_rank_and_predict_for_one_person(run, kind, more):
    run("fit", "votes.csv", "--model", kind, "-o", f"{kind}.penchant", *more)
    model = pc.load(f"{kind}.penchant")
    shown = rows(run("rank", f"{kind}.penchant", "--user", "user 03", "--csv"))
    utility = {row["item"]: float(row["utility"]) for row in shown}
    (expected,) = model.predict(users=["user 03"])
    found = np.array([utility[item] for item in model.comparisons_.items])
    np.testing.assert_allclose(found, expected, atol=1e-9)
    ask = ("--pair", "item 01", "item 02", "--csv")
    (mine,) = rows(run("predict", f"{kind}.penchant", *ask, "--user", "user 03"))
    assert float(mine["probability"]) == pytest.approx(
        model.predict_proba([("item 01", "item 02")], "user 03")[0]
    )
    (anybody,) = rows(run("predict", f"{kind}.penchant", *ask))
    assert float(anybody["probability"]) == pytest.approx(
        model.predict_proba([("item 01", "item 02")])[0]
    )
    assert "nobody of that name" in run("rank", f"{kind}.penchant", "--user", "x", code=3).stderr


def test_models_of_people_use_relations_too(run):
    near = ("--relation", "near=links.csv")
    run("fit", "votes.csv", "--model", "community", *near, "-o", "c.penchant")
    assert "relation='near'" in repr(pc.load("c.penchant").kernel_)


def test_a_saved_scorer_ranks_everybody_and_nobody_in_particular(run):
    run("fit", "votes.csv", "--model", "rank-rls", "--items", "items.csv", "-o", "s.penchant")
    shown = rows(run("rank", "s.penchant", "--csv"))
    assert (shown[0]["low"], shown[0]["prob_best"]) == ("", "")
    assert sum(int(row["comparisons"]) for row in shown) == 2 * 12 * 12
    new = rows(run("predict", "s.penchant", "--new-items", "items.csv", "--csv"))
    utility = {row["item"]: float(row["utility"]) for row in shown}
    assert all(float(row["utility"]) == pytest.approx(utility[row["item"]]) for row in new)
    assert "everybody together" in run("rank", "s.penchant", "--user", "user 01", code=3).stderr


def test_pairs_of_somebody_and_of_anybody_can_be_asked_at_once(run):
    run("fit", "votes.csv", "--model", "multi-user", "-o", "m.penchant")
    Path("asked.csv").write_text("first,second,user\nitem 01,item 02,user 03\n")
    found = rows(run("predict", "m.penchant", "asked.csv", "--pair", "item 01", "item 02", "--csv"))
    model = pc.load("m.penchant")
    expected = [model.predict_proba([("item 01", "item 02")], who)[0] for who in (None, "user 03")]
    assert [float(row["probability"]) for row in found] == pytest.approx(expected)


def test_groups_add_up(run):
    groups = json.loads(run("groups", "votes.csv", "--json").stdout)
    assert sum(group["size"] for group in groups["rows"]) == pytest.approx(12)
    assert sum(groups["counts"].values()) == pytest.approx(1)
    members = rows(run("groups", "votes.csv", "--members", "--csv"))
    assert [m["user"] for m in members] == [f"user {k:02d}" for k in range(1, 13)]


def test_groups_are_told_by_the_names_of_features(run):
    files = ("--items", "items.csv", "--users", "users.csv")
    groups = json.loads(run("groups", "votes.csv", *files, "--json").stdout)
    told = [trait for group in groups["rows"] for trait in group["drawn_to"] + group["members"]]
    assert all("feature" in t or "age" in t or "region" in t for t in told)


def test_evaluate_suggests_settings_that_the_best_model_has(run):
    arguments = ("--with", "multi-user", "--with", "community", "--folds", "2", *QUICK)
    last = run("evaluate", "votes.csv", *arguments).stderr.splitlines()[-1]
    if "--model multi-user" in last:
        assert "concentration" not in last
    elif "--model community" in last:
        assert "--set concentration=2.0" in last
    else:
        assert "baseline" in last


def test_evaluate_beats_a_coin_and_knows_its_baseline(run):
    result = run("evaluate", "votes.csv", "--folds", "3", "--with", "gp", "--csv")
    names = [row["model"] for row in rows(result)]
    assert names == ["bradley-terry", "gp"]
    for row in rows(result):
        assert 0 <= float(row["accuracy"]) <= 1
        assert float(row["log_loss"]) < 2 * np.log(2)


def test_ask_gives_different_pairs_of_known_items(run):
    pairs = [
        (row["first"], row["second"])
        for row in rows(run("ask", "model.penchant", "-k", 4, "--csv"))
    ]
    assert len({frozenset(pair) for pair in pairs}) == 4


def test_ask_gives_sets_to_choose_from(run):
    found = rows(run("ask", "model.penchant", "-k", 2, "--set-size", 3, "--csv"))
    assert [list(row) for row in found] == [["item_1", "item_2", "item_3"]] * 2
    assert all(len(set(row.values())) == 3 for row in found)


def test_doctor_finds_what_is_broken(run, monkeypatch):
    run("doctor")
    monkeypatch.setattr("penchant.cli.doctor.pi", 3.0)
    result = run("doctor", "--json", code=1)
    failed = [check["check"] for check in json.loads(result.stdout)["checks"] if not check["ok"]]
    assert failed == ["inference"]
