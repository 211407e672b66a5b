"""How `CommunityGP` learns: from answers to the communities that are found in them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from penchant.communities import (
    LEARNING_SWEEPS,
    Answers,
    Chain,
    ChainPlan,
    Finding,
    Found,
    PersonalTaste,
)
from penchant.data import Comparisons, ShardedComparisons
from penchant.errors import ConvergenceWarning, warn
from penchant.gp import ItemHyper, told
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood, get
from penchant.models.defaults import taste_kernel, utility_kernel
from penchant.models.learning import Learning
from penchant.models.progress import sweep_progress
from penchant.models.sharded import Shards, check_all_here, first_users
from penchant.models.sharded_communities import CommunityShards, learn_communities
from penchant.models.tastes import learn_tastes
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.threads import threads_for

SEARCHED_AGAIN = 1_000_000
"""Most distinct answers among which communities are searched again when some are withdrawn."""


@dataclass(frozen=True, eq=False)
class CommunityLearning(Learning):
    """By the parameters of `CommunityGP`, where they are explained."""

    concentration: float | tuple[float, float]
    kernel: Kernel | None
    likelihood: str | Likelihood
    inference: str
    n_communities: int | None
    sampler: str
    personal: bool | str
    n_sweeps: int
    n_chains: int
    hyperparameters: str
    optimize: str | None
    max_rank: int | None
    engine: str
    address: str | None
    progress: bool
    random_state: RandomState

    def found(self, items: Inputs, data: Comparisons) -> Found:
        """By a search, or by chains from what a search finds."""
        finding = self._first_finding(items, data)
        with threads_for(len(items)):
            if self.inference == "variational":
                return finding.searched()
            seed = int(as_rng(self.random_state).integers(2**32))
            grouping = finding.grouping()
            chains = finding.started(grouping, seed, self.n_chains)
            return self._sampled(finding, chains, self.n_sweeps, finding.varies(grouping))

    def found_in_shards(
        self, items: Inputs, data: ShardedComparisons
    ) -> tuple[Found, CommunityShards]:
        """By a search among some users, then settled with everybody's answers."""
        with threads_for(len(items)):
            finding = self._first_finding(items, first_users(data))
            return learn_communities(Shards(data, self.engine, self.address), finding)

    def finding(
        self, data: Comparisons, answers: Answers, items: Inputs, start: ItemHyper
    ) -> Finding:
        """What to find communities in, and how; start: where hyperparameters start."""
        personal = None
        if self.personal and self.max_rank is None:
            kernel = None if self.kernel is None else self.kernel.at_scale_of(items)
            required = not isinstance(self.personal, str)
            learn = partial(learn_tastes, kernel=kernel)
            personal = PersonalTaste(lambda: kernel or taste_kernel(items), required, learn)
        return Finding(
            data, answers, items, start, self._plan(), personal, self.n_communities, self.max_rank
        )

    def again(self, found: Found) -> Finding:
        """The same on the answers that there are now."""
        check_all_here(found.n_elsewhere)
        return self.finding(found.data, found.answers, found.items, found.start)

    def resumed(self, found: Found, n_sweeps: int) -> Found:
        """After more sweeps of every chain."""
        finding = self.again(found)
        personal = not isinstance(self.personal, str) or found.personal is not None
        after = self._sampled(finding, finding.carried(found), n_sweeps, personal)
        return replace(after, user_features=found.user_features)

    def relearned(self, found: Found) -> Found:
        """Communities and hyperparameters, asked for again."""
        if found.draws is None:
            return replace(self.again(found).searched(), user_features=found.user_features)
        return self.resumed(found, self.n_sweeps - self.n_sweeps // 2 + LEARNING_SWEEPS)

    def without(self, found: Found, data: Comparisons) -> Found:
        """After only `data`, some of the answers so far."""
        check_all_here(found.n_elsewhere)
        left = replace(found, data=data)
        if found.draws is None and len(data) <= SEARCHED_AGAIN:
            return self.relearned(left)
        return found.with_answers(data, left.changed_since(found.data), None)

    def _first_finding(self, items: Inputs, data: Comparisons) -> Finding:
        answers = Answers.of(data)
        likelihood = get(self.likelihood, data.margin, data.count)
        likelihood.check(answers.outcomes)
        if self.kernel is None:
            kernel = utility_kernel(items, self.max_rank)
        else:
            kernel = self.kernel.at_scale_of(items)
        start = ItemHyper(kernel, likelihood)
        return self.finding(data, answers, items, start)

    def _sampled(
        self, finding: Finding, chains: Sequence[Chain], n_sweeps: int, personal: bool
    ) -> Found:
        with sweep_progress(len(chains) * n_sweeps, self.progress) as watch:
            found = finding.sampled(chains, n_sweeps, watch)
        if told(found.data):
            found = replace(found, posteriors=found.inferred())
        if (message := found.report.advice()) is not None:
            warn(message, ConvergenceWarning)
        return finding.with_personal(found) if personal and found.report.completed else found

    def _plan(self) -> ChainPlan:
        *rest, last = np.atleast_1d(np.asarray(self.concentration, dtype=float)).tolist()
        return ChainPlan(
            sampler=self.sampler,
            n_warmup=self.n_sweeps // 2,
            concentration=rest[0] / last if rest else last,
            concentration_prior=(rest[0], last) if rest else None,
            learn=self.optimize is not None,
            own=self.hyperparameters == "community",
        )
