"""Everything that tests something, two at a time: `make check-all`.

A failure does not stop the rest. A table at the end says which checks passed and how long each
took. `make check-all PARTS="lowest torch"` runs some of them; NEWEST_PYTHON=python3.13 names the
Python of "newest".
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS = ".venv/bin/python"


def fresh(name: str, *commands: str, python: str = "python3") -> list[str]:
    """Commands in a new environment."""
    place = f".venv-{name}"
    return [f"{python} -m venv {place}", *(f"{place}/bin/{command}" for command in commands)]


CHECKS = {
    "test": ["make test"],
    "slow": ["make slow"],
    "release": [f"{OURS} tests/release.py"],  # each archive installed alone and used
    "docs": ["make docs"],
    "browser": [  # a study in a real Chromium (CHROMIUM=path) and on PostgreSQL
        f"{OURS} -m pip install --quiet -e '.[test,browser]'",
        f"{OURS} -m pytest --ignore=src tests/browser",
        f"{OURS} -m pytest --ignore=src tests/study",
        f"{OURS} benchmarks/study.py first",
    ],
    "lowest": fresh(  # the oldest versions that pyproject.toml allows
        "lowest",
        "pip install --quiet uv",
        "uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct "
        "-e '.[test]'",
        "python -m pytest",
    ),
    "newest": fresh(  # a newer Python than the oldest that is supported, and its newest packages
        "newest",
        "python -m pip install --quiet -e '.[test]'",
        "python -m pytest -n auto",
        python=os.environ.get("NEWEST_PYTHON", "python3"),
    ),
    "cluster": fresh(  # users in shards, here and on Ray
        "cluster",
        "pip install --quiet -e '.[test,cluster]'",
        "python -m pytest -m 'slow or not slow' tests/engines",
    ),
    "torch": fresh(  # the matrices by torch's CPU build, beside SciPy's
        "torch",
        "pip install --quiet torch==2.13.0 -e '.[test]'",
        "python -m pytest tests/gpu tests/gp tests/contract/test_kernels.py",
    ),
    "speed": [  # ratios of times, how time grows, every benchmark in small
        f"{OURS} -m pytest -m slow tests/*/test_speed.py",
        f"{OURS} benchmarks/scaling.py",
        "make bench QUICK=1",
    ],
}
CHAINS = (
    ("test",),
    ("slow",),
    ("release",),
    ("docs", "browser"),
    ("lowest",),
    ("newest",),
    ("cluster",),
    ("torch",),
)
"""Quick checks first. Checks of one chain run one after the other: the browser opens the site that
`docs` built, and installs into the environment that earlier tests use."""
TIMED = ("speed",)
"""Checks that compare times: at the end, each alone."""


def run(name: str, log: Path) -> tuple[bool, float]:
    """Whether the check passed, and its seconds; its output goes to the log."""
    start = time.perf_counter()
    # make would hand its PARTS on, which mean something else elsewhere
    plain = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    with log.open("w", encoding="utf-8") as file:
        to = {"stdout": file, "stderr": subprocess.STDOUT}
        passed = all(
            subprocess.run(command, shell=True, cwd=ROOT, env=plain, **to).returncode == 0
            for command in CHECKS[name]
        )
    return passed, time.perf_counter() - start


def table(results: dict[str, tuple[bool, float]]) -> str:
    """One line a check.

    >>> print(table({"docs": (True, 3.2), "slow": (False, 480.0)}))
    check    passed  minutes
    docs     yes         0.1
    slow     NO          8.0
    """
    lines = [f"{'check':<7}  passed  minutes"]
    for name, (passed, seconds) in results.items():
        lines.append(f"{name:<7}  {'yes' if passed else 'NO':<6}  {seconds / 60:7.1f}")
    return "\n".join(lines)


def main(wanted: list[str]) -> int:
    unknown = sorted(set(wanted) - set(CHECKS))
    if unknown:
        print(f"no such check: {', '.join(unknown)}; there are {', '.join(CHECKS)}")
        return 2
    folder = ROOT / "build" / "check-all"
    folder.mkdir(parents=True, exist_ok=True)
    results: dict[str, tuple[bool, float]] = {}

    def follow(chain: tuple[str, ...]) -> None:
        for name in chain:
            if wanted and name not in wanted:
                continue
            print(f"{name} …", flush=True)
            log = folder / f"{name}.log"
            results[name] = run(name, log)
            if not results[name][0]:
                print(f"{name} failed: see {log}", flush=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(follow, CHAINS))  # the list raises what a thread raised
    follow(TIMED)
    print("\n" + table({name: results[name] for name in CHECKS if name in results}))
    return 0 if all(passed for passed, _ in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
