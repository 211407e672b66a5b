"""The command line under hostile circumstances: a message and an exit code, never a traceback."""

import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from penchant.cli import main

VOTES = "winner,loser,user\n" + "".join(
    f"{a},{b},u{k % 3}\n"
    for k in range(4)
    for a, b in (("tea", "milk"), ("milk", "water"), ("tea", "water"))
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "votes.csv").write_text(VOTES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def penchant(*words, codes=(0,), **how):
    done = CliRunner(**how).invoke(main, words)
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert done.exit_code in codes
    return done


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("report", "votes.csv", "-o", "votes.csv"), "also read"),
        (("fit", "votes.csv", "-o", "./votes.csv"), "also read"),
        (("report", "votes.csv", "-o", "taken"), "taken"),
        (("report", "votes.csv", "-o", "no/such/folder/report.html"), "no"),
        (("rank", "votes.csv", "--seed", "-1"), "seed"),
        (("rank", "votes.csv", "--level", "nan"), "level"),
        (("rank", "votes.csv", "--model", "gp", "--set", "kernel=1"), "kernel"),
        (("rank", "votes.csv", "--model", "gp", "--set", "max_rank=-1"), "max_rank"),
        (("rank", "votes.csv", "--shape", "cloud"), "shape"),
        (("rank", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_senseless_options_say_so_before_the_work(folder, words, message):
    (folder / "taken").mkdir()
    done = penchant(*words, codes=(2,) if "-o" in words else (2, 3))
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert (folder / "votes.csv").read_text() == VOTES


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        *(
            (f"rank votes.csv --model gp {c}", 0, "")
            for c in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-")
        ),
        ("rank - <&-", 3, "standard input"),
    ],
)
def test_closed_streams_are_no_traceback(folder, words, code, message):
    command = f"{sys.executable} -m penchant {words}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


def test_names_cannot_steer_the_terminal(folder):
    (folder / "v.csv").write_text("winner,loser\n\x1b[2Jtea,milk\n\x1b[2Jtea,water\n")
    done = penchant("rank", "v.csv", "--model", "gp")
    assert "\x1b[2J" not in done.stdout + done.stderr
    assert "\\x1b[2Jtea" in done.stdout


def test_names_beyond_the_terminals_letters_are_written_out(folder):
    (folder / "v.csv").write_text("winner,loser\n茶,milk\n茶,water\n", encoding="utf-8")
    done = penchant("rank", "v.csv", "--model", "gp", charset="ascii")
    assert "\\u8336" in done.stdout


def test_formulas_are_offered_escaped(folder):
    (folder / "v.csv").write_text("winner,loser\n=1+1,milk\n=1+1,@tea\n")
    plain = penchant("rank", "v.csv", "--model", "gp", "--csv")
    safe = penchant("rank", "v.csv", "--model", "gp", "--spreadsheet-safe")
    assert ",=1+1," in plain.stdout
    assert ",'=1+1," in safe.stdout
    assert ",'@tea," in safe.stdout


def test_an_interrupt_leaves_the_file_that_was_there(folder):
    (folder / "m.penchant").write_bytes(b"as it was")
    rows = "".join(
        f"i{k % 150},i{(k * 7 + 1) % 150},u{k % 40}\n"
        for k in range(9000)
        if k % 150 != (k * 7 + 1) % 150
    )
    (folder / "many.csv").write_text("winner,loser,user\n" + rows)
    words = "-m penchant fit many.csv --model multi-user -o m.penchant"
    process = subprocess.Popen(
        [sys.executable, *words.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # whoever runs the tests in the background may have told them to ignore Ctrl-C
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while "between" not in process.stderr.readline():  # what is there is told before it is fitted
        pass
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert (folder / "m.penchant").read_bytes() == b"as it was"
    assert sorted(path.name for path in folder.iterdir()) == ["m.penchant", "many.csv", "votes.csv"]
