"""What is known of the communities: members, utilities, and personal taste inside them.

One value from which everything is read: predictions, beliefs and descriptions agree, before and
after answers come in.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from penchant.communities.assignment import Answers
from penchant.communities.chains import Chain
from penchant.communities.diagnostics import Diagnostics
from penchant.communities.division import soft_counts
from penchant.communities.draws import Draws
from penchant.communities.effects import infer_beside_effects, known_effects
from penchant.communities.mixture import SearchReport, place
from penchant.communities.personal import as_features
from penchant.communities.population import Population
from penchant.communities.taste import Taste
from penchant.communities.update import compact
from penchant.communities.utility import Mixture, fit_community
from penchant.communities.verdict import Support
from penchant.data import Comparisons
from penchant.gp import (
    ItemHyper,
    ItemProblem,
    Learned,
    Normal,
    Posterior,
    Settings,
    UserProblem,
    Votes,
    solve,
    told,
    with_newcomers,
)
from penchant.gp.users.update import absorb
from penchant.kernels import Inputs
from penchant.numerics.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Found:
    """Communities of taste, after all answers in `data`.

    sampled: the data that the search or the chains ran on. start: the hyperparameters that
    learning started from. membership: (U, C), rows sum to one. posteriors: (C,) each community's
    utilities, its members counting softly. user_features: what is told of members afterwards.
    personal: with personal taste, every user's own. communal_share: how much of taste communities
    explain.
    chains, draws: what was sampled, where chains were. support: whether communities are real, once
    somebody asked.
    n_elsewhere, all_sizes: of scanned comparisons, how many are of users not in `data`, and the
    communities' sizes with them.
    """

    data: Comparisons
    sampled: Comparisons
    hyper: ItemHyper
    start: ItemHyper
    membership: FloatArray
    posteriors: tuple[Posterior, ...]
    report: Diagnostics | SearchReport
    chains: tuple[Chain, ...] = ()
    draws: Draws | None = None
    max_rank: int | None = None
    user_features: FloatArray | None = None
    personal: Learned[UserProblem] | None = None
    communal_share: float = 1.0
    support: Support | None = None
    n_elsewhere: int = 0
    all_sizes: FloatArray | None = None

    @property
    def n_unsettled(self) -> int:
        """Answers that personal taste only absorbed."""
        return 0 if self.personal is None else self.personal.n_unsettled

    @property
    def items(self) -> Inputs:
        """The items of the fit."""
        return self.posteriors[0].universe

    @property
    def seed(self) -> tuple[int, ...]:
        """Of what is drawn about communities afterwards: the chains', or always the same."""
        return self.chains[0].state.seed if self.chains else (0,)

    @cached_property
    def answers(self) -> Answers:
        """All users' answers."""
        return Answers.of(self.data)

    @property
    def sizes(self) -> FloatArray:
        """(C,) expected users of each community."""
        if self.all_sizes is not None:
            return self.all_sizes
        total: FloatArray = self.membership.sum(axis=0)
        return total

    def shares(self, users: IntArray | None) -> FloatArray:
        """(k, C) of users, −1 standing for people at large; (1, C) of those for None."""
        everybody = self.sizes / self.sizes.sum()
        if users is None:
            return np.atleast_2d(everybody)
        shares: FloatArray = np.where(users[:, None] >= 0, self.membership[users], everybody)
        return shares

    def population(self, target: Inputs | None = None) -> Population:
        """The mean over people at the target items, by default those of the fit."""
        if self.personal is not None:
            return Population.of_users(self.personal.posterior.at(target), self.sizes)
        return Population.of_communities(self.at(target), self.sizes)

    def utilities(self, users: IntArray | None, target: Inputs | None) -> Normal:
        """Means and variances (n,) of the mean over people, or (k, n) of users, at the target
        items; less the average item's of the fit."""
        if users is None:
            there = self.population(target)
            return there.relative_to(there if target is None else self.population())
        if self.personal is not None:
            own: Normal = self.personal.posterior.at(target).known_utilities(users)
            return own
        each = [
            there.relative_to(known)
            for there, known in zip(self.at(target), self.posteriors, strict=True)
        ]
        shares, means = self.shares(users), np.stack([community.mean for community in each])
        variances = np.stack([community.var for community in each])
        mean = shares @ means
        return Normal(mean, np.maximum(shares @ (means**2 + variances) - mean**2, 0.0))

    def at(self, target: Inputs | None) -> tuple[Posterior, ...]:
        """The communities' utilities, looked at on other items where they are given."""
        return tuple(posterior.at(target) for posterior in self.posteriors)

    def changed_since(self, before: Comparisons) -> IntArray:
        """The users who gave more or fewer answers than before."""
        now, then = (
            np.bincount(v.user, v.count, before.n_users)
            for v in (Votes.of(data.as_pairs()) for data in (self.data, before))
        )
        return np.flatnonzero(now != then)

    def with_answers(self, data: Comparisons, changed: IntArray, polish: bool | None) -> "Found":
        """After the users `changed` answered more, or took answers back.

        Those are placed anew among the communities of the draws; unless told not to polish, the
        communities' utilities are inferred again, with the parameters that each has.
        """
        found = replace(self, data=data, support=None)
        membership = found._placed(changed)
        found = replace(found, membership=membership, personal=None)
        if polish is not False:
            found = replace(found, posteriors=found.inferred())
        if self.personal is None:
            return found
        return replace(found, personal=_personal_after(self.personal, found, polish))

    def members(self, answers: Answers) -> FloatArray:
        """(k, C) memberships of people by their answers, among the communities that there are."""
        if self.draws is not None:
            return self.draws.membership(answers)
        return place(self.posteriors, self.sizes, answers)

    def _placed(self, users: IntArray) -> FloatArray:
        """(U, C) memberships with some users placed anew by their answers; the others' stay."""
        membership = np.zeros((self.answers.n_users, self.membership.shape[1]))
        membership[: len(self.membership)] = self.membership
        membership[users] = self.members(compact(self.answers.take(users)))
        return membership

    def inferred(
        self, hyper: ItemHyper | None = None, tastes: Sequence[Taste] = ()
    ) -> tuple[Posterior, ...]:
        """Each community's utilities, given who belongs to it; by default with its parameters.

        tastes: what a search knows of them, where inference starts.
        """
        like = known_effects(self.posteriors)
        if told(self.data) or like is not None:
            votes = Votes.as_shown(self.data.as_pairs(), like)
            return infer_beside_effects(self.posteriors, self.membership, votes, self.max_rank)
        if self.answers.outcomes.cliques is not None:
            return self._inferred_from_choices(hyper)
        mixture = Mixture(self.answers, self.items, self.hyper, max_rank=self.max_rank).precise()
        own = [hyper or ItemHyper(known.kernel, known.likelihood) for known in self.posteriors]
        starts = [taste.sites for taste in tastes] if tastes else [None] * len(own)
        return tuple(
            fit_community(mixture, counts, its.theta, start).posterior
            for its, counts, start in zip(own, self.pair_counts, starts, strict=True)
        )

    def _inferred_from_choices(self, hyper: ItemHyper | None) -> tuple[Posterior, ...]:
        """The same where some answers are choices out of sets, taken whole."""
        inferred = []
        for known, counts in zip(self.posteriors, self.pair_counts, strict=True):
            edges = self.answers.edges(counts)
            problem = ItemProblem(self.items, edges, Settings(), self.max_rank)
            own = hyper or ItemHyper(known.kernel, known.likelihood)
            inferred.append(problem.posterior(solve(problem, own)) if len(edges) else known)
        return tuple(inferred)

    @property
    def pair_counts(self) -> FloatArray:
        """(C, m) how often each answer was given in each community, members counting softly."""
        return soft_counts(self.answers, self.membership)

    def with_newcomers(self, data: Comparisons) -> "Found":
        """After new users' answers, who change nobody else."""
        newcomers = np.arange(self.data.n_users, data.n_users)
        found = replace(self, data=data, support=None)
        membership = found._placed(newcomers)
        found = replace(found, membership=membership)
        if self.personal is None:
            return found
        features = as_features(membership[newcomers])
        return replace(found, personal=with_newcomers(self.personal, data, features))


def _personal_after(
    personal: Learned[UserProblem], found: Found, polish: bool | None
) -> Learned[UserProblem]:
    """Everybody's own utilities after other answers, memberships being the users' features.

    Unless settled, known users keep the memberships that they were fitted with.
    """
    problem, data, membership = personal.problem, found.data, found.membership
    n_more = data.n_comparisons - personal.data.n_comparisons
    if n_more > 0 and personal.is_absorbed(n_more, polish):
        X = problem.users.features()
        kept = _problem(problem, np.concatenate([X, membership[len(X) :]]), data)
        if (absorbed := absorb(personal, data, kept)) is not None:
            return absorbed
    return personal.settle(data, _problem(problem, membership, data))


def _problem(problem: UserProblem, membership: FloatArray, data: Comparisons) -> UserProblem:
    votes = Votes.as_shown(data, problem.edges.shown)
    return UserProblem.of(problem.items, as_features(membership), votes, problem.settings)
