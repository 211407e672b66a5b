"""A folder that is kept: scans are found again, and fits go on from their last sweep."""

import os
import signal
import subprocess
import sys
from pkgutil import resolve_name
from unittest.mock import Mock

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.base import clone

import penchant as pc
from penchant.cli import main

ADVANCE = "penchant.gp.users.sharded.advance"
CHOOSE = "penchant.models.sharded.choose_communities"
N_BUCKETS = 8


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "kept"


@pytest.fixture
def scan(vote_files, kept):
    def scan(shards=N_BUCKETS):
        files = str(vote_files / "part-*.csv")
        return pc.scan_comparisons(files, shards=shards, resume=kept)

    return scan


def count_buckets(patch, work_name, stop_at=None):
    """Record the buckets that are worked on, and interrupt at one of them."""
    numbers, work = [], resolve_name(work_name.replace("sharded.", "sharded:"))

    def counted(part, state, told):
        numbers.append(part.number)
        if len(numbers) == stop_at:
            raise KeyboardInterrupt
        return work(part, state, told)

    patch.setattr(work_name, counted)
    return numbers


def test_a_scan_is_found_again(scan, kept, whole):
    with scan() as votes:
        written = (kept / "bucket-00003.npz").stat().st_mtime_ns
    with scan(shards=7) as again:
        assert (kept / "bucket-00003.npz").stat().st_mtime_ns == written
        assert again.items == votes.items
        assert again.n_comparisons == whole.n_comparisons
        assert np.array_equal(again.sizes, votes.sizes)
        for name in ("winner", "loser", "count", "tie"):
            assert np.array_equal(getattr(again.pooled, name), getattr(votes.pooled, name))


def test_an_interrupted_scan_begins_anew(scan, kept, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("penchant.data.shards.write_arrays", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            scan()
    assert any(kept.glob("file-*"))
    with scan() as votes:
        assert votes.n_comparisons == 1500
    assert not any(kept.glob("file-*"))


@pytest.mark.parametrize(
    ("model", "work", "n_sweeps"),
    [
        (pc.MultiUserGP(optimize=None), ADVANCE, 3),
        (pc.CommunityGP(personal=False, optimize=None, n_communities=2), CHOOSE, 1),
    ],
    ids=["users", "communities"],
)
def test_an_interrupted_fit_goes_on(scan, kept, monkeypatch, model, work, n_sweeps):
    with scan() as votes:
        with monkeypatch.context() as patch:
            every = count_buckets(patch, work)
            expected = clone(model).fit(None, votes)
        with monkeypatch.context() as patch:
            count_buckets(patch, work, stop_at=n_sweeps * N_BUCKETS + 5)
            with pytest.raises(KeyboardInterrupt):
                clone(model).fit(None, votes)
    with scan() as votes, monkeypatch.context() as patch:
        rest = count_buckets(patch, work)
        resumed = clone(model).fit(None, votes)
    assert len(rest) == len(every) - n_sweeps * N_BUCKETS
    evidence = [getattr(each, "log_evidence_", each.report_) for each in (resumed, expected)]
    assert evidence[0] == evidence[1]
    assert np.array_equal(resumed.predict(), expected.predict())
    assert np.array_equal(resumed.predict(users="u3"), expected.predict(users="u3"))
    assert not any(kept.glob("sweeps-*"))


def test_other_settings_begin_anew(scan, monkeypatch):
    with scan() as votes, monkeypatch.context() as patch:
        count_buckets(patch, ADVANCE, stop_at=2 * N_BUCKETS + 1)
        with pytest.raises(KeyboardInterrupt):
            pc.MultiUserGP(optimize=None).fit(None, votes)
        other = {"optimize": None, "kernel": pc.kernels.Independent(0.3)}
        resumed = pc.MultiUserGP(**other).fit(None, votes)
        anew = pc.MultiUserGP(**other).fit(None, votes)
    assert resumed.log_evidence_ == anew.log_evidence_


KILLED = """
import os, signal, sys
from importlib import import_module
import penchant as pc
sweeps = import_module("penchant.gp.users.sharded")
numbers, advance = [], sweeps.advance
def counted(part, state, told):
    numbers.append(part.number)
    if len(numbers) == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return advance(part, state, told)
sweeps.advance = counted
with pc.scan_comparisons(sys.argv[1], resume=sys.argv[2], shards=64) as votes:
    print(repr(pc.MultiUserGP(optimize=None).fit(None, votes).log_evidence_), len(numbers))
"""


@pytest.mark.slow
def test_a_killed_process_loses_no_sweep(vote_files, kept):
    def fit(stop_at):
        command = [sys.executable, "-c", KILLED, str(vote_files / "part-*.csv"), str(kept)]
        return subprocess.run([*command, str(stop_at)], capture_output=True, text=True, check=False)

    assert fit(4 * 64 + 9).returncode == -signal.SIGKILL
    evidence, n_swept = fit(0).stdout.split()
    again, n_all = fit(0).stdout.split()
    assert evidence == again
    assert int(n_swept) == int(n_all) - 4 * 64


def test_changed_files_are_noticed(tmp_path):
    path, kept = tmp_path / "votes.csv", tmp_path / "kept"
    path.write_text("winner,loser,user\ntea,milk,ann\n")
    pc.scan_comparisons(path, resume=kept).close()
    path.write_text("winner,loser,user\nmilk,tea,ann\n")
    os.utime(path, ns=(1, 1))
    with pytest.raises(pc.DataError, match="changed since"):
        pc.scan_comparisons(path, resume=kept)


def test_a_file_that_changes_under_way_is_refused(tmp_path, monkeypatch):
    path, deal = tmp_path / "votes.csv", resolve_name("penchant.io.scan:_bucket_file")
    path.write_text("winner,loser,user\ntea,milk,ann\n")

    def growing(*given):
        dealt = deal(*given)
        path.write_text("winner,loser,user\ntea,milk,ann\ntea,milk,bob\n")
        return dealt

    monkeypatch.setattr("penchant.io.scan._bucket_file", growing)
    with pytest.raises(pc.DataError, match="changed while it was read"):
        pc.scan_comparisons(path)


def test_one_process_at_a_time(scan):
    with scan(), pytest.raises(pc.DataError, match="in use by another process"):
        scan()


def test_a_folder_of_something_else_stays_as_it_is(scan, kept):
    kept.mkdir()
    (kept / "bucket-00003.npz").write_text("mine")
    with pytest.raises(pc.DataError, match="other things than scanned comparisons"):
        scan()
    assert (kept / "bucket-00003.npz").read_text() == "mine"


@pytest.mark.parametrize("name", ["scan.json", "pooled.npz"])
def test_damage_is_told(scan, kept, name):
    scan().close()
    (kept / name).write_bytes((kept / name).read_bytes()[:40])
    with pytest.raises(pc.DataError, match="damaged"):
        scan()


def test_a_damaged_journal_is_told(scan, kept, monkeypatch):
    with scan() as votes:
        with monkeypatch.context() as patch:
            count_buckets(patch, ADVANCE, stop_at=2 * N_BUCKETS + 1)
            with pytest.raises(KeyboardInterrupt):
                pc.MultiUserGP(optimize=None).fit(None, votes)
        (entry,) = kept.glob("sweeps-*/journal-00001.npz")
        entry.write_bytes(entry.read_bytes()[:-30])
        with pytest.raises(pc.DataError, match="damaged"):
            pc.MultiUserGP(optimize=None).fit(None, votes)


def test_the_command_goes_on(vote_files, kept, tmp_path, monkeypatch):
    target = tmp_path / "m.penchant"
    command = ["fit", str(vote_files / "part-*.csv"), "--engine", "local", "--resume", str(kept)]
    command += ["--shards", str(N_BUCKETS), "--set", "optimize=null", "-o", str(target)]
    with monkeypatch.context() as patch:
        count_buckets(patch, ADVANCE, stop_at=2 * N_BUCKETS + 1)
        stopped = CliRunner().invoke(main, command)
    assert stopped.exit_code == 130
    assert f"kept in {kept}" in stopped.stderr
    assert not target.exists()
    assert CliRunner().invoke(main, command).exit_code == 0
    assert target.exists()
