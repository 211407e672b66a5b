"""Parts kept by Ray's actors, on one machine or on many."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from penchant.engines.worker import Parts, ShardWorker, Work
from penchant.errors import DataError


class RayEngine:
    """One actor a processor, each the keeper of consecutive shards.

    An actor that dies is started again by Ray, and its task with it: it reads its parts anew and
    finds the states of the last sweep in the folder.
    """

    def __init__(self, parts: Parts, folder: Path, address: str | None) -> None:
        try:
            import ray
        except ImportError as error:
            raise DataError(
                "engine='ray' needs Ray, which is not installed: pip install 'penchant[cluster]', "
                "or use engine='local'"
            ) from error
        self._ray, self._turn, self.folder = ray, 0, folder
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            ray.init(address=address, log_to_driver=False)
        n_workers = min(len(parts.groups), max(1, int(ray.cluster_resources().get("CPU", 1))))
        actor: Any = ray.remote(max_restarts=-1, max_task_retries=-1)(ShardWorker)
        self._actors = [
            actor.remote(parts.load, numbers, folder, parts.max_memory, True)
            for numbers in _dealt(parts.groups, n_workers)
        ]

    def sweep(self, work: Work, broadcast: Any) -> list[Any]:
        """Do work that leaves a new state beside every part."""
        shared = self._ray.put(broadcast)
        results = self._gather([a.sweep.remote(self._turn, work, shared) for a in self._actors])
        self._turn += 1
        return results

    def pass_over(self) -> None:
        """A sweep was done before: its states are in the folder."""
        self._turn += 1

    def look(self, work: Work, broadcast: Any) -> list[Any]:
        """Do work that leaves every state as it is."""
        shared = self._ray.put(broadcast)
        return self._gather([a.look.remote(self._turn, work, shared) for a in self._actors])

    def close(self) -> None:
        """End the actors, and Ray where it was started for them."""
        for actor in self._actors:
            self._ray.kill(actor)
        if self._is_ours:
            self._ray.shutdown()

    def _gather(self, tasks: list[Any]) -> list[Any]:
        return [result for results in self._ray.get(tasks) for result in results]


def _dealt(groups: tuple[tuple[int, ...], ...], n_workers: int) -> list[tuple[int, ...]]:
    """Consecutive shards to each worker, in their order, as evenly as it goes.

    >>> _dealt(((0, 1), (2,), (3,)), 2)
    [(0, 1, 2), (3,)]
    """
    cuts = [-(-len(groups) * i // n_workers) for i in range(n_workers + 1)]
    return [
        tuple(number for group in groups[start:end] for number in group)
        for start, end in pairwise(cuts)
    ]
