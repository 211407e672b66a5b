"""Pages of results, `python -m experiments`, and the splits and tables that experiments share."""

import os
from pathlib import Path

import numpy as np
import pytest

import experiments.__main__ as command
from experiments import page as results
from experiments.data import Score, score_rows, split_rankings
from experiments.page import Claim, Page, markdown, spread, standard_error
from penchant.errors import DataError


def no_data():
    raise DataError("there is no file")


def test_claims_stand_before_the_parts_and_can_be_read_back():
    page = Page("Apples", "They fall.", quick=False, out=None)
    with page.part("Drops"):
        page.table(["n"], [["1"]])
    page.claim(Claim("they fall", "10 of 10", True, "seen"))
    page.claim(Claim("they are blue", "0 of 10", False, "seen"))
    page.claim(Claim("they dream", "", None, "asleep"))
    text = page.text()
    assert text.index("they fall") < text.index("## Drops")
    verdicts = [row[2] for row in results.claims_of(text)]
    assert verdicts == ["confirmed", "not confirmed", "cannot be tested here"]


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
        page.claim(Claim("they fall", "10 of 10", True, "seen"))
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
    row = "| [apples](apples.md) | they fall | 10 of 10 | confirmed | seen |"
    assert row in (tmp_path / "new" / "README.md").read_text(encoding="utf-8")


def test_a_page_without_claims_has_no_rows():
    assert results.claims_of("# Nothing\n\n" + markdown(["a"], [["b"]])) == []


ROOT = Path(__file__).resolve().parents[2]


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
def test_quick_results_go_beside_the_full_ones(produced, options, folder):
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
    assert [line.split()[0] for line in lines] == list(results.EXPERIMENTS)
    assert all(len(line) > 30 for line in lines)


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
