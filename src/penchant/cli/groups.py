"""`penchant groups`: communities of taste."""

from dataclasses import replace
from typing import Any

import click
import numpy as np

import penchant as pc
from penchant.cli.models import Fitted
from penchant.cli.options import Source, source_argument
from penchant.cli.output import Output, output_options

SHOWN = 3
GROUP_FORMATS = {
    "group": "d",
    "size": ".0f",
    "share": ".0%",
    "likes": "",
    "dislikes": "",
    "more_than_others": "",
}
MEMBER_FORMATS = {"user": "", "group": "d", "probability": ".2f"}


@click.command(
    epilog="""\b
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

    SOURCE is a saved community model, or comparisons with a user column to fit one to. How many
    groups there are is learned, too; --json has the probability of every number. size is the
    expected number of people, and people are listed with their most probable group.
    """
    if not source.is_model and source.model == "auto":
        source = replace(source, model="community")
    fitted = source.fitted(output)
    if fitted.kind != "community":
        raise pc.DataError(
            f"this is a {fitted.kind} model, which knows no groups: fit one with --model community"
        )
    if members:
        rows, formats = memberships(fitted), MEMBER_FORMATS
    else:
        rows, formats = describe(fitted), GROUP_FORMATS
    output.rows(rows, formats, counts=fitted.model.community_counts_)
    if not fitted.model.has_communities_:
        output.note("no evidence of communities: one taste for everybody explains the answers best")
    output.suggest(
        f"penchant report {source.spelled}" if not source.is_model else "penchant report"
    )


def memberships(fitted: Fitted) -> list[dict[str, Any]]:
    """Everybody's most probable group, and how probable it is."""
    membership = np.asarray(fitted.model.membership_)
    best = membership.argmax(axis=1)
    return [
        {"user": user, "group": int(group), "probability": float(row[group])}
        for user, group, row in zip(fitted.users, best, membership, strict=True)
    ]


def describe(fitted: Fitted) -> list[dict[str, Any]]:
    """What is particular to each group, the largest first."""
    return [
        {
            "group": community.number,
            "size": community.size,
            "share": community.share,
            "likes": [row.item for row in community.ranking[:SHOWN]],
            "dislikes": [row.item for row in community.ranking[::-1][:SHOWN]],
            "more_than_others": list(community.representative[:SHOWN]),
            "drawn_to": [_told(trait) for trait in community.attributes[:SHOWN]],
            "members": [_told(trait) for trait in community.user_features[:SHOWN]],
        }
        for community in fitted.model.communities_
    ]


def _told(trait: Any) -> str:
    return f"{'more' if trait.strength > 0 else 'less'} {trait.name}"
