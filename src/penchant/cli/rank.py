"""`penchant rank` and `penchant groups`: items from best to worst, and communities of taste."""

from dataclasses import replace
from functools import reduce
from math import isnan
from operator import add
from typing import Any

import click

import penchant as pc
from penchant.cli.output import Output, command_with, output_options
from penchant.cli.source import (
    SourceOptions,
    as_of,
    at_option,
    find_user,
    refuse_beside,
    source_argument,
)
from penchant.models import Ranking
from penchant.workflow import models
from penchant.workflow.models import Material, build
from penchant.workflow.segmenting import Segments, segments

RANK_FORMATS = {
    "rank": "d",
    "item": "",
    "utility": "+.2f",
    "low": "+.2f",
    "high": "+.2f",
    "prob_best": ".3f",
    "rank_low": "d",
    "rank_high": "d",
    "group": "d",
    "comparisons": ",d",
    "win_rate": ".0%",
}
RATER_FORMATS = {"user": "", "answers": "d", "reliability": ".2f", "low": ".2f", "high": ".2f"}
DIFFERENCES = ("difference", "difference_low", "difference_high")
ELO_FORMATS = dict.fromkeys(("utility", "low", "high"), ".0f") | dict.fromkeys(DIFFERENCES, "+.0f")


def _level(ctx: click.Context, parameter: click.Parameter, value: float) -> float:
    if isnan(value):
        raise click.BadParameter("nan is no probability: it must lie between 0 and 1")
    return value


@command_with(
    "penchant rank votes.csv",
    "penchant rank model.penchant --top 5 --csv",
    "penchant rank votes.csv --raters",
    "penchant rank votes.csv --scale elo",
    "penchant rank votes.csv --by user --model gp",
)
@source_argument
@click.option("--top", type=click.IntRange(1), help="Only the first so many.")
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    callback=_level,
    help="Probability that an interval covers.",
)
@click.option("--user", metavar="NAME", help="Rank for one person.")
@click.option("--raters", is_flag=True, help="Instead, how reliably each person answered.")
@click.option("--by", metavar="COLUMN", help="Rank apart by the values of a column.")
@click.option(
    "--scale",
    type=click.Choice(["utility", "elo"]),
    default="utility",
    show_default=True,
    help="Utilities, or points as Elo's with the average item at 1000.",
)
@at_option
@output_options()
def rank_command(
    source: SourceOptions,
    top: int | None,
    level: float,
    user: str | None,
    raters: bool,
    by: str | None,
    scale: str,
    at: Any,
    output: Output,
) -> None:
    """Rank the items of SOURCE: a saved model, or comparisons to fit first.

    Only differences of utilities mean anything: the overall level is not identified. prob_best is
    the chance of being the best of all, and rank_low to rank_high the interval of the rank. Items
    of one group cannot be told from the first of it. Where comparisons tell who was shown first, or
    with --covariate, the ranking is at equal sides and covariates, and what these do is written
    beside it.

    With --by, everybody is fitted together first, and then each segment by itself with the same
    hyperparameters; difference is an item's utility minus that in the first segment, each told from
    the average item there.
    """
    if by is not None:
        refuse_beside("--by", "user", "raters", "at")
        rows = _rows_by_segment(_segments(source, by, output), level, top, scale)
        shown = {"segment": "", **RANK_FORMATS, **dict.fromkeys(DIFFERENCES, "+.2f")}
        _write(output, rows, shown, model="segments", level=level, user=None, scale=scale)
        output.suggest(f"penchant report {source.spelled}")
        return
    if raters:
        refuse_beside("--raters", "user", "level", "scale", "at")
    fitted = source.fitted(output, user=user)
    if raters:
        if not hasattr(fitted.model, "raters_"):
            raise click.UsageError(
                f"--raters: {fitted.name} does not judge people: --model gp does"
            )
        table = fitted.model.raters_[:top]
        about = {"model": fitted.name, "level": table.level, "user": None}
        output.rows(table.to_dicts(), RATER_FORMATS, **about)
        output.suggest(f"penchant rank {source.spelled}")
        return
    who = find_user(fitted.data.users, user)
    ranking = fitted.model.rank(who, level=level, **as_of(fitted, at))
    effects = getattr(fitted.model, "effects_", ())
    if effects:  # the ranking is at equal sides and covariates, and this is what they do
        output.note(str(effects))
    beside = {"effects": effects.to_dicts()} if effects else {}
    rows = _rows(ranking, scale, top)
    about = {"model": fitted.name, "level": level, "user": who, "scale": scale}
    _write(output, rows, RANK_FORMATS, **about, **beside)
    output.suggest(f"penchant ask {source.spelled}")


def _rows(ranking: Ranking, scale: str, top: int | None) -> list[dict[str, Any]]:
    return (ranking.to_elo() if scale == "elo" else ranking)[:top].to_dicts()


def _write(
    output: Output, rows: list[dict[str, Any]], formats: dict[str, str], **facts: Any
) -> None:
    """Write values under the name of their scale; JSON tells the scale beside the rows."""
    scale = facts["scale"]
    if scale == "elo":
        formats = {name: ELO_FORMATS.get(name, form) for name, form in formats.items()}
    if output.form != "json":
        formats, *rows = (
            {scale if name == "utility" else name: cell for name, cell in row.items()}
            for row in (formats, *rows)
        )
    output.rows(rows, formats, **facts)


def _segments(source: SourceOptions, by: str, output: Output) -> Segments:
    """A fit for each segment; features and relations stay out of it."""
    if source.is_model:
        raise click.UsageError(f"--by needs the comparisons: {source.comparisons} is a model")
    if source.items or source.users or source.relations:
        raise click.UsageError("--by goes without --items, --users and --relation")
    with output.progress("reading"):
        parts = source.segments(by)
    for name, part in parts.items():
        output.note(f"segment {name or '(empty)'}: {part.describe().splitlines()[0]}")
    whole = reduce(add, parts.values())
    kind, why = source.chosen(Material(whole))
    output.note(f"model: {kind} ({why})")
    model = build(kind, whole, source.all_settings)
    with output.progress("fitting"):
        return segments(parts, model=model)


def _rows_by_segment(
    found: Segments, level: float, top: int | None, scale: str
) -> list[dict[str, Any]]:
    first, rows = next(iter(found.models)), []
    for name in found.models:
        ranking = found.rank(name, level)
        unit = ranking.per_unit if scale == "elo" else 1.0
        differences = found.difference(name, first, level) if name != first else []
        apart = {row.item: [unit * value for value in row[1:4]] for row in differences}
        for row in _rows(ranking, scale, top):
            own = apart.get(row["item"], [None] * 3)
            rows.append({"segment": name, **row, **dict(zip(DIFFERENCES, own, strict=True))})
    return rows


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


@command_with(
    "penchant groups votes.csv", "penchant groups votes.csv --items items.csv --members --csv"
)
@source_argument
@click.option("--members", is_flag=True, help="List people instead of communities.")
@output_options()
def groups_command(source: SourceOptions, members: bool, output: Output) -> None:
    """Show communities of taste: how many, how large, and what each likes.

    SOURCE is a saved community model, or comparisons with a user column to fit one to. How many
    communities there are is learned, too; --json has the probability of every number, of all
    non-empty communities (counts) and of those that the answers support (supported_counts).
    size is the expected number of people, and people are listed with their most probable community.

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
    facts = {
        "counts": model.community_counts_,
        "supported_counts": model.supported_counts_,
        "verdict": model.verdict_,
        "sentence": model.support_.sentence,
        "directions": models.disagreements(model),
    }
    if members:
        output.rows(models.members(model), MEMBER_FORMATS, **facts)
    elif output.form == "table" and model.verdict_ == "personal":
        output.rows(facts["directions"], DIRECTION_FORMATS)
    else:
        output.rows(models.groups(model), GROUP_FORMATS, **facts)
    output.note(model.support_.sentence)
    output.suggest("penchant report" if source.is_model else f"penchant report {source.spelled}")
