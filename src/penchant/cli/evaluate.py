"""`penchant evaluate`: models side by side on held-out comparisons."""

from dataclasses import replace
from typing import Any

import click

from penchant.cli import models
from penchant.cli.evaluation import BASELINE, brief, cross_validate
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
    Bradley-Terry model of everybody together. Ties are learned from but not predicted. Communities
    are searched for less long than `fit` does, unless --set n_sweeps says otherwise.
    """
    study = source.study(output)
    settings = _settings(_kinds(study, kinds, source.model), source.settings)
    for kind, own in settings.items():
        output.tell_spared(kind, brief(kind, study.data), own)
    with output.progress("evaluating") as advance:
        rows = cross_validate(study, settings, folds, source.settings["random_state"], advance)
    output.rows(rows, FORMATS, folds=folds, comparisons=study.data.n_comparisons)
    best = min(rows, key=lambda row: (row["log_loss"] is None, row["log_loss"]))["model"]
    if best == BASELINE:
        output.suggest("the baseline is enough here; more comparisons or features may change that")
    else:
        chosen = replace(source, model=best, settings=settings[best])
        output.suggest(f"penchant fit {chosen.spelled}")


def _kinds(study: Study, asked: tuple[str, ...], model: str) -> list[str]:
    """Those asked for, else a model of everybody and the one that fits the data."""
    wanted = asked or ("gp", models.choose(study, model).kind)
    return [models.choose(study, kind).kind for kind in dict.fromkeys(wanted)]


def _settings(kinds: list[str], given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each setting goes to the models that have it."""
    has = {kind: models.parameters(kind) for kind in kinds}
    for name in given:
        if not any(name in names for names in has.values()):
            raise click.UsageError(f"--set {name}: none of {', '.join(kinds)} has such a setting")
    own = {
        kind: {name: value for name, value in given.items() if name in has[kind]} for kind in kinds
    }
    return {BASELINE: {}, **own}
