"""`python -m experiments NAME`: run an experiment and write its page."""

import argparse
import ast
import logging
import os
from pathlib import Path

from experiments.page import EXPERIMENTS, produce

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
    parser.add_argument("name", nargs="?", choices=[*EXPERIMENTS, ALL], metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="small sizes: see that it runs")
    parser.add_argument("--out", help=f"folder for pages; else {RESULTS}, quick {QUICK_RESULTS}")
    parser.add_argument("--data", help="folder of the data sets; else PENCHANT_DATA")
    given = parser.parse_args(arguments)
    if given.name is None:
        for name in EXPERIMENTS:
            print(f"{name:12} {first_line(name)}")
        return
    if given.data:
        os.environ["PENCHANT_DATA"] = given.data
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    out = given.out or (QUICK_RESULTS if given.quick else RESULTS)
    for name in EXPERIMENTS if given.name == ALL else (given.name,):
        print(produce(name, given.quick, out))


def first_line(name: str) -> str:
    """What an experiment says of itself. Its module is read, not imported: a list loads no models.

    >>> first_line("xpgp")
    'Paper 000: do relations between items help to predict preferences?'
    """
    source = Path(__file__).with_name(f"{name.replace('-', '_')}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


if __name__ == "__main__":
    main()
