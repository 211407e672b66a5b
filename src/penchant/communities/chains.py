"""Communities of taste: chains of the Dirichlet-process mixture of preference models (paper 004).

c_u ~ DP(λ),  f_c ~ GP(0, K),  answers of u ~ likelihood of f_{c_u}'s differences.

A chain starts from the communities that a search found, memberships drawn from their
probabilities, and has only to settle around them. One sweep: memberships given a draw of each
community's utilities; split and merge moves and reunions; λ; hyperparameters (while warming up);
expectation propagation per community; a new draw of the utilities. All of a sweep's randomness
comes from the chain's seed and the number of the sweep, so a chain continues exactly from any
state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from penchant.communities.assignment import (
    LabelArray,
    SingleArray,
    count_all_pairs,
    log_likelihoods,
)
from penchant.communities.draws import Draw
from penchant.communities.mixing import Partition, Target, log_prior_of_sizes, split_merge
from penchant.communities.reunion import reunite
from penchant.communities.samplers import SAMPLERS, Allocation, ChainState, draw_concentration
from penchant.communities.utility import (
    Gathered,
    Mixture,
    fit_community,
    learn_own,
    learn_shared,
)
from penchant.numerics.types import BoolArray, FloatArray, IntArray

DRAWS_PER_CHAIN = 50
"""Draws kept of a chain's sweeps after the warm-up."""
MOVES = 3
"""Split or merge moves of a sweep."""
REUNIONS = 2
"""Tries of a sweep to unite communities that are alike."""


@dataclass(frozen=True)
class ChainPlan:
    """How chains run.

    concentration: λ, or where it starts when `concentration_prior` (shape, rate) has it learned;
    learn: hyperparameters by evidence while warming up; own: also for each community by itself.
    """

    sampler: str
    n_warmup: int
    concentration: float
    concentration_prior: tuple[float, float] | None
    learn: bool
    own: bool

    def is_learning(self, sweep: int, n_communities: int) -> bool:
        """Often at first, then rarely; never after the warm-up.

        While there is one community only, its pooled tastes would teach too small a scale.
        """
        if not self.learn or sweep >= self.n_warmup:
            return False
        is_power_of_two = sweep > 0 and sweep & (sweep - 1) == 0
        return sweep == self.n_warmup - 1 or (is_power_of_two and n_communities > 1)


class ChainStart(NamedTuple):
    """Where chains start: (U, K) memberships to draw from, and hyperparameters."""

    membership: FloatArray
    theta: FloatArray

    @classmethod
    def together(cls, mixture: Mixture) -> "ChainStart":
        """Everybody in one community."""
        return cls(np.ones((mixture.answers.n_users, 1)), mixture.hyper.theta)


def start_chain(
    mixture: Mixture, plan: ChainPlan, seed: tuple[int, ...], start: ChainStart | None = None
) -> ChainState:
    """Everybody in a community drawn from their memberships; without a start, all in one."""
    m, (membership, theta) = mixture.answers.n_answers, start or ChainStart.together(mixture)
    rng = np.random.default_rng([*seed, 0])
    below = membership.cumsum(axis=1) < rng.random((len(membership), 1))
    drawn = np.minimum(below.sum(axis=1), membership.shape[1] - 1)
    _, assignment = np.unique(drawn, return_inverse=True)
    n_communities = int(assignment.max()) + 1
    labels: LabelArray = assignment.astype(np.int32)
    partition = Partition(
        assignment=labels,
        pair_counts=count_all_pairs(mixture.answers, labels, n_communities),
        tau=np.zeros((n_communities, m)),
        nu=np.zeros((n_communities, m)),
        thetas=np.tile(theta, (n_communities, 1)),
    )
    origin = ChainState(
        assignment=labels,
        utilities=np.zeros((n_communities, len(mixture.items))),
        tau=partition.tau,
        nu=partition.nu,
        thetas=partition.thetas,
        theta=theta,
        log_evidence=np.zeros(n_communities),
        concentration=plan.concentration,
        log_joint=-np.inf,
        seed=seed,
        sweep=0,
    )
    return _settle(mixture, plan, origin, partition, rng)


def sweep(mixture: Mixture, plan: ChainPlan, state: ChainState) -> ChainState:
    """The state after one more sweep."""
    state = replace(state, sweep=state.sweep + 1)
    rng = np.random.default_rng([*state.seed, state.sweep])
    allocation = SAMPLERS[plan.sampler](mixture, state, rng)
    partition = _partition(state, allocation).occupied()
    state, partition = _split_and_merge(mixture, state, partition, rng)
    if plan.concentration_prior is not None:
        concentration = draw_concentration(
            state, plan.concentration_prior, len(partition.pair_counts), rng
        )
        state = replace(state, concentration=concentration)
    return _settle(mixture, plan, state, partition, rng)


def _partition(state: ChainState, allocation: Allocation) -> Partition:
    """Communities that were there keep sites and parameters; new ones start from nothing."""
    n_new = len(allocation.pair_counts) - len(state.utilities)
    blank = np.zeros((n_new, state.tau.shape[1]))
    return Partition(
        allocation.assignment,
        allocation.pair_counts,
        np.concatenate([state.tau, blank]),
        np.concatenate([state.nu, blank]),
        np.concatenate([state.thetas, np.tile(state.theta, (n_new, 1))]),
    )


def _split_and_merge(
    mixture: Mixture, state: ChainState, partition: Partition, rng: np.random.Generator
) -> tuple[ChainState, Partition]:
    """Moves that concern two random users, and reunions of communities that are alike."""
    target = Target(mixture, state.theta, state.concentration)
    n_users = len(partition.assignment)
    n_moves = MOVES if n_users > 1 else 0
    pairs = [rng.choice(n_users, 2, replace=False) for _ in range(n_moves)]
    counted = np.reshape(state.n_moves, (2, 2))
    moves = [partial(split_merge, target, users=users) for users in pairs]
    moves += [partial(reunite, target)] * REUNIONS
    for try_move in moves:
        move = try_move(partition=partition, rng=rng)
        partition = move.partition
        counted[int(not move.is_split)] += [1, int(move.is_made)]
    return replace(state, n_moves=tuple(counted.ravel().tolist())), partition


def _settle(
    mixture: Mixture,
    plan: ChainPlan,
    state: ChainState,
    partition: Partition,
    rng: np.random.Generator,
) -> ChainState:
    """Infer each community's utilities, with new hyperparameters when it is time, and draw them."""
    theta, thetas = state.theta, partition.thetas
    if plan.is_learning(state.sweep, len(thetas)):
        groups = Gathered(partition.pair_counts, partition.tau, partition.nu)
        theta = learn_shared(mixture, groups, theta)
        thetas = np.tile(theta, (len(thetas), 1))
        if plan.own:
            thetas = learn_own(mixture, groups, theta)
    fits = [
        fit_community(mixture, counts, own, (tau, nu))
        for counts, own, tau, nu in zip(
            partition.pair_counts, thetas, partition.tau, partition.nu, strict=True
        )
    ]
    log_evidence = np.array([fit.log_evidence for fit in fits])
    log_prior = log_prior_of_sizes(partition.sizes, state.concentration)
    return replace(
        state,
        assignment=partition.assignment,
        utilities=np.concatenate([fit.posterior.sample(1, rng) for fit in fits]),
        tau=np.stack([fit.tau for fit in fits]),
        nu=np.stack([fit.nu for fit in fits]),
        thetas=thetas,
        theta=theta,
        log_evidence=log_evidence,
        log_joint=float(log_evidence.sum()) + log_prior,
    )


@dataclass(frozen=True, eq=False)
class Chain:
    """A chain so far: where it is, its traces from the start on, and the draws that were kept.

    n_communities, log_joint: (sweeps + 1,), the first entry where it starts.
    """

    state: ChainState
    n_communities: IntArray
    log_joint: FloatArray
    draws: tuple[Draw, ...]

    @classmethod
    def of(cls, state: ChainState) -> "Chain":
        """A chain that is yet to run."""
        return cls(state, np.array([len(state.utilities)]), np.array([state.log_joint]), ())


Watch = Callable[[ChainState], None]
"""Told the state after each sweep."""


def run_chain(
    mixture: Mixture, plan: ChainPlan, chain: Chain, n_sweeps: int, watch: Watch
) -> tuple[Chain, bool]:
    """Sweep on; also says whether all sweeps were made.

    An interrupt from the keyboard ends the chain early, with what it has by then.
    """
    state, states, completed = chain.state, [], True
    n_kept = max(1, state.sweep + n_sweeps - max(plan.n_warmup, state.sweep))
    thin = -(-n_kept // DRAWS_PER_CHAIN)
    draws = []
    try:
        for _ in range(n_sweeps):
            state = sweep(mixture, plan, state)
            states.append((len(state.utilities), state.log_joint))
            if state.sweep > plan.n_warmup and state.sweep % thin == 0:
                draws.append(_draw_of(mixture, state))
            watch(state)
    except KeyboardInterrupt:
        completed = False
    numbers, values = zip(*states, strict=True) if states else ((), ())
    extended = Chain(
        state,
        np.append(chain.n_communities, np.array(numbers, dtype=np.intp)),
        np.append(chain.log_joint, values),
        (*chain.draws, *draws),
    )
    return extended, completed


def run_chains(
    mixture: Mixture, plan: ChainPlan, chains: Sequence[Chain], n_sweeps: int, watch: Watch
) -> tuple[tuple[Chain, ...], bool]:
    """All chains, one after another; after an interrupt, those that have begun.

    First all of them warm up and agree on hyperparameters, so that the draws kept afterwards are
    draws from one posterior.
    """
    ends = [chain.state.sweep + n_sweeps for chain in chains]
    warm_ends = [min(end, plan.n_warmup) for end in ends]
    after, completed = _advance(mixture, plan, chains, warm_ends, watch)
    if completed:
        after, completed = _advance(mixture, plan, _agree(plan, after), ends, watch)
    begun = [chain for chain in after if chain.state.sweep > 0] or after[:1]
    return tuple(_with_a_draw(mixture, chain) for chain in begun), completed


def _advance(
    mixture: Mixture, plan: ChainPlan, chains: Sequence[Chain], ends: Sequence[int], watch: Watch
) -> tuple[list[Chain], bool]:
    """Each chain up to a number of sweeps of its own; also says whether all got there."""
    after = list(chains)
    for number, end in enumerate(ends):
        left = max(0, end - after[number].state.sweep)
        after[number], completed = run_chain(mixture, plan, after[number], left, watch)
        if not completed:
            return after, False
    return after, True


def _agree(plan: ChainPlan, chains: list[Chain]) -> list[Chain]:
    """The mean of what the chains learned of the hyperparameters, when all have just warmed up."""
    if any(chain.state.sweep != plan.n_warmup for chain in chains):
        return chains
    theta = np.mean([chain.state.theta for chain in chains], axis=0)
    return [
        replace(
            chain,
            state=replace(
                chain.state, theta=theta, thetas=chain.state.thetas + (theta - chain.state.theta)
            ),
        )
        for chain in chains
    ]


def _with_a_draw(mixture: Mixture, chain: Chain) -> Chain:
    """A chain that was stopped before its first draw is taken as it is."""
    return chain if chain.draws else replace(chain, draws=(_draw_of(mixture, chain.state),))


def _draw_of(mixture: Mixture, state: ChainState) -> Draw:
    n_kernel = len(mixture.hyper.kernel.theta)
    return Draw(
        sizes=state.sizes,
        utilities=state.utilities,
        likelihood_thetas=state.thetas[:, n_kernel:],
        is_supported=_support(mixture, state),
        chain=state.seed[-1],
        labels=np.arange(len(state.utilities)),
    )


def _support(mixture: Mixture, state: ChainState) -> BoolArray:
    """(K,) whether a community explains its members better than they could do without it.

    With few answers a user, groups come and go that no one would miss: their utilities fit their
    members by chance. A group counts if its members' answers, its utilities integrated out, are
    likelier than with every member in the best of the other communities. Smallest first, and what
    does not count is no alternative to the next.
    """
    table = mixture.table(state.utilities, state.thetas)
    parts = [log_likelihoods(shard, table) for _, shard in mixture.answers.shards()]
    log_size = np.log(state.sizes).astype(np.float32)
    log_weight: SingleArray = np.concatenate(parts, axis=1) + log_size[:, None]
    log_own = np.log(state.concentration) + gammaln(state.sizes) + state.log_evidence
    counts = np.ones(len(state.sizes), dtype=bool)
    for c in np.argsort(state.sizes, kind="stable")[:-1]:
        counts[c] = False
        members = state.assignment == c
        elsewhere = log_weight[counts][:, members].max(axis=0).sum(dtype=np.float64)
        counts[c] = state.sizes[c] > 1 and log_own[c] > elsewhere
    return counts
