"""How many threads a problem is worth."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

ALONE = 300
"""Up to matrices of this size one thread is about as fast as several."""


@contextmanager
def threads_for(size: int) -> Iterator[None]:
    """One BLAS thread while matrices of this size are worked on, if they are small.

    Threads that share a small matrix gain little, and wait for each other by spinning: on a
    machine that is busy with something else they made a fit of 200 items sixty times slower.

    >>> with threads_for(50):
    ...     pass
    """
    if size > ALONE:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    """Looking for the libraries takes milliseconds, setting their threads does not."""
    return ThreadpoolController()
