"""New users, and answers added one by one, without a refit.

A new user's weights have the prior that the shared posterior gives them, conditioned on their own
comparisons. Unlike in a refit, other users do not change.
"""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp.effects import Covariates
from penchant.gp.learn import FitState
from penchant.gp.loop import infer
from penchant.gp.protocol import Report, Settings
from penchant.gp.rows import Rows, match
from penchant.gp.rules import RULES, Sites
from penchant.gp.update import Weights
from penchant.gp.users.arrowhead import eliminate, variance_by_column
from penchant.gp.users.blocks import arrange
from penchant.gp.users.posterior import UserPosteriors, UserSites
from penchant.gp.users.problem import UserProblem
from penchant.kernels import Inputs
from penchant.numerics.batched import square_root_stack
from penchant.numerics.linalg import multiply, solve_square, to_numpy
from penchant.numerics.types import FloatArray


def check_newcomers(known: Comparisons, data: Comparisons) -> None:
    """Refuse users who were fitted already, and items that were not."""
    if again := set(data.users) & set(known.users):
        raise DataError(
            f"{len(again)} of the users to fold in were fitted already, such as "
            f"{min(again, key=str)!r}: fold in new users only, and tell the others' answers"
        )
    known.item_index(data.items)


def fold_in(
    posteriors: UserPosteriors, newcomers: Inputs, votes: Rows, settings: Settings
) -> tuple[UserPosteriors, Report]:
    """The posteriors with the newcomers after the known users.

    newcomers: their features, if users have any. votes: what they compared, `user` counting from
    the first known user. Given what users share, newcomers are independent of each other.
    """
    extended = posteriors.with_users(newcomers)
    blocks = arrange(votes.user, votes.winner, votes.loser, len(extended.items))
    factors, known = [], votes.offset(extended.effects)  # (m,) prior means of the differences
    for block in blocks:
        phi = extended.user_features(block.users)
        own = extended.own(block.users, phi)
        prior = extended.covariances.prior_of(block.items, own, phi)
        factors.append(to_numpy(square_root_stack(prior)))
        known[block.edges] += block.forward(extended.covariances.shared_mean_at(phi, block.items))

    def refresh(weight: FloatArray, shift: FloatArray) -> Any:
        own, log_det = shift - weight * known, 0.0
        mean, var = np.empty((2, len(votes)))
        for block, F in zip(blocks, factors, strict=True):
            part = eliminate(block.laplacian(weight), F)
            utility = part.deviation(block.adjoint(own))
            mean[block.edges], var[block.edges] = block.differences(utility, part.C)
            log_det += part.log_det
        evidence = {"log_det": log_det, "quadratic": float(np.vdot(own, mean)), "jitter": 0.0}
        return SimpleNamespace(mean=known + mean, var=var, **evidence)

    inference = infer(refresh, extended.likelihood, votes.outcomes, votes.count, settings)
    sites = extended.sites.join(UserSites.of(votes, inference.sites, extended.effects))
    return extended.changed(sites=sites), inference.report


def with_newcomers(
    learned: FitState[UserProblem], data: Comparisons, newcomers: Inputs
) -> FitState[UserProblem]:
    """The fit with new users folded in; data: all answers."""
    settings, known = learned.problem.settings, learned.problem.edges
    votes = _votes(data, known.shown, known.choice_size)
    is_late = votes.user >= learned.data.n_users
    late = votes.part(np.flatnonzero(is_late))
    posterior, report = fold_in(learned.posterior, newcomers, late, settings)
    problem = learned.problem.over(posterior.users, votes)
    sites = None
    if learned.sites is not None:
        # sites stand after each other by fold, rows with all single pairs before all choices
        order = np.argsort(np.argsort(is_late, kind="stable"))
        posterior = posterior.changed(sites=posterior.sites.take(order))
        sites = posterior.sites.per_copy(problem.edges, posterior.effects)
    return replace(
        learned, data=data, problem=problem, posterior=posterior, sites=sites, report=report
    )


def _votes(data: Comparisons, like: Covariates | None, choice_size: int) -> Rows:
    """Rows with the known effects; effects are not learned from new users."""
    if like is None:
        return Rows.by_user(data.bare(), choice_size=choice_size)
    votes = Rows.by_user(data, like, choice_size=choice_size)
    if votes.shown is not None and votes.shown.names != like.names:
        bare = data.bare(keep=("covariates",))
        votes = Rows.by_user(bare, like, choice_size=choice_size)
    return votes


# Answers added one by one: each is a rank-one update of the shared part and of the user's own part.


def rank_one_update_users(
    learned: FitState[UserProblem], data: Comparisons, problem: UserProblem
) -> FitState[UserProblem] | None:
    """Add answers one by one, each by moment matching at its own marginal; fold new users in.

    data, problem: the known comparisons with the new ones. An answer of a fitted user updates the
    shared part, that of a folded-in user only their own. Returns None where that is not possible:
    with sites that Sparse-EP dropped, with effects of order or covariates, beside pairs broken out
    of choices, or for an answer that lowers the precision, as one with lapses may.
    """
    if problem.edges.shown is not None or problem.edges.are_discounted:
        return None
    posteriors, votes, settings = learned.posterior, problem.edges, problem.settings
    n_known = len(posteriors)
    n_old = int(np.searchsorted(votes.user, n_known))  # rows are sorted by user
    old = votes.part(np.arange(n_old))
    before = learned.problem.edges
    row = match(old, before)
    weight, shift, copies = np.zeros((3, n_old))
    weight[row], shift[row] = posteriors.sites.weight, posteriors.sites.shift
    copies[row] = before.count
    sites = UserSites(old.user, old.winner, old.loser, weight, shift)
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
        n_pending_sites=learned.n_pending_sites + data.n_comparisons - learned.data.n_comparisons,
    )


def _answered(posteriors: UserPosteriors, vote: Rows, row: int, rule: str) -> UserPosteriors | None:
    """After one more copy of one answer, whose site is in `row`.

    With d the winner's features less the loser's, Λ and C the covariances of the user's own weights
    a priori and when W is known, and e = Λ⁻¹C d: the difference is √ρ eᵀWᵀφ + dᵀC(own shifts) +
    noise of variance dᵀC d. So the new site is one on W too, weakened by that noise.
    """
    user = vote.user
    (phi,) = posteriors.user_features(user)
    e, own_mean, own_var = _own(posteriors, vote)
    mask = posteriors.covariances.mask
    shared = Weights(posteriors.shared_mean[mask], posteriors.shared_lower)
    z, mean, var = shared.along(np.sqrt(posteriors.sharing) * np.outer(phi, e)[mask])
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
        return posteriors.changed(sites=sites)
    weaken = 1.0 + tau * own_var
    shared = shared.with_site(z, tau / weaken, (nu - tau * (own_mean + float(mean[0]))) / weaken)
    shared_mean = np.zeros(mask.shape)
    shared_mean[mask] = shared.mean
    return posteriors.changed(sites=sites, shared_mean=shared_mean, shared_lower=shared.lower)


def _own(posteriors: UserPosteriors, vote: Rows) -> tuple[FloatArray, float, float]:
    """e (r,), dᵀC(own shifts) and dᵀC d, by the k answers that the user gave: O(k r + k³)."""
    sites, user, depth = posteriors.sites, vote.user, posteriors.covariances.depth
    own = posteriors.own(user, posteriors.user_features(user))
    mine = np.flatnonzero(sites.user == user[0])
    factor = posteriors.covariances.known_factor
    (variance,) = variance_by_column(*own, factor.shape[1], depth)  # Λ
    D = factor[sites.winner[mine]] - factor[sites.loser[mine]]
    (d,) = factor[vote.winner] - factor[vote.loser]
    weight = sites.weight[mine]
    # Woodbury in a form that stands weights of zero: Λ⁻¹C = I − Dᵀ(I + W D Λ Dᵀ)⁻¹ W D Λ
    inner = np.eye(len(mine)) + weight[:, None] * multiply(D * variance, D.T)
    e = d - multiply(D.T, solve_square(inner, weight * multiply(D, variance * d)))
    along = float(np.vdot(multiply(D, variance * e), sites.shift[mine]))
    return e, along, float(np.vdot(d, variance * e))
