"""`penchant groups`: communities of taste."""

from dataclasses import replace

import click

import penchant as pc
from penchant.cli.options import SourceOptions, source_argument
from penchant.cli.output import Output, output_options
from penchant.workflow import rows

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
def command(source: SourceOptions, members: bool, output: Output) -> None:
    """Show communities of taste: how many, how large, and what each likes.

    SOURCE is a saved community model, or comparisons with a user column to fit one to. How many
    groups there are is learned, too; --json has the probability of every number. size is the
    expected number of people, and people are listed with their most probable group.
    """
    if not source.is_model and source.model == "auto":
        source = replace(source, model="community")
    fitted = source.fitted(output)
    model = fitted.model
    if not hasattr(model, "membership_"):
        raise pc.DataError(
            f"this is a {fitted.name} model, which knows no groups: fit one with --model community"
        )
    if members:
        listed, formats = rows.members(model), MEMBER_FORMATS
    else:
        listed, formats = rows.groups(model), GROUP_FORMATS
    output.rows(listed, formats, counts=model.community_counts_)
    if not model.has_communities_:
        output.note("no evidence of communities: one taste for everybody explains the answers best")
    output.suggest(
        f"penchant report {source.spelled}" if not source.is_model else "penchant report"
    )
