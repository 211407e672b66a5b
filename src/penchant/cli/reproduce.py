"""`penchant reproduce`: the experiments of the papers."""

import ast
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click

from penchant.cli.options import refuse_beside
from penchant.cli.output import Output

PACKAGE = "penchant.reproduce"
RESULTS, QUICK_RESULTS, ALL = "results", "results/quick", "all"


@click.command(
    epilog="""\b
    Examples:
      penchant reproduce
      penchant reproduce xpgp --quick
      penchant reproduce all
    """
)
@click.argument("name", required=False)
@click.option("--quick", is_flag=True, help="Small sizes: see that it runs, not the result.")
@click.option(
    "--out",
    metavar="FOLDER",
    help=f"Where pages and figures go; else {RESULTS}, or {QUICK_RESULTS} for quick runs.",
)
@click.option("--data", metavar="FOLDER", help="Where the data sets are; else PENCHANT_DATA.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but results and warnings.")
def command(name: str | None, quick: bool, out: str | None, data: str | None, quiet: bool) -> None:
    """Repeat the experiment NAME of a paper, or `all`; without a name, list what there is.

    Every experiment gives a Markdown page, printed and written, with figures beside it: our
    numbers, the paper's, and whether its claims hold. The data sets are public but not part of the
    package; a quick run simulates what is missing, or leaves it out and says so.
    """
    output = Output("reproduce", quiet=quiet)
    experiments = find_experiments()
    if name is None:
        refuse_beside("a list of experiments", "quick", "out", "data")
        rows = [{"name": known, "what": what} for known, what in experiments.items()]
        output.rows(rows, {"name": "", "what": ""})
        output.suggest("penchant reproduce all --quick")
        return
    if name not in experiments and name != ALL:
        near = get_close_matches(name.replace("_", "-"), [*experiments, ALL], n=1)
        known = f"did you mean {near[0]}?" if near else f"the names are {', '.join(experiments)}"
        raise click.UsageError(f"there is no experiment {name!r}: {known}")
    folder = Path(out or (QUICK_RESULTS if quick else RESULTS))
    produce = import_module(f"{PACKAGE}.results").produce
    for experiment in experiments if name == ALL else [name]:
        with output.progress(experiment):
            page = produce(experiment, quick=quick, out=folder, data=data)
        click.echo(page)
    output.note(f"written: {folder}")
    output.suggest(
        f"penchant reproduce {name}   (in full)" if quick else f"open {folder}/README.md"
    )


def find_experiments() -> dict[str, str]:
    """Every experiment in the order of the papers, and the first line of what it says of itself.

    The modules are read, not imported: a list must not load all models.
    """
    names = import_module(f"{PACKAGE}.results").EXPERIMENTS
    return {name: _first_line(name.replace("-", "_")) for name in names}


def _first_line(module: str) -> str:
    spec = find_spec(f"{PACKAGE}.{module}")
    source = spec.loader.get_source(spec.name) if spec and spec.loader else None  # type: ignore[attr-defined]
    return (ast.get_docstring(ast.parse(source or "")) or "").partition("\n")[0]
