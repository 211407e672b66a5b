"""RankSVM: squared hinge loss on the differences of ordered pairs, without the differences.

Minimise ½|w|² + C Σ weight · max(0, 1 − g)², with g = f[better] − f[worse] and f = Φw. The pairs
inside the margin form a graph; its Laplacian L gives the Hessian I + 2C ΦᵀLΦ, which conjugate
gradients apply as two products with Φ and one with a sparse n × n matrix.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from penchant.errors import ConvergenceWarning, warn
from penchant.numerics.types import FloatArray
from penchant.ranking.graph import OrderedPairs, Pairs, PreferenceGraph


@dataclass(frozen=True)
class _Objective:
    """The loss as a function of w and f = Φw, so that a line search needs no product with Φ."""

    features: Any
    pairs: OrderedPairs
    C: float

    def slack(self, f: FloatArray) -> FloatArray:
        return np.maximum(0.0, 1.0 - (f[self.pairs.better] - f[self.pairs.worse]))

    def value(self, w: FloatArray, f: FloatArray) -> float:
        return float(0.5 * w @ w + self.C * (self.pairs.weight @ self.slack(f) ** 2))

    def gradient(self, w: FloatArray, f: FloatArray) -> FloatArray:
        pull = self.pairs.weight * self.slack(f)
        n = len(f)
        per_row = np.bincount(self.pairs.better, pull, n) - np.bincount(self.pairs.worse, pull, n)
        return w - 2.0 * self.C * (self.features.T @ per_row)

    def hessian(self, f: FloatArray) -> LinearOperator:
        inside = self.slack(f) > 0
        better, worse = self.pairs.better[inside], self.pairs.worse[inside]
        n = len(f)
        ends = (np.concatenate([better, worse]), np.concatenate([worse, better]))
        weight = 2.0 * self.C * np.tile(self.pairs.weight[inside], 2)
        adjacency = sparse.csr_array((weight, ends), shape=(n, n))  # repeated pairs add up
        degree = np.bincount(ends[0], weight, n)

        def product(v: FloatArray) -> FloatArray:
            moved = self.features @ v
            return v + self.features.T @ (degree * moved - adjacency @ moved)

        r = self.features.shape[1]
        return LinearOperator((r, r), matvec=product, dtype=np.float64)


def training_pairs(graph: PreferenceGraph, max_pairs: int) -> OrderedPairs:
    """The ordered pairs to learn from, an even sample of them where there are too many.

    Pairs of graded rows weigh the same, and together as much as there are rows, so that C means
    the same however many pairs the rows make; explicit pairs weigh what they were counted.
    """
    reach = max(1, max_pairs // graph.n_rows)
    pairs = graph.ordered_pairs(reach)
    if isinstance(graph, Pairs):
        return pairs
    size = graph.sizes[graph.group[pairs.better]]
    weight = np.maximum(1.0, (size - 1) / (2 * reach))  # a sampled group stands for all its pairs
    return pairs._replace(weight=weight * (graph.n_rows / weight.sum()))


def fit_rank_svm(
    features: Any, pairs: OrderedPairs, C: float, tol: float = 1e-5, max_iter: int = 100
) -> tuple[FloatArray, int]:
    """Weights (r,) and Newton steps, for features (n, r), dense or sparse.

    Newton's method with conjugate gradients; it stops when the gradient has fallen to `tol` times
    the first, and warns if `max_iter` steps do not suffice.

    >>> pairs = OrderedPairs(np.array([1]), np.array([0]), np.ones(1))
    >>> fit_rank_svm(np.array([[0.0], [1.0]]), pairs, C=0.5)
    (array([0.5]), 1)
    """
    objective = _Objective(features, pairs, C)
    w = np.zeros(features.shape[1])
    f = np.zeros(features.shape[0])
    gradient = objective.gradient(w, f)
    start = size = float(np.linalg.norm(gradient))
    n_iter, length = 0, 1.0
    while size > tol * start and n_iter < max_iter and length > 0.0:
        n_iter += 1
        accuracy = min(0.1, size / start)  # loose steps while far away, tight ones near the end
        step, _ = cg(objective.hessian(f), -gradient, rtol=accuracy, maxiter=500)
        length, move = _line_search(objective, w, f, step, float(gradient @ step))
        w, f = w + length * step, f + length * move
        gradient = objective.gradient(w, f)
        size = float(np.linalg.norm(gradient))
    if size > tol * start:
        warn(
            f"RankSVM stopped after {n_iter} Newton steps with a gradient of {size / start:.1e} "
            f"of the first, not {tol:g}: raise max_iter or tol, or lower C",
            ConvergenceWarning,
        )
    return w, n_iter


def _line_search(
    objective: _Objective, w: FloatArray, f: FloatArray, step: FloatArray, slope: float
) -> tuple[float, FloatArray]:
    """The length of the step that lowers the loss enough (Armijo's condition), and Φ × step.

    The length is halved until it does; it is zero if rounding hides any further decrease.
    """
    before, move = objective.value(w, f), objective.features @ step
    length = 1.0
    while objective.value(w + length * step, f + length * move) > before + 1e-4 * length * slope:
        length *= 0.5
        if length < 1e-10:
            return 0.0, move
    return length, move
