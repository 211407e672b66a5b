"""Which of many features matter: one lengthscale for all, then one each if answers ask for it."""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import add
from typing import cast

import numpy as np

from penchant.gp import Guess, ItemHyper, ItemProblem, ItemSolution, gradient, maximize
from penchant.kernels import RBF, Kernel
from penchant.kernels.stationary import LEAVING_PULL, MANY_FEATURES


def with_relevance(
    problem: ItemProblem,
    start: ItemHyper,
    learn: Callable[[ItemProblem, ItemHyper], ItemSolution],
) -> tuple[ItemHyper, ItemSolution]:
    """What is learned, and the start it belongs to: each feature's lengthscale its own, or common.

    The prior lets one of many features leave the common lengthscale only where the evidence pulls
    hard enough. Where it pulls none so hard, climbing along each would be for nothing.
    """
    d = _n_apart(start.kernel)
    if d <= MANY_FEATURES:
        return start, learn(problem, start)
    tied = start._replace(kernel=_with_lengthscales(start.kernel, 1))
    common = learn(problem, tied)
    apart = common.hyper._replace(kernel=_with_lengthscales(common.hyper.kernel, d))
    pull = gradient(problem, common._replace(hyper=apart))[:d]
    if np.abs(pull - pull.mean()).max() <= LEAVING_PULL:
        return tied, common
    return start, maximize(problem, start, begin=Guess(apart.theta))


def _n_apart(kernel: Kernel) -> int:
    """How many lengthscales the features have; they are the first part of a kernel."""
    first = kernel.parts[0]
    if isinstance(first, RBF) and isinstance(first.lengthscale, tuple):
        return len(first.lengthscale)
    return 0


def _with_lengthscales(kernel: Kernel, d: int) -> Kernel:
    """The same with one lengthscale for all features, or with d that are all the same."""
    first, others = cast(RBF, kernel.parts[0]), kernel.parts[1:]
    one = float(np.ravel(first.lengthscale)[0])
    return reduce(add, [replace(first, lengthscale=one if d == 1 else (one,) * d), *others])
