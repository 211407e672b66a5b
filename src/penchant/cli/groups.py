"""`penchant groups`: communities of taste."""

from typing import Any

import click
import numpy as np

import penchant as pc
from penchant.cli.models import Fitted
from penchant.cli.options import Source, source_argument
from penchant.cli.output import Output, output_options

SHOWN = 3
FORMATS = {"group": "d", "size": "d", "likes": "", "dislikes": ""}


@click.command(
    epilog="""\\b
    Examples:
      penchant groups votes.csv
      penchant groups votes.csv --items items.csv --members --csv
    """
)
@source_argument
@click.option("--members", is_flag=True, help="List people instead of groups.")
@output_options()
def command(source: Source, members: bool, output: Output) -> None:
    """Show communities of taste: how many, how large, and what each likes.

    SOURCE is a saved community model, or comparisons with a user column to fit one to.
    """


def memberships(fitted: Fitted) -> list[dict[str, Any]]:
    """Everybody's most probable group, and how probable it is."""
    membership = np.asarray(fitted.model.membership_)
    best = membership.argmax(axis=1)
    return [
        {"user": user, "group": int(group) + 1, "probability": float(row[group])}
        for user, group, row in zip(fitted.users, best, membership, strict=True)
    ]


def describe(fitted: Fitted) -> list[dict[str, Any]]:
    raise NotImplementedError
