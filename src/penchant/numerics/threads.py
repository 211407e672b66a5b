"""How many threads a problem is worth: the one policy, for all models and all Python threads."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

ALONE = 300
"""Up to matrices of this size one thread is about as fast as several."""
MOST_THREADS = 4
"""For long arrays: more would wait for memory, and for each other's turn in Python."""
Item = TypeVar("Item")
Result = TypeVar("Result")
MANY_BLOCKS = 16
"""Fewer are done before threads have started."""


class _Limit:
    """One BLAS thread while anybody is inside; what was before when the last one leaves.

    The number of BLAS threads belongs to the process: Python threads that each set and restored
    it would leave it at whatever the slowest of them had found.
    """

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), 0
        self.limited: Any = None

    def enter(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.limited = _controller().limit(limits=1, user_api="blas")
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limited.restore_original_limits()


_LIMIT = _Limit()


@contextmanager
def threads_for(size: int) -> Iterator[None]:
    """One BLAS thread while matrices of this size are worked on, if they are small.

    Threads that share a small matrix gain little, and wait for each other by spinning: on a
    machine that is busy with something else they made a fit of 200 items sixty times slower.
    It nests, and several Python threads may be inside at once.

    >>> with threads_for(50):
    ...     pass
    """
    if size > ALONE:
        yield
        return
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()


def in_blocks(work: Callable[[slice], None], length: int, block: int) -> None:
    """Call `work` for every block of rows, in a few threads where there are many.

    NumPy lets go of Python's lock inside, so blocks whose temporaries stay in cache run side by
    side. Every block writes to rows of its own: the result does not depend on the threads.

    >>> doubled = [1] * 10
    >>> def double(rows):
    ...     doubled[rows] = [2] * len(doubled[rows])
    >>> in_blocks(double, 10, 4)
    >>> sum(doubled)
    20
    """
    blocks = [slice(start, start + block) for start in range(0, length, block)]
    in_order(work, blocks, min(n_cores(), MOST_THREADS) if len(blocks) >= MANY_BLOCKS else 1)


def in_order(work: Callable[[Item], Result], items: Sequence[Item], n_threads: int) -> list[Result]:
    """What work makes of every item, in a few threads; an error ends those that wait.

    >>> in_order(lambda x: x * x, [3, 1, 2], 2)
    [9, 1, 4]
    """
    if n_threads <= 1 or len(items) <= 1:
        return [work(item) for item in items]
    pool = ThreadPoolExecutor(n_threads)
    try:
        return list(pool.map(work, items))
    finally:
        pool.shutdown(cancel_futures=True)


def n_cores() -> int:
    """How many cores this process may use, and wants to."""
    allowed = getattr(os, "sched_getaffinity", None)
    n_cores = len(allowed(0)) if allowed else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return min(n_cores, int(wanted)) if wanted.isdigit() and int(wanted) else n_cores


@cache
def _controller() -> ThreadpoolController:
    """Looking for the libraries takes milliseconds, setting their threads does not."""
    return ThreadpoolController()
