"""All benchmarks, one command: `make bench`. Parts of it: `make bench PARTS="gp online"`.

Contestants run on the same data in the same run, each in a process of its own; peers live in
`.venv-bench`, made here. All parts together write BENCHMARKS.md, with date, machine and versions;
some parts alone, or `--quick`, only print.
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
    "online",
    "sweep",
    "scale",
)
FILE = Path(__file__).parent.parent / "BENCHMARKS.md"


def header(missing):
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    lines = [
        "# Benchmarks",
        "",
        "Made by `make bench`; every number below comes from that run and no other.",
        "",
        f"- date: {datetime.date.today().isoformat()}",
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
    text = "\n".join(header(peers.install(arguments.old_python))) + "\n"
    print(text)
    for part in arguments.parts or PARTS:
        section = "\n".join(measure(part, arguments.quick)) + "\n"
        print(section, flush=True)
        text += "\n" + section
    if not arguments.parts and not arguments.quick:
        FILE.write_text(text)


if __name__ == "__main__":
    main()
