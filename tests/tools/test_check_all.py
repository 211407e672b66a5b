"""`make check-all` knows every target that tests something, and tells what failed."""

import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import check_all

MAKEFILE = (check_all.ROOT / "Makefile").read_text(encoding="utf-8")
NO_TESTS = {"help", "install", "demo", "reproduce", "pictures", "clean", "check-all", "bench"}
"""Targets that make or show something."""
PARTS_OF_TEST = {"lint", "quick"}
ASKED_FOR = {"soak", "mutants"}
"""Targets that run as long as one lets them."""


def test_every_target_that_tests_is_run():
    targets = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, flags=re.MULTILINE))
    assert set(check_all.TARGETS) | NO_TESTS | ASKED_FOR | PARTS_OF_TEST == targets
    explained = re.findall(r"^([a-z][a-z-]*):.* ## ", MAKEFILE, flags=re.MULTILINE)
    assert set(explained) == targets


def test_a_failure_is_told_and_does_not_stop_the_rest(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(check_all, "ROOT", tmp_path)
    calls = []

    def make(words, **_):
        calls.append(words[1])
        return subprocess.CompletedProcess(words, 2 if words[1] == "slow" else 0)

    monkeypatch.setattr(check_all.subprocess, "run", make)
    assert check_all.main([]) == 1
    assert sorted(calls) == sorted(check_all.TARGETS)
    assert calls[-len(check_all.TIMED) :] == list(check_all.TIMED)
    for chain in check_all.CHAINS:
        assert [target for target in calls if target in chain] == list(chain)
    told = capsys.readouterr().out
    assert "slow failed" in told
    assert re.search(r"^slow +NO", told, flags=re.MULTILINE)
    assert re.search(r"^lowest +yes", told, flags=re.MULTILINE)
    assert check_all.main(["no-such"]) == 2
