"""The group: help, exit codes, warnings, completion."""

import os
import re
import subprocess
import sys

import pytest

from penchant.cli import COMMANDS
from penchant.errors import NumericalError


def test_help_lists_every_command_without_importing_any():
    code = (
        "import sys; from penchant.cli import main; main(['--help'], standalone_mode=False); "
        "print([m for m in sys.modules if m in ('numpy', 'rich', 'scipy', 'duckdb') "
        f"or m in {['penchant.cli.' + name for name in COMMANDS]}])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1] == "[]"
    for name, what in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(what)}$", shown.stdout, re.MULTILINE)


def test_options_complete_without_loading_a_model():
    code = "import sys, penchant.cli.rank; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


UNUSED = (
    *("matplotlib", "numba", "pandas", "sklearn", "rich.progress"),
    *("scipy.optimize", "scipy.spatial", "scipy.stats"),
    *("penchant.communities", "penchant.metrics", "penchant.plots"),
    *("penchant.models.multi_user_gp", "penchant.models.store.schema"),
)
"""What no ranking of items needs."""


def rank_apart(folder, before, after):
    """Rank a tiny file in a process of its own, and print the value of `after`."""
    votes = folder / "votes.csv"
    votes.write_text("winner,loser\ntea,milk\nmilk,water\n", encoding="utf-8")
    code = (
        f"import gc, sys; {before}; from penchant.cli import main; "
        f"main(['rank', {str(votes)!r}, '--quiet'], standalone_mode=False); print({after})"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


def test_a_ranking_does_not_wait_for_what_it_does_not_use(tmp_path):
    """These modules take longer to import than the fit."""
    shown = rank_apart(tmp_path, "pass", f"[m for m in {UNUSED} if m in sys.modules]")
    assert shown.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(("before", "frozen"), [("pass", "True"), ("import numpy", "False")])
def test_only_a_process_of_our_own_keeps_its_modules_from_the_collector(tmp_path, before, frozen):
    shown = rank_apart(tmp_path, before, "gc.get_freeze_count() > 10_000, gc.isenabled()")
    assert shown.stdout.splitlines()[-1] == f"{frozen} True"
    assert shown.stderr == ""  # libraries tell at exit of their own objects that were frozen


def test_a_saved_model_is_ranked_without_the_modules_of_other_estimators(tmp_path):
    import penchant

    data = penchant.Comparisons.from_pairs(["tea", "milk"], ["milk", "water"])
    model = str(tmp_path / "model.penchant")
    penchant.PreferenceGP(random_state=0).fit(None, data).save(model)
    code = (
        f"import sys; from penchant.cli import main; main(['rank', {model!r}], "
        "standalone_mode=False); print([m for m in ('sklearn', 'scipy.stats') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1] == "[]"


def test_version(run):
    import penchant

    assert run("--version").stdout.strip().endswith(penchant.__version__)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rank"], "Missing argument 'SOURCE'"),
        (["rnak"], "did you mean rank?"),
        (["rank", "model.penchant", "--items", "items.csv"], "belong to `penchant fit`"),
        (["fit", "model.penchant"], "needs the comparisons"),
    ],
)
def test_wrong_usage_is_code_two(run, arguments, message):
    """Wrong options are in test_options.py."""
    result = run(*arguments, code=2)
    assert message in result.stderr
    assert result.stdout == ""


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    return name


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("typo.csv", "winer,loser\na,b\n", "--column winner='winer'"),
        ("empty.csv", "", "is empty"),
        ("header.csv", "winner,loser\n", "empty"),
        ("self.csv", "winner,loser\na,a\n", "with itself"),
        ("note.docx", "winner,loser\na,b\n", "format"),
    ],
)
def test_bad_data_is_code_three_and_one_clear_message(run, name, text, message):
    result = run("rank", write(name, text), code=3)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_two_rows_are_enough(run):
    assert "there is no file nowhere.csv" in run("rank", "nowhere.csv", code=3).stderr
    result = run("rank", write("two.csv", "winner,loser\na,b\nb,c\n"), "--csv")
    assert [line.split(",")[1] for line in result.stdout.splitlines()[1:]] == ["a", "b", "c"]


def test_three_bad_rows_in_ten_thousand_are_all_named_and_can_be_skipped(run):
    rows = [f"i{k % 20},i{(k + 1 + k % 7) % 20}" for k in range(10_000)]
    rows[17], rows[4999], rows[9876] = "i3,", "i4,i4", ",i2"
    name = write("bad.csv", "winner,loser\n" + "\n".join(rows) + "\n")
    refused = run("rank", name, code=3).stderr
    assert "3 of 10000 rows" in refused
    for row in (18, 5000, 9877):
        assert f"row {row} " in refused
    assert refused.startswith("error: bad.csv: ")
    skipped = run("rank", name, "--skip-bad", "--top", "1")
    assert skipped.stderr.startswith("warning: bad.csv: 3 of 10000 rows")
    assert "9997 comparisons" in skipped.stderr
    assert len(skipped.stdout.splitlines()) == 2


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (NumericalError("not positive definite"), 3, "not positive definite"),
    ],
)
def test_interruptions_and_failed_computations_have_codes(run, monkeypatch, error, code, message):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("penchant.models.base.UtilityModel.rank", fail)
    assert message in run("rank", "model.penchant", code=code).stderr


def test_a_file_that_cannot_be_written_is_one(run, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", "report.html")

    monkeypatch.setattr("penchant.cli.evaluate.write_report", refuse)
    result = run("report", "votes.csv", "--model", "gp", code=1)
    assert "error: [Errno 13] Permission denied: 'report.html'" in result.stderr


def test_warnings_are_one_line_without_code(run):
    name = write("apart.csv", "winner,loser\na,b\nx,y\n")
    lines = run("rank", name).stderr.splitlines()
    assert (
        sum(line.startswith("warning: the comparisons fall into 2 groups") for line in lines) == 1
    )
    assert not any(".py" in line for line in lines)


def test_a_longer_search_is_advised_in_words_of_the_command_line(run):
    short = "rank votes.csv --model community --set inference=mcmc --set n_sweeps=4"
    told = run(*short.split(), "--set", "n_chains=1").stderr
    assert "(here: --set n_sweeps=400)" in told


def test_a_slow_fit_comes_with_the_advice_to_keep_it(run, monkeypatch):
    tip = "tip: penchant fit votes.csv --model gp keeps the model"
    assert tip not in run("rank", "votes.csv", "--model", "gp").stderr
    monkeypatch.setattr("penchant.cli.source.PATIENCE", 0.0)
    assert tip in run("rank", "votes.csv", "--model", "gp").stderr


def test_colour_only_where_wanted(run):
    coloured = run("rank", "nowhere.csv", code=3, color=True)
    assert "\x1b[31m" in coloured.stderr
    plain = run("rank", "nowhere.csv", code=3, color=True, env={"NO_COLOR": "1"})
    assert "\x1b" not in plain.stderr


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("penchant ra", ["plain,rank"]),
        ("penchant fit --model mul", ["plain,multi-user"]),
        ("penchant rank votes.csv --items it", ["file,it"]),
    ],
)
def test_shell_completion(words, completed):
    environment = {**os.environ, "_PENCHANT_COMPLETE": "bash_complete", "COMP_WORDS": words}
    environment["COMP_CWORD"] = str(words.count(" "))
    code = "from penchant.cli import main; main(prog_name='penchant')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == completed


def test_standard_input_in_every_format(run):
    import gzip

    text = b"\xef\xbb\xbfwinner;loser\r\ntea;milk\r\n"
    lines = b'{"winner": "tea", "loser": "milk"}\n'
    for content in (text, gzip.compress(text), lines):
        assert '"tea"' in run("rank", "-", "--json", "-q", input=content).stdout
    assert "standard input is empty" in run("rank", "-", code=3, input=b"").stderr


def test_python_dash_m_is_the_command_line():
    done = subprocess.run(
        [sys.executable, "-m", "penchant", "rank"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Usage: penchant rank" in done.stderr
