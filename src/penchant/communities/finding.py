"""From answers to communities: the search, the chains, and personal taste inside what they find."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from penchant.communities.assignment import Answers, some_of
from penchant.communities.chains import Chain, ChainPlan, ChainStart, Watch, run_chains, start_chain
from penchant.communities.diagnostics import diagnose
from penchant.communities.division import SMALLEST, allocate, learn_concentration
from penchant.communities.draws import Draws, align
from penchant.communities.found import Found
from penchant.communities.mixture import (
    Grouping,
    SearchReport,
    Step,
    find_communities,
    for_everybody,
)
from penchant.communities.personal import PersonalModel, Varied, fit_personal, variation_of
from penchant.communities.separate import separate_pairs
from penchant.communities.taste import Crowd
from penchant.communities.update import carry_over
from penchant.communities.utility import Mixture, fit_reported
from penchant.communities.verdict import Support, judge
from penchant.data import Comparisons
from penchant.gp import ItemHyper, Settings, UserHyper, UserProblem, UserSolution, told
from penchant.kernels import Inputs, Kernel
from penchant.numerics.types import IntArray

JUDGING_USERS = 5_000
"""Most people by whom communities are judged: evidence and simulated crowds are of so many."""


class PersonalTaste(NamedTuple):
    """Personal taste inside communities: its item kernel, made where it is needed.

    required: wanted in any case; else the evidence chooses. learn: how hyperparameters are found.
    """

    kernel: Callable[[], Kernel]
    required: bool
    learn: Callable[[UserProblem, UserHyper], UserSolution]


@dataclass(frozen=True, eq=False)
class Finding:
    """What to find communities in, and how.

    start: the hyperparameters that learning starts from; personal: None for communities alone;
    n_communities: so many, by a search.
    """

    data: Comparisons
    answers: Answers
    items: Inputs
    start: ItemHyper
    plan: ChainPlan
    personal: PersonalTaste | None = None
    n_communities: int | None = None
    max_rank: int | None = None

    @property
    def mixture(self) -> Mixture:
        """Over the users who answered anything: the others belong anywhere."""
        some, answers = self.answers.voters, self.answers
        if len(some) < answers.n_users:
            answers = answers.take(some)
        return Mixture(answers, self.items, self.start, max_rank=self.max_rank)

    @property
    def _crowd(self) -> Crowd:
        plan = self.plan
        return Crowd(
            self.answers,
            self.items,
            self.start,
            plan.concentration,
            self.max_rank,
            plan.concentration_prior,
        )

    def grouping(self) -> Grouping:
        """The likeliest communities: what is found, or where chains start."""
        return find_communities(
            self._crowd, n_communities=self.n_communities, learn_parameters=self.plan.learn
        )

    def searched(self) -> Found:
        """The likeliest communities, with personal taste inside them where it belongs there."""
        grouping = self.grouping()
        varied = self._varied(grouping)
        membership, hyper, report = grouping.membership, grouping.hyper, grouping.report
        if varied is not None:
            membership, hyper = for_everybody(varied.membership, self.answers), varied.hyper
            step = Step("personal taste", membership.shape[1], varied.evidence)
            report = SearchReport.of((*grouping.trace, step))
        found = Found(
            data=self.data,
            sampled=self.data,
            hyper=hyper,
            start=self.start,
            membership=membership,
            posteriors=grouping.posteriors[: membership.shape[1]],
            report=report,
            max_rank=self.max_rank,
        )
        # the search looks at modes; what is reported is inferred as after every answer
        known = grouping.allocation.tastes if varied is None else ()
        found = replace(found, posteriors=found.inferred(hyper, known))
        return found if varied is None else self.with_personal(found)

    def _varied(self, grouping: Grouping) -> Varied | None:
        if self.personal is None:
            return None
        fixed, required = self.n_communities is not None, self.personal.required
        if told(self.data) and not required:  # effects of how things were shown stay beside f_c
            return None
        on_pairs = self._on_pairs(grouping, self.answers.voters)
        varied = variation_of(on_pairs, required=required, fixed=fixed)
        if varied is None or on_pairs is grouping:
            return varied
        return varied._replace(evidence=grouping.objective + varied.evidence - on_pairs.objective)

    def _on_pairs(self, grouping: Grouping, users: IntArray) -> Grouping:
        """The same communities of users, judged by one pair of every choice: personal deviations
        and simulated crowds are of single answers."""
        if self.answers.outcomes.cliques is None:
            return grouping
        answers = Answers.of(separate_pairs(self.data))
        members = grouping.allocation.responsibilities
        crowd = replace(grouping.allocation.crowd, answers=answers.take(users))
        allocation = allocate(crowd.model(grouping.hyper.theta), members)
        return Grouping(allocation, grouping.membership, grouping.trace)

    def varies(self, grouping: Grouping) -> bool:
        """Whether personal taste belongs inside the communities that chains start from."""
        return self.personal is not None and (
            self.personal.required or self._varied(grouping) is not None
        )

    def judged(self, found: Found) -> Support:
        """Whether the communities that were found are real; it takes a few searches."""
        crowd, voters = self._crowd, self.answers.voters
        some = voters[some_of(self.answers.take(voters), JUDGING_USERS)]
        members = found.membership[some]
        present = members[:, members.sum(axis=0) >= SMALLEST]
        present = present / present.sum(axis=1, keepdims=True)
        model = replace(crowd, answers=crowd.answers.take(some)).model(found.hyper.theta)
        allocation = learn_concentration(allocate(model, present))
        grouping = self._on_pairs(Grouping(allocation, present, ()), some)
        support = judge(grouping, np.random.default_rng(found.seed))
        if len(some) == len(voters):
            return support
        by = f"{support.sentence} (by {len(some):,} of {len(voters):,} people)"
        return support._replace(sentence=by)

    def started(self, grouping: Grouping, seed: int, n_chains: int) -> list[Chain]:
        """Chains that are yet to run, from the communities of a search."""
        start = ChainStart(grouping.allocation.responsibilities, grouping.hyper.theta)
        mixture = self.mixture
        return [
            Chain.of(start_chain(mixture, self.plan, (seed, number), start))
            for number in range(n_chains)
        ]

    def carried(self, found: Found) -> Sequence[Chain]:
        """The chains of what was found before, on the answers that there are now."""
        if found.sampled == self.data:
            return found.chains
        before, mixture = Answers.of(found.sampled), self.mixture
        return [
            carry_over(chain, before, self.answers, mixture, self.plan.n_warmup)
            for chain in found.chains
        ]

    def sampled(self, chains: Sequence[Chain], n_sweeps: int, watch: Watch) -> Found:
        """Let the chains run, and take up everything that they say."""
        mixture, plan, answers = self.mixture, self.plan, self.answers
        done, completed = run_chains(mixture, plan, chains, n_sweeps, watch)
        kept = tuple(draw for chain in done for draw in chain.draws)
        draws = align(Draws(kept, mixture.hyper.likelihood, 1), mixture.answers)
        membership = draws.membership(answers)
        largest_first = np.argsort(-membership.sum(axis=0), kind="stable")
        draws = draws.in_order(largest_first)
        membership = np.ascontiguousarray(membership[:, largest_first])
        theta = np.mean([chain.state.theta for chain in done], axis=0)
        counts = np.ascontiguousarray((answers.counts.T @ membership).T)
        return Found(
            data=self.data,
            sampled=self.data,
            hyper=mixture.hyper.at(theta),
            start=mixture.hyper,
            membership=membership,
            posteriors=tuple(f.posterior for f in fit_reported(mixture, counts, theta, plan.own)),
            report=diagnose(done, draws, mixture.answers, plan.n_warmup, completed),
            chains=done,
            draws=draws,
            max_rank=self.max_rank,
        )

    def with_personal(self, found: Found) -> Found:
        """What was found, and how each user deviates from their community."""
        if self.personal is None:
            return found
        model = PersonalModel(
            found.items,
            self.personal.kernel(),
            self.start.likelihood,
            found.members,
            Settings(),
            learn=self.personal.learn if self.plan.learn else None,
            unites=found.draws is None and self.n_communities is None,
        )
        learned, share, membership = fit_personal(model, found.data, found.membership)
        if membership.shape != found.membership.shape:
            found = replace(found, membership=membership, posteriors=found.posteriors[:1])
            found = replace(found, posteriors=found.inferred())
        return replace(found, personal=learned, communal_share=share)
