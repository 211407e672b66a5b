"""`--where` and `--by`: some rows, and segments side by side."""

import csv
import json

import pytest


@pytest.fixture
def arena(tmp_path):
    path = tmp_path / "arena.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model_a", "model_b", "winner", "language", "turns"])
        for k in range(120):
            language, better = ("en", "x") if k % 3 else ("de", "y")
            pair = [("x", "y"), ("y", "z"), ("z", "x")][k % 3 - k % 2]
            won = "tie" if k % 10 == 9 else pair[0] if better in pair[:1] else pair[1]
            writer.writerow([*pair, won, language, k % 7])
    return path


def test_segments_and_their_differences(run, arena):
    result = run("rank", arena, "--by", "language", "--json")
    rows = json.loads(result.stdout)["rows"]
    assert [row["segment"] for row in rows] == ["en"] * 3 + ["de"] * 3
    assert all(row["difference"] is None for row in rows[:3])
    for row in rows[3:]:
        other = next(r for r in rows[:3] if r["item"] == row["item"])
        assert row["difference"] == pytest.approx(row["utility"] - other["utility"])
        assert row["difference_low"] < row["difference"] < row["difference_high"]
    assert "segment en:" in result.stderr
    assert "de" in run("rank", arena, "--by", "language").stdout


def test_some_rows(run, arena):
    result = run("rank", arena, "--where", "language = de and turns < 5", "--json")
    assert "only where language = de and turns < 5" in result.stderr
    whole = json.loads(run("rank", arena, "--json").stdout)["rows"]
    some = json.loads(result.stdout)["rows"]
    assert sum(r["comparisons"] for r in some) < sum(r["comparisons"] for r in whole) / 2
    assert "--where 'language = de'" in run("rank", arena, "--where", "language = de").stderr


def test_what_is_refused(run, arena):
    assert "no column 'lang'" in run("rank", arena, "--by", "lang", code=3).stderr
    assert "must look like" in run("rank", arena, "--where", "language", code=3).stderr
    assert (
        "--by goes without --user"
        in run("rank", arena, "--by", "turns", "--user", "a", code=2).stderr
    )
    assert "is a model" in run("rank", "model.penchant", "--by", "turns", code=2).stderr
    message = run("rank", arena, "--level", "nan", code=2).stderr
    assert "nan is no probability" in message
    assert "model:" not in message  # said before any fit


def test_elo(run, arena):
    rows = json.loads(run("rank", arena, "--scale", "elo", "--json").stdout)["rows"]
    assert sum(row["utility"] for row in rows) / 3 == pytest.approx(1000.0)
