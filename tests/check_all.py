"""Every target that tests something, one after the other: `make check-all`.

A failure does not stop the rest; a table at the end says what held, what did not, and how long each
took. Names given as arguments are the only ones that run.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGETS = (
    "lint",
    "types",
    "layers",
    "pytest",
    "slow",
    "statistics",
    "properties",
    "browser",
    "torch",
    "cluster",
    "docs",
    "scaling",
    "bench-quick",
    "release-check",
    "lowest",
)
"""In the order in which a fault is cheapest to find."""


def run(target: str, folder: Path) -> tuple[bool, float]:
    """Whether the target held, and seconds; what it printed is kept in a file of its name."""
    start = time.perf_counter()
    # PARTS are targets here and something else there: make would hand them on
    plain = {name: said for name, said in os.environ.items() if name != "MAKEFLAGS"}
    with (folder / f"{target}.log").open("w", encoding="utf-8") as log:
        done = subprocess.run(
            ["make", target], cwd=ROOT, env=plain, stdout=log, stderr=subprocess.STDOUT
        )
    return done.returncode == 0, time.perf_counter() - start


def table(results: dict[str, tuple[bool, float]]) -> str:
    """One line a target.

    >>> print(table({"lint": (True, 3.2), "pytest": (False, 480.0)}))
    target  held  minutes
    lint    yes       0.1
    pytest  NO        8.0
    """
    width = max(map(len, ("target", *results)))
    lines = [f"{'target':<{width}}  held  minutes"]
    lines += [
        f"{name:<{width}}  {'yes' if held else 'NO':<4}  {seconds / 60:7.1f}"
        for name, (held, seconds) in results.items()
    ]
    return "\n".join(lines)


def main(wanted: list[str]) -> int:
    unknown = sorted(set(wanted) - set(TARGETS))
    if unknown:
        print(f"no such target: {', '.join(unknown)}; there are {', '.join(TARGETS)}")
        return 2
    folder = ROOT / "build" / "check-all"
    folder.mkdir(parents=True, exist_ok=True)
    results = {}
    for target in wanted or TARGETS:
        print(f"{target} …", flush=True)
        results[target] = run(target, folder)
        if not results[target][0]:
            print(f"{target} failed: see {folder / f'{target}.log'}", flush=True)
    print("\n" + table(results))
    return 0 if all(held for held, _ in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
