"""A page of results: the paper's claims with our verdicts, then tables and figures, with times."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from penchant.errors import DataError, PenchantError

T = TypeVar("T")
LOG = logging.getLogger("penchant.reproduce")
"""Names every part as it begins: whoever listens can show how far a run has come."""
RESOLUTION = 300
"""Dots an inch, for print."""
CLAIM_COLUMNS = ("the paper claims", "found here", "verdict", "why")


class Claim(NamedTuple):
    """Something a paper says, what we found, and whether that is the same.

    holds : True, False, or None where the data at hand cannot tell.
    """

    paper: str
    found: str
    holds: bool | None
    why: str

    @property
    def verdict(self) -> str:
        """In words.

        >>> Claim("the earth is flat", "an arc of 1° a 111 km", False, "").verdict
        'not confirmed'
        """
        if self.holds is None:
            return "cannot be tested here"
        return "confirmed" if self.holds else "not confirmed"


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
    >>> page.claim(Claim("apples fall", "10 of 10", True, "all did"))
    >>> page.text().splitlines()[6]
    '| apples fall | 10 of 10 | confirmed | all did |'
    """

    def __init__(
        self, title: str, about: str, quick: bool, out: str | PathLike[str] | None
    ) -> None:
        self.title, self.about, self.quick = title, about, quick
        self.folder = None if out is None else Path(out)
        self.claims: list[Claim] = []
        self.body: list[str] = []

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
            return stand_in()

    def say(self, text: str) -> None:
        """Add a paragraph."""
        self.body.append(text)

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Add a table."""
        self.body.append(markdown(head, rows))

    def claim(self, claim: Claim) -> None:
        """Add a claim and its verdict; they stand before everything else."""
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
            rows = [[c.paper, c.found, c.verdict, c.why] for c in self.claims]
            parts.append(markdown(CLAIM_COLUMNS, rows))
        return "\n\n".join([*parts, *self.body]) + "\n"
