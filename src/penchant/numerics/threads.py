"""How many threads a problem is worth: one policy for all models and all Python threads."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import Lock
from typing import TypeVar

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

ONE_THREAD_SIZE = 300
"""Up to matrices of this size one thread is about as fast as several."""
STACKS_SIZE = 1_200
"""The same where most of the work is stacks of small matrices. On two cores a model of people took
half as long with one thread at 400 items, two thirds at 800, and a tenth longer at 1,500."""
MOST_THREADS = 4
"""For long arrays: more threads would wait for memory and for Python's lock."""
MANY_BLOCKS = 16
"""Fewer blocks are done before threads have started."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class _OneBlasThread:
    """Limits BLAS to one thread from the first entry to the last exit.

    The number of BLAS threads belongs to the process. Python threads that each set and restored it
    would leave it at the value that the slowest of them had found.
    """

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), 0

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.limit = _controller().limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limit.restore_original_limits()


_ONE_BLAS_THREAD = _OneBlasThread()


def threads_for(size: int, limit: int = ONE_THREAD_SIZE) -> AbstractContextManager[None]:
    """Use one BLAS thread inside the block if matrices of this size are small.

    Threads that share a small matrix gain little, and wait for each other by spinning: on a
    busy machine they made a fit of 200 items sixty times slower. Blocks may be nested, and several
    Python threads may be inside at once.
    """
    return nullcontext() if size > limit else _ONE_BLAS_THREAD


def for_row_blocks(work: Callable[[slice], None], length: int, block: int) -> None:
    """Call `work` for every block of rows, in a few threads where there are many blocks.

    NumPy releases Python's lock, so that blocks whose temporaries fit in cache run in parallel.
    Every block writes to rows of its own: the result does not depend on the threads.
    """
    blocks = [slice(start, start + block) for start in range(0, length, block)]
    in_order(work, blocks, min(n_cores(), MOST_THREADS) if len(blocks) >= MANY_BLOCKS else 1)


def in_order(work: Callable[[Item], Result], items: Sequence[Item], n_threads: int) -> list[Result]:
    """The results of `work` in the order of the items, by a few threads; an error stops them.

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
    """How many cores this process may use; OMP_NUM_THREADS bounds them."""
    allowed = getattr(os, "sched_getaffinity", None)
    n_cores = len(allowed(0)) if allowed else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return min(n_cores, int(wanted)) if wanted.isdigit() and int(wanted) else n_cores


@cache
def _controller() -> ThreadpoolController:
    """Finding the libraries takes milliseconds, setting their threads does not."""
    return ThreadpoolController()
