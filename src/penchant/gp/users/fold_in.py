"""Newcomers: a few comparisons by new users, without fitting everybody again.

A new user's weights have the prior that the shared posterior gives them; their own comparisons
condition it. What they say changes nobody else, which is what sets this apart from a refit.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp.effects import Shown
from penchant.gp.loop import Settings, infer
from penchant.gp.sites import Report
from penchant.gp.update import Learned
from penchant.gp.users.arrangement import arrange
from penchant.gp.users.arrow import Eliminated, eliminate
from penchant.gp.users.blocks import Block
from penchant.gp.users.posterior import UserPosteriors
from penchant.gp.users.problem import UserProblem
from penchant.gp.users.votes import Votes, VoteSites
from penchant.kernels import Inputs
from penchant.numerics.batched import apply_stack, square_root_stack
from penchant.numerics.linalg import host
from penchant.numerics.types import FloatArray, IntArray


@dataclass(frozen=True)
class NewcomerPrior:
    """Independent users, each with a Gaussian prior over the items that they compared.

    Per block: factors (k, p, p) of the prior covariances, means (k, p). offset: (m,) what is known
    to be added to each difference.
    """

    blocks: tuple[Block, ...]
    factors: tuple[FloatArray, ...]
    means: tuple[FloatArray, ...]
    offset: FloatArray

    def refresh(self, weight: FloatArray, shift: FloatArray) -> "NewcomerState":
        """Condition on sites: what the loop asks of a prior."""
        eliminated = tuple(
            eliminate(block.laplacian(weight), F)
            for block, F in zip(self.blocks, self.factors, strict=True)
        )
        own = shift - weight * self.offset
        shifts = tuple(block.adjoint(own) for block in self.blocks)
        return NewcomerState(self, eliminated, shifts)


@dataclass(frozen=True)
class NewcomerState:
    """Posterior of the newcomers given sites; mean and var are (m,) over their comparisons."""

    prior: NewcomerPrior
    eliminated: tuple[Eliminated, ...]
    shifts: tuple[FloatArray, ...]
    jitter: float = 0.0

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
        """log |I + K L|."""
        return sum(part.log_det for part in self.eliminated)

    @property
    def quadratic(self) -> float:
        """μᵀΣ⁻¹μ − gᵀK⁻¹g for prior means g: bᵀΣb where they are zero."""
        return sum(
            float(np.vdot(b, apply_stack(part.C, b)) + np.vdot(2.0 * b, apply_stack(part.J, g)))
            - float(np.vdot(g, apply_stack(part.R, g)))
            for part, b, g in zip(self.eliminated, self.shifts, self.prior.means, strict=True)
        )

    def respond(self, pull: FloatArray) -> FloatArray:
        """A Σ Aᵀ pull, (m,)."""
        answer = np.empty(len(pull))
        for block, part in zip(self.prior.blocks, self.eliminated, strict=True):
            answer[block.edges] = block.forward(apply_stack(part.C, block.adjoint(pull)))
        return answer

    @cached_property
    def _edges(self) -> tuple[FloatArray, FloatArray]:
        blocks = self.prior.blocks
        mean, var = np.empty((2, sum(len(block.edges) for block in blocks)))
        for block, part, b, g in zip(
            blocks, self.eliminated, self.shifts, self.prior.means, strict=True
        ):
            utility = apply_stack(part.J, g) + apply_stack(part.C, b)
            mean[block.edges], var[block.edges] = block.differences(utility, part.C)
        return mean + self.prior.offset, var


def check_newcomers(known: Comparisons, data: Comparisons) -> None:
    """Folding in is for users whom nothing is known of yet, and for items that are known."""
    if again := set(data.users) & set(known.users):
        raise DataError(
            f"{len(again)} of the users to fold in were fitted already, such as "
            f"{min(again, key=str)!r}: fold in new users only, and tell the others' answers"
        )
    known.item_index(data.items)


def votes_of_newcomers(
    known: Comparisons, extended: Comparisons, like: Shown | None = None
) -> Votes:
    """What those users compared who came after the known ones; like: effects that are known."""
    votes = _votes(extended, like)
    return votes.part(np.flatnonzero(votes.user >= known.n_users))


def fold_in(
    posteriors: UserPosteriors, newcomers: Inputs, votes: Votes, settings: Settings
) -> tuple[UserPosteriors, Report]:
    """The posteriors with the newcomers after the known users.

    newcomers: their features, if users have any. votes: what they compared, `user` counting from
    the first known user.
    """
    extended = posteriors.with_users(newcomers)
    blocks = arrange(votes.user, votes.winner, votes.loser, len(extended.items))
    factors, means = [], []
    for block in blocks:
        phi = extended.user_features(block.users)
        personal = extended.personal(block.users, phi)
        factors.append(
            host(square_root_stack(extended.covariances.prior_of(block.items, personal, phi)))
        )
        means.append(extended.covariances.shared_mean_at(phi, block.items))
    effects = extended.effects
    prior = NewcomerPrior(blocks, tuple(factors), tuple(means), votes.offset(effects))
    inference = infer(prior.refresh, extended.likelihood, votes.outcomes, votes.count, settings)
    sites = extended.sites.join(VoteSites.of(votes, inference.sites, effects))
    return extended.changed(sites=sites), inference.report


def with_newcomers(
    learned: Learned[UserProblem], data: Comparisons, newcomers: Inputs
) -> Learned[UserProblem]:
    """What is known after new users' answers, who change nobody else; data: all answers."""
    settings, like = learned.problem.settings, learned.problem.edges.shown
    late = votes_of_newcomers(learned.data, data, like)
    posterior, report = fold_in(learned.posterior, newcomers, late, settings)
    problem = learned.problem.over(posterior.users, _votes(data, like))
    sites = None
    if learned.sites is not None:
        order = _pairs_first(learned.problem.edges, late)
        posterior = posterior.changed(sites=posterior.sites.take(order))
        sites = posterior.sites.per_copy(problem.edges, posterior.effects)
    return replace(
        learned, data=data, problem=problem, posterior=posterior, sites=sites, report=report
    )


def _votes(data: Comparisons, like: Shown | None) -> Votes:
    """As the known effects see them; where there are none, newcomers' cannot be learned."""
    if like is None:
        return Votes.of(data)
    votes = Votes.as_shown(data, like)
    if votes.shown is not None and votes.shown.names != like.names:
        votes = Votes.as_shown(data.bare(keep=("covariates",)), like)
    return votes


def _pairs_first(known: Votes, late: Votes) -> IntArray:
    """The rows of both in the order of `Votes`: all single pairs, then all edges of choices."""
    pairs, choices = [], []
    start = 0
    for votes in (known, late):
        cliques, end = votes.outcomes.cliques, start + len(votes)
        cut = end - (0 if cliques is None else cliques.n_edges)
        pairs.append(np.arange(start, cut))
        choices.append(np.arange(cut, end))
        start = end
    return np.concatenate([*pairs, *choices])
