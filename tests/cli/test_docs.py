"""docs/cli.md knows every command, model, kind of relation and role that there is."""

import re
from pathlib import Path

import click
import pytest

import penchant as pc
from penchant.cli import COMMANDS, main, predict, source
from penchant.models import RankedItem
from penchant.workflow import KINDS, models

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*COMMANDS, *KINDS, *source.RELATION_KINDS])
def test_every_name_is_documented(name):
    assert f"`{name}`" in TEXT


def test_roles_and_thresholds_are_those_of_the_code():
    assert all(role in TEXT for role in source.ROLES)
    assert f"fewer than {models.FEW_PEOPLE} users" in TEXT
    assert f"fewer than {models.FEW_ANSWERS} comparisons each" in TEXT
    assert (
        f"of {models.TRIED_PEOPLE} people, or of as many as made {models.TRIED_ANSWERS:,}" in TEXT
    )
    assert f"{models.AS_GOOD} in log loss" in TEXT


def test_every_option_that_the_document_names_exists():
    context = click.Context(main)
    known = {
        flag
        for name in COMMANDS
        for parameter in main.get_command(context, name).params
        for flag in parameter.opts
    }
    known |= {"--help"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", TEXT)) <= known


def test_every_column_of_a_ranking_is_explained():
    page = (Path(__file__).parents[2] / "docs" / "leaderboards.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in RankedItem._fields)


def test_criteria_are_those_of_the_library():
    assert set(predict.CRITERIA) == set(pc.ask.CRITERIA)
