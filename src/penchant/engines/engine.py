"""Engines by name: the one in this process, and how partial sums are added alike everywhere."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar

from penchant.engines.worker import Parts, ShardWorker, Work
from penchant.numerics.threads import n_cores

T = TypeVar("T")


def tree(values: Sequence[T], join: Callable[[T, T], T]) -> T:
    """Join neighbours, then neighbours of those, …: the same tree for as many values.

    >>> tree(["a", "b", "c", "d", "e"], lambda one, two: f"({one}{two})")
    '(((ab)(cd))e)'
    """
    level = list(values)
    while len(level) > 1:
        joined = [join(*level[i : i + 2]) for i in range(0, len(level) - 1, 2)]
        level = joined + level[len(level) - len(level) % 2 :]
    return level[0]


# All parts in this process, as many at once as there are processors.


class LocalEngine:
    """One keeper of everything."""

    def __init__(self, parts: Parts, folder: Path) -> None:
        self.folder = folder
        numbers = [number for group in parts.groups for number in group]
        self._keeper = ShardWorker(
            parts.load, numbers, folder, parts.max_memory, parts.kept, n_threads=n_cores()
        )
        self._turn = 0

    def sweep(self, work: Work, broadcast: Any) -> list[Any]:
        """Do work that leaves a new state beside every part."""
        results = self._keeper.sweep(self._turn, work, broadcast)
        self._turn += 1
        return results

    def pass_over(self) -> None:
        """A sweep was done before: its states are in the folder."""
        self._turn += 1

    def look(self, work: Work, broadcast: Any) -> list[Any]:
        """Do work that leaves every state as it is."""
        return self._keeper.look(self._turn, work, broadcast)


# One protocol, two engines.

ENGINES = ("local", "ray")


class Engine(Protocol):
    """Work on all parts; results come in the order of the parts. folder: of states."""

    folder: Path

    def sweep(self, work: Work, broadcast: Any) -> list[Any]:
        """Do work that leaves a new state beside every part."""

    def pass_over(self) -> None:
        """A sweep was done before: its states are in the folder."""

    def look(self, work: Work, broadcast: Any) -> list[Any]:
        """Do work that leaves every state as it is."""


@contextmanager
def open_engine(
    name: str, parts: Parts, address: str | None = None, task: bytes = b""
) -> Iterator[Engine]:
    """The engine of that name; when it is closed, its workers and their states are gone.

    address: of a running Ray cluster; None for RAY_ADDRESS, or one on this machine. task: what
    tells this work from other work on the same parts. Where their folder is kept, states stay
    after an error or an interrupt, so that the same work can resume.
    """
    with _folder_of(parts, task) as folder:
        if name == "local":
            yield LocalEngine(parts, folder)
            return
        from penchant.engines.ray import RayEngine

        engine = RayEngine(parts, folder, address)
        try:
            yield engine
        finally:
            engine.close()


@contextmanager
def _folder_of(parts: Parts, task: bytes) -> Iterator[Path]:
    if not parts.kept:
        with TemporaryDirectory(prefix="sweeps-", dir=parts.folder) as folder:
            yield Path(folder)
        return
    kept = parts.folder / f"sweeps-{sha256(task).hexdigest()[:16]}"
    kept.mkdir(exist_ok=True)
    yield kept
    rmtree(kept)
