"""`make check-all` runs every target that tests something; `make help` explains every target."""

import re
import subprocess
import sys
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import check_all

MAKEFILE = (check_all.ROOT / "Makefile").read_text(encoding="utf-8")
NO_CHECKS = {"help", "install", "demo", "reproduce", "clean", "check-all"}
PARTS_OF_TEST = {"lint", "quick"}
EXTRAS = {"browser", "torch", "cluster"}
"""Each runs the check of its name."""
ENDLESS = {"soak", "mutants"}
"""They run as long as one lets them."""


def test_every_target_that_tests_is_run():
    commands = [command for check in check_all.CHECKS.values() for command in check]
    checked = {command.split()[1] for command in commands if command.startswith("make ")}
    checked |= EXTRAS
    targets = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, flags=re.MULTILINE))
    assert checked | NO_CHECKS | PARTS_OF_TEST | ENDLESS == targets
    assert {*chain.from_iterable(check_all.CHAINS), *check_all.TIMED} == set(check_all.CHECKS)
    assert set(check_all.CHECKS) >= EXTRAS
    explained = re.findall(r"^([a-z][a-z-]*):.* ## ", MAKEFILE, flags=re.MULTILINE)
    assert set(explained) == targets


def test_a_failure_is_told_and_does_not_stop_the_rest(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(check_all, "ROOT", tmp_path)
    ran = []

    def pretend(command, **_):
        ran.append(command)
        return subprocess.CompletedProcess(command, int(command == "make slow"))

    monkeypatch.setattr(check_all.subprocess, "run", pretend)
    assert check_all.main([]) == 1
    assert sorted(ran) == sorted(chain.from_iterable(check_all.CHECKS.values()))
    assert ran[-3:] == check_all.CHECKS["speed"]
    for names in check_all.CHAINS:
        expected = [command for name in names for command in check_all.CHECKS[name]]
        assert [command for command in ran if command in expected] == expected
    printed = capsys.readouterr().out
    assert "slow failed" in printed
    assert re.search(r"^slow +NO", printed, flags=re.MULTILINE)
    assert re.search(r"^lowest +yes", printed, flags=re.MULTILINE)
    assert check_all.main(["no-such"]) == 2
