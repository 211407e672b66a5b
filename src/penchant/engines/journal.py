"""What sweeps gave, written down, so that a fit which starts again need not repeat them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from penchant.numerics.arrays import read_arrays, write_arrays


class Journal:
    """The results of a fit's sweeps in their order, a file each; without a folder, of none.

    Who drives the sweeps starts from the beginning again and is told the same results, so that
    nothing of the driver itself has to be kept.
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
