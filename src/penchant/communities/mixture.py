"""From answers to a fitted mixture: `MixtureFitter` fits it, `FittedMixture` holds and updates it.

Predictions, beliefs and descriptions all come from one `FittedMixture`. The search for communities
uses the answers alone: effects of order and covariates are common to all users and say nothing
about membership. Utilities are then inferred together with those effects, so they hold for equal
sides; the reported effects combine the estimates of all communities.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from penchant import gp
from penchant.communities.chains import (
    Chain,
    ChainPlan,
    Diagnostics,
    Draws,
    Watch,
    align,
    carry_over,
    diagnose,
    fit_reported,
    run_chains,
    start_chain,
)
from penchant.communities.component import (
    SMALLEST,
    ComponentPosterior,
    MixtureData,
    allocate,
    fit_community,
    learn_concentration,
)
from penchant.communities.data import Answers, sample_users, separate_pairs, soft_counts
from penchant.communities.population import (
    Population,
    Rival,
    Variation,
    as_features,
    find_variation,
    fit_personal,
    user_problem,
)
from penchant.communities.search import (
    SearchReport,
    SearchResult,
    Step,
    find_communities,
    predict_membership,
    with_silent_users,
)
from penchant.communities.verdict import Support, judge
from penchant.data import Comparisons
from penchant.kernels import Constant, Inputs, Kernel
from penchant.numerics.linalg import solve_square
from penchant.numerics.types import FloatArray, IntArray

RULE = "laplace"
"""Answers count by membership, and a fraction of an answer has a curvature but no cavity."""
LEAST_MEMBERSHIP = 1e-3
"""Smallest membership with which an answer counts in a community."""
JUDGING_USERS = 5_000
"""Most users by whom communities are judged: a simulated crowd is as large."""


def infer_beside_effects(
    posteriors: tuple[gp.Posterior, ...],
    membership: FloatArray,
    votes: gp.Rows,
    max_rank: int | None,
) -> tuple[gp.Posterior, ...]:
    """Each community's utilities and effects, given its members; hyperparameters stay."""
    votes = votes.part(np.lexsort((votes.loser, votes.winner)))  # the same pair in one run
    inferred = []
    for known, share in zip(posteriors, membership.T, strict=True):
        count = votes.count * share[votes.user]
        some = votes.part(np.flatnonzero(count > LEAST_MEMBERSHIP * votes.count))
        count = some.count * share[some.user]
        edges = gp.Rows.between(some.winner, some.loser, count, some.outcomes)
        edges = replace(edges, shown=some.shown)
        problem = gp.ItemProblem(known.universe, edges, gp.Settings(RULE), max_rank)
        hyper = gp.ItemHyper(known.kernel, known.likelihood)
        fitted = problem.uncalibrated(gp.solve(problem, hyper)) if len(edges) else known
        inferred.append(fitted)
    return tuple(inferred)


def common_effects(
    posteriors: tuple[gp.Posterior, ...],
) -> tuple[tuple[str, ...], gp.Normal] | None:
    """Names, means and variances of the effects by all communities' answers together.

    With precisions P_c, means β_c and the prior's P₀: P = P₀ + Σ (P_c − P₀), β = P⁻¹ Σ P_c β_c.
    """
    known = [(p.effects, p.lower) for p in posteriors if p.effects is not None]
    if not known:
        return None
    first, _ = known[0]
    identity, prior = np.eye(len(first.names)), np.diag(first.sd**-2.0)
    precision, pull = prior.copy(), np.zeros(len(first.names))
    for effects, lower in known:
        own = solve_square(effects.covariance(lower), identity)
        precision += own - prior
        pull += own @ effects.mean
    covariance = solve_square(precision, identity)
    return first.names, gp.Normal(covariance @ pull, np.diagonal(covariance))


@dataclass(frozen=True, eq=False)
class FittedMixture:
    """Communities of taste, fitted to all answers in `data`.

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
    hyper: gp.ItemHyper
    start: gp.ItemHyper
    membership: FloatArray
    posteriors: tuple[gp.Posterior, ...]
    report: Diagnostics | SearchReport
    chains: tuple[Chain, ...] = ()
    draws: Draws | None = None
    max_rank: int | None = None
    user_features: FloatArray | None = None
    personal: gp.FitState[gp.UserProblem] | None = None
    communal_share: float = 1.0
    support: Support | None = None
    n_elsewhere: int = 0
    all_sizes: FloatArray | None = None

    @property
    def n_pending_sites(self) -> int:
        """Answers that the personal model added by rank-one updates only."""
        return 0 if self.personal is None else self.personal.n_pending_sites

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
        return self.membership.sum(axis=0)

    def shares(self, users: IntArray | None) -> FloatArray:
        """(k, C) of users, −1 standing for people at large; (1, C) of those for None."""
        everybody = self.sizes / self.sizes.sum()
        if users is None:
            return np.atleast_2d(everybody)
        return np.where(users[:, None] >= 0, self.membership[users], everybody)

    def population(self, target: Inputs | None = None) -> Population:
        """The mean over people at the target items, by default those of the fit."""
        if self.personal is not None:
            return Population.of_users(self.personal.posterior.at(target), self.sizes)
        return Population.of_communities(self.at(target), self.sizes)

    def utilities(self, users: IntArray | None, target: Inputs | None) -> gp.Normal:
        """Means and variances (n,) of the mean over people, or (k, n) of users, at the target
        items; less the average item's of the fit."""
        if users is None:
            there = self.population(target)
            return there.relative_to(there if target is None else self.population())
        if self.personal is not None:
            return self.personal.posterior.at(target).known_utilities(users)
        each = [
            there.relative_to(known)
            for there, known in zip(self.at(target), self.posteriors, strict=True)
        ]
        shares, means = self.shares(users), np.stack([community.mean for community in each])
        variances = np.stack([community.var for community in each])
        mean = shares @ means
        return gp.Normal(mean, np.maximum(shares @ (means**2 + variances) - mean**2, 0.0))

    def chances(self, votes: gp.Rows) -> FloatArray:
        """P(winner preferred) of each vote by the user's communities, without personal taste."""
        z = None if votes.shown is None else votes.shown.z
        each = (p.difference(votes.winner, votes.loser, z) for p in self.posteriors)
        chances = [self.hyper.likelihood.prob(*difference) for difference in each]
        return np.einsum("cv,vc->v", chances, self.membership[votes.user])

    def at(self, target: Inputs | None) -> tuple[gp.Posterior, ...]:
        """The communities' utilities, looked at on other items where they are given."""
        return tuple(posterior.at(target) for posterior in self.posteriors)

    def changed_since(self, before: Comparisons) -> IntArray:
        """Users with more or fewer answers than before."""
        rows = (gp.Rows.by_user(data.as_pairs().bare()) for data in (self.data, before))
        now, then = (np.bincount(each.user, each.count, before.n_users) for each in rows)
        return np.flatnonzero(now != then)

    def with_answers(
        self, data: Comparisons, changed: IntArray, polish: bool | None
    ) -> "FittedMixture":
        """The mixture after the users `changed` gave more answers, or withdrew some.

        Their memberships are predicted again; unless polish is False, the communities' utilities
        are inferred again too, with the hyperparameters that each has.
        """
        found = replace(self._on(data, changed), personal=None)
        if polish is not False:
            found = replace(found, posteriors=found.infer_posteriors())
        if self.personal is None:
            return found
        return replace(found, personal=_personal_after(self.personal, found, polish))

    def predict_membership(self, answers: Answers) -> FloatArray:
        """(k, C) memberships of users given their answers."""
        if self.draws is not None:
            return self.draws.membership(answers)
        return predict_membership(self.posteriors, self.sizes, answers)

    def _on(self, data: Comparisons, users: IntArray) -> "FittedMixture":
        """The same communities on other data, the memberships of some users predicted again.

        Chains are of single pairs, whatever `inference` has been set to since the fit.
        """
        data = data if self.draws is None else data.as_pairs()
        answers = Answers.of(data)
        self.hyper.likelihood.check(answers.outcomes)
        membership = np.zeros((answers.n_users, self.membership.shape[1]))
        membership[: len(self.membership)] = self.membership
        membership[users] = self.predict_membership(answers.take(users).compact())
        return replace(self, data=data, support=None, membership=membership)

    def infer_posteriors(
        self, hyper: gp.ItemHyper | None = None, starts: Sequence[ComponentPosterior] = ()
    ) -> tuple[gp.Posterior, ...]:
        """Each community's utilities given its members, by default with its own hyperparameters.

        starts: the components of a search. A community without members stays as it is.
        """
        known = [gp.Covariates.known(p.effects) for p in self.posteriors if p.effects is not None]
        if gp.has_covariates(self.data) or known:
            votes = gp.Rows.by_user(self.data.as_pairs(), known[0] if known else None)
            return infer_beside_effects(self.posteriors, self.membership, votes, self.max_rank)
        mixture = MixtureData(self.answers, self.items, self.hyper, max_rank=self.max_rank)
        inferred = list(self.posteriors)
        for c, counts in enumerate(self.pair_counts):
            if counts.any():
                own = hyper or gp.ItemHyper(inferred[c].kernel, inferred[c].likelihood)
                sites = starts[c].sites if starts else None
                fitted = fit_community(mixture.precise(), counts, own.theta, sites)
                inferred[c] = fitted.posterior
        return tuple(inferred)

    @property
    def pair_counts(self) -> FloatArray:
        """(C, m) how often each answer was given in each community, weighted by membership."""
        return soft_counts(self.answers, self.membership)

    def with_newcomers(self, data: Comparisons) -> "FittedMixture":
        """The mixture with new users, whose answers change nothing for the others."""
        newcomers = np.arange(self.data.n_users, data.n_users)
        found = self._on(data, newcomers)
        if self.personal is None:
            return found
        features = as_features(found.membership[newcomers])
        return replace(found, personal=gp.with_newcomers(self.personal, found.data, features))


def _personal_after(
    personal: gp.FitState[gp.UserProblem], found: FittedMixture, polish: bool | None
) -> gp.FitState[gp.UserProblem]:
    """All users' own utilities after other answers; memberships are the users' features.

    Where answers are only added by rank-one updates, known users keep their memberships.
    """
    problem, data, membership = personal.problem, found.data, found.membership
    votes = gp.Rows.by_user(data, problem.edges.shown)

    def of(features: FloatArray) -> gp.UserProblem:
        return user_problem(problem.items, features, votes, problem.settings)

    n_more = data.n_comparisons - personal.data.n_comparisons
    if n_more > 0 and personal.takes_rank_one_updates(n_more, polish):
        X = problem.users.features()
        kept = of(np.concatenate([X, membership[len(X) :]]))
        if (absorbed := gp.rank_one_update_users(personal, data, kept)) is not None:
            return absorbed
    return personal.reconverge(data, of(membership))


class PersonalSettings(NamedTuple):
    """Personal taste inside communities; kernel: makes its item kernel.

    required: always fit it; else the evidence decides. learn: how hyperparameters are learned.
    """

    kernel: Callable[[], Kernel]
    required: bool
    learn: Callable[[gp.UserProblem, gp.UserHyper], gp.UserSolution]


@dataclass(frozen=True, eq=False)
class MixtureFitter:
    """Fits a mixture to data, by a search or by chains.

    mixture: the answers of the data and the model, with the hyperparameters that learning starts
    from; personal: None for communities alone; n_communities: their number, where it is given.
    """

    data: Comparisons
    mixture: MixtureData
    plan: ChainPlan
    personal: PersonalSettings | None = None
    n_communities: int | None = None

    @property
    def answers(self) -> Answers:
        """All users' answers."""
        return self.mixture.answers

    def search(self) -> SearchResult:
        """The likeliest communities: the result of a search, or where chains start."""
        return find_communities(
            self.mixture, n_communities=self.n_communities, learn_parameters=self.plan.learn
        )

    def fit_by_search(self) -> FittedMixture:
        """The likeliest communities, with personal taste where the evidence speaks for it."""
        result = self.search()
        varied = self._variation(result)
        membership, hyper, known = result.membership, result.hyper, result.allocation.components
        if varied is not None and varied.is_clear:
            membership, hyper = with_silent_users(varied.membership, self.answers), varied.hyper
            known = ()
        fitted = FittedMixture(
            data=self.data,
            sampled=self.data,
            hyper=hyper,
            start=self.mixture.hyper,
            membership=membership,
            posteriors=result.posteriors[: membership.shape[1]],
            report=result.report,
            max_rank=self.mixture.max_rank,
        )
        # the search looks at modes; what is reported is inferred as after every answer
        fitted = replace(fitted, posteriors=fitted.infer_posteriors(hyper, known))
        if varied is None:
            return fitted
        rival = None if varied.is_clear else partial(self._communities_alone, hyper)
        found = self.with_personal(fitted, rival)
        name = "communities alone" if found.personal is None else "personal taste"
        step = Step(name, len(found.posteriors), varied.evidence)
        return replace(found, report=SearchReport.of((*result.trace, step)))

    def has_variation(self, result: SearchResult) -> bool:
        """Whether personal taste belongs inside the communities that chains start from."""
        return self.personal is not None and (
            self.personal.required
            or ((varied := self._variation(result)) is not None and varied.is_clear)
        )

    def _variation(self, result: SearchResult) -> Variation | None:
        if self.personal is None:
            return None
        fixed, required = self.n_communities is not None, self.personal.required
        on_pairs = self._on_pairs(result, self.answers.voters)
        has_effects = gp.has_covariates(self.data)
        varied = find_variation(on_pairs, required=required, fixed=fixed, has_effects=has_effects)
        if varied is None or on_pairs is result:
            return varied
        return varied._replace(evidence=result.objective + varied.evidence - on_pairs.objective)

    def _on_pairs(self, result: SearchResult, users: IntArray) -> SearchResult:
        """The same communities of users, given one pair of every choice: personal deviations and
        simulated crowds are of single answers."""
        if self.answers.outcomes.cliques is None:
            return result
        answers = Answers.of(separate_pairs(self.data))
        mixture = replace(result.allocation.mixture, answers=answers.take(users))
        model = mixture.model(result.hyper.theta)
        allocation = allocate(model, result.allocation.responsibilities)
        return SearchResult(allocation, result.membership, result.trace)

    def assess(self, fitted: FittedMixture) -> Support:
        """Whether the communities of a fit are real; it takes a few searches."""
        voters = self.answers.voters
        some = voters[sample_users(self.answers.take(voters), JUDGING_USERS)]
        members = fitted.membership[some]
        present = members[:, members.sum(axis=0) >= SMALLEST]
        present = present / present.sum(axis=1, keepdims=True)
        model = replace(self.mixture, answers=self.answers.take(some)).model(fitted.hyper.theta)
        allocation = learn_concentration(allocate(model, present))
        result = self._on_pairs(SearchResult(allocation, present, ()), some)
        support = judge(result, np.random.default_rng(fitted.seed))
        if len(some) == len(voters):
            return support
        by = f"{support.sentence} (by {len(some):,} of {len(voters):,} people)"
        return support._replace(sentence=by)

    def start_chains(self, result: SearchResult, seed: int, n_chains: int) -> list[Chain]:
        """Chains that are yet to run, from the communities of a search."""
        mixture = self.mixture.of_voters()
        of = (result.allocation.responsibilities, result.hyper.theta)
        seeds = ((seed, number) for number in range(n_chains))
        return [Chain.of(start_chain(mixture, self.plan, each, *of)) for each in seeds]

    def chains_of(self, fitted: FittedMixture) -> Sequence[Chain]:
        """The chains of an earlier fit, on the answers that there are now."""
        if fitted.sampled == self.data:
            return fitted.chains
        before, mixture = Answers.of(fitted.sampled), self.mixture.of_voters()
        return [
            carry_over(chain, before, self.answers, mixture, self.plan.n_warmup)
            for chain in fitted.chains
        ]

    def fit_by_chains(self, chains: Sequence[Chain], n_sweeps: int, watch: Watch) -> FittedMixture:
        """Let the chains run, and summarise their draws."""
        mixture, plan, answers = self.mixture.of_voters(), self.plan, self.answers
        done, completed = run_chains(mixture, plan, chains, n_sweeps, watch)
        kept = tuple(draw for chain in done for draw in chain.draws)
        draws = align(Draws(kept, mixture.hyper.likelihood, 1), mixture.answers)
        membership = draws.membership(answers)
        largest_first = np.argsort(-membership.sum(axis=0), kind="stable")
        draws = draws.in_order(largest_first)
        membership = np.ascontiguousarray(membership[:, largest_first])
        theta = np.mean([chain.state.theta for chain in done], axis=0)
        counts = np.ascontiguousarray((answers.counts.T @ membership).T)
        return FittedMixture(
            data=self.data,
            sampled=self.data,
            hyper=mixture.hyper.at(theta),
            start=mixture.hyper,
            membership=membership,
            posteriors=tuple(f.posterior for f in fit_reported(mixture, counts, theta, plan.own)),
            report=diagnose(done, draws, mixture.answers, plan.n_warmup, completed),
            chains=done,
            draws=draws,
            max_rank=mixture.max_rank,
        )

    def _communities_alone(
        self, hyper: gp.ItemHyper, data: Comparisons
    ) -> list[tuple[FloatArray, Callable[[gp.Rows], FloatArray]]]:
        """Memberships and P(winner preferred) of communities found in these answers, and of one."""
        answers, number = Answers.of(data), self.n_communities
        of = replace(
            self,
            data=data,
            mixture=replace(self.mixture, answers=answers, hyper=hyper),
            plan=replace(self.plan, learn=False),
            personal=None,
        )
        numbers = (None, 1) if number is None else (min(number, len(answers.voters)),)
        each = (replace(of, n_communities=k).fit_by_search() for k in numbers)
        return [(found.membership, found.chances) for found in each]

    def with_personal(self, fitted: FittedMixture, rival: Rival | None = None) -> FittedMixture:
        """The fit, and how each user deviates from their community, unless the rival is better."""
        if self.personal is None:
            return fitted
        learned, share, membership = fit_personal(
            fitted.data,
            fitted.membership,
            fitted.predict_membership,
            fitted.items,
            gp.UserHyper(self.personal.kernel(), Constant(1.0), 0.5, self.mixture.hyper.likelihood),
            learn=self.personal.learn if self.plan.learn else gp.solve,
            unites=fitted.draws is None and self.n_communities is None,
            rival=rival,
        )
        if membership.shape != fitted.membership.shape:
            fitted = replace(fitted, membership=membership, posteriors=fitted.posteriors[:1])
            fitted = replace(fitted, posteriors=fitted.infer_posteriors())
        return replace(fitted, personal=learned, communal_share=share)
