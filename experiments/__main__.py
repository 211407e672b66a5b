"""`python -m experiments NAME`: run an experiment and write its page."""

import argparse
import ast
import logging
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from experiments.page import EXPERIMENTS, PAPERS, produce
from penchant.datasets import data_folder
from penchant.errors import DataError

RESULTS, QUICK_RESULTS, ALL = "results", "results/quick", "all"


def main(arguments: list[str] | None = None) -> None:
    """Run one experiment or `all`; without a name, list what there is."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Repeat an experiment. Its Markdown page is printed and written, with figures "
        "beside it: our numbers, the paper's, and whether its claims hold. The data sets are "
        "public but not part of the repository; a quick run simulates what is missing, or leaves "
        "it out and says so.",
    )
    known = [*EXPERIMENTS, *PAPERS, ALL]
    parser.add_argument(
        "name", nargs="?", choices=known, metavar="NAME", help="a name, a paper's number, or all"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: see that it runs")
    parser.add_argument("--out", help=f"folder for pages; else {RESULTS}, quick {QUICK_RESULTS}")
    parser.add_argument("--data", help="folder of the data sets; else PENCHANT_DATA")
    given = parser.parse_args(arguments)
    if given.name is None:
        number = {name: paper for paper, names in PAPERS.items() for name in names}
        for name in EXPERIMENTS:
            print(f"{number.get(name, ''):4} {name:12} {first_line(name)}")
        return
    if given.data:
        os.environ["PENCHANT_DATA"] = given.data
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    out = given.out or (QUICK_RESULTS if given.quick else RESULTS)
    names = EXPERIMENTS if given.name == ALL else PAPERS.get(given.name, (given.name,))
    if not given.quick:
        check_data(names)
    for name in names:
        print(produce(name, given.quick, out))


def check_data(names: Sequence[str]) -> None:
    """Say before anything runs which data sets are missing."""
    try:
        folder = data_folder()
    except DataError as error:
        raise SystemExit(str(error)) from None
    for name in names:
        module = import_module(f"experiments.{name.replace('-', '_')}")
        missing = [each for each in module.DATA if not (folder / each).is_dir()]
        if missing:
            raise SystemExit(
                f"{name} needs {', '.join(missing)}, and {folder} has no such folder: see "
                "docs/reproductions.md for where to get it, or run it with --quick on simulated "
                "data"
            )


def first_line(name: str) -> str:
    """What an experiment says of itself. Its module is read, not imported: a list loads no models.

    >>> first_line("xpgp")
    'Paper 000: do relations between items help to predict preferences?'
    """
    source = Path(__file__).with_name(f"{name.replace('-', '_')}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


if __name__ == "__main__":
    main()
