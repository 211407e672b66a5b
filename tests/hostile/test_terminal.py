"""The command line under hostile circumstances: a message and an exit code, never a traceback."""

import os
import signal
import subprocess
import sys
import time

import pytest

VOTES = "winner,loser,user\n" + "".join(
    f"{a},{b},u{k % 3}\n"
    for k in range(4)
    for a, b in (("tea", "milk"), ("milk", "water"), ("tea", "water"))
)


def penchant(*words, cwd, **how):
    command = [sys.executable, "-m", "penchant", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, **how)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "votes.csv").write_text(VOTES)
    return tmp_path


def test_the_data_are_not_written_over(folder):
    before = (folder / "votes.csv").read_text()
    for words in (
        ("report", "votes.csv", "-o", "votes.csv"),
        ("fit", "votes.csv", "-o", "./votes.csv"),
    ):
        done = penchant(*words, cwd=folder)
        assert done.returncode == 2
        assert "also read" in done.stderr
    assert (folder / "votes.csv").read_text() == before


def test_an_output_that_cannot_be_written_is_told_before_the_work(folder):
    (folder / "taken").mkdir()
    for target in ("taken", "no/such/folder/report.html"):
        done = penchant("report", "votes.csv", "-o", target, cwd=folder)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert target.split("/")[0] in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_traceback(folder, closed):
    words = f"{sys.executable} -m penchant rank votes.csv --model gp {closed}"
    done = subprocess.run(
        words, shell=True, cwd=folder, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr + done.stdout
    assert done.returncode == 0


def test_closed_standard_input_is_named(folder):
    words = f"{sys.executable} -m penchant rank - <&-"
    done = subprocess.run(
        words, shell=True, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "standard input" in done.stderr
    assert "Traceback" not in done.stderr


def test_names_cannot_steer_the_terminal(folder):
    (folder / "v.csv").write_text("winner,loser\n\x1b[2Jtea,milk\n\x1b[2Jtea,water\n")
    done = penchant("rank", "v.csv", cwd=folder)
    assert done.returncode == 0
    assert "\x1b[2J" not in done.stdout + done.stderr
    assert "\\x1b[2Jtea" in done.stdout


def test_names_beyond_the_terminals_letters_are_written_out(folder):
    (folder / "v.csv").write_text("winner,loser\n茶,milk\n茶,water\n", encoding="utf-8")
    done = penchant("rank", "v.csv", cwd=folder, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "\\u8336" in done.stdout


def test_formulas_are_offered_escaped(folder):
    (folder / "v.csv").write_text("winner,loser\n=1+1,milk\n=1+1,@tea\n")
    plain = penchant("rank", "v.csv", "--csv", cwd=folder)
    safe = penchant("rank", "v.csv", "--spreadsheet-safe", cwd=folder)
    assert ",=1+1," in plain.stdout
    assert ",'=1+1," in safe.stdout
    assert ",'@tea," in safe.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rank", "votes.csv", "--seed", "-1"), "seed"),
        (("rank", "votes.csv", "--level", "nan"), "level"),
        (("rank", "votes.csv", "--model", "gp", "--set", "kernel=1"), "kernel"),
        (("rank", "votes.csv", "--model", "gp", "--set", "max_rank=-1"), "max_rank"),
        (("rank", "votes.csv", "--shape", "cloud"), "shape"),
        (("rank", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_senseless_options_say_so(folder, words, message):
    done = penchant(*words, cwd=folder)
    assert done.returncode in (2, 3)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupt_leaves_the_file_that_was_there(folder):
    (folder / "m.penchant").write_bytes(b"as it was")
    rows = "".join(
        f"i{k % 150},i{(k * 7 + 1) % 150},u{k % 40}\n"
        for k in range(9000)
        if k % 150 != (k * 7 + 1) % 150
    )
    (folder / "many.csv").write_text("winner,loser,user\n" + rows)
    command = [
        sys.executable,
        "-m",
        "penchant",
        "fit",
        "many.csv",
        "--model",
        "multi-user",
        "-o",
        "m.penchant",
    ]
    process = subprocess.Popen(
        command,
        cwd=folder,
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
