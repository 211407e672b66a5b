"""More answers for posteriors of many users that are there already; the hyperparameters stay.

`settle` starts the arrow from the sites that the old answers had and sweeps until nothing moves:
what a refit gives, in fewer sweeps. `absorb` adds answers one by one and leaves all other sites
where they are: each is a rank-one change of what users share, and of the user's own part.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from penchant.data import Comparisons
from penchant.gp import RULES, Settings, Sites
from penchant.gp.rank_one import Weights
from penchant.gp.update import UNSETTLED_SHARE, place_among
from penchant.gp.users.fold_in import fold_in
from penchant.gp.users.model import Hyperparameters, Problem, Solution, solve
from penchant.gp.users.posterior import UserPosteriors
from penchant.gp.users.votes import Votes, VoteSites
from penchant.kernels import Inputs
from penchant.numerics.types import FloatArray

EXACT_VOTES = 3_000
"""Up to this many distinct answers settling every site is quick, and the default."""


@dataclass(frozen=True, eq=False)
class More:
    """Answers that join those that posteriors rest on.

    known, extended: before and with them; users: everybody of `extended`, in order.
    """

    known: Comparisons
    extended: Comparisons
    users: Inputs

    def is_settled(self, polish: bool | None, n_unsettled: int) -> bool:
        """Whether to settle everything: as told, or where it is quick or much is unsettled."""
        if polish is not None:
            return polish
        is_quick = len(self.extended) <= EXACT_VOTES
        return is_quick or n_unsettled > UNSETTLED_SHARE * self.extended.n_comparisons


class Placed(NamedTuple):
    """Sites at their rows of the extended answers, zero in new rows; copies: (m,) so far."""

    sites: VoteSites
    copies: FloatArray


def settle(posteriors: UserPosteriors, more: More, settings: Settings) -> tuple[Problem, Solution]:
    """Sweep until no site moves: what a refit with the same hyperparameters gives."""
    problem = Problem.of(posteriors.items, more.users, Votes.of(more.extended), settings)
    hyper = Hyperparameters(
        posteriors.item_kernel, posteriors.user_kernel, posteriors.sharing, posteriors.likelihood
    )
    sites = None
    if (placed := _place(posteriors.sites, more.known, problem.votes)) is not None:
        copies = np.maximum(placed.copies, 1.0)
        sites = Sites(placed.sites.weight / copies, placed.sites.shift / copies)
    return problem, solve(problem, hyper, sites)


def absorb(posteriors: UserPosteriors, more: More, settings: Settings) -> UserPosteriors | None:
    """Add answers one by one, each by the moments of its own update; newcomers are folded in.

    Whoever was fitted teaches everybody a little, whoever was folded in nobody else. None where
    it cannot be: sites that Sparse-EP dropped, or an answer that lowers the precision, as a lapse
    may.
    """
    votes, n_known = Votes.of(more.extended), len(posteriors)
    n_old = int(np.searchsorted(votes.user, n_known))  # rows are sorted by user
    old = votes.part(np.arange(n_old))
    placed = _place(posteriors.sites, more.known, old)
    if placed is None:
        return None
    posteriors = replace(posteriors, sites=placed.sites)
    for row in np.repeat(np.arange(n_old), (old.count - placed.copies).astype(np.intp)):
        answered = _answered(posteriors, old.part(np.array([row])), int(row), settings)
        if answered is None:
            return None
        posteriors = answered
    if n_old == len(votes):
        return posteriors
    newcomers = more.users.take(np.arange(n_known, len(more.users)))
    return fold_in(posteriors, newcomers, votes.part(np.arange(n_old, len(votes))), settings)[0]


def _place(sites: VoteSites, known: Comparisons, votes: Votes) -> Placed | None:
    """Where known sites stand among the extended votes; None if some were dropped."""
    before = Votes.of(known)
    if len(sites.user) != len(before):
        return None
    row = place_among(_columns(votes), _columns(before))
    weight, shift, copies = np.zeros((3, len(votes)))
    weight[row], shift[row], copies[row] = sites.weight, sites.shift, before.count
    return Placed(VoteSites(votes.user, votes.winner, votes.loser, weight, shift), copies)


def _columns(votes: Votes) -> FloatArray:
    """(5, m) what tells answers apart."""
    zeros = np.zeros(len(votes))
    outcomes = [zeros if column is None else column for column in votes.outcomes]
    return np.stack([votes.user, votes.winner, votes.loser, *outcomes])


def _answered(
    posteriors: UserPosteriors, vote: Votes, row: int, settings: Settings
) -> UserPosteriors | None:
    """After one more copy of one answer, whose site is in `row`.

    With d the winner's features less the loser's, C the covariance of the user's weights when
    W is known, and e = C d/(1 − ρ): the difference is √ρ eᵀWᵀφ + dᵀC(own shifts) + noise of
    variance dᵀC d. So the new site is one on W too, weakened by that noise.
    """
    user = vote.user
    (phi,) = posteriors.user_basis.features(
        posteriors.user_kernel, posteriors.users, posteriors.users.take(user)
    )
    e, own_mean, own_var = _own(posteriors, vote)
    shared = Weights(posteriors.shared_mean.ravel(), posteriors.shared_lower)
    z, mean, var = shared.along(np.sqrt(posteriors.sharing) * np.outer(phi, e).ravel())
    is_fitted = user[0] < posteriors.n_fitted
    if is_fitted:
        marginal = mean + own_mean, var + own_var
    else:
        marginal = posteriors.differences(user, vote.winner, vote.loser)
    proposal = RULES[settings.rule](*marginal, Sites.zeros(1), posteriors.likelihood, vote.outcomes)
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
    changed = replace(posteriors, **changes)
    kept = ("known_factor", "_features", "_rest")
    vars(changed).update(
        {name: vars(posteriors)[name] for name in kept if name in vars(posteriors)}
    )
    return changed


def _own(posteriors: UserPosteriors, vote: Votes) -> tuple[FloatArray, float, float]:
    """e (r,), dᵀC(own shifts) and dᵀC d, by the k answers that the user gave: O(k r + k³)."""
    sites, personal = posteriors.sites, 1.0 - posteriors.sharing
    mine = np.flatnonzero(sites.user == vote.user[0])
    factor = posteriors.known_factor
    D = factor[sites.winner[mine]] - factor[sites.loser[mine]]
    (d,) = factor[vote.winner] - factor[vote.loser]
    weight = personal * sites.weight[mine]
    # Woodbury in a form that stands weights of zero: C = ρ̄ (I − ρ̄ Dᵀ(I + ρ̄ W D Dᵀ)⁻¹ W D)
    y = np.linalg.solve(np.eye(len(mine)) + weight[:, None] * (D @ D.T), weight * (D @ d))
    e = d - D.T @ y
    return e, personal * float((D @ e) @ sites.shift[mine]), personal * float(d @ e)
