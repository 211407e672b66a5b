"""Every target that tests something, two at a time: `make check-all`.

A failure does not stop the rest; a table at the end says what held, what did not, and how long each
took. Names given as arguments are the only ones that run.
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHAINS = (
    ("test",),
    ("slow",),
    ("release-check",),
    ("docs", "browser"),
    ("lowest",),
    ("cluster",),
    ("torch",),
)
"""Faults that are cheap to find first. Targets of one chain run one after the other: a browser
looks at the site that was built, and installs what it needs beside what earlier tests use."""
TIMED = ("speed",)
"""These compare times, so that nothing else may run: at the end, each alone."""
TARGETS = (*(target for chain in CHAINS for target in chain), *TIMED)
TOGETHER = 2


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

    >>> print(table({"lint": (True, 3.2), "slow": (False, 480.0)}))
    target  held  minutes
    lint    yes       0.1
    slow    NO        8.0
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
    results: dict[str, tuple[bool, float]] = {}

    def follow(chain: tuple[str, ...]) -> None:
        for target in chain:
            if wanted and target not in wanted:
                continue
            print(f"{target} …", flush=True)
            results[target] = run(target, folder)
            if not results[target][0]:
                print(f"{target} failed: see {folder / f'{target}.log'}", flush=True)

    with ThreadPoolExecutor(TOGETHER) as pool:
        list(pool.map(follow, CHAINS))  # whatever went wrong inside is raised here
    follow(TIMED)
    print("\n" + table({target: results[target] for target in TARGETS if target in results}))
    return 0 if all(held for held, _ in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
