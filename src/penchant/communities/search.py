"""Communities by a deterministic search: grow from one, merge, learn, delete, settle.

A Dirichlet-process mixture of preference models, as a point estimate with soft memberships: no
chain, no seed, and a second where chains need a minute. It is greedy; chains started from its
solution give the posterior.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from penchant import gp
from penchant.communities.component import (
    LEARNING,
    MixtureData,
    VariationalState,
    allocate,
    converge,
    learn,
    learn_concentration,
    single_component,
    sweep,
)
from penchant.communities.data import Answers, responsibilities, sample_users
from penchant.communities.split_merge import SplitSearch, delete, force_merge, force_split, merge
from penchant.errors import DataError
from penchant.numerics.optimize import Move
from penchant.numerics.types import FloatArray, IntArray

SPLIT_ROUNDS = 12
"""Most rounds of splits: each may double the number of communities."""
ROUND_SWEEPS = 6
"""Sweeps after each round: few, since the next round changes everything again."""
ROUND_TOLERANCE = 1.0
"""Nats that a sweep, or a step of learning, must gain for another one while communities grow."""
ROUND_LEARNING = gp.Limits(max_steps=4, least_gain=ROUND_TOLERANCE)
CONVERGE_SWEEPS, CONVERGE_TOLERANCE = 60, 0.05
"""Most sweeps of the final state, and nats that one must gain for another."""
PRUNE_TOLERANCE = 0.2
"""Nats that a sweep must gain before moves are tried: two halves of one community would exchange
members for ever."""
WORTHWHILE, UNLEARNED = 1.0, 3.0
"""Nats that a pass of growing and pruning must gain for another one; and the multiple of it that
its learning must gain."""
MANY_USERS = 20_000
"""With more users, the search runs among so many and then sweeps over everybody; from half as many
on, all tolerances grow with the number of users."""


class Step(NamedTuple):
    """The name of a step, and the number of communities and the objective after it."""

    name: str
    n_communities: int
    objective: float


@dataclass(frozen=True)
class SearchReport:
    """How the search went: its steps, and the log evidence where it ended.

    converged: the last pass of moves gained nothing worthwhile.
    """

    converged: bool
    steps: tuple[str, ...]
    n_communities: tuple[int, ...]
    log_evidence: tuple[float, ...]

    completed = True  # a search that reports has ended

    @classmethod
    def of(cls, trace: Sequence[Step]) -> "SearchReport":
        """From the steps of a search that ended."""
        steps, numbers, values = zip(*trace, strict=True)
        return cls(True, steps, numbers, values)

    def advice(self) -> str | None:
        """None: a search ends where no move gains."""
        return None


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Communities, largest first: their members and their utilities.

    membership: (U, K), rows sum to one; trace: the steps of the search.
    """

    allocation: VariationalState
    membership: FloatArray
    trace: tuple[Step, ...]

    @property
    def n_communities(self) -> int:
        return self.allocation.n_communities

    @property
    def hyper(self) -> gp.ItemHyper:
        """Kernel and likelihood with the learned parameters."""
        return self.allocation.model.hyper

    @property
    def objective(self) -> float:
        return self.allocation.objective

    @property
    def report(self) -> SearchReport:
        return SearchReport.of(self.trace)

    @property
    def labels(self) -> IntArray:
        """(U,) the likeliest community of each user."""
        return np.asarray(self.membership.argmax(axis=1), dtype=np.intp)

    @cached_property
    def posteriors(self) -> tuple[gp.Posterior, ...]:
        """Each community's utilities over all items."""
        return tuple(map(self.allocation.model.posterior, self.allocation.components))


def predict_membership(
    posteriors: Sequence[gp.Posterior], sizes: FloatArray, answers: Answers
) -> FloatArray:
    """(U, K) memberships of users given their answers; the communities stay as they are.

    A user without answers has memberships in proportion to the communities' sizes.
    """
    return responsibilities(answers.counts, predictive_table(posteriors, answers), np.log(sizes))


def predictive_table(posteriors: Sequence[gp.Posterior], answers: Answers) -> FloatArray:
    """(m, K) log predictive probability of each answer in each community."""
    return np.column_stack([log_predictive(posterior, answers) for posterior in posteriors])


def log_predictive(posterior: gp.Posterior, answers: Answers) -> FloatArray:
    """(m,) log predictive probability of each answer, the utilities integrated out.

    A choice follows from the odds of its pairs, as when models score it.
    """
    difference = posterior.difference(answers.winner, answers.loser)
    n, cliques = answers.n_pairs, answers.outcomes.cliques
    pairs, likelihood = answers.outcomes._replace(cliques=None), posterior.likelihood
    values = [likelihood.tilted(difference.mean[:n], difference.var[:n], pairs).log_z]
    if cliques is not None:
        mean, var = difference.mean[n:], difference.var[n:]
        smallest = np.finfo(float).tiny
        win, loss = (np.maximum(likelihood.prob(m, var), smallest) for m in (mean, -mean))
        log_odds = np.log(win) - np.log(loss)
        values += [group.log_predictive(log_odds) for group in cliques.groups]
    return np.concatenate(values)


def find_communities(
    mixture: MixtureData,
    *,
    n_communities: int | None = None,
    learn_parameters: bool = True,
) -> SearchResult:
    """Find the communities of a mixture, and their number unless n_communities is given.

    >>> from penchant.data import Comparisons
    >>> from penchant.kernels import Independent, Inputs
    >>> from penchant.likelihoods import Probit
    >>> tea = ["tea", "milk", "juice", "water"]
    >>> data = Comparisons.from_rankings([tea] * 7 + [tea[::-1]] * 5, users=range(12))
    >>> items = Inputs(index=np.arange(4))
    >>> mixture = MixtureData(Answers.of(data), items, gp.ItemHyper(Independent(), Probit()))
    >>> find_communities(mixture).labels
    array([0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    """
    mixture.hyper.likelihood.check(mixture.answers.outcomes)
    active = mixture.answers.voters
    if n_communities is not None and not 1 <= n_communities <= len(active):
        raise DataError(
            f"n_communities is {n_communities!r}: it must lie between 1 and the number of users "
            f"who answered anything, {len(active)}; leave it out to have it found"
        )
    search = _Search(mixture.of_voters(), n_communities, learn_parameters)
    allocation = search.run()
    order = np.argsort(-allocation.sizes, kind="stable")
    allocation = allocation.within([int(c) for c in order])
    membership = with_silent_users(allocation.responsibilities, mixture.answers)
    return SearchResult(allocation, membership, tuple(search.trace))


def with_silent_users(membership: FloatArray, answers: Answers) -> FloatArray:
    """(U, K) from that of the voters: users without answers get the communities' sizes."""
    sizes = membership.sum(axis=0)
    everybody = np.tile(sizes / sizes.sum(), (answers.n_users, 1))
    everybody[answers.voters] = membership
    return everybody


Shrinking = Callable[[VariationalState], VariationalState | None]


class _Search:
    """The schedule of moves; it never takes one that lowers the objective, unless K is fixed."""

    def __init__(self, mixture: MixtureData, target: int | None, learn_parameters: bool) -> None:
        self.mixture, self.target, self.learns = mixture, target, learn_parameters
        self.splits = SplitSearch()
        self.bends: tuple[Move, ...] = ()
        self.scale = max(1.0, mixture.answers.n_users / (MANY_USERS / 2))
        self.trace: list[Step] = []

    def run(self) -> VariationalState:
        """Move until nothing gains anything worthwhile."""
        if self.mixture.answers.n_users > MANY_USERS:
            return self._with_everybody(self._among_some())
        allocation = single_component(self.mixture, self.mixture.hyper.theta)
        allocation = self._learn(self._note("start", allocation), ROUND_LEARNING)
        is_learned = False
        while True:
            before = allocation
            allocation = self._reach_target(self._grow(allocation))
            if allocation is not before:
                allocation = self._converge(allocation, tolerance=PRUNE_TOLERANCE)
            allocation = self._prune(allocation)
            if is_learned and allocation is before:
                return allocation
            grown, least = allocation, WORTHWHILE * self.scale
            allocation = self._converge(self._learn(allocation))
            if is_learned and grown.objective < before.objective + least:
                return allocation
            is_learned = allocation.objective < grown.objective + UNLEARNED * least

    def _among_some(self) -> VariationalState:
        """The communities of some of the users."""
        answers = self.mixture.answers
        some = sample_users(answers, MANY_USERS)
        search = _Search(
            replace(self.mixture, answers=answers.take(some)), self.target, self.learns
        )
        few = search.run()
        self.trace, self.bends = search.trace, search.bends
        self.trace[0] = self.trace[0]._replace(name=f"start among {len(some):,} users")
        return few

    def _with_everybody(self, few: VariationalState) -> VariationalState:
        """The same communities with all users, their number only ever falling."""
        model = replace(few.model, mixture=replace(few.mixture, answers=self.mixture.answers))
        r = responsibilities(self.mixture.answers.counts, few.tables, few.log_sizes)
        allocation = allocate(model, r, few.components)
        allocation = self._note("everybody", allocation)
        allocation = self._prune(self._converge(allocation, tolerance=PRUNE_TOLERANCE))
        return self._converge(self._learn(allocation))

    def _grow(self, allocation: VariationalState) -> VariationalState:
        """Rounds of splits, learning after each, while the number of communities grows."""
        for _ in range(SPLIT_ROUNDS):
            before = allocation.n_communities
            allocation = self._split(allocation)
            if allocation.n_communities > before:
                allocation = self._converge(allocation, ROUND_SWEEPS, ROUND_TOLERANCE)
                allocation = self._fewer(allocation, merge)
            if allocation.n_communities <= before:
                break
            allocation = self._learn(allocation, ROUND_LEARNING)
        return allocation

    def _prune(self, allocation: VariationalState) -> VariationalState:
        """Merges and deletions while any raises the objective."""
        while True:
            before = allocation.n_communities
            allocation = self._fewer(self._fewer(allocation, merge), delete)
            if allocation.n_communities == before:
                return allocation
            allocation = self._converge(allocation)

    def _split(self, allocation: VariationalState) -> VariationalState:
        largest_first = sorted(allocation.components, key=lambda one: -float(one.weights.sum()))
        for component in largest_first:
            if allocation.n_communities == self.target:
                break
            places = [c for c, other in enumerate(allocation.components) if other is component]
            if not places:  # the last split moved people everywhere
                break
            if (divided := self.splits.split(allocation, places[0])) is not None:
                allocation = self._note("split", divided)
        return allocation

    def _fewer(self, allocation: VariationalState, move: Shrinking) -> VariationalState:
        """After as many of these moves as raise the objective."""
        while allocation.n_communities != (self.target or 1):
            if (fewer := move(allocation)) is None:
                break
            allocation = self._note(move.__name__, fewer)
        return allocation

    def _reach_target(self, allocation: VariationalState) -> VariationalState:
        """Where the number is given: merge or split against the objective."""
        while self.target is not None and allocation.n_communities != self.target:
            if allocation.n_communities > self.target:
                allocation = self._note("merge", force_merge(allocation))
            else:
                allocation = self._note("split", force_split(allocation))
            allocation = self._converge(allocation, ROUND_SWEEPS, ROUND_TOLERANCE)
        return allocation

    def _converge(
        self,
        allocation: VariationalState,
        max_sweeps: int = CONVERGE_SWEEPS,
        tolerance: float = CONVERGE_TOLERANCE,
    ) -> VariationalState:
        choose = partial(sweep, keep_all=self.target is not None)
        settled = converge(allocation, choose, max_sweeps, tolerance * self.scale)
        return self._note("sweep", settled)

    def _learn(
        self, allocation: VariationalState, limits: gp.Limits = LEARNING
    ) -> VariationalState:
        allocation = learn_concentration(allocation)
        if not self.learns:
            return allocation
        least_gain = limits.least_gain * self.scale
        limits = limits._replace(curvature=self.bends, least_gain=least_gain)
        allocation, self.bends = learn(allocation, limits)
        return self._note("learn", allocation)

    def _note(self, name: str, allocation: VariationalState) -> VariationalState:
        self.trace.append(Step(name, allocation.n_communities, allocation.objective))
        return allocation
