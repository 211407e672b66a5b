"""Minimising a smooth function inside a box."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from penchant.numerics.types import FloatArray


def minimize_in_box(
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    bounds: FloatArray,
    max_steps: int,
) -> OptimizeResult:
    """L-BFGS-B from value and slope; the first step is at most one unit long.

    The raw first step is the gradient itself, which for an evidence of thousands of comparisons
    leaps to a corner of the box: hence the objective is divided by the length of its first
    gradient.

    >>> box = np.array([[-3.0, 3.0]])
    >>> minimize_in_box(lambda x: (float(x @ x), 2 * x), np.array([2.0]), box, 50).x.round(6)
    array([0.])
    """
    scale = 0.0

    def scaled(x: FloatArray) -> tuple[float, FloatArray]:
        nonlocal scale
        value, slope = objective(x)
        scale = scale or max(1.0, float(np.linalg.norm(slope)))
        return value / scale, slope / scale

    return minimize(
        scaled,
        np.clip(start, bounds[:, 0], bounds[:, 1]),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": max_steps, "ftol": 1e-6, "gtol": 1e-5, "maxcor": 20},
    )
