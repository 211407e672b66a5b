"""How the evidence of many users changes with the prior: derivatives, pulled back.

With K = K_feat ⊗ (ρ K_x) + I ⊗ ((1−ρ) K_x), the gradient is ½ tr((ααᵀ − R) ∂K) over all users
and items, R = (K + L⁻¹)⁻¹. Summed over users it becomes one n × n matrix for the shared part, one
for the personal part, and a (U, r_u) matrix for the users' factor.
"""

from typing import NamedTuple

import numpy as np

from penchant.gp.effects import EffectsState
from penchant.gp.users.arrow import ArrowState, outer_products
from penchant.numerics.batched import inner_stack, join_blocks, multiply_stack, trace_blocks
from penchant.numerics.linalg import gram, host, multiply, row_squares, solve_lower
from penchant.numerics.types import FloatArray

Signed = list[tuple[float, tuple[FloatArray, ...]]]
"""Vectors x per block with signs: the outer products Σ sign · x xᵀ stand in for ααᵀ."""


class Slopes(NamedTuple):
    """∂ log Z by the shared item covariance ρ K_x and by K_x in the personal part, (n, n) each, and
    by the variance of each user's own deviation, (U,).
    """

    shared: FloatArray
    personal: FloatArray
    own: FloatArray


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
    u = state.respond_to(state.adjoint(drift)).residual
    both = tuple(a + b for a, b in zip(alpha, u, strict=True))
    return [(1.0, both), (-1.0, u)]


def _outer_vectors_beside_effects(
    state: EffectsState[ArrowState], drift: FloatArray | None
) -> Signed:
    """The same where Σ is that with effects, and what their uncertainty takes from R."""
    adjoint = state.inner.adjoint
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
    shared, personal = np.zeros((n, n)), np.zeros((n, n))
    by_user, halves = np.zeros(len(prior.user_factor)), _half_information(state)
    for number, block, part in state.each():
        R, phi = part.R, prior.phi(block)
        if halves is not None:
            halves += prior.shared.half_contracted(block, outer_products(phi), R)
            shared -= host(block.weighted_sum(row_squares(phi)[:, None], R))[0]
        # R of one user's own utilities, the shared part's uncertainty included
        own = multiply_stack(multiply_stack(R, state.shared_at(block)), R) - R
        for sign, vectors in outer:
            x = vectors[number]
            own += sign * x[:, :, None] * x[:, None, :]
        weight = np.broadcast_to(prior.personal(block), len(own))
        personal += host(block.weighted_sum(weight[:, None], own))[0]
        K = block.weighted_pick(np.ones((len(own), 1)), prior.covariance_there[None])
        np.add.at(by_user, block.users, inner_stack(own, K))
    shared += _known_of_W(state, halves)
    for sign, vectors in outer:
        shared += sign * gram(state.collect(vectors))
    return Slopes(0.5 * shared, 0.5 * personal, 0.5 * by_user)


def _half_information(state: ArrowState) -> FloatArray | None:
    """Zeros for (r_u², r, n) Σ φφᵀ ⊗ GᵀR, where the information itself is contracted further."""
    prior = state.prior.shared
    n, r = prior.factor.shape
    return np.zeros((prior.rank**2, r, n)) if prior.is_contracted else None


def _known_of_W(state: ArrowState, halves: FloatArray | None) -> FloatArray:
    """(n, n): −Σ over pairs of users of K_feat(u, v) R(u, v), less −Σ_u |φ_u|² R_u with halves."""
    shared, prior = state.shared, state.prior.shared
    rank, n = prior.rank, len(prior.factor)
    total = np.zeros((n, n))
    for part, lower in zip(prior.parts, shared.lowers, strict=True):
        size = len(part.items)
        cells = np.ix_(part.items, part.items)
        if halves is None:
            information = prior.inside(shared.information, part)
            projected = multiply_stack(part.there.T, information)  # (r_u, r_u, r, n)
            total[cells] -= host(trace_blocks(information))
        else:
            projected = halves.reshape(rank, rank, -1, n)
        half = solve_lower(lower, join_blocks(projected))
        total[cells] += host(gram(half.reshape(-1, size)))
    return total


def user_slopes(state: ArrowState, outer: Signed) -> FloatArray:
    """(U, r_u) derivative by the users' factor Φ_u."""
    prior = state.prior
    rank, system = prior.user_factor.shape[1], state.prior.shared
    slopes = np.zeros_like(prior.user_factor)
    covariance = state.shared.covariance
    covariance = covariance.reshape(rank, rank, *covariance.shape[1:])
    K_shared = gram(system.factor.T)
    totals = [
        (sign, vectors, multiply(state.collect(vectors), K_shared)) for sign, vectors in outer
    ]
    for number, block, part in state.each():
        phi, R = prior.phi(block), part.R
        mine = np.zeros((len(phi), rank))
        for column in range(rank):
            # Σ_l φ_ul ⟨R_u, Cov(shared utilities l, column)⟩
            cov = system.pick(block, phi, covariance[:, column])
            mine[:, column] = -inner_stack(R, cov)
        for sign, vectors, total in totals:
            mine += sign * block.meet(vectors[number], total)
        np.add.at(slopes, block.users, mine)
    return slopes
