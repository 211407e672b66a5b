"""Every option of every command changes what comes out, and is refused where it cannot matter.

A new option without a case here is an error.
"""

import csv
import re

import click
import numpy as np
import pytest
from click.testing import CliRunner

import penchant as pc
from penchant.cli import COMMANDS, main
from penchant.cli.source import SourceOptions, source_argument
from penchant.workflow import as_model, segments

ITEMS = "abcde"
CHAINS = "--model community --set inference=mcmc --set n_sweeps=6 --set n_chains=1"
BASES = {
    "fit": "-o own.penchant --json",
    "rank": "--csv",
    "predict": "--pair a b --pair c d --csv",
    "ask": "--csv -k 3 --criterion thompson",
    "groups": "--json",
    "evaluate": "--folds 2 --csv",
    "report": "-o own.html",
}
"""Commands that read comparisons, and how they are called here."""
SOURCE_CASES = {
    "--items": ("votes.csv", "", "--items items.csv"),
    "--users": ("votes.csv", "", "--users users.csv"),
    "--relation": ("votes.csv", "", "--relation near=links.csv"),
    "--column": ("votes.csv", "", "--column winner=loser --column loser=winner"),
    "--shape": ("grid.csv", "--shape ranks", "--shape ratings"),
    "--where": ("votes.csv", "", "--where day<20"),
    "--covariate": ("votes.csv", "", "--covariate length"),
    "--time": ("votes.csv", "", "--time day --set half_life=3"),
    "--skip-bad": ("bad.csv", None, "--skip-bad"),
    "--set": ("votes.csv", "", "--set likelihood=logit"),
    "--seed": ("votes.csv", CHAINS, f"{CHAINS} --seed 7"),
    "--model": ("votes.csv", "--model gp", "--model multi-user"),
}
"""What is read, the options of one call (None: it fails) and those of another."""
SOURCE_REFUSED = {
    "--items": [
        "votes.csv --items missing.csv",
        "votes.csv --model rank-rls | give them with --items",
    ],
    "--users": ["votes.csv --users users.csv --model gp"],
    "--relation": [
        "votes.csv --relation links.csv | must look like cites=links.csv",
        "votes.csv --relation a:round=links.csv | undirected, directed",
        "votes.csv --relation r=links.csv --model rank-rls --items items.csv | not use relations",
    ],
    "--column": [
        "votes.csv --column nobody=x | must look like winner=chosen",
        "votes.soc --column winner=x",
    ],
    "--shape": ["votes.csv --shape round", "votes.soc --shape pairs"],
    "--where": ["votes.csv --where day | must look like", "votes.soc --where day>1"],
    "--covariate": ["votes.csv --covariate nothing"],
    "--time": [
        "votes.csv --time nothing --set drift=ou",
        "votes.csv --time day",
        "votes.csv --time day --model multi-user",
    ],
    "--skip-bad": ["votes.soc --skip-bad"],
    "--set": [
        "votes.csv --model gp --set nothing=1 | such",
        "votes.csv --set n_sweeps | must look like likelihood=logit",
        "votes.csv --set random_state=1 | is given by --seed",
    ],
    "--seed": ["votes.csv --seed -1", "own-gp.penchant --seed 3 | is a fitted model"],
    "--model": ["votes.csv --model best", "own-gp.penchant --model gp | is a fitted model"],
}
"""What is read and the options of calls that fail; what the message says, after a bar."""
BENCH = "bench --items 6 --users 4 --answers 4"
OWN_CASES = {
    "fit --output": ("fit votes.csv --model gp -o 1.penchant --json", "-o 2.penchant"),
    "fit --resume": ("fit few.csv --engine local --shards 2", "--resume kept2"),
    "fit --predictions": ("fit few.csv --engine local --shards 2", "--predictions all"),
    "rank --top": ("rank own-gp.penchant", "--top 2"),
    "rank --level": ("rank own-gp.penchant", "--level 0.5"),
    "rank --user": ("rank people.penchant", "--user u1"),
    "rank --raters": ("rank votes.csv --model gp", "--raters"),
    "rank --by": ("rank votes.csv --model gp", "--by group"),
    "rank --scale": ("rank own-gp.penchant", "--scale elo"),
    "rank --at": ("rank drift.penchant", "--at 3"),
    "predict --pair": ("predict own-gp.penchant --pair a b", "--pair c b"),
    "predict --user": ("predict people.penchant pairs.csv", "--user u1"),
    "predict --new-items": (
        "predict votes.csv --model gp --items items.csv --pair a b",
        "--new-items moved.csv",
    ),
    "predict --ties": ("predict own-gp.penchant pairs.csv", "--ties"),
    "predict --at": ("predict drift.penchant pairs.csv", "--at 3"),
    "predict --output": ("predict people.penchant --users all --json", "-o tastes.parquet"),
    "ask -k": ("ask own-gp.penchant", "-k 2"),
    "ask --criterion": ("ask own-gp.penchant", "--criterion random"),
    "ask --set-size": ("ask own-gp.penchant", "--set-size 3"),
    "ask --user": ("ask people.penchant", "--user u1"),
    "groups --members": ("groups votes.csv", "--members"),
    "evaluate --with": ("evaluate votes.csv --folds 2 --with gp", "--with community"),
    "evaluate --folds": ("evaluate votes.csv --with gp", "--folds 2"),
    "report --output": ("report few.csv --model gp --json", "-o other.html"),
    "report --title": ("report few.csv --model gp -o own.html", "--title Tea"),
    "bench --items": (f"{BENCH} --with gp --json", "--items 7"),
    "bench --users": (f"{BENCH} --with gp --json", "--users 5"),
    "bench --answers": (f"{BENCH} --with gp --json", "--answers 5"),
    "bench --with": (BENCH, "--with gp"),
}
OWN_REFUSED = {
    "fit --output": [
        "fit votes.csv -o model.txt | ends in .penchant",
        "fit votes.csv -o no/x.penchant | there is no folder no",
    ],
    "fit --engine": ["fit votes.csv --engine x", "fit votes.csv --model gp --engine ray"],
    "fit --address": ["fit votes.csv --address x", "fit votes.csv --engine local --address x"],
    "fit --shards": ["fit votes.csv --shards 3", "fit votes.csv --shards 0"],
    "fit --scratch": ["fit votes.csv --scratch x"],
    "fit --resume": ["fit votes.csv --resume x"],
    "fit --predictions": [
        "fit votes.csv --predictions x",
        "fit votes.csv --model gp --engine local --predictions x",
    ],
    "rank --top": ["rank votes.csv --top 0"],
    "rank --level": [
        "rank votes.csv --level 1 | --level",
        "rank votes.csv --level nan | nan is no probability",
        "rank votes.csv --model gp --raters --level 0.5 | --raters goes without --level",
    ],
    "rank --user": [
        "rank votes.csv --model gp --user u1 | takes everybody together",
        "rank votes.csv --user x | nobody of that name",
        "rank votes.csv --raters --user u1 | --raters goes without --user",
    ],
    "rank --raters": [
        "rank votes.csv --raters --by group | --by goes without --raters",
        "rank scores.penchant --raters | does not judge people",
    ],
    "rank --by": [
        "rank votes.csv --by nothing | no column 'nothing'",
        "rank own-gp.penchant --by group | is a model",
        "rank votes.csv --by group --user u1 | --by goes without --user",
    ],
    "rank --scale": ["rank votes.csv --scale miles", "rank votes.csv --raters --scale elo"],
    "rank --at": [
        "rank own-gp.penchant --at 3",
        "rank drift.penchant --at never",
        "rank votes.csv --by group --at 3",
    ],
    "predict --pair": [
        "predict votes.csv --model gp --pair a x | unknown item 'x'",
        "predict own-gp.penchant | nothing to predict",
        "predict scores.penchant --pair a b | no probabilities",
    ],
    "predict --user": [
        "predict votes.csv --model gp --pair a b --user u1",
        "predict people.penchant asked.csv --user u1",
    ],
    "predict --new-items": ["predict own-gp.penchant --new-items items.csv | does not place items"],
    "predict --ties": [
        "predict votes.csv --model gp --items items.csv --new-items items.csv --ties",
        "predict votes.csv --users all --ties",
    ],
    "predict --at": [
        "predict own-gp.penchant pairs.csv --at 3",
        "predict votes.csv --users all --at 3",
    ],
    "predict --output": [
        "predict own-gp.penchant pairs.csv -o x.parquet",
        "predict votes.csv --users all -o no/x",
    ],
    "ask -k": ["ask votes.csv -k 0", "ask scores.penchant -k 2 | how sure it is"],
    "ask --criterion": ["ask votes.csv --criterion x"],
    "ask --set-size": ["ask votes.csv --set-size 1"],
    "ask --user": ["ask votes.csv --model gp --user u1 | everybody together"],
    "groups --members": ["groups own-gp.penchant --members | knows no communities"],
    "evaluate --with": [
        "evaluate votes.csv --with x",
        "evaluate votes.csv --with gp --model gp | --with goes without --model",
        "evaluate votes.csv --with gp --set n_sweeps=3 | none of gp has such",
    ],
    "evaluate --folds": ["evaluate votes.csv --folds 1"],
    "report --output": [
        "report votes.csv -o votes.csv | is also read",
        "report votes.csv -o no/r.html | there is no folder no",
    ],
    "demo --seed": ["demo --seed -1"],
    "bench --items": ["bench --items 1"],
    "bench --users": ["bench --users 1"],
    "bench --answers": ["bench --answers 0"],
    "bench --with": ["bench --with x"],
    "bench --seed": ["bench --seed -1"],
}
FORMS = {"--json", "--csv", "--spreadsheet-safe", "--quiet"}
"""How results are written; their cases are in test_output.py and below."""
ELSEWHERE = {
    "fit --engine": "the same model, in other memory: tests/engines",
    "fit --scratch": "gone afterwards: tests/engines",
    "fit --shards": "below",
    "fit --address": "needs a cluster: tests/engines",
    "demo --folder": "test_commands.py",
    "demo --seed": "test_commands.py",
    "bench --seed": "another study, whose times differ as those of the same one do",
}
ANYTHING = {"demo --folder", "report --title"}
"""Any text will do, always."""
QUICK = ("rank", "evaluate")
"""Commands that try every option about data in the default run; all commands share the code."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    rng = np.random.default_rng(1)
    taste = np.array([[1.5, 1.0, 0.0, -1.0, -1.5], [-1.5, 0.0, 1.0, 1.0, -0.5]])
    rows = [("user", "winner", "loser", "day", "length", "group")]
    for k in range(120):
        one, two = rng.choice(5, 2, replace=False)
        user = k % 10
        if taste[user % 2, one] - taste[user % 2, two] + rng.normal() < 0:
            one, two = two, one
        length = round(float(rng.normal()), 2)
        rows.append((f"u{user}", ITEMS[one], ITEMS[two], k // 4, length, "xy"[k % 2]))
    tables = {
        "votes.csv": rows,
        "few.csv": rows[:30],
        "bad.csv": [*rows, ("u1", "a", "", 1, 1.0, "x")],
        "items.csv": [("item", "size"), *((name, k * k) for k, name in enumerate(ITEMS))],
        "moved.csv": [("item", "size"), ("a", 9), ("b", 2)],
        "users.csv": [("user", "age"), *((f"u{k}", 20 + 9 * (k % 2) + k) for k in range(10))],
        "links.csv": [("from", "to"), ("a", "b"), ("b", "c"), ("d", "e")],
        "pairs.csv": [("first", "second"), ("a", "b"), ("c", "d")],
        "asked.csv": [("first", "second", "user"), ("a", "b", "u1")],
        "grid.csv": [
            ("user", *ITEMS),
            *((f"u{k}", *(1 + rng.permutation(5)[:5])) for k in range(12)),
        ],
    }
    for name, lines in tables.items():
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows(lines)
    (folder / "votes.soc").write_text(
        "# FILE NAME: votes.soc\n# DATA TYPE: soc\n# NUMBER ALTERNATIVES: 3\n"
        "# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n# ALTERNATIVE NAME 3: c\n3: 1,2,3\n"
    )
    data = pc.read_comparisons(folder / "votes.csv", time="day")
    pc.PreferenceGP(random_state=0).fit(None, data.bare()).save(folder / "own-gp.penchant")
    drift = pc.PreferenceGP(drift="ou", random_state=0).fit(None, data)
    drift.save(folder / "drift.penchant")
    people = pc.MultiUserGP(random_state=0, progress=False).fit(None, data.bare(keep=("user",)))
    people.save(folder / "people.penchant")
    scores = as_model(pc.RankRLS()).fit(np.arange(5.0)[:, None] ** 2, data)
    scores.save(folder / "scores.penchant")
    return folder


@pytest.fixture
def call(place, monkeypatch):
    """Run a command in its folder: its exit code, and all that it wrote but times."""
    monkeypatch.chdir(place)

    def invoke(line):
        arguments, before = line.split(), set(place.rglob("*"))
        result = CliRunner().invoke(main, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        text = re.sub(r'"seconds": [\d.e-]+|"comparisons_per_second": [\d.e-]+', "", result.stdout)
        if arguments[0] == "evaluate":  # the last column is seconds
            text = re.sub(r"[,\s][\d.]+$", "", text, flags=re.MULTILINE)
        new = sorted(str(path.name) for path in set(place.rglob("*")) - before)
        wrote = []
        if result.exit_code == 0 and "own.penchant" in arguments:
            wrote = [str(pc.load(place / "own.penchant").rank())]
        if result.exit_code == 0 and "own.html" in arguments:
            wrote = [(place / "own.html").read_text(encoding="utf-8")]
        return result.exit_code, (text, *wrote, *new), result.stderr

    return invoke


def options_of(name):
    command = main.get_command(click.Context(main), name)
    return [p for p in command.params if isinstance(p, click.Option) and not p.is_eager]


def flag(parameter):
    return max(parameter.opts, key=len)


@click.command()
@source_argument
def _bare(source):
    """The options about data, and nothing else."""


SHARED = {flag(p) for p in _bare.params if isinstance(p, click.Option)}


def test_every_option_has_its_cases():
    assert set(SOURCE_CASES) == set(SOURCE_REFUSED) == SHARED
    assert {"comparisons", "settings", "time"} <= set(SourceOptions.__dataclass_fields__)
    for name in set(COMMANDS) - {"study"}:  # a study's commands have tests of their own
        flags = {flag(p) for p in options_of(name)}
        assert (name in BASES) == (flags >= SHARED)
        for each in flags - FORMS - (SHARED if name in BASES else set()):
            case = f"{name} {each}"
            assert case in OWN_CASES or case in ELSEWHERE, case
            assert case in OWN_REFUSED or case in ANYTHING, case


COMMAND = [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in BASES]


@pytest.mark.parametrize("option", SOURCE_CASES)
@pytest.mark.parametrize("command", COMMAND)
def test_options_about_data_matter(call, command, option):
    source, one, two = SOURCE_CASES[option]
    suited = "" if command in ("groups", "evaluate") or option == "--model" else "--model gp"
    if command == "groups" and option in ("--time", "--model"):
        assert call(f"{command} {source} {two}")[0] == 3  # communities follow no time
        return
    if command == "groups" and option == "--covariate":  # it moves utilities, seldom their order
        command, one, two = "rank", "--model community", f"{two} --model community"
    if "--model" in (one or "") or option == "--users":
        suited = "" if command == "groups" or option != "--users" else "--model multi-user"
    if command == "evaluate" and "--model" not in two:
        suited = "--with multi-user" if option == "--users" else "--with gp"
    if command == "evaluate" and option == "--seed":
        one, two, suited = "", "--seed 7", "--with gp"
    line = f"{command} {source} {BASES[command]} {suited}"
    told = [call(f"{line} {more or ''}") for more in (one, two)]
    assert told[1][0] == 0, told[1][2]
    assert told[0][0] == (3 if one is None else 0), told[0][2]
    assert told[0][1] != told[1][1]


def check_refused(call, line, base=""):
    """The command fails with a message before any fit."""
    words, _, message = line.partition(" | ")
    code, _, said = call(f"{words} {base}")
    assert code in (2, 3), line
    assert "rror: " in said, line
    assert message in said, (line, said)
    assert "fitted in" not in said, line


@pytest.mark.parametrize("option", SOURCE_REFUSED)
@pytest.mark.parametrize("command", COMMAND)
def test_options_about_data_are_refused(call, command, option):
    for line in SOURCE_REFUSED[option]:
        check_refused(call, f"{command} {line}", BASES[command])


@pytest.mark.parametrize("case", OWN_CASES)
def test_options_of_a_command_matter(call, case):
    base, more = OWN_CASES[case]
    if "-o" in base or "--engine" in base or "report" in base or "all" in base:
        call(base)  # so that what it writes is there before
    one, two = call(base), call(f"{base} {more}")
    assert one[0] == two[0] == 0, one[2] + two[2]
    assert one[1] != two[1]


@pytest.mark.parametrize("case", OWN_REFUSED)
def test_options_of_a_command_are_refused(call, case):
    for line in OWN_REFUSED[case]:
        check_refused(call, line)


def test_shards_are_as_many_as_asked_for(call, monkeypatch):
    asked, scan = [], pc.scan_comparisons

    def spy(path, **how):
        asked.append(how["shards"])
        return scan(path, **how)

    monkeypatch.setattr(pc, "scan_comparisons", spy, raising=False)
    for more in ("", "--shards 3"):
        assert call(f"fit few.csv --engine local {more}")[0] == 0
    assert asked == [64, 3]


def test_seeds_reach_segments_too(call):
    by = "rank few.csv --model gp --by group --csv"
    assert call(by)[1] == call(f"{by} --seed 0")[1] != call(f"{by} --seed 5")[1]


def test_segments_on_the_scale_of_elo(call, place):
    _, (text, *_), _ = call("rank votes.csv --model gp --by group --scale elo --csv")
    rows = list(csv.DictReader(text.splitlines()))
    parts = pc.io.read_segments(place / "votes.csv", "group")
    found = segments(parts, model=pc.PreferenceGP(random_state=0))
    for name in parts:
        elo = found.rank(name).to_elo()
        mine = [float(row["elo"]) for row in rows if row["segment"] == name]
        assert mine == pytest.approx(elo["utility"].tolist())
    unit = found.rank("y").per_unit
    apart = {row.item: unit * row.difference for row in found.difference("y", "x")}
    for row in rows:
        if row["segment"] == "y":
            assert float(row["difference"]) == pytest.approx(apart[row["item"]])


def test_what_a_pooled_model_does_with_people_is_said(call):
    assert "intervals are" in call("rank votes.csv --model gp")[2]
    told = call("rank votes.csv --model rank-rls --items items.csv")[2]
    assert "rank-rls does not use who made which comparison" in told
    code, _, message = call("predict own-gp.penchant asked.csv")
    assert code == 3
    assert "takes everybody together" in message
