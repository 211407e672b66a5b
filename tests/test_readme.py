"""The README's Python and its command lines run as printed; its table is that of BENCHMARKS.md."""

import re
import runpy
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from penchant.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BENCHMARKS = (ROOT / "BENCHMARKS.md").read_text(encoding="utf-8")


@pytest.fixture
def votes(tmp_path, monkeypatch):
    """A folder with votes.csv: sixty answers of six people about four drinks."""
    monkeypatch.chdir(tmp_path)
    rows = ["winner,loser,user"]
    rng = np.random.default_rng(0)
    names = ["tea", "coffee", "milk", "water"]
    for _ in range(60):
        a, b = rng.choice(4, 2, replace=False)
        rows.append(f"{names[min(a, b)]},{names[max(a, b)]},user{rng.integers(6)}")
    Path("votes.csv").write_text("\n".join(rows) + "\n")
    return rng


def test_python_blocks_run_in_order(votes):
    namespace = {
        "X": votes.standard_normal((4, 2)),
        "X_new": votes.standard_normal((3, 2)),
        "links": np.ones((4, 4)) - np.eye(4),
    }
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)


@pytest.mark.usefixtures("votes")
def test_command_lines_run_in_order():
    lines = re.findall(r"^penchant .*$", README, flags=re.M)
    assert lines
    for line in lines:
        result = CliRunner().invoke(main, shlex.split(line, comments=True)[1:])
        assert result.exit_code == 0, (line, result.stderr)


def test_the_table_of_peers_is_made_from_the_benchmarks():
    made = runpy.run_path(str(ROOT / "benchmarks" / "readme.py"))
    table = made["table_of"](README)
    assert table == made["make_table"](BENCHMARKS)
    rows = [line.split("|")[3:5] for line in table.splitlines()[2:]]
    assert rows
    for figure in re.findall(r"\d[\d.]*", str(rows)):
        assert figure in BENCHMARKS
        assert made["make_table"](BENCHMARKS.replace(figure, f"{figure}9")) != table
