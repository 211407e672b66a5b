"""Parts in memory while they fit, worked on by one thread or several."""

import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

from penchant.engines import ShardWorker
from penchant.numerics import threads

N_PARTS, SIZE = 12, 100


@dataclass(frozen=True)
class Numbers:
    values: np.ndarray

    @property
    def nbytes(self):
        return self.values.nbytes


def load(number):
    return Numbers(np.full(SIZE, float(number)))


def add_up(part, state, told):
    """Each sweep adds what is told to a running sum."""
    total = state.get("total", np.zeros(SIZE)) + told * part.values
    return {"total": total}, float(total.sum())


@pytest.mark.parametrize("max_memory", [0, 6 * 8 * SIZE, 10**9])
def test_threads_and_memory_change_nothing(tmp_path, max_memory):
    results = []
    for n_threads in (1, 4):
        folder = tmp_path / str(n_threads)
        folder.mkdir()
        worker = ShardWorker(load, range(N_PARTS), folder, max_memory, n_threads=n_threads)
        results.append([worker.run(sweep, add_up, sweep + 1.0, True) for sweep in range(3)])
        assert worker.nbytes <= max_memory
    assert results[0] == results[1]
    assert results[0][-1] == [6.0 * SIZE * number for number in range(N_PARTS)]


def test_parts_are_worked_on_at_once():
    here = threading.Barrier(2, timeout=30)
    assert threads.in_order(lambda x: (here.wait(), x)[1], [1, 2, 3, 4], 2) == [1, 2, 3, 4]


def test_an_error_ends_those_that_wait():
    begun = []

    def work(number):
        begun.append(number)
        if number == 0:
            raise ValueError("torn")
        time.sleep(0.02)

    with pytest.raises(ValueError, match="torn"):
        threads.in_order(work, range(200), 2)
    assert len(begun) < 100
