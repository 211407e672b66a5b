"""A page of results, and the files it is written to.

An experiment fills a `Page`: the claims with our verdicts, then tables and figures, with times.
`produce` runs an experiment, writes its page and brings the table of all claims up to date.
"""

import logging
import os
import platform
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from operator import ge, gt, le, lt
from os import PathLike
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from penchant.errors import DataError, PenchantError

T = TypeVar("T")
LOG = logging.getLogger("experiments")
"""Logs the heading of every part as it begins, for progress messages."""
RESOLUTION = 300
"""Dots an inch, for print."""
CLAIM_COLUMNS = ("the paper claims", "found here", "required", "verdict", "why")
RELATIONS: dict[str, Callable[[float, float], bool]] = {"<": lt, "≤": le, ">": gt, "≥": ge}
PART = "; "
"""Between the requirements of one claim."""


class Need(NamedTuple):
    """A number that a verdict rests on, and what it must be.

    Both are rounded to four digits, as they are printed, so that a reader can check the verdict.

    >>> str(Need("accuracy", 0.53359, ">", 0.79883)), Need("accuracy", 0.53359, ">", 0.79883).holds
    ('accuracy 0.5336 > 0.7988', False)
    """

    name: str
    value: float
    relation: str
    bound: float

    def __str__(self) -> str:
        return f"{self.name} {self.value:.4g} {self.relation} {self.bound:.4g}".strip()

    @property
    def holds(self) -> bool:
        """Whether the printed numbers stand in the relation."""
        return follows(str(self))


def near(name: str, value: float, paper: float, tolerance: float) -> tuple[Need, Need]:
    """Requirements of a number that must be the paper's, within a tolerance.

    >>> [str(need) for need in near("error", 0.029, 0.035, 0.01)]
    ['error 0.029 ≥ 0.025', 'error 0.029 ≤ 0.045']
    """
    return Need(name, value, "≥", paper - tolerance), Need(name, value, "≤", paper + tolerance)


def follows(requirement: str) -> bool:
    """Whether a printed requirement holds: the test of the pages reads them by this.

    >>> follows("accuracy 0.53 > 0.8"), follows("0.2 ≤ 0.2")
    (False, True)
    """
    *_, value, relation, bound = requirement.split()
    return RELATIONS[relation](float(value), float(bound))


class Claim(NamedTuple):
    """Something a paper says, what we found, and whether that is the same.

    needs : what must hold for it, all of it; empty where the data at hand cannot tell.
    """

    paper: str
    found: str
    needs: tuple[Need, ...]
    why: str

    @property
    def verdict(self) -> str:
        """In words.

        >>> Claim("the earth is flat", "an arc", (Need("degrees", 0.9, "<", 0.1),), "").verdict
        'not confirmed'
        """
        if not self.needs:
            return "cannot be tested here"
        return "confirmed" if all(need.holds for need in self.needs) else "not confirmed"

    @property
    def row(self) -> list[str]:
        """Its line in a table under `CLAIM_COLUMNS`."""
        return [self.paper, self.found, PART.join(map(str, self.needs)), self.verdict, self.why]


class Clock:
    """Time since it was made, on the wall and of the processor: they part on a busy machine."""

    def __init__(self) -> None:
        self.wall, self.processor = perf_counter(), process_time()

    def __str__(self) -> str:
        """As in "12.0 s (11.5 s of processor time)"."""
        wall, processor = perf_counter() - self.wall, process_time() - self.processor
        return f"{wall:.1f} s ({processor:.1f} s of processor time)"


class LeftOut(PenchantError):
    """The data of a part are not there, and the run is only a quick one."""


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table.

    >>> print(markdown(["n", "error"], [["1", "0.5"]]))
    | n | error |
    | --- | --- |
    | 1 | 0.5 |
    """
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows])


def standard_error(values: ArrayLike) -> float:
    """Of a mean; zero for a single value, whose spread is unknown.

    >>> standard_error([1.0, 3.0])
    1.0
    """
    x = np.asarray(values, dtype=np.float64)
    return float(x.std(ddof=1) / np.sqrt(x.size)) if x.size > 1 else 0.0


def spread(values: ArrayLike, digits: int = 3) -> str:
    """Mean and, of several values, its standard error.

    >>> spread([0.1, 0.3]), spread([0.25], digits=2)
    ('0.200 ± 0.100', '0.25')
    """
    x = np.asarray(values, dtype=np.float64)
    mean = f"{x.mean():.{digits}f}"
    return f"{mean} ± {standard_error(x):.{digits}f}" if x.size > 1 else mean


class Page:
    """Collects what an experiment finds.

    quick : sizes are small; missing data are replaced or left out instead of being an error.
    out : folder for figures, or None.

    >>> page = Page("Falling apples", "Dropped from one metre.", quick=False, out=None)
    >>> with page.part("Apples, seeds 0–9"):
    ...     page.table(["apple", "seconds"], [["1", "0.45"]])
    >>> page.claim(Claim("apples fall", "10 of 10", (Need("fell", 10, "≥", 10),), "all did"))
    >>> page.text().splitlines()[6]
    '| apples fall | 10 of 10 | fell 10 ≥ 10 | confirmed | all did |'
    """

    def __init__(
        self, title: str, about: str, quick: bool, out: str | PathLike[str] | None
    ) -> None:
        self.title, self.about, self.quick = title, about, quick
        self.folder = None if out is None else Path(out)
        self.claims: list[Claim] = []
        self.body: list[str] = []
        self.is_simulated = False

    @contextmanager
    def part(self, heading: str) -> Iterator[None]:
        """A section with its time; left out, with the reason, where `load` finds no data."""
        LOG.info(heading)
        self.body.append(f"## {heading}")
        clock = Clock()
        try:
            yield
        except LeftOut as reason:
            self.body.append(f"Left out: {reason}.")
        else:
            self.body.append(f"Time: {clock}.")

    def load(self, load: Callable[[], T], stand_in: Callable[[], T] | None = None) -> T:
        """What `load` reads; in a quick run without the data, a simulated stand-in."""
        try:
            return load()
        except DataError as missing:
            if not self.quick:
                raise
            if stand_in is None:
                raise LeftOut(str(missing)) from None
            self.say(f"**Simulated data**, because {missing}.")
            self.is_simulated = True
            return stand_in()

    def called(self, name: str) -> str:
        """What a table calls a data set: simulated ones never carry the name of a real one."""
        return "simulated" if self.is_simulated else name

    def say(self, text: str) -> None:
        """Add a paragraph."""
        self.body.append(text)

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Add a table."""
        self.body.append(markdown(head, rows))

    def claim(self, claim: Claim) -> None:
        """Add a claim and its verdict; they stand before everything else. Simulated data give no
        verdict."""
        if self.is_simulated:
            claim = claim._replace(needs=(), why="simulated data say nothing about it")
        self.claims.append(claim)

    def figure(self, figure: Any, name: str, caption: str) -> None:
        """Save a matplotlib figure as `name`.png, small enough for a repository, and show it."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(self.folder / f"{name}.png", dpi=RESOLUTION)
            self.body.append(f"![{caption}]({name}.png)\n\n{caption}")

    def text(self) -> str:
        """The page as Markdown."""
        parts = [f"# {self.title}", self.about]
        if self.claims:
            parts.append(markdown(CLAIM_COLUMNS, [claim.row for claim in self.claims]))
        return "\n\n".join([*parts, *self.body]) + "\n"


PAPERS = {
    "000": ("xpgp", "active"),
    "001": ("kpcrank",),
    "002": ("perceptron",),
    "003": ("sparse-ep",),
    "004": ("communities",),
}
"""The experiments of each paper; `-` stands for the `_` of the module."""
EXPERIMENTS = (*(name for names in PAPERS.values() for name in names), "defaults", "answers")
INDEX = "README.md"


def produce(name: str, quick: bool = False, out: str | PathLike[str] = "results") -> str:
    """Run an experiment, write `out`/name.md with its figures, and bring the index up to date."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    clock = Clock()
    experiment = import_module(f"experiments.{name.replace('-', '_')}")
    text = experiment.run(quick=quick, out=folder)
    title, _, rest = text.partition("\n")
    page = "\n\n".join([title, _header(name, quick, clock), rest.strip()]) + "\n"
    (folder / f"{name}.md").write_text(page, encoding="utf-8")
    (folder / INDEX).write_text(index(folder), encoding="utf-8")
    return page


def _header(name: str, quick: bool, clock: Clock) -> str:
    threads = max((info["num_threads"] for info in threadpool_info()), default=1)
    facts = [
        f"`python -m experiments {name}{' --quick' if quick else ''}`",
        f"penchant {version('penchant')}, commit {commit()}",
        datetime.now(UTC).strftime("%Y-%m-%d"),
        str(clock),
        f"{os.cpu_count()} cores, {threads} thread{'s' if threads > 1 else ''} used",
        f"Python {platform.python_version()}, numpy {version('numpy')}, scipy {version('scipy')}",
    ]
    small = "\n\n**A quick run: sizes are too small for the verdicts to mean much.**"
    return " · ".join(facts) + (small if quick else "")


def commit() -> str:
    """The commit of the code that runs, and whether code was changed since."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(Path(__file__).parents[1]), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        dirty = git("status", "--porcelain", "--", "src", "experiments")
        return git("rev-parse", "--short", "HEAD") + ("-dirty" if dirty else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def index(folder: Path) -> str:
    """The claims of all pages in a folder, each with a link to its page."""
    rows = [
        [f"[{name}]({name}.md)", *claim]
        for name in EXPERIMENTS
        if (folder / f"{name}.md").is_file()
        for claim in claims_of((folder / f"{name}.md").read_text(encoding="utf-8"))
    ]
    about = (
        "Collected from the pages beside it by `python -m experiments`; each page says what was "
        "run, on which data, and how long it took."
    )
    table = markdown(["experiment", *CLAIM_COLUMNS], rows)
    return f"# What the papers claim, and what we find\n\n{about}\n\n{table}\n"


def claims_of(page: str) -> list[list[str]]:
    """The rows of a page's table of claims.

    >>> claims_of(markdown(CLAIM_COLUMNS, [["a", "b", "1 > 0", "confirmed", "c"]]))
    [['a', 'b', '1 > 0', 'confirmed', 'c']]
    """
    _, found, after = page.partition(f"| {' | '.join(CLAIM_COLUMNS)} |\n")
    lines = after.splitlines()[1:] if found else []
    end = next((i for i, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return [line.strip("| ").split(" | ") for line in lines[:end]]
