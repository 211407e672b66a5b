"""KPCRank: least squares on differences along the first p kernel principal components (001 §4).

With Z = V Λ^½ the components of the rows and M = ZᵀLZ, Eq. 8 reads M_p w = (ZᵀLs)_p for the
leading p × p block. One basis T with TᵀMT = I answers it for every p at once: with
y = TᵀZᵀLs the prediction from p components is the sum of the first p columns of (Z T) y.
"""

from typing import Literal, NamedTuple

import numpy as np
from scipy.linalg import eigh, lapack

from penchant.numerics.types import FloatArray
from penchant.ranking.graph import PreferenceGraph, disagreement

Selection = Literal["nested", "truncate"]

N_FOLDS = 5
PIVOT_TOLERANCE = 1e-10
"""A component of which the earlier ones explain all but this share, on the graph, is skipped."""
_BLOCK = 48
"""Columns of a panel: between panels the Cholesky factor is updated by one matrix product."""


class ComponentPath(NamedTuple):
    """Solutions for every number of components: w_p = basis[:, :p] @ response[:p]."""

    basis: FloatArray
    response: FloatArray

    def weights(self, p: int) -> FloatArray:
        """Weights of the components when p of them are used."""
        return self.basis[:, :p] @ self.response[:p]

    def predictions(self, Z: FloatArray) -> FloatArray:
        """Predictions (n, p_max): column p − 1 is what p components say about the rows Z."""
        terms = Z @ self.basis
        terms *= self.response
        return np.cumsum(terms, axis=1, out=terms)


def principal_components(
    features: FloatArray, n_components: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean (r,), axes (r, p) and components Z = (Φ − mean) axes (n, p) of features Φ (n, r).

    Columns have falling variance, and are at most as many as the numerical rank.

    >>> abs(principal_components(np.array([[0.0, 1.0], [2.0, 1.0]]), 2)[2])
    array([[1.], [1.]])
    """
    mean, r = features.mean(axis=0), features.shape[1]
    centred, lowest = features - mean, r - min(n_components, r)
    only = {"subset_by_index": (lowest, r - 1), "driver": "evr"}
    variance, axes = eigh(centred.T @ centred, overwrite_a=True, check_finite=False, **only)
    rounding = variance[-1] * max(features.shape) * np.finfo(np.float64).eps
    real = np.flatnonzero(variance > rounding)[::-1]
    axes = np.ascontiguousarray(axes[:, real])
    return mean, axes, centred @ axes


def component_path(
    Z: FloatArray, graph: PreferenceGraph, selection: Selection = "nested"
) -> ComponentPath:
    """Solve Eq. 8 for every number of components (n, p) at once.

    "nested" is exact: the leading blocks of the Cholesky factor M = CCᵀ are the factors of every
    smaller M, so T = C⁻ᵀ. "truncate" is the shortcut of 001 §4.2, which keeps the p largest
    eigenvalues of the full M: directions of M, not the p first components.
    """
    M, response = graph.normal_equations(Z)
    basis = _nested_basis(M) if selection == "nested" else _truncated_basis(M)
    return ComponentPath(basis, basis.T @ response)


def held_out_error(
    Z: FloatArray, graph: PreferenceGraph, selection: Selection = "nested"
) -> FloatArray:
    """Cross-validated disagreement error (p,) of 1, 2, …, p components.

    The components come from all rows, which needs no label; only what is learned along them is
    cross-validated. NaN where nothing can be held out.
    """
    wrong, total = np.zeros(Z.shape[1]), 0.0
    for fold in graph.folds(N_FOLDS):
        path = component_path(Z[fold.train_rows], fold.train, selection)
        wrong += disagreement(path.predictions(Z[fold.valid_rows]), fold.valid)
        total += float(fold.valid.weight.sum())
    return wrong / total if total else np.full(Z.shape[1], np.nan)


def _truncated_basis(M: FloatArray) -> FloatArray:
    eigenvalues, axes = eigh(M, driver="evr", check_finite=False)
    eigenvalues, axes = eigenvalues[::-1], axes[:, ::-1]
    real = eigenvalues > PIVOT_TOLERANCE * eigenvalues[0]
    basis = np.zeros_like(M)
    basis[:, real] = axes[:, real] / np.sqrt(eigenvalues[real])
    return basis


def _nested_basis(M: FloatArray) -> FloatArray:
    """C⁻ᵀ, with a zero column for each component that adds nothing on the graph."""
    C, skipped = nested_cholesky(M)
    C[skipped, skipped] = 1.0  # its column is zero below, so the other components never see it
    inverse, _ = lapack.dtrtri(C, lower=1)
    inverse[skipped] = 0.0
    return np.ascontiguousarray(inverse.T)


def nested_cholesky(M: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cholesky factor C of a positive semidefinite M, in the given order, skipping zero pivots.

    Returns C and the skipped indices, whose columns are zero. A component that is constant
    within every group has a zero pivot; LAPACK's pivoting would destroy the order that makes
    leading blocks the factors of smaller problems.

    >>> nested_cholesky(np.array([[4.0, 2.0, 2.0], [2.0, 1.0, 1.0], [2.0, 1.0, 5.0]]))
    (array([[2., 0., 0.], [1., 0., 0.], [1., 0., 2.]]), array([1]))
    """
    p = len(M)
    C = np.zeros_like(M)
    skipped: list[int] = []
    for start in range(0, p, _BLOCK):
        stop = min(start + _BLOCK, p)
        panel = M[start:, start:stop] - C[start:, :start] @ C[start:stop, :start].T
        for j in range(stop - start):
            pivot = panel[j, j]
            if pivot <= PIVOT_TOLERANCE * M[start + j, start + j]:
                skipped.append(start + j)
                panel[:, j] = 0.0
                continue
            panel[:j, j] = 0.0
            panel[j:, j] /= np.sqrt(pivot)
            panel[j + 1 :, j + 1 :] -= np.outer(panel[j + 1 :, j], panel[j + 1 : stop - start, j])
        C[start:, start:stop] = panel
    return C, np.array(skipped, dtype=np.intp)
