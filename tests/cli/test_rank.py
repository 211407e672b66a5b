"""`rank` with --where, --by, --scale and --covariate: segments, effects, points."""

import csv
import json

import numpy as np
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


@pytest.fixture
def battles(folder):
    rng = np.random.default_rng(0)
    a = rng.integers(5, size=400)
    b = (a + 1 + rng.integers(4, size=400)) % 5
    x = rng.integers(100, size=(2, 400))
    g = 0.4 + 0.01 * (x[0] - x[1]) + 0.3 * (a - b) + rng.standard_normal(400)
    won = np.where(np.abs(g) < 0.2, "tie", np.where(g > 0, "model_a", "model_b"))
    rows = (f"m{i},m{j},{w},{p},{q}" for i, j, w, p, q in zip(a, b, won, *x, strict=True))
    path = folder / "battles.csv"
    path.write_text("\n".join(["model_a,model_b,winner,length_a,length_b", *rows]) + "\n")
    return path


def test_effects_are_told_beside_the_ranking(run, battles):
    done = run("rank", battles, "--covariate", "length_a - length_b", "--json")
    content = json.loads(done.stdout)
    order, length = content["effects"]
    assert (order["name"], length["name"]) == ("shown first", "length_a - length_b")
    assert order["low"] < 0.4 < order["high"]
    assert length["low"] < 0.01 < length["high"]
    assert content["rows"][0]["item"] == "m4"
    assert "--covariate 'length_a - length_b'" in done.stderr


def test_a_covariate_is_a_column_or_a_difference_of_two(run, battles):
    for wrong, words in (
        ("length_a - length_b - length_a", "difference of two"),
        ("length_a; DROP TABLE x", "has no column"),
        ("winner", "not all numbers"),
    ):
        assert words in run("rank", battles, "--covariate", wrong, code=3).stderr


def test_win_tie_and_loss(run, battles):
    done = run("predict", battles, "--pair", "m0", "m4", "--ties", "--json")
    (row,) = json.loads(done.stdout)["rows"]
    assert row["win"] + row["tie"] + row["loss"] == pytest.approx(1.0)
    assert row["probability"] == pytest.approx(row["win"] / (row["win"] + row["loss"]))
