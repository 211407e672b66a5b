"""Linear algebra, quadrature, optimisation, random keys and threads, for all other packages."""

from penchant.numerics import (
    arrays,
    batched,
    dispatch,
    linalg,
    optimize,
    quadrature,
    random,
    threads,
)

__all__ = [
    "arrays",
    "batched",
    "dispatch",
    "linalg",
    "optimize",
    "quadrature",
    "random",
    "threads",
]
