"""`penchant ask`: which comparisons to make next."""

import click

from penchant.cli.options import SourceOptions, find_user, source_argument
from penchant.cli.output import Output, output_options
from penchant.workflow.rows import questions, sets_to_ask

FORMATS = {"first": "", "second": "", "probability": ".3f"}
CRITERIA = ("variance_ratio", "information_gain", "expected_best", "thompson", "random")


@click.command(
    epilog="""\b
    Examples:
      penchant ask votes.csv -k 5
      penchant ask votes.csv --criterion expected_best --csv
      penchant ask votes.csv --set-size 4
    """
)
@source_argument
@click.option(
    "-k", "n_questions", type=click.IntRange(1), default=5, show_default=True, help="How many."
)
@click.option(
    "--criterion",
    type=click.Choice(CRITERIA),
    default=CRITERIA[0],
    show_default=True,
    help="What a question should be good for.",
)
@click.option(
    "--set-size",
    type=click.IntRange(2),
    default=2,
    show_default=True,
    help="Items to choose the best of.",
)
@click.option("--user", metavar="NAME", help="What to ask this person.")
@output_options()
def command(
    source: SourceOptions,
    n_questions: int,
    criterion: str,
    set_size: int,
    user: str | None,
    output: Output,
) -> None:
    """Say which comparisons would teach the model most, best first.

    SOURCE is a saved model, or comparisons to fit first. variance_ratio and information_gain learn
    the whole ranking, expected_best and thompson find the best item. probability is the chance
    that the first would be preferred. With --set-size, each row is a set to choose the best of.
    """
    fitted = source.fitted(output, user=user)
    who = find_user(fitted.data.users, user)
    formats = FORMATS
    if set_size == 2:
        rows = questions(fitted.model, n_questions, criterion, who)
    else:
        rows = sets_to_ask(fitted.model, n_questions, set_size, criterion, who)
        formats = {f"item_{i + 1}": "" for i in range(set_size)}
    output.rows(rows, formats, model=fitted.name, criterion=criterion)
    output.suggest("add the answers to your file, then fit again")
