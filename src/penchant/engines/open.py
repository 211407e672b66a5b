"""One protocol, two engines."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from penchant.engines.keeper import Parts, Work
from penchant.engines.local import LocalEngine

ENGINES = ("local", "ray")


class Engine(Protocol):
    """Work on all parts; results come in the order of the parts."""

    def sweep(self, work: Work, broadcast: Any) -> list[Any]:
        """Do work that leaves a new state beside every part."""

    def look(self, work: Work, broadcast: Any) -> list[Any]:
        """Do work that leaves every state as it is."""


@contextmanager
def open_engine(name: str, parts: Parts, address: str | None = None) -> Iterator[Engine]:
    """The engine of that name; when it is closed, its workers and their states are gone.

    address: of a running Ray cluster; None for RAY_ADDRESS, or one on this machine.
    """
    with TemporaryDirectory(prefix="sweeps-", dir=parts.folder) as folder:
        if name == "local":
            yield LocalEngine(parts, Path(folder))
            return
        from penchant.engines.ray import RayEngine

        engine = RayEngine(parts, Path(folder), address)
        try:
            yield engine
        finally:
            engine.close()
