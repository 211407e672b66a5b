"""RankRLS: ridge regression on score differences, for all ridges from one decomposition.

In features Φ (K = ΦΦᵀ) the system (LK + λI) a = Ls reads (ΦᵀLΦ + λI) w = ΦᵀLs, and one
eigendecomposition ΦᵀLΦ = V diag(g) Vᵀ gives w for every λ. The same decomposition holds the
answer to "what if this group had not been seen": with E = RΦV (RᵀR = L) and D = g + λ, the
residuals of a left-out block H are (I − E_H D⁻¹ E_Hᵀ)⁻¹ times its fitted residuals.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from penchant.numerics.types import FloatArray, IntArray
from penchant.ranking.graph import (
    VALIDATION_REACH,
    Groups,
    Pairs,
    PreferenceGraph,
    disagreement,
    wrong_order,
)

_FOLD_ROWS = 100
"""Rows left out together in a single group, which is divided into ten parts or more."""
_SMALLEST_SPLIT = 4
"""Rows of the smallest group that can be split: two parts of two rows have a comparison each."""
_MAX_NUMBERS = 20_000_000
"""Size of the largest temporary array: 160 MB."""


@dataclass(frozen=True)
class RidgePath:
    """The solution of RankRLS for every λ, in features.

    eigenvalues : (r,) of ΦᵀLΦ. axes : (r, r) its eigenvectors V. response : (r,) VᵀΦᵀLs.
    """

    eigenvalues: FloatArray
    axes: FloatArray
    response: FloatArray

    def weights(self, alphas: FloatArray) -> FloatArray:
        """Feature weights (r, k), a column for each of k ridges."""
        return self.axes @ self.shrunken(alphas)

    def shrunken(self, alphas: FloatArray) -> FloatArray:
        """The same weights along the eigenvectors (r, k)."""
        return self.response[:, None] / (self.eigenvalues[:, None] + alphas)

    def default_alphas(self) -> FloatArray:
        """A grid of 21 ridges over nine decades of the problem's scale."""
        scale = self.eigenvalues.max()
        return np.geomspace(1e-8, 1e1, 21) * (scale if scale > 0 else 1.0)


def ridge_path(features: FloatArray, graph: PreferenceGraph) -> RidgePath:
    """Decompose once, for features (n, r).

    >>> graph = Groups(np.zeros(3, dtype=np.intp), np.array([0.0, 1.0, 2.0]))
    >>> path = ridge_path(np.array([[0.0], [1.0], [2.0]]), graph)
    >>> path.weights(np.array([0.0, 6.0]))
    array([[1. , 0.5]])
    """
    gram, response = graph.normal_equations(features)
    eigenvalues, axes = eigh(gram, driver="evr", overwrite_a=True, check_finite=False)
    return RidgePath(np.maximum(eigenvalues, 0.0), axes, axes.T @ response)


def leave_out_error(
    path: RidgePath, features: FloatArray, graph: PreferenceGraph, alphas: FloatArray
) -> FloatArray:
    """Disagreement error (k,) of each ridge on comparisons that were left out.

    Several groups: each is left out in turn. Explicit pairs: each distinct comparison in turn.
    One group: its rows in parts, with the ridge per remaining row kept the same. NaN where
    nothing can be left out, as with a handful of rows.
    """
    projected = features @ path.axes
    if isinstance(graph, Pairs):
        return _leave_pair_out_error(path, projected, graph, alphas)
    if graph.n_groups > 1:
        pairs = graph.ordered_pairs(VALIDATION_REACH)
        predictions = leave_group_out(path, projected, graph, alphas)
        return disagreement(predictions, pairs) / float(pairs.weight.sum())
    return _leave_part_out_error(path, projected, graph, alphas)


def leave_group_out(
    path: RidgePath, projected: FloatArray, graph: Groups, alphas: FloatArray
) -> FloatArray:
    """Predictions (n, k) of each row by the model that never saw its group.

    They are centred within each group, whose constant does not change the order. `projected`
    is ΦV (n, r).
    """
    groups = np.split(np.argsort(graph.group, kind="stable"), np.cumsum(graph.sizes)[:-1])
    D = path.eigenvalues + alphas[:, None]
    rooted = _leave_out(graph.root(projected), graph.target, path.shrunken(alphas), D, groups)
    return rooted / np.sqrt(graph.sizes[graph.group])[:, None]


def _leave_part_out_error(
    path: RidgePath, projected: FloatArray, graph: Groups, alphas: FloatArray
) -> FloatArray:
    """One group is ridge regression with a free constant, a column that no ridge shrinks."""
    n, k = graph.n_rows, len(alphas)
    if n < _SMALLEST_SPLIT:
        return np.full(k, np.nan)
    E = np.column_stack([graph.root(projected), np.full(n, 1.0 / np.sqrt(n))])
    D = np.column_stack([path.eigenvalues + alphas[:, None], np.ones(k)])
    weights = np.vstack([path.shrunken(alphas), np.zeros(k)])  # the target is centred already
    blocks = graph.blocks(min(max(10, n // _FOLD_ROWS), n // 2))
    predictions = _leave_out(E, graph.target, weights, D, blocks)
    wrong, total = np.zeros(k), 0.0
    for rows in blocks:
        pairs = graph.take(rows).ordered_pairs(VALIDATION_REACH)
        wrong += disagreement(predictions[rows], pairs)
        total += pairs.weight.sum()
    return wrong / total


def _leave_out(
    E: FloatArray, target: FloatArray, weights: FloatArray, D: FloatArray, blocks: list[IntArray]
) -> FloatArray:
    """Predictions (n, k) of the target by fits without the block that holds each row.

    E : (n, r). weights : (r, k) of the full fit. D : (k, r) regularised eigenvalues.
    """
    predictions = np.empty((len(E), len(D)))
    for rows in blocks:
        part = E[rows]
        fitted = target[rows, None] - part @ weights
        n_chunks = 1 + part.size * len(D) // _MAX_NUMBERS
        for ridges in np.array_split(np.arange(len(D)), n_chunks):
            residual = _left_out_residual(part, fitted[:, ridges], D[ridges])
            predictions[np.ix_(rows, ridges)] = target[rows, None] - residual
    return predictions


def _left_out_residual(part: FloatArray, fitted: FloatArray, D: FloatArray) -> FloatArray:
    """(I − E D⁻¹ Eᵀ)⁻¹ × fitted residual (h, k), for a block E (h, r) and each row of D (k, r)."""
    h, r = part.shape
    if h <= r:
        inner = np.eye(h) - (part / D[:, None, :]) @ part.T
        return _solve_each(inner, fitted)
    # The block is longer than its features: by Woodbury, solve in their space instead.
    inner = -np.broadcast_to(part.T @ part, (len(D), r, r))
    inner[:, np.arange(r), np.arange(r)] += D
    return fitted + part @ _solve_each(inner, part.T @ fitted)


def _solve_each(matrices: FloatArray, columns: FloatArray) -> FloatArray:
    """Solve k systems (k, h, h), each for its own column of (h, k)."""
    return np.asarray(np.linalg.solve(matrices, columns.T[:, :, None])[:, :, 0].T, dtype=float)


def _leave_pair_out_error(
    path: RidgePath, projected: FloatArray, graph: Pairs, alphas: FloatArray
) -> FloatArray:
    """A block of one comparison: its residual grows by 1 / (1 − leverage)."""
    weights = path.shrunken(alphas)
    inverse = 1.0 / (path.eigenvalues[:, None] + alphas)
    decided = graph.take(graph.margin > 0)
    wrong = np.zeros(len(alphas))
    step = 1 + _MAX_NUMBERS // len(path.eigenvalues)
    for start in range(0, len(decided.winner), step):
        part = decided.take(slice(start, start + step))
        E, target = part.root(projected), part.target[:, None]
        leverage = (E * E) @ inverse
        wrong += wrong_order(target - (target - E @ weights) / (1.0 - leverage), part.count)
    return wrong / float(decided.count.sum())
