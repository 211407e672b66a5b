"""Chains of the Dirichlet-process mixture of preference models (paper 004): samplers and draws.

c_u ~ DP(λ),  f_c ~ GP(0, K),  answers of u ~ likelihood of f_{c_u}'s differences.

A chain starts from the communities of a search. One sweep draws memberships given a draw of each
community's utilities; proposes splits and merges; draws λ; learns hyperparameters (while warming
up); infers each community by expectation propagation; and draws its utilities. All of a sweep's
randomness comes from the chain's seed and the number of the sweep, so a chain continues exactly
from any state.

Both samplers of memberships are Gibbs steps given one *draw* of each community's utilities. Paper
004 (Eq. 10) multiplies averages of each answer's probability over the posterior; but one user's
answers depend on each other through the utilities. A draw makes the step exact.

*collapsed*: the weights are integrated out and users are reassigned in turn, with P(c) ∝ n_c and λ
for a new one, n_c counting the other users (the paper's Eqs. 11–12 say N where the number of users
belongs). New communities come from a pool of prior draws (Neal's algorithm 8; unused draws stay in
the pool from user to user, as in Favaro and Teh's ReUse).
*blocked*: weights are drawn, and users are independent given them.

A stored draw holds communities, not users: memberships, of fitted users and newcomers alike, are
the posterior over the communities of each draw given the user's answers, averaged over draws
(paper 004 Eq. 21 has the prior p(c|λ) there).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from math import exp, inf, log
from typing import cast

import numpy as np
from scipy.special import gammaln

from penchant import gp
from penchant.communities.component import (
    ComponentFit,
    MixtureData,
    fit_community,
    log_prior_of_sizes,
)
from penchant.communities.data import (
    Answers,
    LabelArray,
    SingleArray,
    count_pairs,
    draw_labels,
    log_likelihoods,
    responsibilities,
    sample_users,
)
from penchant.communities.split_merge import (
    Group,
    Partition,
    Transition,
    merge_similar_or_divide,
    split_or_merge,
)
from penchant.errors import DataError
from penchant.likelihoods import Likelihood
from penchant.metrics import adjusted_rand
from penchant.numerics.linalg import multiply, pivoted_cholesky
from penchant.numerics.optimize import weak_prior
from penchant.numerics.types import BoolArray, FloatArray, IntArray

LEARNING_STEPS = 10
"""Steps of the optimiser each time hyperparameters are learned: memberships change soon anyway."""
OWN_SPREAD = 1.0
"""Standard deviation of a community's own log hyperparameters around the shared ones."""
N_EMPTY = 3
"""Empty communities that a user may choose at a time."""
N_FRESH = 8
"""Prior draws in reserve for the collapsed sampler, to replace empty communities that fill."""
MOVES = 3
"""Split or merge proposals of a sweep."""
SIMILAR_MOVES = 2
"""Proposals of a sweep to merge two similar communities, or to divide one by coin."""
LEARNING_SWEEPS = 2
"""Sweeps of warm-up that a chain repeats on other data: one that learns, one more."""
DRAWS_PER_CHAIN = 50
"""Draws stored of a chain's sweeps after the warm-up."""
ALIGNMENT_USERS = 5_000
"""Users by whom the communities of different draws are matched."""
REFERENCE_CANDIDATES = 25
"""Draws among which the most typical one is chosen."""
ENOUGH_DRAWS = 10.0
"""Fewer effective draws than this give a warning."""
GOOD_AGREEMENT = 0.7
"""Chains whose partitions agree less than this (adjusted Rand) give a warning."""


def draw_prior(
    mixture: MixtureData, theta: FloatArray, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """(n_draws, n) utilities of communities that nobody belongs to yet."""
    kernel = mixture.hyper.at(theta).kernel
    factor = pivoted_cholesky(kernel(mixture.items), max_rank=mixture.max_rank).in_given_order()
    return multiply(factor, rng.standard_normal((factor.shape[1], n_draws))).T


def learn_shared(mixture: MixtureData, groups: Sequence[Group], theta: FloatArray) -> FloatArray:
    """Maximise the sum of the communities' evidences: small communities lean on large ones.

    A weak normal prior around where learning started keeps the scale of utilities from vanishing
    while opposite tastes still share a community.
    """
    start = mixture.hyper
    return _maximize_evidence(mixture, groups, theta, lambda x: start.at(x).log_prior(start))


def learn_own(mixture: MixtureData, groups: Sequence[Group], theta: FloatArray) -> FloatArray:
    """(K, p): each community's own parameters by its evidence, pooled towards the shared `theta`.

    A normal prior around `theta` decides where a community has few answers and gives way where it
    has many (paper 004 section 3.3 optimises each alone).
    """
    pooling = partial(weak_prior, centre=theta, spread=OWN_SPREAD)
    return np.stack([_maximize_evidence(mixture, [group], theta, pooling) for group in groups])


def _maximize_evidence(
    mixture: MixtureData,
    groups: Sequence[Group],
    theta: FloatArray,
    log_prior: Callable[[FloatArray], tuple[float, FloatArray]],
) -> FloatArray:
    """(p,) hyperparameters common to some communities, each fit starting from its last sites."""
    sites = [group.sites for group in groups]

    def objective(candidate: FloatArray) -> tuple[float, FloatArray, None]:
        value, slope = log_prior(candidate)
        for c, group in enumerate(groups):
            fit = fit_community(mixture, group.counts, candidate, sites[c])
            sites[c] = fit.sites
            value += fit.log_evidence
            slope += gp.gradient(fit.problem, fit.solution)
        return value, slope, None

    return gp.maximize(objective, theta, mixture.hyper.bounds, gp.Limits(LEARNING_STEPS)).theta


def fit_reported(
    mixture: MixtureData, pair_counts: FloatArray, theta: FloatArray, own: bool
) -> list[ComponentFit]:
    """Utilities of communities with soft members: answers (C, m) count by membership."""
    thetas = np.tile(theta, (len(pair_counts), 1))
    if own:
        blank = gp.Sites.zeros(pair_counts.shape[1])
        thetas = learn_own(mixture, [Group(counts, blank, theta) for counts in pair_counts], theta)
    return list(map(partial(fit_community, mixture.precise()), pair_counts, thetas))


@dataclass(frozen=True, eq=False)
class ChainState:
    """The state of a chain: the next sweep is a function of this and the data alone.

    assignment: (U,) community of each user; utilities: (K, n) a draw for each community;
    tau, nu: (K, m) its sites; thetas: (K, p) its hyperparameters; theta: (p,) the shared ones;
    log_evidence: (K,) of its answers, utilities integrated out.
    n_moves: splits proposed, splits made, merges proposed, merges made, so far.
    """

    assignment: LabelArray
    utilities: FloatArray
    tau: FloatArray
    nu: FloatArray
    thetas: FloatArray
    theta: FloatArray
    log_evidence: FloatArray
    concentration: float
    log_joint: float
    seed: tuple[int, ...]
    sweep: int
    n_moves: tuple[int, int, int, int] = (0, 0, 0, 0)

    @property
    def sizes(self) -> IntArray:
        """(K,) users of each community."""
        return np.bincount(self.assignment, minlength=len(self.utilities))


Sampler = Callable[[MixtureData, ChainState, np.random.Generator], LabelArray]
"""Gives users (U,) new communities: those of the state, and beyond their number new ones."""


def blocked(mixture: MixtureData, state: ChainState, rng: np.random.Generator) -> LabelArray:
    """Draw weights by stick-breaking, then all users independently."""
    empty = draw_prior(mixture, state.theta, N_EMPTY, rng)
    utilities = np.concatenate([state.utilities, empty])
    thetas = np.concatenate([state.thetas, [state.theta] * N_EMPTY])
    log_weights, table = draw_log_weights(state, rng), mixture.table(utilities, thetas)
    r = responsibilities(mixture.answers.counts, table, log_weights)
    return draw_labels(r, _positive_uniforms(len(r), rng))


def draw_log_weights(state: ChainState, rng: np.random.Generator) -> SingleArray:
    """(K + N_EMPTY,): weights of the communities, and of the empty ones on offer.

    Given the sizes, the weights are Dirichlet(n_1, …, n_K, λ), the last one for all that is
    empty together: broken into sticks of Beta(1, λ), the last on offer taking the rest.
    """
    *weights, rest = rng.dirichlet([*state.sizes, state.concentration])
    stick = rng.beta(1.0, state.concentration, N_EMPTY)
    stick[-1] = 1.0
    remaining = rest * np.cumprod(np.append(1.0, 1.0 - stick[:-1]))
    with np.errstate(divide="ignore"):  # a weight that underflows is never chosen
        return np.log([*weights, *(stick * remaining)]).astype(np.float32)


def _reassign(
    log_likelihood: SingleArray,
    assignment: LabelArray,
    size: IntArray,
    empty: IntArray,
    uniform: SingleArray,
    log_new: float,
    start: int,
    fresh: int,
) -> tuple[int, int]:
    """Reassign users one after another from `start`; return who is next, and the next fresh one.

    log_likelihood: (U, T) of each user under T utility functions; assignment: (U,) the function
    of each user; size: (T,) the users of each function; empty: (h,) the functions that stand for
    empty communities; these three change in place. uniform: (U, 2) numbers in (0, 1]. log_new:
    log(λ/h), the prior of an empty community; functions from `fresh` on replace those that get
    their first user. Stops before a user when none is left.
    """
    n_users, n_functions = log_likelihood.shape
    log_prior = np.full(n_functions, -inf)
    for c in range(n_functions):
        if size[c] > 0:
            log_prior[c] = log(size[c])
    for slot in range(len(empty)):
        log_prior[empty[slot]] = log_new
    cumulative = np.empty(n_functions)
    for u in range(start, n_users):
        if fresh == n_functions:
            return u, fresh
        left = assignment[u]
        size[left] -= 1
        if size[left] > 0:
            log_prior[left] = log(size[left])
        else:
            # an abandoned function takes the place of one of the empty ones
            slot = int((1.0 - uniform[u, 0]) * len(empty))
            log_prior[empty[slot]] = -inf
            empty[slot] = left
            log_prior[left] = log_new
        top = -inf
        for c in range(n_functions):
            top = max(top, log_prior[c] + log_likelihood[u, c])
        total = 0.0
        for c in range(n_functions):
            total += exp(log_prior[c] + log_likelihood[u, c] - top)
            cumulative[c] = total
        joined = np.searchsorted(cumulative, float(uniform[u, 1]) * total)
        if size[joined] == 0:
            for slot in range(len(empty)):
                if empty[slot] == joined:
                    empty[slot] = fresh
                    log_prior[fresh] = log_new
                    fresh += 1
                    break
        size[joined] += 1
        log_prior[joined] = log(size[joined])
        assignment[u] = joined
    return n_users, fresh


@cache
def compiled_reassign() -> Callable[..., tuple[int, int]]:
    """`_reassign`, compiled on the first call: numba takes a second to import."""
    import numba

    try:
        compiled = numba.njit(cache=True, nogil=True)(_reassign)
    except RuntimeError:  # a read-only installation and no folder for the cache elsewhere
        compiled = numba.njit(nogil=True)(_reassign)
    return cast(Callable[..., tuple[int, int]], compiled)


def collapsed(mixture: MixtureData, state: ChainState, rng: np.random.Generator) -> LabelArray:
    """Reassign users one after another, weights integrated out (Neal's algorithm 8)."""
    answers, n_communities = mixture.answers, len(state.utilities)
    uniform = _positive_uniforms(2 * answers.n_users, rng).reshape(-1, 2)
    log_new = float(np.log(state.concentration / N_EMPTY))
    assignment, size = state.assignment.copy(), state.sizes
    empty = np.arange(n_communities, n_communities + N_EMPTY)
    log_likelihood = answers.counts @ mixture.table(state.utilities, state.thetas)
    user, fresh, n_more = 0, n_communities + N_EMPTY, N_EMPTY + N_FRESH
    while user < answers.n_users:
        more = draw_prior(mixture, state.theta, n_more, rng)
        table = mixture.table(more, np.tile(state.theta, (n_more, 1)))
        log_likelihood = np.concatenate([log_likelihood, answers.counts @ table], axis=1)
        size = np.append(size, np.zeros(n_more, dtype=np.intp))
        user, fresh = compiled_reassign()(
            log_likelihood, assignment, size, empty, uniform, log_new, user, fresh
        )
        n_more = N_FRESH
    return assignment


def _positive_uniforms(n: int, rng: np.random.Generator) -> SingleArray:
    """(n,) in (0, 1]: a threshold of zero would pick a community of probability zero."""
    return np.float32(1.0) - rng.random(n, dtype=np.float32)


SAMPLERS: dict[str, Sampler] = {"collapsed": collapsed, "blocked": blocked}


def draw_concentration(
    state: ChainState, prior: tuple[float, float], n_communities: int, rng: np.random.Generator
) -> float:
    """λ given the number of communities, under a Gamma(shape, rate) prior (Escobar and West)."""
    shape, rate = prior
    n_users = len(state.assignment)
    eta = rng.beta(state.concentration + 1.0, n_users)
    rate -= np.log(eta)
    odds = (shape + n_communities - 1.0) / (n_users * rate)
    if rng.random() * (1.0 + odds) > odds:
        shape -= 1.0
    return float(rng.gamma(shape + n_communities) / rate)


@dataclass(frozen=True)
class ChainPlan:
    """How chains run; learn: hyperparameters while warming up; own: those of each community too."""

    sampler: str
    n_warmup: int
    learn: bool
    own: bool

    def is_learning(self, sweep: int, n_communities: int) -> bool:
        """Often at first, then rarely; never after the warm-up.

        While there is one community only, its pooled tastes would teach too small a scale.
        """
        is_power_of_two = sweep > 0 and sweep & (sweep - 1) == 0
        is_time = sweep == self.n_warmup - 1 or (is_power_of_two and n_communities > 1)
        return self.learn and sweep < self.n_warmup and is_time


def start_chain(
    mixture: MixtureData,
    plan: ChainPlan,
    seed: tuple[int, ...],
    membership: FloatArray | None = None,
    theta: FloatArray | None = None,
) -> ChainState:
    """Everybody in a community drawn from their memberships (U, K); by default all in one."""
    answers = mixture.answers
    if answers.outcomes.cliques is not None:
        raise DataError(
            "chains sample from answers about pairs, and these hold choices out of several "
            "items: break them into pairs with data.as_pairs(), or search for communities "
            "with inference='variational'"
        )
    membership = np.ones((answers.n_users, 1)) if membership is None else membership
    theta = mixture.hyper.theta if theta is None else theta
    rng = np.random.default_rng([*seed, 0])
    drawn = draw_labels(membership, rng.random(len(membership)))
    nobody = ChainState(
        assignment=drawn,
        utilities=np.zeros((0, len(mixture.items))),
        tau=np.zeros((0, answers.n_answers)),
        nu=np.zeros((0, answers.n_answers)),
        thetas=np.zeros((0, len(theta))),
        theta=theta,
        log_evidence=np.zeros(0),
        concentration=mixture.concentration,
        log_joint=-np.inf,
        seed=seed,
        sweep=0,
    )
    return draw_utilities(plan, nobody, partition_of(mixture, nobody, drawn), rng)


def sweep_chain(mixture: MixtureData, plan: ChainPlan, state: ChainState) -> ChainState:
    """The state after one more sweep."""
    state = replace(state, sweep=state.sweep + 1)
    rng = np.random.default_rng([*state.seed, state.sweep])
    partition = partition_of(mixture, state, SAMPLERS[plan.sampler](mixture, state, rng))
    state, partition = _split_and_merge(state, partition, rng)
    if mixture.concentration_prior is not None:
        n_communities = len(partition.groups)
        drawn = draw_concentration(state, mixture.concentration_prior, n_communities, rng)
        state = replace(state, concentration=drawn)
    return draw_utilities(plan, state, partition, rng)


def partition_of(mixture: MixtureData, state: ChainState, assignment: LabelArray) -> Partition:
    """Communities that were there keep sites and parameters; new ones start from nothing."""
    n_before = len(state.utilities)
    counts = count_pairs(
        mixture.answers.counts, assignment, max(int(assignment.max()) + 1, n_before)
    )
    known = map(gp.Sites, state.tau, state.nu)
    groups = [*map(Group, counts[:n_before], known, state.thetas)]
    blank = gp.Sites.zeros(counts.shape[1])
    groups += [Group(each, blank, state.theta) for each in counts[n_before:]]
    given = Partition(mixture, state.theta, state.concentration, assignment, tuple(groups))
    return given.regrouped(assignment, {})


def _split_and_merge(
    state: ChainState, partition: Partition, rng: np.random.Generator
) -> tuple[ChainState, Partition]:
    """Moves that concern two random users, and merges of similar communities."""
    n_users = len(partition.assignment)
    n_moves = MOVES if n_users > 1 else 0
    pairs = [rng.choice(n_users, 2, replace=False) for _ in range(n_moves)]
    moves: list[Callable[..., Transition]] = [partial(split_or_merge, users=u) for u in pairs]
    counted = np.reshape(state.n_moves, (2, 2))
    for propose in [*moves, *[merge_similar_or_divide] * SIMILAR_MOVES]:
        partition, is_split, is_accepted = propose(partition, rng=rng)
        counted[int(not is_split)] += [1, int(is_accepted)]
    return replace(state, n_moves=tuple(counted.ravel().tolist())), partition


def draw_utilities(
    plan: ChainPlan, state: ChainState, partition: Partition, rng: np.random.Generator
) -> ChainState:
    """Infer each community's utilities, with new hyperparameters when it is time, and draw them."""
    mixture, groups, theta = partition.mixture, partition.groups, state.theta
    thetas = np.stack([group.theta for group in groups])
    if plan.is_learning(state.sweep, len(groups)):
        theta = learn_shared(mixture, groups, theta)
        thetas = np.tile(theta, (len(groups), 1))
        if plan.own:
            thetas = learn_own(mixture, groups, theta)
    fits = [
        fit_community(mixture, group.counts, own, group.sites)
        for group, own in zip(groups, thetas, strict=True)
    ]
    log_evidence = np.array([fit.log_evidence for fit in fits])
    log_prior = log_prior_of_sizes(partition.sizes, state.concentration)
    return replace(
        state,
        assignment=partition.assignment,
        utilities=np.concatenate([fit.posterior.sample(1, rng) for fit in fits]),
        tau=np.stack([fit.sites.tau for fit in fits]),
        nu=np.stack([fit.sites.nu for fit in fits]),
        thetas=thetas,
        theta=theta,
        log_evidence=log_evidence,
        log_joint=float(log_evidence.sum()) + log_prior,
    )


@dataclass(frozen=True, eq=False)
class Draw:
    """The communities at one sweep of one chain.

    sizes: (K,) users of each; utilities: (K, n); likelihood_thetas: (K, q) parameters of its
    likelihood; is_supported: (K,) whether its answers speak for it; labels: (K,) which of the
    reported communities each one counts towards.
    """

    sizes: IntArray
    utilities: FloatArray
    likelihood_thetas: FloatArray
    is_supported: BoolArray
    chain: int
    labels: IntArray

    @property
    def n_communities(self) -> int:
        """How many communities have a user, K."""
        return len(self.sizes)

    @property
    def n_supported(self) -> int:
        """How many of them the answers support."""
        return int(np.count_nonzero(self.is_supported))


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws from all chains, and the likelihood whose parameters they hold.

    n_communities: how many communities are reported, C.
    """

    kept: tuple[Draw, ...]
    likelihood: Likelihood
    n_communities: int

    def responsibilities(self, answers: Answers) -> Iterator[tuple[Draw, SingleArray]]:
        """Each draw with (U, K): the probabilities of its communities for each user."""
        for draw in self.kept:
            table = answers.table(draw.utilities, self.likelihood, draw.likelihood_thetas)
            log_sizes = np.log(draw.sizes).astype(np.float32)
            yield draw, responsibilities(answers.counts, table, log_sizes)

    def membership(self, answers: Answers) -> FloatArray:
        """(U, C) soft membership of users in the reported communities; rows sum to one."""
        total = np.zeros((self.n_communities, answers.n_users))
        for draw, r in self.responsibilities(answers):
            for label, column in zip(draw.labels, r.T, strict=True):
                total[label] += column
        return np.ascontiguousarray(total.T) / len(self.kept)

    def in_order(self, order: IntArray) -> "Draws":
        """The reported communities in another order: `order[i]` becomes the i-th."""
        place = np.argsort(order)
        kept = tuple(replace(draw, labels=place[draw.labels]) for draw in self.kept)
        return replace(self, kept=kept)

    def counts(self) -> dict[int, float]:
        """Posterior over the number of non-empty communities, those of a single user included."""
        return _frequencies([draw.n_communities for draw in self.kept])

    def supported_counts(self) -> dict[int, float]:
        """Posterior over the number of communities that the answers support."""
        return _frequencies([draw.n_supported for draw in self.kept])

    def of_chain(self, chain: int) -> "Draws":
        """The draws of one chain."""
        return replace(self, kept=tuple(draw for draw in self.kept if draw.chain == chain))


def _frequencies(numbers: Sequence[int]) -> dict[int, float]:
    values, times = np.unique(numbers, return_counts=True)
    return {int(k): float(t) / len(numbers) for k, t in zip(values, times, strict=True)}


def align(draws: Draws, answers: Answers) -> Draws:
    """Match the communities of all draws.

    The reference is the draw that agrees best with the others, among those with the likeliest
    supported number. Its supported communities are reported, largest first. Those of every other
    draw are matched one to one by their common users; the rest go where most of their users are.
    """
    some = sample_users(answers, ALIGNMENT_USERS)
    shares = [r for _, r in draws.responsibilities(answers.take(some))]
    counts = draws.supported_counts()
    n_communities = max(counts, key=lambda k: counts[k])
    fitting = [i for i, draw in enumerate(draws.kept) if draw.n_supported == n_communities]
    spread = np.unique(np.linspace(0, len(fitting) - 1, REFERENCE_CANDIDATES).astype(np.intp))
    candidates = [fitting[i] for i in spread]
    partitions = [shares[i].argmax(axis=1) for i in candidates]
    agreement = [sum(adjusted_rand(a, b) for b in partitions) for a in partitions]
    reference = candidates[int(np.argmax(agreement))]
    chosen = draws.kept[reference]
    reported = np.flatnonzero(chosen.is_supported)
    reported = reported[np.argsort(-chosen.sizes[reported], kind="stable")]
    known = shares[reference][:, reported]
    aligned = tuple(
        replace(draw, labels=_match(known.T @ share))
        for draw, share in zip(draws.kept, shares, strict=True)
    )
    return replace(draws, kept=aligned, n_communities=n_communities)


def _match(overlap: SingleArray) -> IntArray:
    """(K,) a reported community for each of a draw's, given the (C, K) users in common."""
    labels: IntArray = overlap.argmax(axis=0)
    from scipy.optimize import linear_sum_assignment  # slow to import

    reported, matched = linear_sum_assignment(overlap, maximize=True)
    labels[matched] = reported
    return labels


@dataclass(frozen=True, eq=False)
class Chain:
    """A chain so far: its state, its traces from the start on, and its stored draws.

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
"""Called with the state after each sweep."""


def run_chain(
    mixture: MixtureData, plan: ChainPlan, chain: Chain, n_sweeps: int, watch: Watch
) -> tuple[Chain, bool]:
    """Sweep on; also says whether all sweeps were made.

    An interrupt from the keyboard ends the chain early, with what it has by then.
    """
    first = chain.state.sweep
    n_kept = max(1, first + n_sweeps - max(plan.n_warmup, first))
    thin = -(-n_kept // DRAWS_PER_CHAIN)
    try:
        for _ in range(n_sweeps):
            state, draws = sweep_chain(mixture, plan, chain.state), chain.draws
            if state.sweep > plan.n_warmup and state.sweep % thin == 0:
                draws = (*draws, _draw_of(mixture, state))
            numbers = np.append(chain.n_communities, len(state.utilities))
            chain = Chain(state, numbers, np.append(chain.log_joint, state.log_joint), draws)
            watch(state)
    except KeyboardInterrupt:
        return chain, False
    return chain, True


def run_chains(
    mixture: MixtureData, plan: ChainPlan, chains: Sequence[Chain], n_sweeps: int, watch: Watch
) -> tuple[tuple[Chain, ...], bool]:
    """All chains, one after another; after an interrupt, those that have begun.

    First all of them warm up and agree on hyperparameters, so that the draws kept afterwards are
    draws from one posterior.
    """
    after, ends, completed = list(chains), [c.state.sweep + n_sweeps for c in chains], True
    for stops in ([min(end, plan.n_warmup) for end in ends], ends):
        for number, stop in enumerate(stops):
            if completed:
                left = max(0, stop - after[number].state.sweep)
                after[number], completed = run_chain(mixture, plan, after[number], left, watch)
        if completed and all(chain.state.sweep == plan.n_warmup for chain in after):
            theta = np.mean([chain.state.theta for chain in after], axis=0)
            after = [_with_theta(chain, theta) for chain in after]
    begun = [chain for chain in after if chain.state.sweep > 0] or after[:1]
    # a chain that was stopped before its first draw is taken as it is
    drawn = (c if c.draws else replace(c, draws=(_draw_of(mixture, c.state),)) for c in begun)
    return tuple(drawn), completed


def _with_theta(chain: Chain, theta: FloatArray) -> Chain:
    """The chain at other shared hyperparameters, the communities' own moved alike."""
    thetas = chain.state.thetas + (theta - chain.state.theta)
    return replace(chain, state=replace(chain.state, theta=theta, thetas=thetas))


def _draw_of(mixture: MixtureData, state: ChainState) -> Draw:
    n_kernel = len(mixture.hyper.kernel.theta)
    return Draw(
        sizes=state.sizes,
        utilities=state.utilities,
        likelihood_thetas=state.thetas[:, n_kernel:],
        is_supported=supported(mixture, state),
        chain=state.seed[-1],
        labels=np.arange(len(state.utilities)),
    )


def supported(mixture: MixtureData, state: ChainState) -> BoolArray:
    """(K,) whether a community explains its members better than the other communities do.

    A group counts if its members' answers, its utilities integrated out, are likelier than with
    every member in the best of the other communities: others fit their members by chance. The
    smallest is tried first, and one that does not count is no alternative for the next.
    """
    table = mixture.table(state.utilities, state.thetas)
    log_weight = log_likelihoods(mixture.answers.counts, table)
    log_weight += np.log(state.sizes).astype(np.float32)
    log_own = np.log(state.concentration) + gammaln(state.sizes) + state.log_evidence
    counts = np.ones(len(state.sizes), dtype=bool)
    for c in np.argsort(state.sizes, kind="stable")[:-1]:
        counts[c] = False
        members = state.assignment == c
        elsewhere = log_weight[members][:, counts].max(axis=1).sum(dtype=np.float64)
        counts[c] = state.sizes[c] > 1 and log_own[c] > elsewhere
    return counts


def carry_over(
    chain: Chain, before: Answers, now: Answers, mixture: MixtureData, n_warmup: int
) -> Chain:
    """The chain on other data: its next sweep learns hyperparameters, and its draws are dropped.

    before, now: all users' answers when it ran, and those of the mixture. New users start in the
    community that suits them best.
    """
    state = chain.state
    place = gp.match(before, now)
    tau, nu = (np.where(place >= 0, old[:, place], 0.0) for old in (state.tau, state.nu))
    table = mixture.table(state.utilities, state.thetas)
    log_weight = log_likelihoods(mixture.answers.counts, table) + np.log(state.sizes)
    assignment: LabelArray = log_weight.argmax(axis=1).astype(np.int32)
    here, there = now.voters, before.voters
    stayed = np.isin(there, here)
    assignment[np.searchsorted(here, there[stayed])] = state.assignment[stayed]
    sweep = min(state.sweep, max(n_warmup - LEARNING_SWEEPS, 0))
    *seed, number = state.seed
    carried = replace(
        state,
        assignment=assignment,
        tau=tau,
        nu=nu,
        seed=(*seed, int(now.counts.sum()), number),
        sweep=sweep,
    )
    return Chain(carried, chain.n_communities[: sweep + 1], chain.log_joint[: sweep + 1], ())


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """How the chains went.

    n_communities, log_joint: traces of each chain from its start on, groups of any size counted.
    n_warmup: sweeps that were not used. effective_size: independent draws that the log joint's
    are worth, over all chains. rhat: spread of log joint between chains against that within.
    agreement: mean adjusted Rand index between the chains' memberships; NaN with one chain.
    split_rate, merge_rate: moves made of those tried. completed: False after an interrupt.
    """

    n_communities: tuple[IntArray, ...]
    log_joint: tuple[FloatArray, ...]
    n_warmup: int
    effective_size: float
    rhat: float
    agreement: float
    split_rate: float
    merge_rate: float
    completed: bool

    @property
    def converged(self) -> bool:
        return self.advice() is None

    def advice(self) -> str | None:
        """What to try if the chains did not converge; None if they did."""
        if not self.completed:
            done = [len(trace) - 1 for trace in self.log_joint]
            return (
                f"sampling was interrupted after {done} sweeps of {len(done)} chains: results rest "
                "on these; call resume(n_sweeps) for more"
            )
        if self.effective_size < ENOUGH_DRAWS:
            return (
                f"the draws are worth only {self.effective_size:.0f} independent ones: raise "
                "n_sweeps or call resume(n_sweeps)"
            )
        if self.agreement < GOOD_AGREEMENT:
            return (
                f"the chains found different communities (adjusted Rand {self.agreement:.2f}): "
                "outlines and number are uncertain, predictions average over them; raise n_sweeps, "
                "or take memberships as soft: tastes may shade into each other"
            )
        return None


def diagnose(
    chains: Sequence[Chain], draws: Draws, answers: Answers, n_warmup: int, completed: bool
) -> Diagnostics:
    """Look at all chains together."""
    traces = [chain.log_joint[min(n_warmup, len(chain.log_joint) - 1) + 1 :] for chain in chains]
    partitions = [
        draws.of_chain(chain.state.seed[-1]).membership(answers).argmax(axis=1) for chain in chains
    ]
    pairs = [adjusted_rand(a, b) for a, b in combinations(partitions, 2)]
    moves = np.sum([chain.state.n_moves for chain in chains], axis=0).reshape(2, 2)
    split_rate, merge_rate = (made / max(tried, 1) for tried, made in moves.tolist())
    return Diagnostics(
        n_communities=tuple(chain.n_communities for chain in chains),
        log_joint=tuple(chain.log_joint for chain in chains),
        n_warmup=n_warmup,
        effective_size=float(sum(effective_size(trace) for trace in traces)),
        rhat=potential_scale_reduction(traces),
        agreement=float(np.mean(pairs)) if pairs else float("nan"),
        split_rate=split_rate,
        merge_rate=merge_rate,
        completed=completed,
    )


def effective_size(trace: FloatArray) -> float:
    """How many independent draws a trace is worth (Geyer's initial positive sequence).

    >>> effective_size(np.array([0.0, 1.0] * 50)) > 50
    True
    """
    n = len(trace)
    centred = trace - trace.mean() if n else trace
    power = float(centred @ centred)
    if n < 4 or power == 0.0:
        return float(n)
    correlation = np.correlate(centred, centred, "full")[n - 1 :] / power
    pairs = correlation[0 : n - 1 : 2] + correlation[1:n:2]
    negative = np.flatnonzero(pairs <= 0.0)
    last = negative[0] if len(negative) else len(pairs)
    return float(n / max(2.0 * pairs[:last].sum() - 1.0, 1.0 / n))


def potential_scale_reduction(traces: Sequence[FloatArray]) -> float:
    """Gelman and Rubin's R̂; NaN unless there are several traces of at least two values.

    >>> potential_scale_reduction([np.array([0.0, 1.0]), np.array([0.0, 1.0])]) < 1.0
    True
    """
    n = min((len(trace) for trace in traces), default=0)
    if len(traces) < 2 or n < 2:
        return float("nan")
    last = np.stack([trace[-n:] for trace in traces])
    within = float(last.var(axis=1, ddof=1).mean())
    between = float(last.mean(axis=1).var(ddof=1))
    if within == 0.0:
        return 1.0 if between == 0.0 else float("inf")
    return float(np.sqrt((n - 1) / n + between / within))
