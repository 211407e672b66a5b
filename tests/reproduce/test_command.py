"""`penchant reproduce`: names, folders, and what runs."""

import pytest
from click.testing import CliRunner

from penchant.cli import main
from penchant.reproduce import results


@pytest.fixture
def produced(monkeypatch):
    """What was asked for, in place of running it."""
    asked = []

    def produce(name, quick, out, data):
        asked.append((name, quick, str(out), data))
        return f"# page of {name}"

    monkeypatch.setattr(results, "produce", produce)
    return asked


def invoke(*arguments):
    return CliRunner().invoke(main, ["reproduce", *arguments])


def test_all_runs_every_experiment_in_order(produced):
    result = invoke("all", "--quick", "--data", "here")
    assert result.exit_code == 0
    assert produced == [(n, True, "results/quick", "here") for n in results.EXPERIMENTS]
    assert "# page of sparse-ep" in result.stdout


@pytest.mark.parametrize(
    ("options", "folder"),
    [([], "results"), (["--quick"], "results/quick"), (["--out", "mine", "--quick"], "mine")],
)
def test_quick_results_go_beside_the_full_ones(produced, options, folder):
    invoke("xpgp", *options)
    assert produced[0][2] == folder


@pytest.mark.parametrize("name", ["sparse_ep", "sparseep", "spars-ep"])
def test_a_wrong_name_gets_a_suggestion(produced, name):
    result = invoke(name)
    assert result.exit_code == 2
    assert "did you mean sparse-ep?" in result.stderr
    assert produced == []
