"""How many threads a problem is worth: the one policy, for all models and all Python threads."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

ALONE = 300
"""Up to matrices of this size one thread is about as fast as several."""


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


@cache
def _controller() -> ThreadpoolController:
    """Looking for the libraries takes milliseconds, setting their threads does not."""
    return ThreadpoolController()
