"""Sums whose rounding depends on the parts alone, never on who added them."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def tree(values: Sequence[T], join: Callable[[T, T], T]) -> T:
    """Join neighbours, then neighbours of those, …: the same tree for as many values.

    >>> tree(["a", "b", "c", "d", "e"], lambda one, two: f"({one}{two})")
    '(((ab)(cd))e)'
    """
    level = list(values)
    while len(level) > 1:
        joined = [join(*level[i : i + 2]) for i in range(0, len(level) - 1, 2)]
        level = joined + level[len(level) - len(level) % 2 :]
    return level[0]
