"""All benchmarks, one command: `make bench` (or `python benchmarks/run.py [--quick] [PART …]`).

Contestants run on the same data in the same run, each in a process of its own; peers live in
`.venv-bench`, made here. Results go to BENCHMARKS.md, with date, machine and versions.
"""

import argparse
import datetime
import importlib
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import scipy

HERE = Path(__file__).parent
PARTS = ("gp", "small_data", "regression", "sweep", "scale", "online")
PEERS = ("botorch", "choix", "vowpalwabbit", "river")
PEER_PYTHON = HERE.parent / ".venv-bench" / "bin" / "python"


def install_peers():
    """A separate environment for the peers; the ones that fail to install are shown as such."""
    if not PEER_PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", PEER_PYTHON.parents[1]], check=True)
    # the CPU build, where the registry offers one, spares gigabytes of drivers
    torch = subprocess.run(
        [PEER_PYTHON, "-m", "pip", "install", "-q", "torch==2.13.0"], capture_output=True
    )
    missing = [] if torch.returncode == 0 else ["torch"]
    for peer in PEERS:
        done = subprocess.run(
            [PEER_PYTHON, "-m", "pip", "install", "-q", peer], capture_output=True
        )
        if done.returncode:
            missing.append(peer)
    return missing


def header(missing):
    lines = [
        "# Benchmarks",
        "",
        "Made by `make bench`; every number below comes from that run and no other.",
        "",
        f"- date: {datetime.date.today().isoformat()}",
        f"- machine: {platform.machine()}, {len_cores()} cores, Python {platform.python_version()}",
        f"- numpy {np.__version__}, scipy {scipy.__version__}",
    ]
    if missing:
        lines.append(f"- could not be installed here: {', '.join(missing)}")
    return "\n".join(lines)


def len_cores():
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    arguments = parser.parse_args()
    sys.path.insert(0, str(HERE))
    sections = [header(install_peers())]
    for part in arguments.parts:
        print(f"benchmark: {part}", file=sys.stderr)
        sections.append(importlib.import_module(part).run(arguments.quick, PEER_PYTHON))
        print(sections[-1])
    left_out = [part for part in PARTS if part not in arguments.parts]
    if left_out:
        sections.append(f"Not part of this run: {', '.join(left_out)}.")
    if not arguments.quick:
        (HERE.parent / "BENCHMARKS.md").write_text("\n\n".join(sections) + "\n")


if __name__ == "__main__":
    main()
