"""`penchant fit --engine`."""

import json
from unittest import mock

import pytest
from click.testing import CliRunner

import penchant as pc
from penchant.cli import main


def run(*arguments):
    return CliRunner().invoke(main, ["fit", *map(str, arguments)])


def test_a_pattern_of_files(vote_files, whole, tmp_path):
    target, tastes = tmp_path / "m.penchant", tmp_path / "tastes"
    pattern = vote_files / "part-*.csv"
    options = ("--engine", "local", "--set", "optimize=null", "--shards", 8)
    options += ("--predictions", tastes, "--json")
    result = run(pattern, *options, "-o", target)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    told = told.get("result", told)
    assert told["users"] == whole.n_users
    assert told["comparisons"] == whole.n_comparisons
    assert pc.load(target).predict(users="u3").shape == (1, 7)
    assert list(tastes.glob("*.parquet"))
    some = ["fit", str(pattern), *map(str, options[:6]), "-o", str(target)]
    with mock.patch("penchant.models.sharded.LEARNING_VOTES", 1):
        assert CliRunner().invoke(main, some).exit_code == 0
    refused = CliRunner().invoke(main, ["predict", str(target), "--users", "all"])
    assert refused.exit_code == 3
    assert "--predictions FOLDER" in refused.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--engine", "local", "--model", "rank-rls"), "--model must be one of"),
        (("--engine", "local", "--model", "gp", "--predictions", "x"), "takes everybody together"),
        (("--engine", "local", "--items", "x.csv"), "not read from shards"),
        (("--predictions", "x"), "belong to --engine"),
    ],
)
def test_what_does_not_go_together(vote_files, tmp_path, options, message):
    result = run(vote_files / "whole.csv", *options, "-o", tmp_path / "m.penchant")
    assert result.exit_code == 2
    assert message in result.stderr


def test_communities(vote_files, tmp_path):
    target, shares = tmp_path / "m.penchant", tmp_path / "shares"
    options = ("--engine", "local", "--model", "community", "--shards", 8)
    options += ("--predictions", shares)
    result = run(vote_files / "part-*.csv", *options, "--set", "optimize=null", "-o", target)
    assert result.exit_code == 0, result.output
    assert pc.load(target).n_communities_ >= 1
    assert list(shares.glob("*.parquet"))
