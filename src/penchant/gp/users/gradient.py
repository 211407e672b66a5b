"""How the evidence of many users changes with the prior: derivatives, pulled back.

With K = K_feat ⊗ (ρ K_x) + I ⊗ ((1−ρ) K_x), the gradient is ½ tr((ααᵀ − R) ∂K) over all users
and items, R = (K + L⁻¹)⁻¹. Summed over users it becomes one n × n matrix for the shared part, one
for the personal part, and a (U, r_u) matrix for the users' factor.
"""

from typing import NamedTuple

import numpy as np

from penchant.gp.effects import EffectsState
from penchant.gp.users.arrow import ArrowState
from penchant.numerics.linalg import gram, multiply, multiply_stack, solve_lower
from penchant.numerics.types import FloatArray

Signed = list[tuple[float, tuple[FloatArray, ...]]]
"""Vectors x per block with signs: the outer products Σ sign · x xᵀ stand in for ααᵀ."""


class Slopes(NamedTuple):
    """∂ log Z by the shared item covariance ρ K_x, the personal one (1−ρ) K_x: (n, n) each."""

    shared: FloatArray
    personal: FloatArray


def outer_vectors(
    state: ArrowState | EffectsState[ArrowState], drift: FloatArray | None = None
) -> Signed:
    """α alone; with a drift of the mode (Laplace), ααᵀ + uαᵀ + αuᵀ as two signed squares.

    drift: (m,) how much log|B| changes with each edge's mean; u = (I − L Σ) Aᵀ drift.
    """
    if isinstance(state, EffectsState):
        return _outer_vectors_beside_effects(state, drift)
    alpha = state.response.residual
    if drift is None:
        return [(1.0, alpha)]
    pull = tuple(block.adjoint(drift) for block in state.prior.blocks)
    u = state.respond_to(pull).residual
    both = tuple(a + b for a, b in zip(alpha, u, strict=True))
    return [(1.0, both), (-1.0, u)]


def _outer_vectors_beside_effects(
    state: EffectsState[ArrowState], drift: FloatArray | None
) -> Signed:
    """The same where Σ is that with effects, and what their uncertainty takes from R."""

    def adjoint(y: FloatArray) -> tuple[FloatArray, ...]:
        return tuple(block.adjoint(y) for block in state.inner.prior.blocks)

    follow: Signed = [(1.0, adjoint(state.weight * row)) for row in state.spread]
    pull = state.shift - state.weight * state.mean
    if drift is None:
        return [(1.0, adjoint(pull)), *follow]
    u = drift - state.weight * state.respond(drift)
    return [(1.0, adjoint(pull + u)), (-1.0, adjoint(u)), *follow]


def item_slopes(state: ArrowState, outer: Signed) -> Slopes:
    """Derivatives by the two item covariances."""
    prior = state.prior
    n = len(prior.item_factor)
    shared, personal = -_shared_precision(state), np.zeros((n, n))
    for number, (block, part) in enumerate(zip(prior.blocks, state.eliminated, strict=True)):
        # R of one user's own utilities, the shared part's uncertainty included
        own = multiply_stack(multiply_stack(part.R, state.shared_at(number)), part.R) - part.R
        for sign, vectors in outer:
            x = vectors[number]
            own += sign * x[:, :, None] * x[:, None, :]
        personal += block.weighted_sum(np.ones((len(own), 1)), own)[0]
    for sign, vectors in outer:
        total = state.collect(vectors)
        shared += sign * gram(total)
    return Slopes(0.5 * shared, 0.5 * personal)


def _shared_precision(state: ArrowState) -> FloatArray:
    """(n, n): Σ over pairs of users of K_feat(u, v) R(u, v)."""
    information, prior = state.information, state.prior
    rank, r = prior.user_factor.shape[1], prior.item_factor.shape[1]
    n = len(prior.item_factor)
    projected = multiply_stack(prior.shared_factor.T, information)  # (r_u, r_u, r, n)
    half = solve_lower(
        state.lower, projected.transpose(0, 2, 1, 3).reshape(rank * r, rank * n)
    ).reshape(-1, n)
    direct: FloatArray = np.trace(information, axis1=0, axis2=1)
    return direct - gram(half)


def user_slopes(state: ArrowState, outer: Signed) -> FloatArray:
    """(U, r_u) derivative by the users' factor Φ_u."""
    prior = state.prior
    rank = prior.user_factor.shape[1]
    slopes = np.zeros_like(prior.user_factor)
    covariance = state.shared_covariance.reshape(rank, rank, -1)
    K_shared = gram(prior.shared_factor.T)
    totals = [
        (sign, vectors, multiply(state.collect(vectors), K_shared)) for sign, vectors in outer
    ]
    for number, (block, part) in enumerate(zip(prior.blocks, state.eliminated, strict=True)):
        phi = prior.user_factor[block.users]
        for column in range(rank):
            # Σ_l φ_ul ⟨R_u, Cov(shared utilities l, column)⟩
            cov = block.weighted_pick(phi, covariance[:, column])
            slopes[block.users, column] -= np.einsum("kij,kij->k", part.R, cov)
        for sign, vectors, total in totals:
            slopes[block.users] += sign * multiply(block.spread(vectors[number]), total.T)
    return slopes
