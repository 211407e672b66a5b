"""The arrow: exact Gaussian algebra for many users, linear in their number.

Prior: f_u = Φ (√ρ Wᵀφ_u + √(1−ρ) r_u) with shared W and personal r_u, all standard normal, so
that Cov(f) = (ρ Φ_u Φ_uᵀ + (1−ρ) I) ⊗ Φ Φᵀ, the K_u ⊗ K_x of paper 003 Eq. 3. Given sites, the
precision of (W, r_1, …, r_U) is an arrow: each r_u meets only W. Eliminating every r_u leaves one
system of the size of W; no matrix over users × items exists.

For one user, on the p items that they compared: L the Laplacian of their sites, b its shift,
C = F (I + FᵀLF)⁻¹ Fᵀ the covariance of their deviation when W is known (F Fᵀ = (1−ρ) K_x there),
J = I − C L, R = L J. Then S = I + Σ_u (φ_u φ_uᵀ) ⊗ (ρ Φᵀ R_u Φ) is the precision of W.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from penchant.gp.users.blocks import Block
from penchant.numerics.linalg import (
    apply_stack,
    cholesky,
    cholesky_stack,
    gram,
    log_det_lower,
    multiply,
    multiply_stack,
    solve_lower,
    solve_stack,
    transpose_stack,
    triangle_stack,
)
from penchant.numerics.types import FloatArray


class Eliminated(NamedTuple):
    """A block's users with their deviations integrated out: see the module's head.

    C, J, R: (k, p, p); log_det: Σ log|I + FᵀLF|.
    """

    C: FloatArray
    J: FloatArray
    R: FloatArray
    log_det: float


def eliminate(L: FloatArray, F: FloatArray) -> Eliminated:
    """Integrate the deviations out: L is (k, p, p), F is (k, p, q) or (1, p, q)."""
    F_T = transpose_stack(F)
    B = multiply_stack(multiply_stack(F_T, L), F)
    diagonal = np.arange(B.shape[1])
    B[:, diagonal, diagonal] += 1.0
    lower = cholesky_stack(B, "a user's posterior precision")
    half = solve_stack(lower, F_T)
    C = multiply_stack(transpose_stack(half), half)
    J = multiply_stack(-C, L)
    diagonal = np.arange(L.shape[1])
    J[:, diagonal, diagonal] += 1.0
    pulled = multiply_stack(half, L)
    # R = L − L C L, not L J: what L knows nothing of would come back as the rounding of C
    R = L - multiply_stack(transpose_stack(pulled), pulled)
    log_det = 2.0 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum()
    return Eliminated(C, J, 0.5 * (R + transpose_stack(R)), float(log_det))


def local_factor(factor: FloatArray, block: Block) -> FloatArray:
    """(k, p, min(p, r)) rows of the items' factor at each user's own items, or (1, …) if alike.

    With fewer items than columns the rows are turned into a triangle: F Fᵀ stays the same.
    """
    return triangle_stack(factor[block.items[:1] if block.same_items else block.items])


def outer_products(phi: FloatArray) -> FloatArray:
    """(k, q²) flattened φ_u φ_uᵀ of each row."""
    return (phi[:, :, None] * phi[:, None, :]).reshape(len(phi), -1)


@dataclass(frozen=True)
class ArrowPrior:
    """The factored prior of all users over all items.

    user_factor: (U, r_u) with rows φ_u; item_factor: (n, r) = Φ; sharing: ρ.
    """

    user_factor: FloatArray
    item_factor: FloatArray
    sharing: float
    blocks: tuple[Block, ...]

    @cached_property
    def shared_factor(self) -> FloatArray:
        """√ρ Φ, (n, r)."""
        root: float = np.sqrt(self.sharing)
        return root * self.item_factor

    @cached_property
    def local_factors(self) -> tuple[FloatArray, ...]:
        """√(1−ρ) Φ at the items of each block's users."""
        personal = np.sqrt(1.0 - self.sharing) * self.item_factor
        return tuple(local_factor(personal, block) for block in self.blocks)

    @cached_property
    def user_outer(self) -> tuple[FloatArray, ...]:
        """φ_u φ_uᵀ of each block's users, (k, r_u²)."""
        return tuple(outer_products(self.user_factor[block.users]) for block in self.blocks)

    @property
    def flops(self) -> float:
        """Of a sweep's dense algebra: some ten products of p × p matrices a user, and S."""
        sizes = [(len(block.users), block.items.shape[1]) for block in self.blocks]
        shared = self.user_factor.shape[1] * self.item_factor.shape[1]
        return float(sum(10 * k * p**3 for k, p in sizes) + shared**3)

    def refresh(self, weight: FloatArray, shift: FloatArray) -> "ArrowState":
        """Condition on sites: what the loop asks of a prior."""
        eliminated = tuple(
            eliminate(block.laplacian(weight), F)
            for block, F in zip(self.blocks, self.local_factors, strict=True)
        )
        information = self._information(eliminated)
        lower, jitter = cholesky(self._precision(information))
        shifts = tuple(block.adjoint(shift) for block in self.blocks)
        return ArrowState(self, eliminated, information, lower, jitter, shifts)

    def _information(self, eliminated: tuple[Eliminated, ...]) -> FloatArray:
        """(r_u, r_u, n, n): Σ_u φ_u φ_uᵀ ⊗ R_u, what the users know of W, in item space."""
        n, rank = len(self.item_factor), self.user_factor.shape[1]
        total = np.zeros((rank * rank, n, n))
        for block, outer, part in zip(self.blocks, self.user_outer, eliminated, strict=True):
            total += block.weighted_sum(outer, part.R)
        return total.reshape(rank, rank, n, n)

    def _precision(self, information: FloatArray) -> FloatArray:
        """S, (r_u r, r_u r)."""
        projected = multiply_stack(
            multiply_stack(self.shared_factor.T, information), self.shared_factor
        )
        size = projected.shape[0] * projected.shape[2]
        S: FloatArray = projected.transpose(0, 2, 1, 3).reshape(size, size)
        S[np.diag_indices(size)] += 1.0
        return S


class Response(NamedTuple):
    """Σ x for some shift x: `shared` (r_u, r) its part in W, `residual` x − L Σ x per block."""

    shared: FloatArray
    residual: tuple[FloatArray, ...]


@dataclass(frozen=True)
class ArrowState:
    """Posterior given sites.

    information: see `ArrowPrior`; lower: Cholesky factor of the precision S of W; shifts: the
    sites' shift b of each block's users, (k, p).
    """

    prior: ArrowPrior
    eliminated: tuple[Eliminated, ...]
    information: FloatArray
    lower: FloatArray
    jitter: float
    shifts: tuple[FloatArray, ...]

    @property
    def mean(self) -> FloatArray:
        """(m,) posterior means of the edges' differences."""
        return self._edges[0]

    @property
    def var(self) -> FloatArray:
        """(m,) posterior variances of the edges' differences."""
        return self._edges[1]

    @property
    def log_det(self) -> float:
        """log |I + K L|: the deviations' part and the shared part."""
        return log_det_lower(self.lower) + sum(part.log_det for part in self.eliminated)

    @cached_property
    def quadratic(self) -> float:
        """bᵀ Σ b."""
        return float(sum(np.vdot(b, mu) for b, mu in zip(self.shifts, self._means, strict=True)))

    @cached_property
    def response(self) -> Response:
        """Of the sites' own shift: the posterior mean of W, and α = b − L μ."""
        return self.respond_to(self.shifts)

    @cached_property
    def shared_covariance(self) -> FloatArray:
        """(r_u², n, n): covariance blocks of √ρ Φ Wᵀ, the shared utilities a user feature."""
        (n, r), rank = self.prior.item_factor.shape, self.prior.user_factor.shape[1]
        half = solve_lower(self.lower, np.eye(len(self.lower))).reshape(-1, r)
        wide = multiply(half, self.prior.shared_factor.T).reshape(len(self.lower), -1)
        covariance = gram(wide).reshape(rank, n, rank, n)
        return covariance.transpose(0, 2, 1, 3).reshape(rank * rank, n, n)

    def shared_at(self, number: int) -> FloatArray:
        """(k, p, p) covariance of the shared utilities of block `number`, at its users' items."""
        block, outer = self.prior.blocks[number], self.prior.user_outer[number]
        return block.weighted_pick(outer, self.shared_covariance)

    def collect(self, vectors: tuple[FloatArray, ...]) -> FloatArray:
        """(r_u, n): Σ_u φ_u x_uᵀ over all users' vectors, given per block as (k, p)."""
        total = np.zeros((self.prior.user_factor.shape[1], len(self.prior.item_factor)))
        for block, x in zip(self.prior.blocks, vectors, strict=True):
            total += multiply(self.prior.user_factor[block.users].T, block.spread(x))
        return total

    def respond_to(self, shifts: tuple[FloatArray, ...]) -> Response:
        """Apply the posterior covariance to a shift given per block as (k, p)."""
        forced = tuple(
            apply_stack(transpose_stack(part.J), x)
            for x, part in zip(shifts, self.eliminated, strict=True)
        )
        pull = multiply(self.collect(forced), self.prior.shared_factor)
        w = solve_lower(self.lower, solve_lower(self.lower, pull.ravel()), transposed=True)
        shared = w.reshape(pull.shape)
        residual = tuple(
            c - apply_stack(part.R, self._shared_utility(shared, block))
            for c, block, part in zip(forced, self.prior.blocks, self.eliminated, strict=True)
        )
        return Response(shared, residual)

    def respond(self, pull: FloatArray) -> FloatArray:
        """A Σ Aᵀ pull, (m,)."""
        shifts = tuple(block.adjoint(pull) for block in self.prior.blocks)
        shared, answer = self.respond_to(shifts).shared, np.empty(len(pull))
        for number, block in enumerate(self.prior.blocks):
            utility = self._utility(number, shared, shifts[number])
            answer[block.edges] = block.forward(utility)
        return answer

    def _shared_utility(self, shared: FloatArray, block: Block) -> FloatArray:
        """(k, p): √ρ Φ Wᵀ φ_u of each user at their own items, for W = shared (r_u, r)."""
        wide = multiply(shared, self.prior.shared_factor.T)
        utilities = multiply(self.prior.user_factor[block.users], wide)
        return np.take_along_axis(utilities, block.items, axis=1)

    def _utility(self, number: int, shared: FloatArray, shift: FloatArray) -> FloatArray:
        """(k, p) mean utilities of a block's users at their own items, given W and their shift."""
        part = self.eliminated[number]
        everybodys = self._shared_utility(shared, self.prior.blocks[number])
        return apply_stack(part.J, everybodys) + apply_stack(part.C, shift)

    @cached_property
    def _means(self) -> tuple[FloatArray, ...]:
        """Posterior mean utilities per block, (k, p) each."""
        shared = self.response.shared
        return tuple(self._utility(number, shared, b) for number, b in enumerate(self.shifts))

    @cached_property
    def _edges(self) -> tuple[FloatArray, FloatArray]:
        mean, var = np.empty((2, sum(len(block.edges) for block in self.prior.blocks)))
        for number, (block, part) in enumerate(
            zip(self.prior.blocks, self.eliminated, strict=True)
        ):
            shared = multiply_stack(part.J, self.shared_at(number))
            covariance = part.C + multiply_stack(shared, transpose_stack(part.J))
            utility = self._means[number]
            mean[block.edges], var[block.edges] = block.differences(utility, covariance)
        return mean, var
