"""The two samplers of memberships, and of the concentration.

Both are Gibbs steps given one *draw* of each community's utilities. Paper 004 (Eq. 10) averages
each answer's probability over the utilities' posterior and multiplies the averages; but one
user's answers depend on each other through the utilities, so the product of averages is not the
average of the product. A draw makes the step exact; where a community has many answers the two
agree.

*collapsed*: the weights are integrated out and users are reassigned in turn, with
P(c) ∝ n_c and λ for a new one, n_c counting the other users (the paper's Eqs. 11–12 say N where
the number of users belongs). New communities come from a pool of prior draws (Neal's algorithm
8; unused draws stay in the pool from user to user, as in Favaro and Teh's ReUse).
*blocked*: weights are drawn, and users are independent given them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penchant.communities.assignment import (
    LabelArray,
    SingleArray,
    assign,
    count_all_pairs,
)
from penchant.communities.utility import Mixture, draw_prior
from penchant.numerics.types import FloatArray, IntArray

N_EMPTY = 3
"""Empty communities on offer at a time."""
N_FRESH = 8
"""Prior draws in reserve for the collapsed sampler, to replace empty communities that fill."""


@dataclass(frozen=True, eq=False)
class ChainState:
    """Where a chain is: the next sweep is a function of this and the data alone.

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


class Allocation(NamedTuple):
    """Users assigned to T utility functions, of which the first K were communities before.

    assignment: (U,); pair_counts: (T, m) answers of the users of each function.
    """

    assignment: LabelArray
    pair_counts: FloatArray


Sampler = Callable[[Mixture, ChainState, np.random.Generator], Allocation]


def blocked(mixture: Mixture, state: ChainState, rng: np.random.Generator) -> Allocation:
    """Draw weights by stick-breaking, then all users independently, shard by shard."""
    answers = mixture.answers
    empty = draw_prior(mixture, state.theta, N_EMPTY, rng)
    utilities = np.concatenate([state.utilities, empty])
    table = mixture.table(utilities, np.concatenate([state.thetas, [state.theta] * N_EMPTY]))
    log_weight = _draw_log_weights(state, rng)
    uniform = _positive_uniforms(answers.n_users, rng)
    assignment = np.empty(answers.n_users, dtype=np.int32)
    pair_counts = np.zeros((table.shape[1], answers.n_answers))
    for part, shard in answers.shards():
        assigned = assign(shard, table, log_weight, uniform[part])
        assignment[part] = assigned.assignment
        pair_counts += assigned.pair_counts
    return Allocation(assignment, pair_counts)


def _draw_log_weights(state: ChainState, rng: np.random.Generator) -> SingleArray:
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


def collapsed(mixture: Mixture, state: ChainState, rng: np.random.Generator) -> Allocation:
    """Reassign users one after another, weights integrated out (Neal's algorithm 8)."""
    from penchant.communities.scan import Scan, reassign

    answers, n_communities = mixture.answers, len(state.utilities)
    uniform = _positive_uniforms(2 * answers.n_users, rng).reshape(-1, 2)
    log_new = float(np.log(state.concentration / N_EMPTY))
    assignment, size = state.assignment.copy(), state.sizes
    empty = np.arange(n_communities, n_communities + N_EMPTY)
    log_likelihood = _log_likelihoods(mixture, state.utilities, state.thetas)
    user, fresh, n_more = 0, n_communities + N_EMPTY, N_EMPTY + N_FRESH
    while user < answers.n_users:
        more = draw_prior(mixture, state.theta, n_more, rng)
        columns = _log_likelihoods(mixture, more, np.tile(state.theta, (n_more, 1)))
        log_likelihood = np.concatenate([log_likelihood, columns], axis=1)
        size = np.append(size, np.zeros(n_more, dtype=np.intp))
        scan = Scan(log_likelihood, assignment, size, empty, uniform)
        user, fresh = reassign(scan, log_new, user, fresh)
        n_more = N_FRESH
    return Allocation(assignment, count_all_pairs(answers, assignment, len(size)))


def _log_likelihoods(mixture: Mixture, utilities: FloatArray, thetas: FloatArray) -> SingleArray:
    """(U, T) of all users under T utility functions."""
    table = mixture.table(utilities, thetas)
    return np.concatenate([shard @ table for _, shard in mixture.answers.shards()])


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
