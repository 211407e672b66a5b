"""Engines: where the parts of a large data set are worked on, in this process or by Ray's actors.

Work is a function `work(part, state, broadcast)`. It gets one part of the data, the arrays that
the last sweep left for that part, and a message from the driver to all parts. It returns the next
state and a small result. Results come back in the order of the parts, so that `tree` adds them up
the same way on every engine.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, TypeVar

from numpy.typing import NDArray

from penchant.errors import DataError
from penchant.numerics.arrays import read_arrays, write_arrays
from penchant.numerics.threads import in_order, n_cores

ENGINES = ("local", "ray")

T = TypeVar("T")
State = dict[str, NDArray[Any]]
Work = Callable[[Any, State, Any], tuple[State, Any]]
"""(part, state, broadcast) → the next state, and a small result."""
Join = Callable[[Any, Any], Any]


def tree(values: Sequence[T], join: Callable[[T, T], T]) -> T:
    """Join neighbours, then neighbours of those, …: the order depends on their number alone.

    >>> tree(["a", "b", "c", "d", "e"], lambda one, two: f"({one}{two})")
    '(((ab)(cd))e)'
    """
    level = list(values)
    while len(level) > 1:
        joined = [join(*level[i : i + 2]) for i in range(0, len(level) - 1, 2)]
        level = joined + level[len(level) - len(level) % 2 :]
    return level[0]


@dataclass(frozen=True)
class Parts:
    """The parts of a data set: how to load one, and which go together.

    load: part number → its data, which have `nbytes`. groups: consecutive part numbers, one group a
    shard. folder: where states may be written; with several machines all of them see it.
    max_memory: bytes of parts and states that one process holds. kept: whether the folder outlives
    the process, so that another can resume the sweeps.
    """

    load: Callable[[int], Any]
    groups: tuple[tuple[int, ...], ...]
    folder: Path
    max_memory: int
    kept: bool = False


class ShardWorker:
    """Holds some parts and their states in memory while they fit, and reads the others each time.

    load, max_memory: as in `Parts`. folder: for states that do not fit. durable: states are written
    after every sweep, and those of the last two sweeps stay. The replacement of a worker that died
    reads them and repeats a half-done sweep with the same result. n_threads: parts that are worked
    on at once; results do not depend on it.
    """

    def __init__(
        self,
        load: Callable[[int], Any],
        numbers: Sequence[int],
        folder: Path,
        max_memory: int,
        durable: bool = False,
        n_threads: int = 1,
    ) -> None:
        self._load, self._numbers, self._folder = load, tuple(numbers), folder
        self._left, self._durable, self._n_threads = max_memory, durable, n_threads
        self._lock = Lock()
        self._parts: dict[int, Any] = {}
        self._states: dict[int, tuple[int, State]] = {}

    def run(self, sweep: int, work: Work, broadcast: Any, stores: bool) -> list[Any]:
        """Do the work at every part, on the states after so many sweeps; return the results.

        stores: whether this is a sweep itself, whose states the next one starts from.
        """

        def one(number: int) -> Any:
            state, result = work(self._part(number), self._state(number, sweep), broadcast)
            if stores:
                self._store(number, sweep + 1, state)
            return result

        return in_order(one, self._numbers, self._n_threads)

    @property
    def nbytes(self) -> int:
        """The size of the parts and states in memory."""
        arrays = [array for _, state in self._states.values() for array in state.values()]
        return sum(each.nbytes for each in [*self._parts.values(), *arrays])

    def _part(self, number: int) -> Any:
        if number in self._parts:
            return self._parts[number]
        part = self._load(number)
        with self._lock:
            if part.nbytes <= self._left:
                self._parts[number] = part
                self._left -= part.nbytes
        return part

    def _state(self, number: int, sweep: int) -> State:
        if sweep == 0:
            return {}
        known, state = self._states.get(number, (0, {}))
        if known == sweep:
            return state
        return read_arrays(
            self._file(number, sweep),
            "workers must see the same folder; put it on storage that all of them share, and fit "
            "again",
        )

    def _store(self, number: int, sweep: int, state: State) -> None:
        size = sum(array.nbytes for array in state.values())
        with self._lock:
            fits = number in self._states or size <= self._left
            if fits:
                self._left -= 0 if number in self._states else size
                self._states[number] = sweep, state
        if self._durable or not fits:
            write_arrays(self._file(number, sweep), state)
            self._file(number, sweep - 2).unlink(missing_ok=True)

    def _file(self, number: int, sweep: int) -> Path:
        return self._folder / f"state-{number:05d}-{sweep}.npz"


class Engine(ABC):
    """Works on all parts; results come in the order of the parts.

    folder: of states, and where parts are kept of a journal: the sums that `added` returned, in
    their order, a file each. A driver that starts again from the beginning gets the same sums, so
    that no state of the driver has to be stored.
    """

    def __init__(self, parts: Parts, folder: Path) -> None:
        self._folder, self._keeps, self._n_sweeps, self._n_sums = folder, parts.kept, 0, 0

    def sweep(self, work: Work, broadcast: Any) -> list[Any]:
        """Do work that leaves a new state for every part."""
        results = self._run(work, broadcast, True)
        self._n_sweeps += 1
        return results

    def look(self, work: Work, broadcast: Any) -> list[Any]:
        """Do work that leaves every state as it is."""
        return self._run(work, broadcast, False)

    def added(
        self, work: Work, broadcast: Any, joins: Mapping[type[Any], Join], sweeps: bool = False
    ) -> tuple[Any, ...]:
        """The sums of all parts' results, by `sweep` or by `look`.

        joins: the kinds of named tuples of which a result has one each, and how two are added.
        """
        path = self._folder / f"journal-{self._n_sums:05d}.npz"
        self._n_sums += 1
        if self._keeps and path.exists():
            self._n_sweeps += sweeps  # an earlier process did it: its states are in the folder
            known = read_arrays(path, f"remove the folder {path.parent}, and the fit begins anew")
            return tuple(
                kind(*(_plain(known[f"{number}.{name}"]) for name in kind._fields))
                for number, kind in enumerate(joins)
            )
        results = (self.sweep if sweeps else self.look)(work, broadcast)
        columns = zip(*results, strict=True) if len(joins) > 1 else (results,)
        sums = tuple(map(tree, columns, joins.values()))
        if self._keeps:
            named = {
                f"{number}.{name}": value
                for number, each in enumerate(sums)
                for name, value in each._asdict().items()
            }
            write_arrays(path, named)
        return sums

    @abstractmethod
    def _run(self, work: Work, broadcast: Any, stores: bool) -> list[Any]: ...


class LocalEngine(Engine):
    """All parts in this process, as many at once as there are processors."""

    def __init__(self, parts: Parts, folder: Path) -> None:
        super().__init__(parts, folder)
        numbers = [number for group in parts.groups for number in group]
        self._worker = ShardWorker(
            parts.load, numbers, folder, parts.max_memory, parts.kept, n_threads=n_cores()
        )

    def _run(self, work: Work, broadcast: Any, stores: bool) -> list[Any]:
        return self._worker.run(self._n_sweeps, work, broadcast, stores)


class RayEngine(Engine):
    """One actor a processor, each with consecutive shards, on one machine or on many.

    Ray restarts an actor that dies, and repeats its task: it reads its parts again and finds the
    states of the last sweep in the folder.
    """

    def __init__(self, parts: Parts, folder: Path, address: str | None) -> None:
        super().__init__(parts, folder)
        try:
            import ray
        except ImportError as error:
            raise DataError(
                "engine='ray' needs Ray, which is not installed: pip install 'penchant[cluster]', "
                "or use engine='local'"
            ) from error
        self._ray, self._is_ours = ray, not ray.is_initialized()
        if self._is_ours:
            ray.init(address=address, log_to_driver=False)
        n_workers = min(len(parts.groups), max(1, int(ray.cluster_resources().get("CPU", 1))))
        actor: Any = ray.remote(max_restarts=-1, max_task_retries=-1)(ShardWorker)
        self._actors = [
            actor.remote(parts.load, numbers, folder, parts.max_memory, True)
            for numbers in _dealt(parts.groups, n_workers)
        ]

    def _run(self, work: Work, broadcast: Any, stores: bool) -> list[Any]:
        shared, sweep = self._ray.put(broadcast), self._n_sweeps
        tasks = [actor.run.remote(sweep, work, shared, stores) for actor in self._actors]
        return [result for results in self._ray.get(tasks) for result in results]

    def close(self) -> None:
        """End the actors, and Ray if this engine started it."""
        for actor in self._actors:
            self._ray.kill(actor)
        if self._is_ours:
            self._ray.shutdown()


def _dealt(groups: tuple[tuple[int, ...], ...], n_workers: int) -> list[tuple[int, ...]]:
    """Consecutive shards to each worker, in their order, as evenly as possible.

    >>> _dealt(((0, 1), (2,), (3,)), 2)
    [(0, 1, 2), (3,)]
    """
    cuts = [-(-len(groups) * i // n_workers) for i in range(n_workers + 1)]
    return [
        tuple(number for group in groups[start:end] for number in group)
        for start, end in pairwise(cuts)
    ]


@contextmanager
def open_engine(
    name: str, parts: Parts, address: str | None = None, task: bytes = b""
) -> Iterator[Engine]:
    """The engine of that name; closing it ends its workers and removes their states.

    address: of a running Ray cluster; None for RAY_ADDRESS, or one on this machine. task: what
    distinguishes this work from other work on the same parts. Where their folder is kept, states
    stay after an error or an interrupt, so that the same work can resume.
    """
    with _folder_of(parts, task) as folder:
        if name == "local":
            yield LocalEngine(parts, folder)
            return
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


def _plain(array: Any) -> Any:
    return array if array.ndim else array.item()
