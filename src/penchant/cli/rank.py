"""`penchant rank`: items from best to worst."""

import click

from penchant.cli.options import SourceOptions, find_user, source_argument
from penchant.cli.output import Output, output_options

FORMATS = {
    "rank": "d",
    "item": "",
    "utility": "+.2f",
    "low": "+.2f",
    "high": "+.2f",
    "prob_best": ".3f",
    "rank_low": "d",
    "rank_high": "d",
}
RATER_FORMATS = {"user": "", "answers": "d", "reliability": ".2f", "low": ".2f", "high": ".2f"}


@click.command(
    epilog="""\b
    Examples:
      penchant rank votes.csv
      penchant rank model.penchant --top 5 --csv
      penchant rank votes.csv --raters
    """
)
@source_argument
@click.option("--top", type=click.IntRange(1), help="Only the first so many.")
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Probability that an interval covers.",
)
@click.option("--user", metavar="NAME", help="Rank for one person.")
@click.option("--raters", is_flag=True, help="Instead, how reliably each person answered.")
@output_options()
def command(
    source: SourceOptions,
    top: int | None,
    level: float,
    user: str | None,
    raters: bool,
    output: Output,
) -> None:
    """Rank the items of SOURCE: a saved model, or comparisons to fit first.

    Utilities are on the scale of the noise: a difference of 1 is a choice of 84 to 16. prob_best is
    the chance of being the best of all, and rank_low to rank_high the interval of the rank. Where
    comparisons tell who was shown first, or with --covariate, the ranking is at equal sides and
    covariates, and what these do is written beside it.
    """
    fitted = source.fitted(output, user=user)
    if raters:
        if not hasattr(type(fitted.model), "raters_"):
            raise click.UsageError(
                f"--raters: {fitted.name} does not judge people: --model gp does"
            )
        table = fitted.model.raters_[:top]
        output.rows(table.to_dicts(), RATER_FORMATS, model=fitted.name, level=table.level)
        return
    who = find_user(fitted.data.users, user)
    rows = fitted.model.rank(who, level=level)[:top].to_dicts()
    effects = getattr(fitted.model, "effects_", ())
    if effects:  # the ranking is at equal sides and covariates, and this is what they do
        output.note(str(effects))
    told = {"effects": effects.to_dicts()} if effects else {}
    output.rows(rows, FORMATS, model=fitted.name, level=level, user=who, **told)
    output.suggest(f"penchant ask {source.spelled}")
