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
