"""Communities of taste: chains of the Dirichlet-process mixture of preference models (paper 004).

c_u ~ DP(λ),  f_c ~ GP(0, K),  answers of u ~ likelihood of f_{c_u}'s differences.

A chain grows from one community. One sweep: memberships given a draw of each community's
utilities (twice in the warm-up instead: what has no support is dissolved); split and merge moves
and reunions; λ; hyperparameters (while warming up); expectation propagation per community; a new
draw of the utilities. All of a sweep's randomness comes from the chain's
seed and the number of the sweep, so a chain continues exactly from any state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import gammaln

from penchant.communities.assignment import SingleArray, count_all_pairs, log_likelihoods
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

GROWTH_ATTEMPTS = 8
"""Communities that a sweep tries to split while a chain grows."""
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
        """Often at first, when communities appear, then rarely; never after the warm-up.

        While there is one community only, its pooled tastes would teach too small a scale.
        """
        if not self.learn or sweep >= self.n_warmup:
            return False
        is_power_of_two = sweep & (sweep - 1) == 0
        return sweep == self.n_warmup - 1 or (is_power_of_two and n_communities > 1)

    def is_clearing(self, sweep: int) -> bool:
        """Twice in the second half of the warm-up, when a chain has grown and settled somewhat."""
        return sweep in (self.n_warmup // 2, 3 * self.n_warmup // 4) and sweep < self.n_warmup


def start_chain(mixture: Mixture, plan: ChainPlan, seed: tuple[int, ...]) -> ChainState:
    """Everybody in one community."""
    n_users, m = mixture.answers.counts.shape
    rng = np.random.default_rng([*seed, 0])
    theta = mixture.hyper.theta
    together = Partition(
        assignment=np.zeros(n_users, dtype=np.int32),
        pair_counts=np.asarray(mixture.answers.counts.sum(axis=0, dtype=np.float64))[None],
        tau=np.zeros((1, m)),
        nu=np.zeros((1, m)),
        thetas=theta[None],
    )
    origin = ChainState(
        assignment=together.assignment,
        utilities=np.zeros((1, len(mixture.items))),
        tau=together.tau,
        nu=together.nu,
        thetas=together.thetas,
        theta=theta,
        log_evidence=np.zeros(1),
        concentration=plan.concentration,
        log_joint=-np.inf,
        seed=seed,
        sweep=0,
    )
    return _settle(mixture, plan, origin, together, rng)


def sweep(mixture: Mixture, plan: ChainPlan, state: ChainState) -> ChainState:
    """The state after one more sweep."""
    state = replace(state, sweep=state.sweep + 1)
    rng = np.random.default_rng([*state.seed, state.sweep])
    if plan.is_clearing(state.sweep):
        allocation = _dissolve(mixture, state)
    else:
        allocation = SAMPLERS[plan.sampler](mixture, state, rng)
    partition = _partition(state, allocation).occupied()
    state, partition = _split_and_merge(mixture, plan, state, partition, rng)
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
    mixture: Mixture,
    plan: ChainPlan,
    state: ChainState,
    partition: Partition,
    rng: np.random.Generator,
) -> tuple[ChainState, Partition]:
    """Moves that concern two random users; at first also tries to split many communities.

    The tries outweigh merges, so a chain grows fast; they end after a quarter of the warm-up, and
    what grew too much has the rest of it to dissolve.
    """
    target = Target(mixture, state.theta, state.concentration)
    n_users = len(partition.assignment)
    pairs = _pairs_within(partition, rng) if 4 * state.sweep < plan.n_warmup else []
    if n_users > 1:
        pairs += [rng.choice(n_users, 2, replace=False) for _ in range(MOVES)]
    counted = np.reshape(state.n_moves, (2, 2))
    moves = [partial(split_merge, target, users=users) for users in pairs]
    moves += [partial(reunite, target)] * REUNIONS
    for try_move in moves:
        move = try_move(partition=partition, rng=rng)
        partition = move.partition
        counted[int(not move.is_split)] += [1, int(move.is_made)]
    return replace(state, n_moves=tuple(counted.ravel().tolist())), partition


def _pairs_within(partition: Partition, rng: np.random.Generator) -> list[IntArray]:
    """Two random members of each of a few random communities."""
    candidates = np.flatnonzero(partition.sizes > 1)
    n_attempts = min(GROWTH_ATTEMPTS, len(candidates))
    return [
        rng.choice(np.flatnonzero(partition.assignment == c), 2, replace=False)
        for c in rng.choice(candidates, n_attempts, replace=False)
    ]


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

    n_communities, log_joint: (sweeps + 1,), the first entry with everybody in one community.
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
        is_supported=_support(mixture, state)[0],
        chain=state.seed[-1],
        labels=np.arange(len(state.utilities)),
    )


def _dissolve(mixture: Mixture, state: ChainState) -> Allocation:
    """Send the members of communities without support to where they fit best.

    For the warm-up only: communities that found different parts of one taste, each fitting its
    members a little by chance, approach each other too slowly by exact steps if they are large.
    """
    supported, log_weight = _support(mixture, state)
    best = np.flatnonzero(supported)[log_weight[supported].argmax(axis=0)]
    stays = supported[state.assignment]
    assignment = np.where(stays, state.assignment, best).astype(np.int32)
    pair_counts = count_all_pairs(mixture.answers, assignment, len(supported))
    return Allocation(assignment, pair_counts)


def _support(mixture: Mixture, state: ChainState) -> tuple[BoolArray, SingleArray]:
    """(K,) whether a community explains its members better than they could do without it.

    With few answers a user, groups come and go that no one would miss: their utilities fit their
    members by chance. A group counts if its members' answers, its utilities integrated out, are
    likelier than with every member in the best of the other communities. Smallest first, and what
    does not count is no alternative to the next. Also returns (K, U) how well every community
    explains every user, sizes included.
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
    return counts, log_weight
