"""Effects of how comparisons were made, beside communities.

Who belongs together is found from the answers alone: a shift that is everybody's tells nobody
apart. What a community likes is then inferred beside the effects of the order shown and of
covariates, so that utilities are at equal sides; each community's answers say something of the
effects, and what all say together is their product.
"""

from dataclasses import replace

import numpy as np

from penchant.gp import (
    Edges,
    ItemHyper,
    ItemProblem,
    Normal,
    Posterior,
    Settings,
    Shown,
    UserPosteriors,
    Votes,
    solve,
)
from penchant.numerics.linalg import solve_square
from penchant.numerics.types import FloatArray

RULE = "laplace"
"""Members count softly: a share of an answer has no cavity of its own, but a curvature."""
LEAST_SHARE = 1e-3
"""Of an answer that a community takes into account."""


def infer_beside_effects(
    posteriors: tuple[Posterior, ...],
    membership: FloatArray,
    votes: Votes,
    max_rank: int | None,
) -> tuple[Posterior, ...]:
    """Each community's utilities, and effects, given who belongs to it; parameters stay."""
    votes = votes.part(np.lexsort((votes.loser, votes.winner)))  # the same pair in one run
    inferred = []
    for known, share in zip(posteriors, membership.T, strict=True):
        count = votes.count * share[votes.user]
        some = votes.part(np.flatnonzero(count > LEAST_SHARE * votes.count))
        count = some.count * share[some.user]
        edges = Edges.between(some.winner, some.loser, count, some.outcomes)
        edges = replace(edges, shown=some.shown)
        problem = ItemProblem(known.universe, edges, Settings(RULE), max_rank)
        hyper = ItemHyper(known.kernel, known.likelihood)
        inferred.append(problem.posterior(solve(problem, hyper)) if len(edges) else known)
    return tuple(inferred)


def beside_effects(posterior: UserPosteriors, difference: Normal, z: FloatArray | None) -> Normal:
    """Differences (k,) of users' own utilities, and zᵀβ of z (q, k) more."""
    if z is None or posterior.effects is None:
        return difference
    shift = posterior.effects.shift(z, posterior.shared_lower)
    return Normal(difference.mean + shift.mean, difference.var + shift.var)


def known_effects(posteriors: tuple[Posterior, ...]) -> Shown | None:
    """Names and priors of the effects that communities know."""
    return next((Shown.known(p.effects) for p in posteriors if p.effects is not None), None)


def common_effects(posteriors: tuple[Posterior, ...]) -> tuple[tuple[str, ...], Normal] | None:
    """Names, means and variances of the effects by all communities' answers together.

    With precisions P_c, means β_c and the prior's P₀: P = P₀ + Σ (P_c − P₀), β = P⁻¹ Σ P_c β_c.
    """
    told = [(p.effects, p.lower) for p in posteriors if p.effects is not None]
    if not told:
        return None
    first, _ = told[0]
    identity, prior = np.eye(len(first.names)), np.diag(first.sd**-2.0)
    precision, pull = prior.copy(), np.zeros(len(first.names))
    for effects, lower in told:
        own = solve_square(effects.covariance(lower), identity)
        precision += own - prior
        pull += own @ effects.mean
    covariance = solve_square(precision, identity)
    return first.names, Normal(covariance @ pull, np.diagonal(covariance))
