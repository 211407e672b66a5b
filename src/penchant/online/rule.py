"""How a perceptron learns and what it remembers, as named tuples, which compiled code takes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from penchant.numerics.types import FloatArray, IntArray

Real = NDArray[np.floating[Any]]

LINEAR, PERCEPTRON, HINGE, LOGISTIC = range(4)
LOSSES = {"linear": LINEAR, "perceptron": PERCEPTRON, "hinge": HINGE, "logistic": LOGISTIC}

ADDITIVE, ADAPTIVE, EXPONENTIATED = range(3)
UPDATES = {"additive": ADDITIVE, "adaptive": ADAPTIVE, "exponentiated": EXPONENTIATED}


class UpdateRule(NamedTuple):
    """How one round changes the weights.

    The difference Δ = φ(x, ȳ) − φ(x, y) pulls the weights by `rate` times −ℓ'(wᵀΔ), where the
    loss ℓ is linear (always 1: the paper's algorithm), perceptron (1 when wᵀΔ ≤ 0), hinge
    (1 when wᵀΔ < 1) or logistic (between 0 and 1).
    """

    discount: FloatArray
    """(k,) weight of each place in the ranking."""
    loss: int
    update: int
    rate: float
    average: bool


class State(NamedTuple):
    """Everything that the next round needs; d features.

    Sums over all rounds are in double precision whatever the weights are in: a million small
    terms would be lost in single.
    """

    weights: Real
    """(d,) in the precision of the model."""
    log_weights: FloatArray
    """(d,) used by the exponentiated update, whose weights are their softmax."""
    squares: FloatArray
    """(d,) sums of squared gradients, used by the adaptive update."""
    total: FloatArray
    """(d,) sum of the weights after each round, used by averaging."""
    rounds: IntArray
    """(1,) the number of rounds learned."""


def new_state(rule: UpdateRule, n_features: int, dtype: DTypeLike) -> State:
    """Return the state before the first round: w = 0, or the uniform combination."""
    start = 1.0 / n_features if rule.update == EXPONENTIATED else 0.0
    return State(
        weights=np.full(n_features, start, dtype),
        log_weights=np.zeros(n_features),
        squares=np.zeros(n_features),
        total=np.zeros(n_features),
        rounds=np.zeros(1, dtype=np.intp),
    )
