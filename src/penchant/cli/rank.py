"""`penchant rank`: items from best to worst."""

from math import isnan
from typing import Any

import click

from penchant.cli.material import read_segments
from penchant.cli.options import SourceOptions, find_user, source_argument
from penchant.cli.output import Output, output_options
from penchant.workflow.models import build
from penchant.workflow.segments import Segments, segments

FORMATS = {
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
SEGMENT_FORMATS = {"segment": "", **FORMATS}
DIFFERENCE_FORMATS = {"difference": "+.2f", "difference_low": "+.2f", "difference_high": "+.2f"}
ELO_FORMATS = {"utility": ".0f", "low": ".0f", "high": ".0f"}


def _level(ctx: click.Context, parameter: click.Parameter, value: float) -> float:
    if isnan(value):
        raise click.BadParameter("nan is no probability: it must lie between 0 and 1")
    return value


@click.command(
    epilog="""\b
    Examples:
      penchant rank votes.csv
      penchant rank model.penchant --top 5 --csv
      penchant rank votes.csv --raters
      penchant rank votes.csv --scale elo
      penchant rank votes.csv --by user --model gp
    """
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
@output_options()
def command(
    source: SourceOptions,
    top: int | None,
    level: float,
    user: str | None,
    raters: bool,
    by: str | None,
    scale: str,
    output: Output,
) -> None:
    """Rank the items of SOURCE: a saved model, or comparisons to fit first.

    Differences of utilities are what matters; where the average item lies is nobody's question.
    prob_best is the chance of being the best of all, and rank_low to rank_high the interval of the
    rank. Items of one group cannot be told from the first of it. Where comparisons tell who was
    shown first, or with --covariate, the ranking is at equal sides and covariates, and what these
    do is written beside it.

    With --by, everybody is fitted together first, and then each segment by itself with the same
    hyperparameters; difference is an item's utility minus that in the first segment, each told from
    the average item there.
    """
    formats = FORMATS | (ELO_FORMATS if scale == "elo" else {})
    if by is not None:
        if user is not None or scale == "elo":
            raise click.UsageError("--by goes with neither --user nor --scale elo")
        found = _segments(source, by, output)
        rows = _rows_by_segment(found, level, top)
        shown = SEGMENT_FORMATS | DIFFERENCE_FORMATS
        output.rows(rows, shown, model="segments", level=level, user=None)
        output.suggest(f"penchant report {source.spelled}")
        return
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
    ranking = fitted.model.rank(who, level=level)
    ranking = ranking.to_elo() if scale == "elo" else ranking
    rows = ranking[:top].to_dicts()
    effects = getattr(fitted.model, "effects_", ())
    if effects:  # the ranking is at equal sides and covariates, and this is what they do
        output.note(str(effects))
    told = {"effects": effects.to_dicts()} if effects else {}
    output.rows(rows, formats, model=fitted.name, level=level, user=who, **told)
    output.suggest(f"penchant ask {source.spelled}")


def _segments(source: SourceOptions, by: str, output: Output) -> Segments:
    """A fit for each segment; features and relations stay out of it."""
    if source.is_model:
        raise click.UsageError(f"--by needs the comparisons: {source.comparisons} is a model")
    if source.items or source.users or source.relations:
        raise click.UsageError("--by goes without --items, --users and --relation")
    with output.progress("reading"):
        parts = read_segments(source, by)
    for name, part in parts.items():
        output.note(f"segment {name or '(empty)'}: {part.describe().splitlines()[0]}")
    model = None
    if source.model != "auto" or source.settings:
        kind = "gp" if source.model == "auto" else source.model
        whole = next(iter(parts.values()))
        if any(part.tie.any() for part in parts.values()):
            whole = next(part for part in parts.values() if part.tie.any())
        model = build(kind, whole, source.all_settings)
    with output.progress("fitting"):
        return segments(parts, model=model)


def _rows_by_segment(found: Segments, level: float, top: int | None) -> list[dict[str, Any]]:
    first, *others = found.models
    unknown = dict.fromkeys(DIFFERENCE_FORMATS)
    rows = [
        {"segment": first, **row, **unknown} for row in found.rank(first, level)[:top].to_dicts()
    ]
    for name in others:
        apart = {row.item: row[1:4] for row in found.difference(name, first, level)}
        rows += [
            {"segment": name, **row}
            | dict(zip(DIFFERENCE_FORMATS, apart[row["item"]], strict=True))
            for row in found.rank(name, level)[:top].to_dicts()
        ]
    return rows
