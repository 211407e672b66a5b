"""The Gaussian part of the model: prior factor, posterior given sites. No likelihood here.

With points' prior K = Φ Φᵀ and L = Aᵀ diag(cτ) A:  B = I + Φᵀ L Φ,  Σ = Φ B⁻¹ Φᵀ.
Effects of order and of covariates are further points, of prior blockdiag(K, diag(sd²)) and factor
blockdiag(Φ, diag(sd)); their weights b stand before those of the utilities. Rows that share their
pair of items share that part of the marginal: var = var_pair + 2 zᵀΣ_βf(e_w − e_l) + zᵀΣ_ββ z.
Neither K nor L is ever inverted. Independent items have Φ = σI, which no product has to meet:
B = I + σ²L and Σ = σ²B⁻¹, a fifth of the work.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from penchant.errors import NumericalError
from penchant.gp.effects import Covariates, Runs
from penchant.gp.posterior import Basis
from penchant.gp.rows import Operator, Rows
from penchant.kernels import Independent, Inputs, Kernel
from penchant.kernels.base import bounded_factor
from penchant.numerics import linalg
from penchant.numerics.dispatch import CPU, check_room
from penchant.numerics.threads import for_row_blocks
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
    items (or among the edges, in comparison space). variance: σ² where Φ = σI. shown, runs: the
    further points' weights in each row, and the rows that share a pair; `design` is over pairs.
    """

    chosen: linalg.PivotedCholesky
    basis: Basis
    design: Operator
    is_bounded: bool = False
    variance: float | None = None
    shown: Covariates | None = None
    runs: Runs | None = None

    @property
    def n_effects(self) -> int:
        """q."""
        return 0 if self.shown is None else len(self.shown.names)

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
        return self.chosen.residual

    @property
    def flops(self) -> float:
        """Of a sweep's dense algebra, n r², as far as they keep the host waiting."""
        n_points, rank = map(float, self.factor.shape)
        return linalg.relative_flops(self.factor, n_points * rank * rank)

    def points(self, z: FloatArray) -> FloatArray:
        """Φ z."""
        return linalg.multiply(self.factor, z)

    def coarse(self, tolerance: float) -> "ItemPrior":
        """The same prior with only the pivots that a coarser tolerance needs."""
        rank = linalg.rank_at(self.factor, tolerance)
        rows = linalg.leading_columns(self.factor, rank)
        return replace(self, chosen=self.chosen._replace(rows=rows))

    def refresh(self, weight: FloatArray, shift: FloatArray) -> "LowRankState":
        """Condition on sites: O(p r² + r³), p points and rank r."""
        laplacian_factor, B = self._met(self.by_pair(weight))
        if self.shown is not None:
            pulls, corner = self._coupled(weight)
            pulled = np.stack([self.design.adjoint(pull) for pull in pulls], axis=1)
            B = linalg.bordered(B, linalg.multiply(self.factor.T, pulled), corner)
            laplacian_factor = linalg.prepend_columns(pulled, laplacian_factor)
        linalg.add_to_diagonal(B, 1.0)
        largest = float(linalg.diagonal(B).max())
        if largest > LARGEST_PRECISION:
            raise NumericalError(
                f"the prior is {largest:.1e} times as wide as what the comparisons tell, and "
                f"beyond {LARGEST_PRECISION:.0e} rounding hides it: lower the kernel's variance "
                "(an answer's noise has variance 1, so 100 is wide already), or raise a Gaussian "
                "likelihood's noise"
            )
        # B ⪰ I unless sites have negative precision, and then a jitter would hide it
        lower, jitter = linalg.cholesky(B, overwrite=True)
        del B  # a matrix less while the next ones are made
        projected = self.project(shift)
        coefficients = _solve(lower, projected)
        return LowRankState(
            prior=self,
            mean=self.forward(coefficients),
            log_det=linalg.log_det_lower(lower),
            quadratic=float(projected @ coefficients),
            coefficients=coefficients,
            lower=lower,
            laplacian_factor=laplacian_factor,
            jitter=jitter,
        )

    def by_pair(self, y: FloatArray) -> FloatArray:
        """Values of rows (m,), summed over those of the same pair."""
        return y if self.runs is None else self.runs.sum(y)

    def project(self, y: FloatArray) -> FloatArray:
        """Aᵀ y in units of the prior's weights, effects first, for y (m,)."""
        utilities = linalg.multiply(self.factor.T, self.design.adjoint(self.by_pair(y)))
        if self.shown is None:
            return utilities
        return np.append(linalg.multiply(self.shown.scaled, y), utilities)

    def forward(self, weights: FloatArray) -> FloatArray:
        """(m,) the rows' g by weights (q + r,)."""
        q = self.n_effects
        g = self.design.forward(linalg.multiply(self.factor, weights[q:]))
        if self.shown is None or self.runs is None:
            return g
        return self.runs.repeat(g) + linalg.multiply(self.shown.scaled.T, weights[:q])

    def _coupled(self, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """D Z added up by pair, (q, pairs), and Zᵀ D Z."""
        shown, runs = cast(Covariates, self.shown), cast(Runs, self.runs)
        z, blocks = shown.scaled, runs.blocks
        pulls = np.empty((len(z), len(runs.starts)))
        outer = np.empty((len(blocks), len(z), len(z)))

        def meet(number: slice) -> None:
            rows, pairs = blocks[number.start]
            pulled = weight[rows] * z[:, rows]
            outer[number.start] = linalg.multiply(pulled, z[:, rows].T)
            pulls[:, pairs] = np.add.reduceat(pulled, runs.starts[pairs] - rows.start, axis=1)

        for_row_blocks(meet, len(blocks), 1)
        return pulls, outer.sum(axis=0)

    def _met(self, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """L Φ, and the lower triangle of Φᵀ L Φ."""
        if self.variance is None:
            laplacian_factor = self.design.laplacian_times(weight, self.factor)
            return laplacian_factor, linalg.trapezoid_product(self.factor, laplacian_factor)
        L: Any = self.design.laplacian(weight)
        dense = L if isinstance(L, np.ndarray) else L.toarray()
        return np.sqrt(self.variance) * dense, (self.variance * dense).T

    @property
    def floor(self) -> float:
        """Items that the prior holds identical differ by nothing but rounding."""
        return SMALLEST_VARIANCE * min(float(self.factor[0, 0]) ** 2, 1.0)


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

    @cached_property
    def var(self) -> FloatArray:
        """(m,) variances of the edges' differences."""
        prior, design, q = self.prior, self.prior.design, self.prior.n_effects
        if prior.variance is not None:
            var = prior.variance * design.variances_under(linalg.trailing_block(self.inverse, q))
        else:
            lower = linalg.trailing_block(self.lower, q)
            var = design.variances(linalg.solve_lower(lower, prior.factor.T))
        return np.maximum(self._with_effects(var) if q else var, prior.floor)

    def _with_effects(self, of_pair: FloatArray) -> FloatArray:
        """(m,) variances, from those of the pairs' differences of utilities."""
        prior, q = self.prior, self.prior.n_effects
        shown, runs = cast(Covariates, prior.shown), cast(Runs, prior.runs)
        solved = _solve(self.lower, np.eye(len(self.coefficients), q))  # B⁻¹[:, :q]
        cov, along = linalg.to_numpy(solved), linalg.multiply(prior.factor, solved[q:])
        cross = linalg.to_numpy(prior.design.forward(linalg.to_numpy(along)))
        known = np.vstack([of_pair, 2.0 * cross.T])
        z, blocks, var = shown.scaled, runs.blocks, np.empty(shown.z.shape[1])

        def add(number: slice) -> None:
            rows, pairs = blocks[number.start]
            own = np.repeat(known[:, pairs], runs.sizes[pairs], axis=1)
            through = own[1:] + linalg.multiply(cov[:q], z[:, rows])
            var[rows] = own[0] + np.einsum("qk,qk->k", z[:, rows], through)

        for_row_blocks(add, len(blocks), 1)
        return var

    @cached_property
    def inverse(self) -> FloatArray:
        """The lower triangle of B⁻¹."""
        return linalg.inverse_of_lower(self.lower)

    @property
    def n_settled(self) -> float:
        """tr K R = r − tr B⁻¹: the effective number of weights that the answers determine."""
        return self.prior.rank - float(linalg.diagonal(self.inverse)[self.prior.n_effects :].sum())

    @property
    def n_roughly_settled(self) -> float:
        """r − Σ lower⁻²: about `n_settled`, without an inverse."""
        return self.prior.rank - float((linalg.diagonal(self.lower) ** -2).sum())

    def covariance_times(self, y: FloatArray) -> FloatArray:
        return self.prior.forward(self.weights_of(y))

    def weights_of(self, y: FloatArray) -> FloatArray:
        """B⁻¹ Φᵀ Aᵀ y, (q + r,), for y (m,): means of the weights by a shift y of the sites."""
        return _solve(self.lower, self.prior.project(y))

    def solve(self, points: FloatArray) -> FloatArray:
        """B⁻¹ Φᵀ x, (r,), for x over the points."""
        return _solve(self.lower, linalg.multiply(self.prior.factor.T, points))

    def pulled(self, z: FloatArray) -> FloatArray:
        """L Φ z."""
        return linalg.multiply(self.laplacian_factor, z)


def _solve(lower: FloatArray, x: FloatArray) -> FloatArray:
    """B⁻¹ x, B = lower lowerᵀ."""
    return linalg.solve_lower(lower, linalg.solve_lower(lower, x), transposed=True)


def factor_prior(
    kernel: Kernel,
    universe: Inputs,
    edges: Rows,
    max_rank: int | None = None,
    tolerance: float = linalg.FACTOR_TOLERANCE,
) -> ItemPrior:
    """Factor the prior over the cheaper of the two spaces.

    Only compared items matter for inference. With fewer distinct comparisons than compared
    items, comparison space is smaller; with `max_rank` below the number of items, pivots are
    chosen greedily among a sample of the items (Nyström).
    """
    compared = universe.take(edges.items)
    p, m = len(edges.items), len(edges)
    if max_rank is not None and max_rank < min(p, m):
        chosen = bounded_factor(kernel, compared, max_rank, tolerance)
        return _item_prior(edges, chosen, is_bounded=True)
    check_room(universe.device, min(p, m) if edges.sides is None else p)
    if m >= p and isinstance(kernel, Independent) and universe.device is CPU:
        scale = np.diag(np.full(p, np.sqrt(kernel.variance)))  # Φ = σI: there is nothing to factor
        prior = _item_prior(edges, linalg.PivotedCholesky(scale, np.arange(p), 0.0))
        return replace(prior, variance=kernel.variance)
    K = kernel(compared)
    if m < p and edges.sides is None:
        K = K[edges.winner] - K[edges.loser]
        K = K[:, edges.winner] - K[:, edges.loser]
        chosen = linalg.pivoted_cholesky(K, tolerance)
        winners, losers = edges.ends
        basis = Basis(winners[chosen.pivots], losers[chosen.pivots], chosen.lower)
        return ItemPrior(chosen, basis, Operator.permutation(chosen.order))
    return _item_prior(edges, linalg.pivoted_cholesky(K, tolerance, overwrite=True))


def _item_prior(edges: Rows, chosen: linalg.PivotedCholesky, is_bounded: bool = False) -> ItemPrior:
    design = edges.operator(np.argsort(chosen.order))
    basis = Basis(edges.items[chosen.pivots], None, chosen.lower)
    return ItemPrior(chosen, basis, design, is_bounded)
