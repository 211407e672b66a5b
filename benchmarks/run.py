"""All benchmarks, one command: `make bench`. Parts of it: `make bench PARTS="gp online"`.

Contestants run on the same data in the same run, each in a process of its own; peers live in
`.venv-bench`, made here. BENCHMARKS.md gets the sections of the parts that were run, each dated,
under a header with machine and versions, and README.md its table from them; `--quick` only prints.
"""

import argparse
import datetime
import importlib
import os
import platform
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import peers
import readme
import scipy

import penchant

PARTS = (
    "gp",
    "regression",
    "small_data",
    "newcomer",
    "communities",
    "people",
    "ranking",
    "drift",
    "reading",
    "online",
    "sweep",
    "gap",
    "paths",
    "scale",
)
FILE = Path(__file__).parent.parent / "BENCHMARKS.md"
MARK = "*Part: "
"""Begins the line above every section, with the part's name and date."""


def header(missing):
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    lines = [
        "# Benchmarks",
        "",
        "Made by `make bench`; all numbers of a section come from one run, of the date beside it.",
        "",
        f"- machine: {processor()}, {cores} cores, Python {platform.python_version()}",
        f"- penchant {penchant.__version__}, numpy {np.__version__}, scipy {scipy.__version__}",
        f"- peers: {peers.versions()}",
    ]
    lines += [f"- not installed: {peer} ({reason})" for peer, reason in missing.items()]
    return lines


def processor():
    """The processor's name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.machine()


def measure(part, quick):
    """A part's section; one that fails says so, and the others go on."""
    start = time.perf_counter()
    print(f"benchmark: {part}", file=sys.stderr)
    try:
        section = importlib.import_module(part).run(quick)
    except Exception as error:
        traceback.print_exc()
        section = [f"## {part}", "", f"Not run: {type(error).__name__}: {error}"]
    print(f"benchmark: {part}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return section


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument(
        "--old-python", default="python3.6", metavar="COMMAND", help="a Python 3.6, for RLScore"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    text = "\n".join(header(peers.install(arguments.old_python)))
    print(text)
    sections = known_sections()
    for part in arguments.parts or PARTS:
        section = "\n".join(measure(part, arguments.quick))
        print("\n" + section, flush=True)
        sections[part] = f"{MARK}{part}, {datetime.date.today().isoformat()}*\n\n{section}"
        if not arguments.quick:
            write(text, sections)


def write(head, sections):
    """BENCHMARKS.md, and README.md's table from it. Sections made elsewhere, as on a card, stay."""
    order = [*PARTS, *(name for name in sections if name not in PARTS)]
    known = [sections[name].strip() for name in order if name in sections]
    FILE.write_text("\n\n".join([head, *known]) + "\n")
    readme.write(FILE)


def known_sections():
    """What earlier runs wrote, by part."""
    _, *sections = FILE.read_text().split(MARK) if FILE.exists() else [""]
    return {section.partition(",")[0]: MARK + section for section in sections}


if __name__ == "__main__":
    main()
