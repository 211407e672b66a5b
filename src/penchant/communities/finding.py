"""From answers to communities: the search, the chains, and personal taste inside what they find."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from penchant.communities.assignment import Answers
from penchant.communities.chains import Chain, ChainPlan, Watch, run_chains, start_chain
from penchant.communities.diagnostics import diagnose
from penchant.communities.draws import Draws, align
from penchant.communities.found import Found
from penchant.communities.mixture import Grouping, find_communities
from penchant.communities.personal import PersonalModel, fit_personal
from penchant.communities.taste import Crowd
from penchant.communities.update import active, carry_over
from penchant.communities.utility import Mixture, fit_reported
from penchant.communities.verdict import Support, judge
from penchant.data import Comparisons
from penchant.gp import ItemHyper, Settings
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood


@dataclass(frozen=True, eq=False)
class Finding:
    """What to find communities in, and how.

    start: the hyperparameters that learning starts from; n_communities: so many, by a search.
    """

    data: Comparisons
    answers: Answers
    items: Inputs
    start: ItemHyper
    plan: ChainPlan
    n_communities: int | None = None
    max_rank: int | None = None

    @property
    def mixture(self) -> Mixture:
        """Over the users who answered anything: the others belong anywhere."""
        some, answers = active(self.answers), self.answers
        if len(some) < answers.n_users:
            answers = answers.take(some)
        return Mixture(answers, self.items, self.start, max_rank=self.max_rank)

    def _grouping(self) -> Grouping:
        crowd = Crowd(self.answers, self.items, self.start, self.plan.concentration, self.max_rank)
        return find_communities(
            crowd, n_communities=self.n_communities, learn_parameters=self.plan.learn
        )

    def searched(self) -> Found:
        """The likeliest communities."""
        grouping = self._grouping()
        found = Found(
            data=self.data,
            sampled=self.data,
            hyper=grouping.hyper,
            start=self.start,
            membership=grouping.membership,
            posteriors=grouping.posteriors,
            report=grouping.report,
            max_rank=self.max_rank,
        )
        # the search looks at modes; what is reported is inferred as after every answer
        return replace(found, posteriors=found.inferred())

    def judged(self, rng: np.random.Generator) -> Support:
        """Whether the communities of a search are real; it takes a few searches."""
        return judge(self._grouping(), rng)

    def started(self, seed: int, n_chains: int) -> list[Chain]:
        """Chains that are yet to run."""
        mixture = self.mixture
        return [
            Chain.of(start_chain(mixture, self.plan, (seed, number))) for number in range(n_chains)
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


def with_personal(found: Found, kernel: Kernel, likelihood: Likelihood) -> Found:
    """What was found, and how each user deviates from their community."""
    model = PersonalModel(found.items, kernel, likelihood, found.members, Settings())
    learned, share = fit_personal(model, found.data, np.random.default_rng(found.seed))
    return replace(found, personal=learned, communal_share=share)
