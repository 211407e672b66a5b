"""One protocol, two engines."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from penchant.engines.keeper import Parts, Work
from penchant.engines.local import LocalEngine

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
    after an error or an interrupt, for whoever does the same work again.
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
