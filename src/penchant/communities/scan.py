"""The one sequential loop of the collapsed sampler, compiled.

This module imports numba at its head: import it only inside the function that runs the loop.
"""

from collections.abc import Callable
from math import exp, inf, log
from typing import NamedTuple, TypeVar

import numba
import numpy as np

from penchant.communities.assignment import LabelArray, SingleArray
from penchant.numerics.types import IntArray

F = TypeVar("F", bound=Callable[..., object])


def _compiled(function: F) -> F:
    try:
        compiled: F = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # a read-only installation and no folder for the cache elsewhere
        compiled = numba.njit(nogil=True)(function)
    return compiled


class Scan(NamedTuple):
    """What the loop reads and, but for the first and last, changes in place.

    log_likelihood: (U, T) of each user under T utility functions; assignment: (U,) the function
    of each user; size: (T,) the users of each function; empty: (h,) the functions that stand for
    empty communities; uniform: (U, 2) numbers in (0, 1].
    """

    log_likelihood: SingleArray
    assignment: LabelArray
    size: IntArray
    empty: IntArray
    uniform: SingleArray


@_compiled
def reassign(s: Scan, log_new: float, start: int, fresh: int) -> tuple[int, int]:
    """Reassign users one after another from `start`; return who is next, and the next fresh one.

    log_new: log(λ/h), the prior of an empty community; functions from `fresh` on replace those
    that get their first user. Stops before a user when none is left.
    """
    n_users, n_functions = s.log_likelihood.shape
    log_prior = np.full(n_functions, -inf)
    for c in range(n_functions):
        if s.size[c] > 0:
            log_prior[c] = log(s.size[c])
    for slot in range(len(s.empty)):
        log_prior[s.empty[slot]] = log_new
    cumulative = np.empty(n_functions)
    for u in range(start, n_users):
        if fresh == n_functions:
            return u, fresh
        left = s.assignment[u]
        s.size[left] -= 1
        if s.size[left] > 0:
            log_prior[left] = log(s.size[left])
        else:
            # an abandoned function takes the place of one of the empty ones
            slot = int((1.0 - s.uniform[u, 0]) * len(s.empty))
            log_prior[s.empty[slot]] = -inf
            s.empty[slot] = left
            log_prior[left] = log_new
        top = -inf
        for c in range(n_functions):
            top = max(top, log_prior[c] + s.log_likelihood[u, c])
        total = 0.0
        for c in range(n_functions):
            total += exp(log_prior[c] + s.log_likelihood[u, c] - top)
            cumulative[c] = total
        joined = np.searchsorted(cumulative, float(s.uniform[u, 1]) * total)
        if s.size[joined] == 0:
            for slot in range(len(s.empty)):
                if s.empty[slot] == joined:
                    s.empty[slot] = fresh
                    log_prior[fresh] = log_new
                    fresh += 1
                    break
        s.size[joined] += 1
        log_prior[joined] = log(s.size[joined])
        s.assignment[u] = joined
    return n_users, fresh
