"""`penchant evaluate`: models side by side on held-out comparisons."""

from dataclasses import replace

import click

from penchant.cli import models
from penchant.cli.evaluation import BASELINE, cross_validate
from penchant.cli.models import MODELS
from penchant.cli.options import Source, source_argument
from penchant.cli.output import Output, output_options
from penchant.cli.study import Study

FORMATS = {
    "model": "",
    "accuracy": ".3f",
    "accuracy_se": ".3f",
    "log_loss": ".3f",
    "log_loss_se": ".3f",
    "calibration_error": ".3f",
    "seconds": ".1f",
}


@click.command(
    epilog="""\b
    Examples:
      penchant evaluate votes.csv --folds 3
      penchant evaluate votes.csv --items items.csv --with rank-rls --with gp
    """
)
@source_argument
@click.option(
    "--with",
    "kinds",
    multiple=True,
    type=click.Choice(list(MODELS)),
    help="Models to compare; by default gp and the one that auto chooses. Repeatable.",
)
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True, help="Parts.")
@output_options()
def command(source: Source, kinds: tuple[str, ...], folds: int, output: Output) -> None:
    """Cross-validate models on the comparisons in SOURCE, beside a baseline.

    Each part is predicted by models that learned from the others. accuracy is the share of
    comparisons foreseen, log_loss punishes false confidence, calibration_error is the distance
    between stated and observed frequencies; se is the standard error over parts. The baseline is a
    Bradley-Terry model of everybody together. Ties are learned from but not predicted.
    """
    study = source.study(output)
    chosen = _kinds(study, kinds, source.model)
    with output.progress("evaluating") as advance:
        rows = cross_validate(study, [BASELINE, *chosen], folds, source.seed, advance)
    output.rows(rows, FORMATS, folds=folds, comparisons=study.data.n_comparisons)
    best = min(rows, key=lambda row: (row["log_loss"] is None, row["log_loss"]))["model"]
    if best == BASELINE:
        output.suggest("the baseline is enough here; more comparisons or features may change that")
    else:
        output.suggest(f"penchant fit {replace(source, model=best).spelled}")


def _kinds(study: Study, asked: tuple[str, ...], model: str) -> list[str]:
    """Those asked for, else a model of everybody and the one that fits the data."""
    wanted = asked or ("gp", models.choose(study, model)[0])
    return [models.choose(study, kind)[0] for kind in dict.fromkeys(wanted)]
