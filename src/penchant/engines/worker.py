"""The worker that keeps parts and their states, and the journal from which a fit goes on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from numpy.typing import NDArray

from penchant.numerics.arrays import read_arrays, write_arrays
from penchant.numerics.threads import in_order

# Parts of a data set, and the arrays that work leaves beside each from sweep to sweep.

State = dict[str, NDArray[Any]]
Work = Callable[[Any, State, Any], tuple[State, Any]]
"""(part, state, broadcast) → the next state, and a small result."""


class DataPart(Protocol):
    """Some of the data, ready to be worked on."""

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""


@dataclass(frozen=True)
class Parts:
    """What an engine works on: how to load a part, and which go together.

    groups: consecutive part numbers, one group a shard. folder: where states may be written; with
    several machines all of them see it. max_memory: bytes of parts and states that one process
    keeps. kept: whether the folder outlives the process, so that sweeps may go on in the next.
    """

    load: Callable[[int], DataPart]
    groups: tuple[tuple[int, ...], ...]
    folder: Path
    max_memory: int
    kept: bool = False


class ShardWorker:
    """Some parts, in memory while they fit, else read again for every sweep.

    load: part number → its data. folder: for what does not fit. durable: states are written after
    every sweep, and those of the last two are kept. The replacement of a worker that died goes on
    from there; a sweep that was half done is repeated with the same result. n_threads:
    parts that are worked on at once; results do not depend on it.
    """

    def __init__(
        self,
        load: Callable[[int], DataPart],
        numbers: Sequence[int],
        folder: Path,
        max_memory: int,
        durable: bool = False,
        n_threads: int = 1,
    ) -> None:
        self._load, self._numbers, self._folder = load, tuple(numbers), folder
        self._left, self._durable, self._n_threads = max_memory, durable, n_threads
        self._lock = Lock()
        self._parts: dict[int, DataPart] = {}
        self._states: dict[int, tuple[int, State]] = {}

    def sweep(self, turn: int, work: Work, broadcast: Any) -> list[Any]:
        """Do the work of one sweep at every part; states go from those of `turn` to the next."""

        def one(number: int) -> Any:
            state, result = work(self._part(number), self._state(number, turn), broadcast)
            self._keep(number, turn + 1, state)
            return result

        return in_order(one, self._numbers, self._n_threads)

    def look(self, turn: int, work: Work, broadcast: Any) -> list[Any]:
        """Do work that leaves every state as it is."""

        def one(number: int) -> Any:
            return work(self._part(number), self._state(number, turn), broadcast)[1]

        return in_order(one, self._numbers, self._n_threads)

    def _part(self, number: int) -> DataPart:
        if number in self._parts:
            return self._parts[number]
        part = self._load(number)
        with self._lock:
            if part.nbytes <= self._left:
                self._parts[number] = part
                self._left -= part.nbytes
        return part

    def _state(self, number: int, turn: int) -> State:
        if turn == 0:
            return {}
        known, state = self._states.get(number, (0, {}))
        if known == turn:
            return state
        return read_arrays(
            self._file(number, turn),
            "workers must see the same folder; put it on storage that all of them share, and fit "
            "again",
        )

    def _keep(self, number: int, turn: int, state: State) -> None:
        size = sum(array.nbytes for array in state.values())
        with self._lock:
            fits = number in self._states or size <= self._left
            if fits:
                self._left -= 0 if number in self._states else size
                self._states[number] = turn, state
        if self._durable or not fits:
            write_arrays(self._file(number, turn), state)
            self._file(number, turn - 2).unlink(missing_ok=True)

    def _file(self, number: int, turn: int) -> Path:
        return self._folder / f"state-{number:05d}-{turn}.npz"


# What sweeps gave, written down, so that a fit which starts again need not repeat them.


class Journal:
    """The results of a fit's sweeps in their order, a file each; without a folder, of none.

    The driver of the sweeps starts again from the beginning and gets the same results, so that no
    state of the driver has to be kept.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder, self._number = folder, 0

    def recall(
        self,
        kinds: Sequence[type[Any]],
        work: Callable[[], Sequence[Any]],
        passed_over: Callable[[], None] = lambda: None,
    ) -> tuple[Any, ...]:
        """What the next entry says, named tuples of these kinds; without one, do the work and
        write down what it gave. passed_over: called where the work was not done."""
        if self._folder is None:
            return tuple(work())
        path = self._folder / f"journal-{self._number:05d}.npz"
        self._number += 1
        known = _read(path, kinds)
        if known is not None:
            passed_over()
            return known
        results = tuple(work())
        _write(path, results)
        return results


def _read(path: Path, kinds: Sequence[type[Any]]) -> tuple[Any, ...] | None:
    if not path.exists():
        return None
    known = read_arrays(path, f"remove the folder {path.parent}, and the fit begins anew")
    return tuple(
        kind(*(_plain(known[f"{number}.{name}"]) for name in kind._fields))
        for number, kind in enumerate(kinds)
    )


def _plain(array: Any) -> Any:
    return array if array.ndim else array.item()


def _write(path: Path, results: Sequence[Any]) -> None:
    values = {
        f"{number}.{name}": value
        for number, result in enumerate(results)
        for name, value in result._asdict().items()
    }
    write_arrays(path, values)
