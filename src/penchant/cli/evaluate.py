"""`penchant evaluate` and `penchant report`: can a model be trusted? A table, and a page."""

from dataclasses import replace
from pathlib import Path

import click

from penchant.cli.output import Output, command_with, output_options, target_option
from penchant.cli.source import SourceOptions, refuse_beside, source_argument
from penchant.workflow.evaluation import BASELINE, cross_validate
from penchant.workflow.models import KINDS, build, settings_of
from penchant.workflow.reporting import TITLE, write_report

SCORES = ("accuracy", "accuracy_se", "log_loss", "log_loss_se", "calibration_error")
EVALUATE_FORMATS = {"model": "", **dict.fromkeys(SCORES, ".3f"), "seconds": ".1f"}


@command_with(
    "penchant evaluate votes.csv --folds 3",
    "penchant evaluate votes.csv --items items.csv --with rank-rls --with gp",
)
@source_argument
@click.option(
    "--with",
    "names",
    multiple=True,
    type=click.Choice(list(KINDS)),
    help="Models to compare; by default gp and the one that auto chooses. Repeatable.",
)
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True, help="Parts.")
@output_options()
def evaluate_command(
    source: SourceOptions, names: tuple[str, ...], folds: int, output: Output
) -> None:
    """Cross-validate models on the comparisons in SOURCE, beside a baseline.

    Each part is predicted by models that learned from the others. accuracy is the share of
    comparisons foreseen, log_loss punishes false confidence, calibration_error is the distance
    between stated and observed frequencies; se is the standard error over parts. The baseline is a
    Bradley-Terry model of everybody together. Ties are learned from but not predicted.
    """
    if names:
        refuse_beside("--with", "model")
    material = source.material(output)
    data = material.data
    wanted = dict.fromkeys(names or ("gp", source.chosen(material)[0]))
    known = {name: settings_of(source.chosen(material, name)[0]) for name in wanted}
    given = source.all_settings
    for key in given:
        if not any(key in its_own for its_own in known.values()):
            listed = ", ".join(known)
            raise click.UsageError(f"--set {key}: none of {listed} has such a setting")
    settings = {
        name: {key: value for key, value in given.items() if key in its_own}
        for name, its_own in known.items()
    }
    models = {name: build(name, data, own) for name, own in settings.items()}
    with output.progress("evaluating") as advance:
        found = cross_validate(models, material, folds, source.seed or 0, advance)
    output.rows(found.to_dicts(), EVALUATE_FORMATS, folds=folds, comparisons=found.n_comparisons)
    best = found.best.model
    if best == BASELINE:
        output.suggest("the baseline is enough here; more comparisons or features may change that")
    else:
        own = {key: value for key, value in settings[best].items() if key in source.settings}
        chosen = replace(source, model=best, settings=own)
        output.suggest(f"penchant fit {chosen.spelled}")


@command_with("penchant report votes.csv -o report.html")
@source_argument
@target_option("report.html", "page")
@click.option("--title", default=TITLE, show_default=True, help="Of the page.")
@output_options(csv=False)
def report_command(source: SourceOptions, target: str, title: str, output: Output) -> None:
    """Write a report on the comparisons in SOURCE: one HTML file, nothing else needed.

    It shows the ranking with intervals, who beats whom, whether predictions can be trusted (by
    holding out a fifth), communities of taste, the state of the data, and what to ask next.
    """
    material = source.material(output)
    fitted = source.fit(material, output)
    with output.progress("checking on held-out comparisons"):
        write_report(material, fitted.model, fitted.why, Path(target), title)
    output.note(f"wrote {target}")
    output.record({"file": target, "comparisons": material.data.n_comparisons})
    output.suggest(f"open {target} in a browser")
