"""Pages of results, `python -m experiments`, and the splits and tables that experiments share.

`python -m tests.experiments.test_pages` copies the verdicts of the pages into docs/papers.md.
"""

import ast
import inspect
import os
import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import experiments.__main__ as command
import penchant as pc
from experiments import page as results
from experiments.data import Score, score_rows, split_rankings
from experiments.page import Claim, Need, Page, markdown, near, spread, standard_error
from penchant.errors import DataError

HOLDS, FAILS = Need("n", 10, "≥", 10), Need("n", 9, "≥", 10)


def no_data():
    raise DataError("there is no file")


def test_claims_stand_before_the_parts_and_can_be_read_back():
    page = Page("Apples", "They fall.", quick=False, out=None)
    with page.part("Drops"):
        page.table(["n"], [["1"]])
    page.claim(Claim("they fall", "10 of 10", (HOLDS,), "seen"))
    page.claim(Claim("they are blue", "0 of 10", (HOLDS, FAILS), "seen"))
    page.claim(Claim("they dream", "", (), "asleep"))
    text = page.text()
    assert text.index("they fall") < text.index("## Drops")
    rows = results.claims_of(text)
    assert [row[3] for row in rows] == ["confirmed", "not confirmed", "cannot be tested here"]
    assert [row[2] for row in rows] == ["n 10 ≥ 10", "n 10 ≥ 10; n 9 ≥ 10", ""]


def test_a_verdict_follows_from_what_is_printed():
    """0.79996 is printed as 0.8, and 0.8 is what a reader sees."""
    assert not Need("accuracy", 0.79996, "<", 0.8).holds
    assert Need("accuracy", 0.79996, "≥", 0.8).holds
    assert [need.holds for need in near("error", 0.05, 0.035, 0.01)] == [True, False]


def test_simulated_data_give_no_verdict_and_lose_the_name():
    page = Page("Apples", "", quick=True, out=None)
    assert page.called("sushi") == "sushi"
    page.load(no_data, lambda: 3)
    page.claim(Claim("they fall", "10 of 10", (HOLDS,), "seen"))
    assert page.claims[0].verdict == "cannot be tested here"
    assert page.called("sushi") == "simulated"


def test_a_quick_run_leaves_out_or_simulates_what_is_missing():
    page = Page("Apples", "", quick=True, out=None)
    with page.part("Real"):
        page.load(no_data)
        page.say("never said")
    with page.part("Either"):
        assert page.load(no_data, lambda: 3) == 3
    text = page.text()
    assert "Left out: there is no file." in text
    assert "**Simulated data**, because there is no file." in text
    assert "never said" not in text


def test_a_full_run_needs_the_data():
    page = Page("Apples", "", quick=False, out=None)
    with pytest.raises(DataError, match="there is no file"), page.part("Real"):
        page.load(no_data, lambda: 3)


def test_parts_are_announced(caplog):
    page = Page("Apples", "", quick=False, out=None)
    with caplog.at_level("INFO", logger=results.LOG.name), page.part("Drops"):
        pass
    assert caplog.messages == ["Drops"]


def test_spread_is_mean_and_standard_error(rng):
    x = rng.standard_normal((5, 8))
    assert standard_error(x) == pytest.approx(x.std(ddof=1) / np.sqrt(40))
    assert spread([0.5]) == "0.500"


@pytest.fixture
def apples(monkeypatch):
    """An experiment that draws a figure."""

    def run(quick, out):
        from matplotlib.figure import Figure

        page = Page("Apples", "They fall.", quick, out)
        figure = Figure()
        figure.subplots().plot([0, 1])
        page.figure(figure, "apples", "Falling.")
        page.claim(Claim("they fall", "10 of 10", (HOLDS,), "seen"))
        return page.text()

    monkeypatch.setattr(results, "EXPERIMENTS", ("apples",))
    monkeypatch.setattr(results, "import_module", lambda name: type("Module", (), {"run": run}))


def test_produce_writes_page_figure_and_index(apples, tmp_path):
    text = results.produce("apples", out=tmp_path / "new")
    assert (tmp_path / "new" / "apples.md").read_text(encoding="utf-8") == text
    assert (tmp_path / "new" / "apples.png").stat().st_size > 1000
    assert text.startswith("# Apples\n\n`python -m experiments apples` · penchant ")
    assert "quick run" not in text
    assert "quick run" in results.produce("apples", quick=True, out=tmp_path / "quick")
    row = "| [apples](apples.md) | they fall | 10 of 10 | n 10 ≥ 10 | confirmed | seen |"
    assert row in (tmp_path / "new" / "README.md").read_text(encoding="utf-8")


def test_a_page_without_claims_has_no_rows():
    assert results.claims_of("# Nothing\n\n" + markdown(["a"], [["b"]])) == []


ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = sorted((ROOT / "results").glob("[!R]*.md"))


def faults(page):
    """What makes a page of results unfit to be trusted."""
    found = []
    head = page.split("\n\n| ")[0]
    if not re.search(r", commit [\w.-]*[0-9a-f]{7}[0-9a-f]*(-dirty)? ", head):
        found.append("no commit")
    if "**A quick run" in head:
        found.append("a quick run")
    rows = results.claims_of(page)
    if not rows:
        found.append("no claims")
    for row in rows:
        if len(row) != len(results.CLAIM_COLUMNS):
            found.append(f"not {len(results.CLAIM_COLUMNS)} cells: {row}")
            continue
        claim, _, required, verdict, _ = row
        if verdict != _verdict(required):
            found.append(f"{claim}: {required} does not make it {verdict}")
        if verdict == "confirmed" and "**Simulated data**" in page:
            found.append(f"{claim}: confirmed by simulated data")
    return found


def _verdict(required):
    """As a reader draws it from the printed requirements."""
    parts = required.split(results.PART) if required else []
    if not parts:
        return "cannot be tested here"
    return "confirmed" if all(map(results.follows, parts)) else "not confirmed"


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_the_verdicts_of_a_published_page_follow_from_its_table(path):
    assert faults(path.read_text(encoding="utf-8")) == []


def test_every_experiment_has_a_published_page():
    assert {path.stem for path in PUBLISHED} == set(results.EXPERIMENTS)


@pytest.mark.parametrize(
    ("told", "instead", "fault"),
    [
        ("| confirmed |", "| not confirmed |", "n 10 ≥ 10 does not make it not confirmed"),
        ("| not confirmed |", "| confirmed |", "n 10 ≥ 10; n 9 ≥ 10 does not make it confirmed"),
        ("| cannot be tested here |", "| confirmed |", "does not make it confirmed"),
        ("n 9 ≥ 10", "n 11 ≥ 10", "does not make it not confirmed"),
        ("| n 10 ≥ 10 | confirmed", "| confirmed", "not 5 cells"),
        (", commit ", ", ", "no commit"),
        (", commit ", ", commit unknown ", "no commit"),
        ("They fall.", "**Simulated data**, because", "confirmed by simulated data"),
        ("| required |", "|", "no claims"),
        ("quick=False", "**A quick run", "a quick run"),
    ],
)
def test_a_doctored_page_is_found_out(monkeypatch, tmp_path, told, instead, fault):
    def run(quick, out):
        page = Page("Apples", "They fall. quick=False", quick, out)
        page.claim(Claim("they fall", "10 of 10", (HOLDS,), "seen"))
        page.claim(Claim("they are blue", "0 of 10", (HOLDS, FAILS), "seen"))
        page.claim(Claim("they dream", "–", (), "asleep"))
        return page.text()

    monkeypatch.setattr(results, "import_module", lambda name: type("Module", (), {"run": run}))
    page = results.produce("apples", out=tmp_path)
    assert faults(page) == []
    assert told in page
    (found,) = faults(re.sub(rf"{re.escape(told)}(unknown|\w+)?", instead, page, count=1))
    assert fault in found


def test_the_published_index_is_what_the_published_pages_say():
    folder = ROOT / "results"
    assert (folder / results.INDEX).read_text(encoding="utf-8") == results.index(folder)


def test_the_documentation_names_every_experiment():
    text = (ROOT / "docs" / "reproductions.md").read_text(encoding="utf-8")
    for name in results.EXPERIMENTS:
        has_page = (ROOT / "results" / f"{name}.md").is_file()
        assert (f"[{name}](../results/{name}.md)" if has_page else f"| `{name}` |") in text


@pytest.fixture
def produced(monkeypatch):
    """What was asked for, in place of running it."""
    asked = []

    def produce(name, quick, out):
        asked.append((name, quick, out))
        return f"# page of {name}"

    monkeypatch.setattr(command, "produce", produce)
    return asked


def test_all_runs_every_experiment_in_order(produced, capsys, monkeypatch):
    monkeypatch.setenv("PENCHANT_DATA", "there")
    command.main(["all", "--quick", "--data", "here"])
    assert produced == [(n, True, "results/quick") for n in results.EXPERIMENTS]
    assert os.environ["PENCHANT_DATA"] == "here"
    assert "# page of sparse-ep" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "folder"),
    [([], "results"), (["--quick"], "results/quick"), (["--out", "mine", "--quick"], "mine")],
)
def test_quick_results_go_beside_the_full_ones(produced, options, folder, monkeypatch):
    monkeypatch.setattr(command, "check_data", lambda names: None)
    command.main(["xpgp", *options])
    assert produced[0][2] == folder


def test_a_wrong_name_is_refused_with_the_names(produced, capsys):
    with pytest.raises(SystemExit):
        command.main(["sparse_ep"])
    assert "sparse-ep" in capsys.readouterr().err
    assert produced == []


def test_without_a_name_every_experiment_is_listed(capsys):
    command.main([])
    lines = capsys.readouterr().out.splitlines()
    assert [line[5:].split()[0] for line in lines] == list(results.EXPERIMENTS)
    assert [line[:4].strip() for line in lines if line.startswith("0")] == [
        number for number, names in results.PAPERS.items() for _ in names
    ]
    assert all(len(line) > 30 for line in lines)


def test_a_papers_number_runs_its_experiments(produced):
    command.main(["000", "--quick"])
    assert [name for name, _, _ in produced] == ["xpgp", "active"]


def test_missing_data_are_told_before_anything_runs(produced, tmp_path, monkeypatch):
    (tmp_path / "sushi").mkdir()
    monkeypatch.setenv("PENCHANT_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"answers needs football.*docs/reproductions\.md"):
        command.main(["answers"])
    monkeypatch.setenv("PENCHANT_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(SystemExit, match="not a folder"):
        command.main(["answers"])
    assert produced == []


@pytest.mark.parametrize("name", results.EXPERIMENTS)
def test_where_to_get_the_data_of_an_experiment_is_told(name):
    """Each folder of `DATA` has a line in docs/reproductions.md."""
    text = (ROOT / "docs" / "reproductions.md").read_text(encoding="utf-8")
    module = import_module(f"experiments.{name.replace('-', '_')}")
    assert module.DATA
    for folder in module.DATA:
        assert f"\n| `{folder}` |" in text


def test_every_pair_is_in_one_part_and_follows_the_ranking(rng):
    rankings = np.array([rng.permutation(20)[:5] for _ in range(7)])
    train, test = split_rankings(rankings, 4, rng)
    assert np.bincount(train.user).tolist() == [4] * 7
    assert np.bincount(test.user).tolist() == [6] * 7
    seen = set()
    for part in (train, test):
        for user, winner, loser in zip(*part, strict=True):
            order = rankings[user].tolist()
            assert order.index(winner) < order.index(loser)
            seen.add((user, winner, loser))
    assert len(seen) == 70
    assert train.comparisons(20, 7).n_comparisons == 28


def test_scores_become_rows_with_standard_errors():
    certain, even = Score.of(np.array([0.9, 0.8])), Score.of(np.array([0.5, 0.5]))
    assert certain.accuracy == 1.0
    assert even.accuracy == 0.5
    rows = score_rows({("k", "model"): [certain, even], "one": [even]})
    assert rows[0][:3] == ["k", "model", "0.7500 ± 0.2500"]
    assert rows[1][:2] == ["one", "0.5000"]


# docs/papers.md: names of the papers, ours, and the verdicts of the pages.

PAPERS = ROOT / "docs" / "papers.md"
BLOCK = re.compile(r"<!-- claims: ([\w, -]+) -->\n(.*?)<!-- end -->", re.DOTALL)
WORDS = ("EMEP", "common cause", "coactive", "Full-GP", "Sparse-EP", "Chinese restaurant")


def with_verdicts(text):
    """The page with the claims and verdicts of the published pages between its marks."""
    return BLOCK.sub(
        lambda found: f"<!-- claims: {found[1]} -->\n{_claims(found[1])}<!-- end -->", text
    )


def _claims(names):
    """A row a claim; verdicts of a claim that a page tests in several ways stand together."""
    verdicts = {}
    for name in names.split(", "):
        page = (ROOT / "results" / f"{name}.md").read_text(encoding="utf-8")
        for claim, _, _, verdict, _ in results.claims_of(page):
            verdicts.setdefault((name, claim), []).append(verdict)
    rows = [
        [claim, f"[{'; '.join(each)}](../results/{name}.md)"]
        for (name, claim), each in verdicts.items()
    ]
    return f"\n{markdown(['the paper claims', 'verdict'], rows)}\n\n"


def test_the_papers_page_has_the_verdicts_of_the_published_pages():
    """`python -m tests.experiments.test_pages` writes them."""
    text = PAPERS.read_text(encoding="utf-8")
    names = [name for found in BLOCK.finditer(text) for name in found[1].split(", ")]
    assert names == [name for each in results.PAPERS.values() for name in each]
    assert text == with_verdicts(text)


def test_words_of_the_papers_find_a_page():
    page, glossary = (
        (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("papers.md", "glossary.md")
    )
    for word in WORDS:
        assert word in page
        assert word in glossary


def codes(path):
    """What a page sets as code, outside of its blocks."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return sorted(set(re.findall(r"`([^`]+)`", text)))


def resolved(node):
    """The object that a dotted name of penchant or of the experiments means."""
    if isinstance(node, ast.Name):
        return import_module("experiments") if node.id == "experiments" else getattr(pc, node.id)
    owner = resolved(node.value)
    if inspect.ismodule(owner) and owner.__name__ == "experiments":
        return import_module(f"experiments.{node.attr}")
    return getattr(owner, node.attr)


def check_code(code):
    """Raise unless a name exists, a call binds, and a constructor takes its values."""
    node = ast.parse(code, mode="eval").body
    if not isinstance(node, ast.Call):
        resolved(node)
        return
    called = resolved(node.func)
    if inspect.isclass(called):
        made = eval(code, dict(vars(pc)))
        for declared in fields(made) if is_dataclass(made) else ():
            constraint = declared.metadata.get("constraint")
            if constraint and not constraint.holds(getattr(made, declared.name)):
                raise DataError(f"{declared.name} must be {constraint.words}")
        return
    is_method = isinstance(node.func, ast.Attribute) and inspect.isclass(resolved(node.func.value))
    given = [None] * (is_method + len(node.args))
    inspect.signature(called).bind_partial(*given, **{word.arg: None for word in node.keywords})


@pytest.mark.parametrize("code", codes(PAPERS))
def test_every_name_option_and_command_of_the_papers_page_exists(code, produced, monkeypatch):
    if code.startswith("python -m experiments"):
        monkeypatch.setattr(command, "check_data", lambda names: None)
        command.main(code.split()[3:])
        assert produced
    elif code.startswith("python -m "):
        assert (ROOT / f"{code.split()[2].replace('.', '/')}.py").is_file()
    elif code in ARGUMENTS:
        assert code in inspect.signature(ARGUMENTS[code]).parameters
    else:
        check_code(code)


ARGUMENTS = {
    "X": pc.KPCRank.fit,
    "y": pc.KPCRank.fit,
    "qid": pc.KPCRank.fit,
    "relations": pc.PreferenceGP.fit,
    "feature_map": pc.PreferencePerceptron,
}
"""Arguments that the page names alone."""


@pytest.mark.parametrize(
    "code",
    [
        "PreferenceGaussian",
        "kernels.Laplacian",
        "CommunityGP.tables_",
        'MultiUserGP(inference="exact-ep")',
        "KPCRank(components=3)",
        'PreferenceGP.predict(sauce="soy")',
        "online.AlphaUser.alpha.beta",
    ],
)
def test_a_name_that_does_not_exist_is_found_out(code):
    with pytest.raises((AttributeError, TypeError, DataError)):
        check_code(code)


if __name__ == "__main__":
    PAPERS.write_text(with_verdicts(PAPERS.read_text(encoding="utf-8")), encoding="utf-8")
