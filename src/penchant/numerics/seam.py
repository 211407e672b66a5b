"""The seam between devices: functions on NumPy's matrices, whose twins work on those elsewhere.

A matrix may live in the host's memory, where SciPy's BLAS works on it, or on a card. `linalg`,
`entries`, `differences` and `stacks` of this package hold functions for the host; each has a twin
of the same name in `torch_linalg` and so on, and the home of a matrix decides which one is called.
"""

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from types import ModuleType
from typing import ParamSpec, TypeVar

import numpy as np
from scipy import sparse

P = ParamSpec("P")
R = TypeVar("R")


@cache
def twin(module: str = "linalg") -> ModuleType:
    """A module of this package for matrices of torch, function by function."""
    return import_module(f"penchant.numerics.torch_{module}")


def seam(place: int = 0, module: str = "linalg") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """The function works on NumPy's matrices; its twin on those that live elsewhere.

    place: the argument whose home decides; module: of this package, whose twins stand together.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__name__

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if isinstance(args[place], (np.ndarray, sparse.sparray)):
                return function(*args, **kwargs)
            result: R = getattr(twin(module), name)(*args, **kwargs)
            return result

        return call

    return decorate
