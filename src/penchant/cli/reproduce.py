"""`penchant reproduce`: the experiments of the papers."""

import ast
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

import click

from penchant.cli.output import Output

PACKAGE = "penchant.reproduce"


@click.command(
    epilog="""\b
    Example:
      penchant reproduce
    """
)
@click.argument("name", required=False)
@click.option("--quick", is_flag=True, help="Small sizes: see that it runs, not the result.")
@click.option("--out", metavar="FOLDER", help="Where figures go.")
@click.option("--data", metavar="FOLDER", help="Where the data sets are; else PENCHANT_DATA.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but results and warnings.")
def command(name: str | None, quick: bool, out: str | None, data: str | None, quiet: bool) -> None:
    """Repeat the experiment NAME of a paper; without a name, list what there is.

    Results are written as Markdown. The data sets are public but not part of the package.
    """
    output = Output("reproduce", quiet=quiet)
    experiments = find_experiments()
    if name is None:
        rows = [{"name": known, "what": what} for known, what in experiments.items()]
        output.rows(rows, {"name": "", "what": ""})
        output.suggest(f"penchant reproduce {next(iter(experiments), 'NAME')} --quick")
        return
    if name not in experiments:
        known = ", ".join(experiments)
        raise click.UsageError(f"there is no experiment {name!r}: the names are {known}")
    click.echo(import_module(f"{PACKAGE}.{name}").run(quick=quick, out=out, data=data))
    if quick:
        output.suggest(f"penchant reproduce {name}   (in full)")


def find_experiments() -> dict[str, str]:
    """Every module with a `run`, and the first line of what it says about itself.

    The modules are read, not imported: a list must not load all models.
    """
    package = find_spec(PACKAGE)
    places = package.submodule_search_locations if package else None
    found = {}
    for module in iter_modules(places):
        spec = find_spec(f"{PACKAGE}.{module.name}")
        source = spec.loader.get_source(spec.name) if spec and spec.loader else None  # type: ignore[attr-defined]
        tree = ast.parse(source or "")
        if any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body):
            found[module.name] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found
