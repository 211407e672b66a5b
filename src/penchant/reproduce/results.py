"""From an experiment to files: its page with a header, and the table of all verdicts."""

import os
import platform
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from os import PathLike
from pathlib import Path

from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from penchant.reproduce.page import CLAIM_COLUMNS, Clock, markdown

EXPERIMENTS = (
    "xpgp",
    "active",
    "kpcrank",
    "perceptron",
    "sparse-ep",
    "communities",
    "defaults",
    "answers",
)
"""In the order of the papers; `-` stands for the `_` of the module."""
INDEX = "README.md"


def produce(
    name: str,
    quick: bool = False,
    out: str | PathLike[str] = "results",
    data: str | PathLike[str] | None = None,
) -> str:
    """Run an experiment, write `out`/name.md with its figures, and bring the index up to date."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    clock = Clock()
    experiment = import_module(f"penchant.reproduce.{name.replace('-', '_')}")
    text = experiment.run(quick=quick, out=folder, data=data)
    title, _, rest = text.partition("\n")
    page = "\n\n".join([title, _header(name, quick, clock), rest.strip()]) + "\n"
    (folder / f"{name}.md").write_text(page, encoding="utf-8")
    (folder / INDEX).write_text(index(folder), encoding="utf-8")
    return page


def _header(name: str, quick: bool, clock: Clock) -> str:
    threads = max((info["num_threads"] for info in threadpool_info()), default=1)
    facts = [
        f"`penchant reproduce {name}{' --quick' if quick else ''}`",
        f"penchant {version('penchant')}",
        datetime.now(UTC).strftime("%Y-%m-%d"),
        str(clock),
        f"{os.cpu_count()} cores, {threads} thread{'s' if threads > 1 else ''} used",
        f"Python {platform.python_version()}, numpy {version('numpy')}, scipy {version('scipy')}",
    ]
    small = "\n\n**A quick run: sizes are too small for the verdicts to mean much.**"
    return " · ".join(facts) + (small if quick else "")


def index(folder: Path) -> str:
    """The claims of all pages in a folder, each with a link to its page."""
    rows = [
        [f"[{name}]({name}.md)", *claim]
        for name in EXPERIMENTS
        if (folder / f"{name}.md").is_file()
        for claim in claims_of((folder / f"{name}.md").read_text(encoding="utf-8"))
    ]
    about = (
        "Collected from the pages beside it by `penchant reproduce`; each page says what was run, "
        "on which data, and how long it took."
    )
    table = markdown(["experiment", *CLAIM_COLUMNS], rows)
    return f"# What the papers claim, and what we find\n\n{about}\n\n{table}\n"


def claims_of(page: str) -> list[list[str]]:
    """The rows of a page's table of claims.

    >>> claims_of(markdown(CLAIM_COLUMNS, [["a", "b", "confirmed", "c"]]))
    [['a', 'b', 'confirmed', 'c']]
    """
    _, found, after = page.partition(f"| {' | '.join(CLAIM_COLUMNS)} |\n")
    lines = after.splitlines()[1:] if found else []
    end = next((i for i, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return [line.strip("| ").split(" | ") for line in lines[:end]]
