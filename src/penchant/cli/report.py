"""`penchant report`: everything in one HTML file."""

from dataclasses import replace
from pathlib import Path

import click

from penchant.cli.evaluation import BASELINE, HeldOut, hold_out
from penchant.cli.models import Fitted
from penchant.cli.options import Source, source_argument, target_option
from penchant.cli.output import Output, output_options
from penchant.cli.report_page import Findings, build_page
from penchant.cli.study import Study

FEWEST = 50
"""With fewer comparisons a held-out fifth says nothing."""


@click.command(
    epilog="""\b
    Example:
      penchant report votes.csv -o report.html
    """
)
@source_argument
@target_option("report.html", "page")
@click.option("--title", default="What is preferred", show_default=True, help="Of the page.")
@output_options(csv=False)
def command(source: Source, target: str, title: str, output: Output) -> None:
    """Write a report on the comparisons in SOURCE: one HTML file, nothing else needed.

    It shows the ranking with intervals, who beats whom, whether predictions can be trusted (by
    holding out a fifth), communities of taste, the state of the data, and what to ask next.
    """
    study = source.study(output)
    fitted = source.fit(study, output)
    write_report(study, fitted, Path(target), title, output)
    output.record({"file": target, "comparisons": study.data.n_comparisons})
    output.suggest(f"open {target} in a browser")


def write_report(study: Study, fitted: Fitted, target: Path, title: str, output: Output) -> None:
    """Check the model on held-out comparisons, and write the page."""
    with output.progress("checking on held-out comparisons"):
        held_out = _held_out(study, fitted)
    page = build_page(Findings(title, study.data, fitted, held_out))
    target.write_text(page, encoding="utf-8")
    output.note(f"wrote {target}")


def _held_out(study: Study, fitted: Fitted) -> dict[str, HeldOut]:
    """What the model and the baseline, fitted to four fifths, say about the last."""
    if study.data.n_comparisons < FEWEST or study.data.tie.all():
        return {}
    settings = dict(fitted.settings)
    if "progress" in settings:  # one bar at a time
        settings["progress"] = False
    train, test = study.data.split(0.2, random_state=0)
    return {
        name: hold_out(name, replace(study, data=train), test, settings)
        for name in (fitted.kind, BASELINE)
    }
