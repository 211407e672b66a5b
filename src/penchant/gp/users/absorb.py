"""Answers of many users added one by one: each is a rank-one change of what users share, and of
the user's own part."""

from dataclasses import replace
from typing import Any

import numpy as np

from penchant.data import Comparisons
from penchant.gp.model import columns, place_among
from penchant.gp.rank_one import Weights
from penchant.gp.rules import RULES
from penchant.gp.sites import Sites
from penchant.gp.update import Learned
from penchant.gp.users.fold_in import fold_in
from penchant.gp.users.posterior import UserPosteriors
from penchant.gp.users.problem import UserProblem
from penchant.gp.users.votes import Votes, VoteSites
from penchant.numerics.linalg import gram, multiply, solve_square
from penchant.numerics.types import FloatArray


def absorb(
    learned: Learned[UserProblem], data: Comparisons, problem: UserProblem
) -> Learned[UserProblem] | None:
    """Add answers one by one, each by the moments of its own update; newcomers are folded in.

    data, problem: the known comparisons with the new ones. Whoever was fitted teaches everybody a
    little, whoever was folded in nobody else. None where it cannot be: sites that Sparse-EP
    dropped, effects of how comparisons were made, or an answer that lowers the precision, as a
    lapse may.
    """
    if problem.edges.shown is not None:
        return None
    posteriors, votes, settings = learned.posterior, problem.edges, problem.settings
    n_known = len(posteriors)
    n_old = int(np.searchsorted(votes.user, n_known))  # rows are sorted by user
    old = votes.part(np.arange(n_old))
    before = learned.problem.edges
    row = place_among(columns(old), columns(before))
    weight, shift, copies = np.zeros((3, n_old))
    weight[row], shift[row] = posteriors.sites.weight, posteriors.sites.shift
    copies[row] = before.count
    sites = VoteSites(old.user, old.winner, old.loser, weight, shift)
    posteriors = posteriors.changed(sites=sites)
    for each in np.repeat(np.arange(n_old), (old.count - copies).astype(np.intp)):
        answered = _answered(posteriors, old.part(np.array([each])), int(each), settings.rule)
        if answered is None:
            return None
        posteriors = answered
    if n_old < len(votes):
        newcomers = problem.users.take(np.arange(n_known, len(problem.users)))
        late = votes.part(np.arange(n_old, len(votes)))
        posteriors, _ = fold_in(posteriors, newcomers, late, settings)
    return replace(
        learned,
        data=data,
        problem=problem,
        posterior=posteriors,
        sites=posteriors.sites.per_copy(votes),
        n_unsettled=learned.n_unsettled + data.n_comparisons - learned.data.n_comparisons,
    )


def _answered(
    posteriors: UserPosteriors, vote: Votes, row: int, rule: str
) -> UserPosteriors | None:
    """After one more copy of one answer, whose site is in `row`.

    With d the winner's features less the loser's, C the covariance of the user's weights when
    W is known, and e = C d/(1 − ρ): the difference is √ρ eᵀWᵀφ + dᵀC(own shifts) + noise of
    variance dᵀC d. So the new site is one on W too, weakened by that noise.
    """
    user = vote.user
    (phi,) = posteriors.user_features(user)
    e, own_mean, own_var = _own(posteriors, vote)
    shared = Weights(posteriors.shared_mean.ravel(), posteriors.shared_lower)
    z, mean, var = shared.along(np.sqrt(posteriors.sharing) * np.outer(phi, e).ravel())
    is_fitted = user[0] < posteriors.n_fitted
    if is_fitted:
        marginal = mean + own_mean, var + own_var
    else:
        marginal = posteriors.differences(user, vote.winner, vote.loser)
    proposal = RULES[rule].propose(*marginal, Sites.zeros(1), posteriors.likelihood, vote.outcomes)
    tau, nu = float(proposal.tau[0]), float(proposal.nu[0])
    if tau <= 0.0:
        return None
    weight, shift = posteriors.sites.weight.copy(), posteriors.sites.shift.copy()
    weight[row] += tau
    shift[row] += nu
    sites = replace(posteriors.sites, weight=weight, shift=shift)
    if not is_fitted:
        return _changed(posteriors, sites=sites)
    weaken = 1.0 + tau * own_var
    shared = shared.with_site(z, tau / weaken, (nu - tau * (own_mean + float(mean[0]))) / weaken)
    return _changed(
        posteriors,
        sites=sites,
        shared_mean=shared.mean.reshape(posteriors.shared_mean.shape),
        shared_lower=shared.lower,
    )


def _changed(posteriors: UserPosteriors, **changes: Any) -> UserPosteriors:
    """The posteriors with other numbers; what was worked out from the kernels is handed over."""
    changed = posteriors.changed(**changes)
    worked_out = ("known_factor", "_features", "_prior", "_cross", "_target_var")
    kept = (*worked_out, "_prior_there", "_cross_there")
    vars(changed).update(
        {name: vars(posteriors)[name] for name in kept if name in vars(posteriors)}
    )
    return changed


def _own(posteriors: UserPosteriors, vote: Votes) -> tuple[FloatArray, float, float]:
    """e (r,), dᵀC(own shifts) and dᵀC d, by the k answers that the user gave: O(k r + k³)."""
    sites, user = posteriors.sites, vote.user
    (personal,) = posteriors.personal(user, posteriors.user_features(user))
    mine = np.flatnonzero(sites.user == user[0])
    factor = posteriors.covariances.known_factor
    D = factor[sites.winner[mine]] - factor[sites.loser[mine]]
    (d,) = factor[vote.winner] - factor[vote.loser]
    weight = personal * sites.weight[mine]
    # Woodbury in a form that stands weights of zero: C = ρ̄ (I − ρ̄ Dᵀ(I + ρ̄ W D Dᵀ)⁻¹ W D)
    inner = np.eye(len(mine)) + weight[:, None] * gram(D.T)
    e = d - multiply(D.T, solve_square(inner, weight * multiply(D, d)))
    along = float(np.vdot(multiply(D, e), sites.shift[mine]))
    return e, personal * along, personal * float(np.vdot(d, e))
