"""`penchant report`: everything in one HTML file."""

from pathlib import Path

import click

from penchant.cli.model_file import FittedModel
from penchant.cli.options import SourceOptions, source_argument, target_option
from penchant.cli.output import Output, output_options
from penchant.io import whole_file
from penchant.workflow.models import Material
from penchant.workflow.reporting import TITLE, build_page, check


@click.command(
    epilog="""\b
    Example:
      penchant report votes.csv -o report.html
    """
)
@source_argument
@target_option("report.html", "page")
@click.option("--title", default=TITLE, show_default=True, help="Of the page.")
@output_options(csv=False)
def command(source: SourceOptions, target: str, title: str, output: Output) -> None:
    """Write a report on the comparisons in SOURCE: one HTML file, nothing else needed.

    It shows the ranking with intervals, who beats whom, whether predictions can be trusted (by
    holding out a fifth), communities of taste, the state of the data, and what to ask next.
    """
    material = source.material(output)
    fitted = source.fit(material, output)
    write_report(material, fitted, Path(target), title, output)
    output.record({"file": target, "comparisons": material.data.n_comparisons})
    output.suggest(f"open {target} in a browser")


def write_report(
    material: Material, fitted: FittedModel, target: Path, title: str, output: Output
) -> None:
    """Check the model on held-out comparisons, and write the page."""
    with output.progress("checking on held-out comparisons"):
        findings = check(material, fitted.model, fitted.why)
    with whole_file(target) as file:
        file.write(build_page(findings, title).encode())
    output.note(f"wrote {target}")
