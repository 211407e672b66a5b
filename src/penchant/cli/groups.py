"""`penchant groups`: communities of taste."""

from dataclasses import replace
from typing import Any

import click

import penchant as pc
from penchant.cli.options import SourceOptions, source_argument
from penchant.cli.output import Output, output_options
from penchant.workflow import rows

GROUP_FORMATS = {
    "community": "d",
    "size": ".0f",
    "share": ".0%",
    "likes": "",
    "dislikes": "",
    "more_than_others": "",
}
DIRECTION_FORMATS = {"direction": "d", "share": ".0%", "toward": "", "away": ""}
MEMBER_FORMATS = {"user": "", "community": "d", "probability": ".2f"}


@click.command(
    epilog="""\b
    Examples:
      penchant groups votes.csv
      penchant groups votes.csv --items items.csv --members --csv
    """
)
@source_argument
@click.option("--members", is_flag=True, help="List people instead of communities.")
@output_options()
def command(source: SourceOptions, members: bool, output: Output) -> None:
    """Show communities of taste: how many, how large, and what each likes.

    SOURCE is a saved community model, or comparisons with a user column to fit one to. How many
    communities there are is learned, too; --json has the probability of every number. size is the
    expected number of people, and people are listed with their most probable community.

    Whether the communities are real is said in one sentence; that takes a few times as long as
    finding them. Where there are none, the main directions in which people differ are shown instead
    (--json and --csv have the communities all the same).
    """
    if not source.is_model and source.model == "auto":
        source = replace(source, model="community")
    fitted = source.fitted(output)
    model = fitted.model
    if not hasattr(model, "membership_"):
        raise pc.DataError(
            f"this is a {fitted.name} model, which knows no communities: fit one with "
            "--model community"
        )
    if members:
        output.rows(rows.members(model), MEMBER_FORMATS, **_facts(model))
    elif output.form == "table" and model.verdict_ == "personal":
        output.rows(rows.disagreements(model), DIRECTION_FORMATS)
    else:
        output.rows(rows.groups(model), GROUP_FORMATS, **_facts(model))
    output.note(model.support_.sentence)
    output.suggest(
        f"penchant report {source.spelled}" if not source.is_model else "penchant report"
    )


def _facts(model: Any) -> dict[str, Any]:
    """What holds for all rows."""
    return {
        "counts": model.community_counts_,
        "verdict": model.verdict_,
        "sentence": model.support_.sentence,
        "directions": rows.disagreements(model),
    }
