"""What the benchmarks compute from their measurements, and that their parts fit together."""

import importlib
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def load(monkeypatch):
    """Imports a module of the benchmarks folder, which is no package, and forgets it again."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_every_part_can_be_imported_and_run(load):
    for part in load("run").PARTS:
        assert callable(load(part).run)


@pytest.mark.parametrize(
    ("part", "lists", "family"),
    [
        ("gp", ("RIVALS",), "gp"),
        ("regression", ("CONTESTANTS",), "gp"),
        ("newcomer", ("CONTESTANTS",), "gp"),
        ("communities", ("CONTESTANTS",), "people"),
        ("people", ("CONTESTANTS",), "people"),
        ("ranking", ("WIN_TABLE",), "gp"),
        ("drift", ("CONTESTANTS",), "drift"),
        ("ranking", ("DOCUMENTS", "SAME_AS_OURS"), "ranking"),
    ],
)
def test_contestants_that_are_named_exist(load, part, lists, family):
    known = runpy.run_path(str(BENCHMARKS / "contestants" / f"{family}.py"))["CONTESTANTS"]
    for name in lists:
        assert set(getattr(load(part), name)) <= set(known)


def test_the_exponent_of_a_power_law(load):
    scaling = load("scaling")
    sizes = np.array([10, 20, 40, 80])
    exponent, error = scaling.slope(sizes, 0.3 * sizes**1.5)
    assert exponent == pytest.approx(1.5)
    assert error == pytest.approx(0.0, abs=1e-9)
    assert scaling.verdict(exponent, error, limit=1.1) == "exceeded"
    assert scaling.verdict(0.9, 0.05, limit=1.1) == "holds"
    assert scaling.verdict(0.9, 0.5, limit=1.1) == "too noisy to tell"
    assert scaling.verdict(-0.15, 0.26, limit=1.1) == "holds"


def test_ratios_come_with_the_range_that_the_runs_allow(load):
    Entry = load("contest").Entry
    ours, peer = Entry("penchant", (1.0, 2.0, 4.0)), Entry("peer", (8.0, 8.0, 10.0))
    assert peer.times(ours) == "4 (2–10)"
    assert peer.time() == "8.00 (8.00–10.00)"
    assert ours.times(ours) == ""
    assert Entry("peer", failure="over 300 s").times(ours) == ""
    assert Entry("peer", failure="over 300 s").time() == "over 300 s"


def test_a_reason_names_neither_folders_nor_hosts(load):
    reason = load("peers").clean_reason(
        "WARNING: slow\nERROR: no wheel in /some/where/a.whl at https://a.host/simple (host='b')"
    )
    assert reason == "ERROR: no wheel in a.whl at … (…)"


def test_a_peer_without_figures_is_left_out_of_the_readme(load):
    readme, size = load("readme"), "| 1,000 / 1,000,000 |"
    lines = [
        "## Win tables",
        "| n / m | contestant | log-lik (ceiling) | seconds |",
        "|---|---|---|---|",
        f"{size} penchant probit | -0.54583 (-0.54513) | 2.53 (2.48–2.65) |",
        f"{size} evalica Bradley–Terry | -0.54578 (-0.54513) | 0.52 (0.51–0.53) |",
        f"{size} arena-rank |  (-0.54513) | not installed |",
    ]
    *_, row = readme.make_table("\n".join(lines)).splitlines()
    ours, theirs = "2.53 s, log-likelihood -0.54583", "0.52 s, log-likelihood -0.54578"
    assert row == f"| evalica | 1,000,000 votes over 1,000 items | {ours} | {theirs} |"


def test_sections_made_elsewhere_stay(load, tmp_path, monkeypatch):
    run, written = load("run"), []
    monkeypatch.setattr(run, "FILE", tmp_path / "BENCHMARKS.md")
    monkeypatch.setattr(run.readme, "write", written.append)
    sections = {part: f"{run.MARK}{part}, 2026-01-01*\n\n## {part}" for part in ("gpu", "sweep")}
    run.write("# Benchmarks", sections)
    assert list(run.known_sections()) == ["sweep", "gpu"]
    assert written == [run.FILE]


@pytest.mark.parametrize("part", ["gap", "sweep"])
def test_loops_are_measured_beside_their_references(load, part):
    *_, row = load(part).run(quick=True)
    assert float(row.split("|")[4 if part == "sweep" else 6]) > 0.0


def test_a_gap_beyond_three_has_a_reason(load):
    Gap = load("gap").Gap
    far, near = (Gap("loop", "8 flops", s, "BLAS", 1.0, "calls") for s in (3.5, 2.5))
    assert far.cells()[-2:] == ["3.50", "calls"]
    assert near.cells()[-2:] == ["2.50", ""]


@pytest.mark.parametrize("name", ["penchant PreferenceGP, drift", "penchant PreferenceGP"])
def test_the_week_after_is_predicted(load, name):
    task = load("tasks").drift_task(4, 10, 5, seed=0, n_test=50)
    family = runpy.run_path(str(BENCHMARKS / "contestants" / "drift.py"))
    fit, predict = family["CONTESTANTS"][name](task)
    fit()
    log_prob = predict()["log_prob"]
    assert log_prob.shape == (50,)
    assert np.all(log_prob < 0.0)


def test_logistic_regression_has_own_columns_of_users(load):
    pytest.importorskip("sklearn")
    user, none = np.repeat([0, 1], 30), np.zeros(60, dtype=int)
    task = {"n_users": 2, "n_items": 2, "user": user, "winner": user, "loser": 1 - user}
    task |= {"test_user": user, "test_winner": none, "test_loser": none + 1}
    people = runpy.run_path(str(BENCHMARKS / "contestants" / "people.py"))
    fit, predict = people["CONTESTANTS"]["scikit-learn logistic, user × item"](task)
    fit()
    prob = predict()["prob"]
    assert np.all(prob[user == 0] > 0.5)
    assert np.all(prob[user == 1] < 0.5)
