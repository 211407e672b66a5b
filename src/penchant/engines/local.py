"""All parts in this process, as many at once as there are processors."""

from pathlib import Path
from typing import Any

from penchant.engines.keeper import Keeper, Parts, Work
from penchant.numerics.threads import n_cores


class LocalEngine:
    """One keeper of everything."""

    def __init__(self, parts: Parts, folder: Path) -> None:
        self.folder = folder
        numbers = [number for group in parts.groups for number in group]
        self._keeper = Keeper(
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
