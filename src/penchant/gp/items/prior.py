"""The Gaussian part of the model: prior factor, posterior given sites. No likelihood here.

With points' prior K = Φ Φᵀ and L = Aᵀ diag(cτ) A:  B = I + Φᵀ L Φ,  Σ = Φ B⁻¹ Φᵀ.
Neither K nor L is ever inverted. Independent items have Φ = σI, which no product has to meet:
B = I + σ²L and Σ = σ²B⁻¹, a fifth of the work.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from penchant.errors import NumericalError
from penchant.gp.posterior import Basis
from penchant.gp.rows import Edges, Operator, SparseRows
from penchant.kernels import Independent, Inputs, Kernel
from penchant.numerics.dispatch import HOST, check_room
from penchant.numerics.linalg import (
    FACTOR_TOLERANCE,
    PivotedCholesky,
    add_to_diagonal,
    cholesky,
    diagonal,
    identity_like,
    inverse_of_lower,
    leading_columns,
    log_det_lower,
    multiply,
    pivoted_cholesky,
    rank_at,
    relative_flops,
    row_squares,
    solve_lower,
    stack_rows,
    trapezoid_product,
    zeros_like,
)
from penchant.numerics.types import FloatArray

SMALLEST_VARIANCE = 1e-12
"""Of a difference, relative to the largest prior variance or to the noise of an answer, whichever
is less: below it two items are the same. Answers leave a variance near that of their noise,
however wide the prior is, so the prior alone is no measure."""
LARGEST_PRECISION = 1e14
"""What sites may add to the prior's precision of one: beyond it that one is lost in rounding."""


@dataclass(frozen=True)
class ItemPrior:
    """Factored prior of the points, and the operator that turns points into differences.

    Points stand in pivot order: `chosen.order` gives each one's position among the compared
    items (or among the edges, in comparison space). variance: σ² where Φ = σI.
    """

    chosen: PivotedCholesky
    basis: Basis
    design: Operator
    is_bounded: bool = False
    variance: float | None = None

    @property
    def factor(self) -> FloatArray:
        """Φ (p, r), with factor[:r] lower triangular."""
        return self.chosen.rows

    @property
    def space(self) -> str:
        """Where the linear algebra happens: among "items" or "comparisons"."""
        return "items" if self.basis.second is None else "comparisons"

    @property
    def rank(self) -> int:
        """r."""
        return int(self.factor.shape[1])

    @property
    def residual(self) -> float:
        """The largest variance that the factor leaves out."""
        return self.chosen.residual

    @property
    def flops(self) -> float:
        """Of a sweep's dense algebra, n r², as far as they keep the host waiting."""
        n_points, rank = map(float, self.factor.shape)
        return relative_flops(self.factor, n_points * rank * rank)

    def points(self, z: FloatArray) -> FloatArray:
        """Φ z."""
        return multiply(self.factor, z)

    def coarse(self, tolerance: float) -> "ItemPrior":
        """The same prior with only the pivots that a coarser tolerance needs."""
        rank = rank_at(self.factor, tolerance)
        rows = leading_columns(self.factor, rank)
        return replace(self, chosen=self.chosen._replace(rows=rows))

    def refresh(self, weight: FloatArray, shift: FloatArray) -> "LowRankState":
        """Condition on sites: O(p r² + r³), p points and rank r."""
        if not weight.any() and not shift.any():
            return self._unconditioned()
        laplacian_factor, B = self._met(weight)
        add_to_diagonal(B, 1.0)
        _check_width(float(diagonal(B).max()))
        # B ⪰ I unless sites have negative precision, and then a jitter would hide it
        lower, jitter = cholesky(B, overwrite=True)
        del B  # a matrix less while the next ones are made
        projected = multiply(self.factor.T, self.design.adjoint(shift))
        coefficients = solve_lower(lower, solve_lower(lower, projected), transposed=True)
        return LowRankState(
            prior=self,
            mean=self.design.forward(multiply(self.factor, coefficients)),
            log_det=log_det_lower(lower),
            quadratic=float(projected @ coefficients),
            coefficients=coefficients,
            lower=lower,
            laplacian_factor=laplacian_factor,
            jitter=jitter,
        )

    def _met(self, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """L Φ, and the lower triangle of Φᵀ L Φ."""
        if self.variance is None:
            laplacian_factor = self.design.laplacian_times(weight, self.factor)
            return laplacian_factor, trapezoid_product(self.factor, laplacian_factor)
        L: Any = self.design.laplacian(weight)
        dense = L if isinstance(L, np.ndarray) else L.toarray()
        return np.sqrt(self.variance) * dense, (self.variance * dense).T

    @property
    def floor(self) -> float:
        """Items that the prior holds identical differ by nothing but rounding."""
        return SMALLEST_VARIANCE * min(float(self.factor[0, 0]) ** 2, 1.0)

    def _unconditioned(self) -> "LowRankState":
        """The prior itself, which needs no factor of B."""
        return LowRankState(
            prior=self,
            mean=self.design.forward(np.zeros(len(self.factor))),
            log_det=0.0,
            quadratic=0.0,
            coefficients=np.zeros(self.rank),
            lower=identity_like(self.factor, self.rank),
            laplacian_factor=zeros_like(self.factor),
            jitter=0.0,
            is_prior=True,
        )


@dataclass(frozen=True)
class LowRankState:
    """Posterior of the weights w: mean `coefficients`, covariance (lower lowerᵀ)⁻¹.

    mean: (m,) of the edges' differences. log_det = log|I + K L|, quadratic = bᵀ Σ b. Variances
    cost more than all the rest, and steps of Newton's method need none but the last.
    """

    prior: ItemPrior
    mean: FloatArray
    log_det: float
    quadratic: float
    coefficients: FloatArray
    lower: FloatArray
    laplacian_factor: FloatArray
    jitter: float
    is_prior: bool = False

    @cached_property
    def var(self) -> FloatArray:
        """(m,) variances of the edges' differences."""
        prior, design = self.prior, self.prior.design
        if self.is_prior:
            var = design.variances(prior.factor.T)
        elif prior.variance is not None:
            var = prior.variance * design.variances_under(self.inverse)
        else:
            var = design.variances(solve_lower(self.lower, prior.factor.T))
        return np.maximum(var, prior.floor)

    @cached_property
    def inverse(self) -> FloatArray:
        """The lower triangle of B⁻¹."""
        return inverse_of_lower(self.lower)

    @property
    def n_settled(self) -> float:
        """r − tr B⁻¹ = tr K R: how many weights the answers have settled."""
        return self.prior.rank - float(diagonal(self.inverse).sum())

    @property
    def n_roughly_settled(self) -> float:
        """r − Σ lower⁻²: about as many, without an inverse."""
        return self.prior.rank - float((diagonal(self.lower) ** -2).sum())

    def respond(self, pull: FloatArray) -> FloatArray:
        """A Σ Aᵀ pull, (m,)."""
        design, factor = self.prior.design, self.prior.factor
        return design.forward(multiply(factor, self.solve(design.adjoint(pull))))

    def solve(self, points: FloatArray) -> FloatArray:
        """B⁻¹ Φᵀ x, (r,), for x over the points."""
        projected = multiply(self.prior.factor.T, points)
        return solve_lower(self.lower, solve_lower(self.lower, projected), transposed=True)

    def pulled(self, z: FloatArray) -> FloatArray:
        """L Φ z."""
        return multiply(self.laplacian_factor, z)


def _check_width(largest: float) -> None:
    if largest > LARGEST_PRECISION:
        raise NumericalError(
            f"the prior is {largest:.1e} times as wide as what the comparisons tell, and beyond "
            f"{LARGEST_PRECISION:.0e} rounding hides it: lower the kernel's variance (an answer's "
            "noise has variance 1, so 100 is wide already), or raise a Gaussian likelihood's noise"
        )


def factor_prior(
    kernel: Kernel,
    universe: Inputs,
    edges: Edges,
    max_rank: int | None = None,
    tolerance: float = FACTOR_TOLERANCE,
) -> ItemPrior:
    """Factor the prior over the cheaper of the two spaces.

    Only compared items matter for inference. With fewer distinct comparisons than compared
    items, comparison space is smaller; with `max_rank` below the number of items, pivots are
    chosen greedily among a sample of the items (Nyström).
    """
    compared = universe.take(edges.items)
    p, m = len(edges.items), len(edges)
    if max_rank is not None and max_rank < min(p, m):
        return _bounded_prior(kernel, compared, edges, max_rank, tolerance)
    check_room(universe.device, min(p, m) if edges.sides is None else p)
    if m >= p and isinstance(kernel, Independent) and universe.device is HOST:
        return _independent_prior(kernel.variance, edges)
    K = kernel(compared)
    if m < p and edges.sides is None:
        K = K[edges.winner] - K[edges.loser]
        K = K[:, edges.winner] - K[:, edges.loser]
        chosen = pivoted_cholesky(K, tolerance)
        winners, losers = edges.items[edges.winner], edges.items[edges.loser]
        basis = Basis(winners[chosen.pivots], losers[chosen.pivots], chosen.lower)
        return ItemPrior(chosen, basis, SparseRows.permutation(chosen.order))
    return _item_prior(edges, pivoted_cholesky(K, tolerance, overwrite=True))


def _independent_prior(variance: float, edges: Edges) -> ItemPrior:
    """Φ = σI: there is nothing to factor."""
    n = len(edges.items)
    rows = np.diag(np.full(n, np.sqrt(variance)))
    prior = _item_prior(edges, PivotedCholesky(rows, np.arange(n), 0.0))
    return replace(prior, variance=variance)


def _item_prior(edges: Edges, chosen: PivotedCholesky, is_bounded: bool = False) -> ItemPrior:
    design = edges.operator(np.argsort(chosen.order))
    basis = Basis(edges.items[chosen.pivots], None, chosen.lower)
    return ItemPrior(chosen, basis, design, is_bounded)


def _bounded_prior(
    kernel: Kernel, compared: Inputs, edges: Edges, rank: int, tolerance: float
) -> ItemPrior:
    p = len(edges.items)
    # an even spread over the item order keeps the choice deterministic and cheap
    spread = np.linspace(0, p - 1, min(p, max(4 * rank, 2_000))).round()
    candidates = np.unique(spread.astype(np.intp))
    found = pivoted_cholesky(kernel(compared.take(candidates)), tolerance, max_rank=rank)
    pivots = candidates[found.pivots]
    others = np.setdiff1d(np.arange(p), pivots)
    cross = kernel(compared.take(others), compared.take(pivots))
    rest = solve_lower(found.lower, cross.T, overwrite=True).T
    left = kernel.diag(compared.take(others)) - row_squares(rest)
    rows = stack_rows(found.lower, rest)
    chosen = PivotedCholesky(rows, np.append(pivots, others), float(left.max(initial=0.0)))
    return _item_prior(edges, chosen, is_bounded=True)
