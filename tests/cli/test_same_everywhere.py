"""One data set, one story: as file, frame or pairs; in terminal, JSON, Python, report, plot."""

import csv
import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import penchant as pc
from penchant.cli import main
from tests.simulation import duels

KINDS = ("plain", "ties", "users", "order", "covariates", "times", "rankings")
NUMBERS = ("utility", "low", "high", "prob_best", "win_rate")


def answers(kind, seed=0):
    """Columns of a table, how it is read, and the same comparisons without a table."""
    rng = np.random.default_rng(seed)
    n, names = 90, np.array(["ash", "birch", "cedar", "doum", "elm"])
    utility = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
    if kind == "rankings":
        columns = {"ballot": [], "item": [], "position": []}
        orders = []
        for ballot in range(20):
            noisy = utility + rng.gumbel(size=5)
            orders.append(names[np.argsort(-noisy)][:4].tolist())
            for place, item in enumerate(orders[-1], start=1):
                for name, value in zip(columns, (f"b{ballot}", item, place), strict=True):
                    columns[name].append(value)
        users = [f"b{ballot}" for ballot in range(20)]
        return columns, {}, pc.Comparisons.from_rankings(orders, users=users)
    winner, loser = duels(rng, utility, n)
    columns = {"winner": names[winner], "loser": names[loser]}
    told = {
        "plain": {},
        "ties": {"tie": rng.random(n) < 0.2},
        "users": {"user": np.array([f"u{k % 7}" for k in range(n)])},
        "order": {"first": np.where(rng.random(n) < 0.6, 1, -1)},
        "covariates": {"length": np.round(rng.normal(size=n), 2)},
        "times": {"time": np.arange(n) // 3},
    }[kind]
    how = {"order": {"first": "first"}, "times": {"time": "time"}}.get(kind, {})
    how = {"covariates": ["length"]} if kind == "covariates" else how
    given = {"covariates": told} if kind == "covariates" else told
    pairs = pc.Comparisons.from_pairs(columns["winner"], columns["loser"], **given)
    return columns | told, how, pairs


def table_of(frame, suffix, folder):
    path = folder / f"votes{suffix}"
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    elif suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path, index=False)
    return path


def typed(how):
    """The same on the command line."""
    words = ["--column", "first=first"] if "first" in how else []
    words += ["--time", "time", "--set", "half_life=20"] if "time" in how else []
    return words + (["--covariate", "length"] if "covariates" in how else [])


def run(*arguments):
    result = CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [*((kind, ".csv") for kind in KINDS), ("users", ".jsonl"), ("ties", ".parquet")],
)
def test_a_file_is_the_frame_is_the_pairs_is_the_command_line(kind, suffix, tmp_path):
    columns, how, pairs = answers(kind)
    frame = pd.DataFrame(columns)
    path = table_of(frame, suffix, tmp_path)
    assert pc.read_comparisons(path, **how) == pairs
    assert pc.Comparisons.from_frame(frame, **how) == pairs
    settings = {"half_life": 20} if kind == "times" else {}
    settings |= {"likelihood": "ties"} if kind == "ties" else {}
    expected = pc.PreferenceGP(random_state=0, **settings).fit(None, pairs).rank()
    rows = json.loads(run("rank", path, "--model", "gp", *typed(how), "--json").stdout)["rows"]
    assert [row["item"] for row in rows] == expected["item"].tolist()
    for name in NUMBERS:
        assert [row[name] for row in rows] == pytest.approx(expected[name].tolist(), rel=1e-9)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The same model as terminal, JSON, CSV, Python and report show it."""
    folder = tmp_path_factory.mktemp("told")
    study = pc.datasets.simulate_study(24, 6, 2, n_answers=25, random_state=2)
    study.comparisons.to_frame().to_csv(folder / "votes.csv", index=False)
    data = pc.read_comparisons(folder / "votes.csv")
    model = pc.CommunityGP(progress=False, random_state=0).fit(None, data)
    model.save(folder / "camps.penchant")
    pc.report(model, folder / "report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    return folder, data, model, re.sub(r"\s+", " ", page)


def cells(page, caption, row):
    """Texts of a row of a table of the report, by its first cell."""
    (table,) = re.findall(rf"<table[^>]*>\s*<caption[^>]*>{caption}.*?</table>", page)
    for line in re.findall(r"<tr>.*?</tr>", table):
        found = [re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", line)]
        if found and found[0].strip() == str(row):
            return found
    raise AssertionError((caption, row))


def test_one_ranking(told):
    folder, _, model, page = told
    path = folder / "camps.penchant"
    ranking = model.rank()
    shown = run("rank", path).stdout.splitlines()
    rows = json.loads(run("rank", path, "--json").stdout)["rows"]
    written = list(csv.DictReader(io.StringIO(run("rank", path, "--csv").stdout)))
    for row, found, line, text in zip(ranking, rows, written, shown[1:], strict=True):
        assert found["item"] == line["item"] == row.item
        assert text.split()[:1] == [str(row.rank)]
        assert found["utility"] == row.utility
        assert float(line["utility"]) == found["utility"]
        assert found["prob_best"] == row.prob_best
        assert f"{row.prob_best:.3f}" in text
        page_row = cells(page, "Items from best to worst", row.item)
        assert page_row[1] == str(row.rank)
        assert f"{row.utility:+.2f}" in page_row[2]
        assert page_row[3] == f"{row.prob_best:.1%}"
        assert page_row[4] == f"{row.rank_low} to {row.rank_high}"
        assert page_row[5] == str(found["group"]) == str(row.group)


def test_one_number_and_one_word_for_a_community(told):
    folder, _, model, page = told
    path = folder / "camps.penchant"
    rows = json.loads(run("groups", path, "--json").stdout)["rows"]
    members = json.loads(run("groups", path, "--members", "--json").stdout)["rows"]
    assert [row["community"] for row in rows] == [c.number for c in model.communities_]
    assert [row["community"] for row in members] == model.membership_.argmax(axis=1).tolist()
    assert run("groups", path, "--csv").stdout.split(",")[0] == "community"
    axes = pc.plots.plot_community_utilities(model)
    for community, row, ax in zip(model.communities_, rows, axes, strict=True):
        named = f"community {community.number}"
        assert cells(page, "Who they are", named)[1] == f"{row['size']:,.0f}"
        assert f"{named} ({community.share:.0%})" in page
        assert ax.get_title() == f"{named} ({community.share:.0%})"


def test_one_count_of_comparisons(told):
    folder, data, _, page = told
    assert cells(page, "What was there", "distinct comparisons")[1] == f"{len(data):,}"
    first = data.describe().splitlines()[0]
    assert f"{data.n_comparisons} comparisons ({len(data)} distinct)" in first
    assert first in run("rank", folder / "votes.csv", "--model", "gp").stderr
    pooled = pc.PreferenceGP(random_state=0).fit(None, data)
    pc.report(pooled, folder / "pooled.html")
    again = re.sub(r"\s+", " ", (folder / "pooled.html").read_text(encoding="utf-8"))
    assert cells(again, "What was there", "distinct comparisons")[1] == f"{len(data):,}"


def test_elo_is_called_elo(told):
    path = told[0] / "camps.penchant"
    elo = told[2].rank().to_elo()
    head, *lines = run("rank", path, "--scale", "elo").stdout.splitlines()
    assert "elo" in head.split()
    assert "utility" not in head
    assert "elo" in str(elo).splitlines()[0]
    assert f"{elo[0].utility:.0f}" in lines[0].split()
    written = next(csv.DictReader(io.StringIO(run("rank", path, "--scale", "elo", "--csv").stdout)))
    assert float(written["elo"]) == elo[0].utility
    found = json.loads(run("rank", path, "--scale", "elo", "--json").stdout)
    assert found["scale"] == elo.scale == "elo"
    assert found["rows"][0]["utility"] == elo[0].utility


def test_effects_are_told_alike(tmp_path):
    columns, how, data = answers("covariates")
    columns["length"] = columns["length"] * 1000.0  # an effect of a thousandth a unit
    pd.DataFrame(columns).to_csv(tmp_path / "votes.csv", index=False)
    data = pc.read_comparisons(tmp_path / "votes.csv", **how)
    model = pc.PreferenceGP(random_state=0).fit(None, data)
    line = str(model.effects_).splitlines()[1]
    (estimate,) = re.findall(r"[+-][\d.]+", line)[:1]
    assert len(estimate.strip("+-0.").replace(".", "")) >= 2  # significant digits
    assert float(estimate) == pytest.approx(model.effects_[0].estimate, rel=0.05)
    told = run("rank", tmp_path / "votes.csv", "--model", "gp", "--covariate", "length").stderr
    assert line in told
    pc.report(model, tmp_path / "report.html")
    assert estimate in (tmp_path / "report.html").read_text(encoding="utf-8")
