"""docs/cli.md knows every command, model, kind of relation and role that there is."""

import re
from pathlib import Path

import click
import pytest

import penchant as pc
from penchant.cli import COMMANDS, main, predict
from penchant.cli.files import RELATION_KINDS
from penchant.cli.options import ROLES
from penchant.workflow.choosing import AS_GOOD, FEW_ANSWERS, FEW_PEOPLE, TRIED_PEOPLE
from penchant.workflow.models import KINDS

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*COMMANDS, *KINDS, *RELATION_KINDS])
def test_every_name_is_documented(name):
    assert f"`{name}`" in TEXT


def test_roles_and_thresholds_are_those_of_the_code():
    assert all(role in TEXT for role in ROLES)
    assert f"fewer than {FEW_PEOPLE} users" in TEXT
    assert f"fewer than {FEW_ANSWERS} comparisons each" in TEXT
    assert f"up to {TRIED_PEOPLE} people" in TEXT
    assert f"{AS_GOOD} in log loss" in TEXT


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


def test_criteria_are_those_of_the_library():
    assert set(predict.CRITERIA) == set(pc.ask.CRITERIA)
