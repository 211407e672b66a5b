import csv
import io
import json

import click
import numpy as np
import pytest
from click.testing import CliRunner

from penchant.cli.output import Output, output_options

ROWS = [
    {"item": "[red]tea", "utility": np.float64(0.123456789), "n": 3, "names": ["a", "b"]},
    {"item": "milk", "utility": float("inf"), "n": None, "names": []},
]
FORMATS = {"item": "", "utility": "+.2f", "n": "d"}


@click.command()
@output_options()
def show(output):
    output.note("a note")
    output.rows(ROWS, FORMATS, level=0.9)
    output.suggest("do more")


def run(*arguments, code=0):
    result = CliRunner().invoke(show, arguments)
    assert result.exit_code == code
    return result


def test_json_is_pure_complete_and_finite():
    result = run("--json")
    content = json.loads(result.stdout)
    assert content["command"] == "show"
    assert content["level"] == 0.9
    assert content["rows"][0] == ROWS[0]
    assert content["rows"][1]["utility"] is None


def test_csv_reads_back():
    rows = list(csv.DictReader(io.StringIO(run("--csv").stdout)))
    assert rows[0] == {"item": "[red]tea", "utility": "0.123456789", "n": "3", "names": "a; b"}


def test_the_table_shows_chosen_columns_and_no_markup():
    lines = run().stdout.splitlines()
    assert lines[0].split() == ["item", "utility", "n"]
    assert lines[1].split() == ["[red]tea", "+0.12", "3"]
    assert lines[2].split() == ["milk", "+inf", "–"]


def test_talk_goes_to_stderr_and_quiet_ends_it():
    assert run().stderr.splitlines() == ["a note", "next: do more"]
    assert run("-q").stderr == ""
    assert run("-q").stdout == run().stdout


def test_two_forms_at_once_are_a_usage_error():
    assert "exclude each other" in run("--json", "--csv", code=2).stderr


def test_progress_is_silent_away_from_a_terminal(capsys):
    with Output("x").progress("working") as advance:
        advance(1, 2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("quiet", [True, False])
def test_progress_on_a_terminal_goes_to_stderr(monkeypatch, quiet):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with Output("x", quiet=quiet).progress("working") as advance:
        advance(1, 2)
    assert ("working" in stream.getvalue()) is not quiet
