"""The search's sweeps over users in parts: tables go down to the parts, sums of answers come up.

The number of communities stays. Memberships follow from the tables and the sizes, so parts keep
nothing between sweeps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr

from penchant.communities.component import (
    SMALLEST,
    ComponentModel,
    ComponentPosterior,
    MixtureState,
    converge,
)
from penchant.communities.data import Answers, responsibilities, soft_counts
from penchant.communities.search import CONVERGE_SWEEPS, CONVERGE_TOLERANCE, predictive_table
from penchant.data import Comparisons
from penchant.gp import Posterior
from penchant.numerics.types import FloatArray, IntArray


def pooled_answers(everybody: Comparisons) -> Answers:
    """The distinct answers of pooled comparisons, as if one user had given them."""
    nobody = np.zeros(len(everybody), dtype=np.intp)
    return Answers.of(replace(everybody, user=nobody, users=("everybody",)))


def answer_keys(answers: Answers, n_items: int) -> IntArray:
    """(m,) numbers that tell answers apart, ascending."""
    tie = answers.outcomes.tie
    keys: IntArray = answers.winner * n_items + answers.loser
    return keys if tie is None else keys + tie * n_items**2


@dataclass(frozen=True, eq=False)
class MixturePart:
    """Some users' answers; place: where their distinct answers stand among all, of m."""

    number: int
    data: Comparisons
    answers: Answers
    place: IntArray
    m: int

    @classmethod
    def of(cls, number: int, data: Comparisons, keys: IntArray) -> "MixturePart":
        """keys: of all distinct answers."""
        answers = Answers.of(data)
        place = np.searchsorted(keys, answer_keys(answers, data.n_items))
        return cls(number, data, answers, place, len(keys))

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        counts = self.answers.counts
        return int(counts.data.nbytes + counts.indices.nbytes + 6 * 8 * len(self.data))


class ComponentTables(NamedTuple):
    """(m, K) log-likelihood of each answer in each community, and log weights (K,)."""

    table: FloatArray
    log_weights: FloatArray

    @classmethod
    def by(
        cls, posteriors: Sequence[Posterior], sizes: FloatArray, answers: Answers
    ) -> "ComponentTables":
        """From the communities' posteriors, their uncertainty included."""
        log_sizes = np.log(np.maximum(sizes, SMALLEST))
        return cls(predictive_table(posteriors, answers), log_sizes)


class Members(NamedTuple):
    """Answers of each community's members (K, m), how many they are (K,), Σ −r log r."""

    counts: FloatArray
    sizes: FloatArray
    entropy: float


def add_members(one: Members, two: Members) -> Members:
    """Of the users of both."""
    return Members(one.counts + two.counts, one.sizes + two.sizes, one.entropy + two.entropy)


def memberships(part: MixturePart, views: ComponentTables) -> FloatArray:
    """(users, K), rows sum to one."""
    if not len(part.data):
        return np.zeros((part.data.n_users, len(views.log_weights)))
    return responsibilities(part.answers.counts, views.table[part.place], views.log_weights)


def choose_communities(
    part: MixturePart, state: dict[str, Any], views: ComponentTables
) -> tuple[dict[str, Any], Members]:
    """Compute every user's memberships, and add up the answers of each community."""
    r = memberships(part, views)
    counts = np.zeros((r.shape[1], part.m))
    if len(r):
        counts[:, part.place] = soft_counts(part.answers, r)
    return state, Members(counts, r.sum(axis=0), float(entr(r).sum()))


@dataclass(frozen=True, eq=False)
class PooledState(MixtureState):
    """A mixture of users in parts, who choose by the tables.

    counts: (K, m) answers of each community's members; given: the tables they chose by.
    """

    counts: FloatArray
    given: ComponentTables


def converge_parts(
    model: ComponentModel, tables: ComponentTables, ask: Callable[[ComponentTables], Members]
) -> PooledState:
    """The state that sweeps from some tables end in.

    model: over the distinct answers of all; ask: gives tables to all parts and adds up the sums.
    """

    def choose(given: ComponentTables, starts: Sequence[ComponentPosterior | None]) -> PooledState:
        counts, sizes, entropy = ask(given)
        components = tuple(map(model.refit, counts, starts))
        return PooledState(model, components, sizes, entropy, counts, given)

    def sweep(state: PooledState) -> PooledState:
        return choose(ComponentTables(state.tables, state.log_sizes), state.components)

    first = choose(tables, [None] * len(tables.log_weights))
    return converge(first, sweep, CONVERGE_SWEEPS - 1, CONVERGE_TOLERANCE)
