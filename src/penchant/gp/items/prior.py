"""The Gaussian part of the model: prior factor, posterior given sites. No likelihood here.

With points' prior K = Φ Φᵀ and L = Aᵀ diag(cτ) A:  B = I + Φᵀ L Φ,  Σ = Φ B⁻¹ Φᵀ.
Neither K nor L is ever inverted.
"""

from dataclasses import dataclass, replace

import numpy as np

from penchant.errors import DataError
from penchant.gp.items.edges import Design, EdgePoints, Edges, ItemDifferences
from penchant.kernels import Inputs, Kernel
from penchant.numerics.linalg import (
    FACTOR_TOLERANCE,
    PivotedCholesky,
    cholesky,
    log_det_lower,
    multiply,
    multiply_symmetric,
    pivoted_cholesky,
    rank_at,
    solve_lower,
    trapezoid_product,
)
from penchant.numerics.types import FloatArray, IntArray

SMALLEST_VARIANCE = 1e-12
"""Of a difference, relative to the largest prior variance: below it two items are the same."""
DENSE_ITEMS = 20_000
"""More compared items than this need `rank=`: their covariance would not fit in memory."""


@dataclass(frozen=True)
class Basis:
    """The pivots through which the prior is seen: f(x) = φ(x)ᵀ w + rest, w ~ N(0, I).

    first: (r,) universe positions of the pivot items; second: None in item space, the losers
    of the pivot comparisons in comparison space. lower: (r, r) factor of the pivots' prior.
    """

    first: IntArray
    second: IntArray | None
    lower: FloatArray

    def features(self, kernel: Kernel, universe: Inputs, target: Inputs) -> FloatArray:
        """φ of the target items, (len(target), r): pivots have theirs, others need a solve."""
        if self.second is not None or target.index is None or universe.index is None:
            return self._solved(kernel, universe, target)
        row = np.full(len(universe), -1)
        row[self.first] = np.arange(len(self.first))
        row = row[target.index]
        features: FloatArray = self.lower[row]
        others = np.flatnonzero(row < 0)
        if len(others):
            features[others] = self._solved(kernel, universe, target.take(others))
        return features

    def _solved(self, kernel: Kernel, universe: Inputs, target: Inputs) -> FloatArray:
        cross = kernel(target, universe.take(self.first))
        if self.second is not None:
            cross -= kernel(target, universe.take(self.second))
        return solve_lower(self.lower, cross.T, overwrite=True).T


@dataclass(frozen=True)
class Prior:
    """Factored prior of the points, and the operator that turns points into differences.

    Points stand in pivot order: `chosen.order` gives each one's position among the compared
    items (or among the edges, in comparison space).
    """

    chosen: PivotedCholesky
    basis: Basis
    design: Design
    is_bounded: bool = False

    @property
    def factor(self) -> FloatArray:
        """Φ (p, r), with factor[:r] lower triangular."""
        return self.chosen.rows

    @property
    def space(self) -> str:
        """Where the linear algebra happens: among "items" or "comparisons"."""
        return "items" if isinstance(self.design, ItemDifferences) else "comparisons"

    def coarse(self, tolerance: float) -> "Prior":
        """The same prior with only the pivots that a coarser tolerance needs."""
        rank = rank_at(self.factor, tolerance)
        rows = np.ascontiguousarray(self.factor[:, :rank])
        return replace(self, chosen=self.chosen._replace(rows=rows))

    def refresh(self, weight: FloatArray, shift: FloatArray) -> "LowRankState":
        """Condition on sites: O(p r² + r³), p points and rank r."""
        if not weight.any() and not shift.any():
            return self._unconditioned()
        laplacian_factor = multiply_symmetric(self.design.laplacian(weight), self.factor)
        B = trapezoid_product(self.factor, laplacian_factor)
        B[np.diag_indices_from(B)] += 1.0
        # B ⪰ I unless sites have negative precision, and then a jitter would hide it
        lower, jitter = cholesky(B, overwrite=True)
        projected = multiply(self.factor.T, self.design.adjoint(shift))
        coefficients = solve_lower(lower, solve_lower(lower, projected), transposed=True)
        half = solve_lower(lower, self.factor.T)
        # items that the prior holds identical differ by nothing but rounding
        floor = SMALLEST_VARIANCE * self.factor[0, 0] ** 2
        return LowRankState(
            mean=self.design.forward(multiply(self.factor, coefficients)),
            var=np.maximum(self.design.variances(half), floor),
            log_det=log_det_lower(lower),
            quadratic=float(projected @ coefficients),
            coefficients=coefficients,
            lower=lower,
            laplacian_factor=laplacian_factor,
            jitter=jitter,
        )

    def _unconditioned(self) -> "LowRankState":
        """The prior itself, which needs no factor of B."""
        p, rank = self.factor.shape
        floor = SMALLEST_VARIANCE * self.factor[0, 0] ** 2
        var = np.maximum(self.design.variances(self.factor.T), floor)
        return LowRankState(
            mean=np.zeros(len(var)),
            var=var,
            log_det=0.0,
            quadratic=0.0,
            coefficients=np.zeros(rank),
            lower=np.eye(rank),
            laplacian_factor=np.zeros((p, rank)),
            jitter=0.0,
        )


@dataclass(frozen=True)
class LowRankState:
    """Posterior of the weights w: mean `coefficients`, covariance (lower lowerᵀ)⁻¹.

    mean, var: (m,) marginals of the edges' differences. log_det = log|I + K L|,
    quadratic = bᵀ Σ b.
    """

    mean: FloatArray
    var: FloatArray
    log_det: float
    quadratic: float
    coefficients: FloatArray
    lower: FloatArray
    laplacian_factor: FloatArray
    jitter: float


def factor_prior(
    kernel: Kernel,
    universe: Inputs,
    edges: Edges,
    rank: int | None = None,
    tolerance: float = FACTOR_TOLERANCE,
) -> Prior:
    """Factor the prior over the cheaper of the two spaces.

    Only compared items matter for inference. With fewer distinct comparisons than compared
    items, comparison space is smaller; with `rank` below the number of items, pivots are
    chosen greedily among a sample of the items (Nyström).
    """
    compared = universe.take(edges.items)
    p, m = len(edges.items), len(edges)
    if rank is not None and rank < min(p, m):
        return _bounded_prior(kernel, compared, edges, rank, tolerance)
    if min(p, m) > DENSE_ITEMS:
        raise DataError(
            f"{p:,} items were compared: an exact fit would need a {p:,}×{p:,} matrix; "
            "give rank= (say rank=500) to bound memory and time"
        )
    K = kernel(compared)
    if m < p:
        K = K[edges.winner] - K[edges.loser]
        K = K[:, edges.winner] - K[:, edges.loser]
        chosen = pivoted_cholesky(K, tolerance)
        winners, losers = edges.items[edges.winner], edges.items[edges.loser]
        basis = Basis(winners[chosen.pivots], losers[chosen.pivots], chosen.lower)
        return Prior(chosen, basis, EdgePoints(chosen.order))
    return _item_prior(edges, pivoted_cholesky(K, tolerance, overwrite=True))


def _item_prior(edges: Edges, chosen: PivotedCholesky, is_bounded: bool = False) -> Prior:
    position = np.argsort(chosen.order)
    design = ItemDifferences(position[edges.winner], position[edges.loser], len(position))
    basis = Basis(edges.items[chosen.pivots], None, chosen.lower)
    return Prior(chosen, basis, design, is_bounded)


def _bounded_prior(
    kernel: Kernel, compared: Inputs, edges: Edges, rank: int, tolerance: float
) -> Prior:
    p = len(edges.items)
    # an even spread over the item order keeps the choice deterministic and cheap
    spread = np.linspace(0, p - 1, min(p, max(4 * rank, 2_000))).round()
    candidates = np.unique(spread.astype(np.intp))
    found = pivoted_cholesky(kernel(compared.take(candidates)), tolerance, max_rank=rank)
    pivots = candidates[found.pivots]
    others = np.setdiff1d(np.arange(p), pivots)
    rows = np.empty((p, len(pivots)))
    rows[: len(pivots)] = found.lower
    rest = rows[len(pivots) :]
    cross = kernel(compared.take(others), compared.take(pivots))
    rest[:] = solve_lower(found.lower, cross.T, overwrite=True).T
    left = kernel.diag(compared.take(others)) - np.einsum("ij,ij->i", rest, rest)
    chosen = PivotedCholesky(rows, np.append(pivots, others), float(left.max(initial=0.0)))
    return _item_prior(edges, chosen, is_bounded=True)
