"""Users × distinct answers, and the likelihood of the answers at given utilities.

All users of a community share one utility function, so a user's data are counts of *distinct
answers*: winner, loser, tie or not; or the chosen items of a set. Users × answers is a sparse
matrix P of counts. With a table of log P_c(answer), the log-likelihoods of all users under all
communities are P @ table, and the answers of each community are sums of rows of P.

Users and answers are sampled by keys of their content: names and the order of rows decide nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax

from penchant.data import ChoiceStages, Comparisons, Rankings, Table
from penchant.errors import DataError
from penchant.gp import Differences, Rows, edges_of_stages, feasible, has_covariates
from penchant.likelihoods import ChoiceGroup, Likelihood, LogProb, Outcomes
from penchant.likelihoods.choices import on_pairs
from penchant.numerics.random import ContentKeys, KeyArray, hashed, pair_keys
from penchant.numerics.types import FloatArray, IntArray

USER_KEY_ROUNDS = 2
"""Rounds of hashing answers by their users and users by their answers: after two, users with
different answers have different keys, but for symmetries of small data."""
BROKEN_SHARE = 0.9
"""Share of the users whose pairs must look like choices for all to be treated so."""
SHARD_SIZE = 65_536
"""Users whose answers are added up in single precision: more would lose digits."""
FEW_KEYS = 8
"""Up to so many possible keys an answer, a table of all keys finds the distinct ones instead of
sorting: a fit of two million votes takes 0.5 s instead of 0.8."""


SingleArray = NDArray[np.float32]
LabelArray = NDArray[np.int32]
AnyFloats = TypeVar("AnyFloats", FloatArray, SingleArray)


def content_keys(data: Comparisons) -> ContentKeys:
    """Keys of users, items and rows of single pairs, and of how they were made."""
    covariates = () if data.covariates is None else data.covariates.T
    values = (data.margin, data.first, *covariates)
    return pair_keys(data.winner, data.loser, data.user, data.count, data.tie, values)


def drawn_counts(data: Comparisons, share: float) -> IntArray:
    """(m,) how many of each row's answers are among a share of all, drawn by content.

    Pairs broken out of one choice are drawn together.
    """
    row, copy = _copies(data.count)
    content = content_keys(data)
    keys = content.answer
    if data.user is not None and Answers.of(data).are_broken_choices:
        keys = content.user[data.user] + hashed(content.item[data.winner])
    drawn = np.argsort(hashed(keys[row], copy), kind="stable")[: max(1, round(share * len(row)))]
    return np.bincount(row[drawn], minlength=len(data))


def _copies(count: IntArray) -> tuple[IntArray, IntArray]:
    """The row of each single answer, and its number among the answers of the row."""
    row = np.repeat(np.arange(len(count)), count)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)


@dataclass(frozen=True, eq=False)
class Answers:
    """Users × distinct answers.

    counts: (U, m) sparse, in four-byte values and indices; winner, loser: (E,) items of the
    edges; outcomes: ties and margins of the answers. A single pair is one edge; after the pairs
    stand choices, whose edges are those of `outcomes.cliques`, its groups in the order of answers.

    >>> data = Comparisons.from_pairs([0, 0, 1], [1, 1, 0], user=["ann", "bob", "bob"])
    >>> Answers.of(data).counts.toarray()
    array([[1., 0.], [1., 1.]], dtype=float32)
    """

    counts: sparse.csr_array
    winner: IntArray
    loser: IntArray
    outcomes: Outcomes

    @classmethod
    def of(cls, data: Comparisons) -> "Answers":
        """Index the distinct answers of all users.

        Choices stay whole, unless there are effects of order or covariates, which belong to pairs.
        """
        if has_covariates(data):
            data = data.as_pairs()
        data = data.bare()
        if data.user is None:
            raise DataError(
                "these comparisons do not say who made them: communities are groups of users; "
                "give a user for each comparison, or use PreferenceGP for everybody together"
            )
        pairs = cls._of_pairs(data.single_pairs(), data)
        if data.rankings is None or data.rankings.user is None:
            return pairs
        return pairs._and_choices(data.rankings, data.n_items)

    @classmethod
    def _of_pairs(cls, data: Comparisons, whole: Comparisons) -> "Answers":
        user = np.zeros(0, dtype=np.intp) if data.user is None else data.user
        key = data.winner * data.n_items + data.loser
        key += data.tie * data.n_items**2
        if data.margin is not None:
            margins, code = np.unique(data.margin, return_inverse=True)
            key = key * len(margins) + code
        first, answer = _distinct(key)
        # rows are sorted by user, so the compressed rows need no further sorting
        starts = np.searchsorted(user, np.arange(whole.n_users + 1))
        counts = sparse.csr_array(
            (data.count.astype(np.float32), answer, starts.astype(np.int32)),
            shape=(whole.n_users, len(first)),
        )
        outcomes = Outcomes(data.tie if data.tie.any() else None, data.margin).part(first)
        return cls(counts, data.winner[first], data.loser[first], outcomes)

    def _and_choices(self, rankings: Rankings, n_items: int) -> "Answers":
        """These, and after them the distinct choices that all rankings consist of."""
        distinct, blocks = [], [self.counts]
        for stage in (part for whole in rankings.stages() for part in feasible(whole)):
            said = np.column_stack([stage.item, stage.chosen])
            _, first, same = np.unique(said, axis=0, return_index=True, return_inverse=True)
            entries = stage.count.astype(np.float32), (stage.user, same.ravel())
            counts = sparse.csr_array(entries, shape=(self.n_users, len(first)))
            total = np.asarray(counts.sum(axis=0))
            distinct.append(ChoiceStages(stage.item[first], stage.chosen[first], total, None))
            blocks.append(counts)
        _, winner, loser, cliques = edges_of_stages(distinct, n_items)
        return Answers(
            sparse.hstack(blocks, format="csr", dtype=np.float32),
            np.append(self.winner, winner),
            np.append(self.loser, loser),
            self.outcomes._replace(cliques=cliques),
        )

    @property
    def n_users(self) -> int:
        """U."""
        return int(self.counts.shape[0])

    @property
    def n_answers(self) -> int:
        """m, the number of distinct answers."""
        return int(self.counts.shape[1])

    @property
    def n_pairs(self) -> int:
        """How many of the answers are single pairs; the others are choices."""
        cliques = self.outcomes.cliques
        return len(self.winner) - (0 if cliques is None else cliques.n_edges)

    @cached_property
    def user_keys(self) -> KeyArray:
        """(U,) keys of users by what they answered, which look like random numbers.

        An answer gets a key by the keys of the users who gave it, a user by those of their
        answers, in turn. Sums wrap around, so they do not depend on the order of addition.
        """
        counts = self.counts
        bits = counts.data.view(np.uint32) | np.uint32(1)  # by the bits of a count, whole or not
        times = sparse.csr_array((bits, counts.indices, counts.indptr), shape=counts.shape)
        users = np.ones(self.n_users, dtype=np.uint64)
        for _ in range(USER_KEY_ROUNDS):
            users = hashed(times @ hashed(times.T @ users))
        return users

    @property
    def user(self) -> IntArray:
        """The user of every stored count."""
        return np.repeat(np.arange(self.n_users), np.diff(self.counts.indptr))

    @property
    def voters(self) -> IntArray:
        """Positions of the users who answered anything."""
        return np.flatnonzero(np.diff(self.counts.indptr))

    def edges(self, weights: FloatArray) -> Rows:
        """The answers with a positive weight (m,), as rows."""
        n, cliques = self.n_pairs, self.outcomes.cliques
        pairs = np.flatnonzero(weights[:n])
        winner, loser, count = self.winner[pairs], self.loser[pairs], weights[pairs]
        outcomes = self.outcomes.part(pairs)
        if cliques is not None and weights[n:].any():
            winner, loser = np.append(winner, self.winner[n:]), np.append(loser, self.loser[n:])
            # counts of choices are inside their sites
            count = np.append(count, np.ones(cliques.n_edges))
            outcomes = outcomes._replace(cliques=cliques.counted(weights[n:]))
        return Rows.between(winner, loser, count, outcomes)

    def differences(self, n_items: int) -> Differences:
        """The operator that turns n utilities into the answers' differences."""
        return Differences(self.winner, self.loser, n_items)

    @property
    def keys(self) -> tuple[IntArray, ...]:
        """The columns that identify an answer, beside its outcome."""
        return self.winner, self.loser

    @property
    def count(self) -> FloatArray:
        """(m,) how often each answer was given."""
        return np.asarray(self.counts.sum(axis=0), dtype=np.float64)

    def __len__(self) -> int:
        return self.n_answers

    def take(self, users: IntArray) -> "Answers":
        """The answers of some of the users."""
        return replace(self, counts=self.counts[users])

    def compact(self) -> "Answers":
        """Without the answers that none of the users gave: tables are then smaller."""
        given, n, cliques = np.unique(self.counts.indices), self.n_pairs, self.outcomes.cliques
        pairs = given[given < n]
        edges, outcomes = pairs, self.outcomes.part(pairs)
        if cliques is not None:
            edges = np.append(pairs, np.arange(n, len(self.winner)))
            outcomes = outcomes._replace(cliques=cliques.chosen(given[given >= n] - n))
        return Answers(self.counts[:, given], self.winner[edges], self.loser[edges], outcomes)

    def table(
        self, utilities: FloatArray, likelihood: Likelihood, thetas: FloatArray
    ) -> SingleArray:
        """(m, K): log probability of each answer, given utilities (K, n) and parameters (K, q) of
        the likelihood."""
        table = np.empty((self.n_answers, len(utilities)), dtype=np.float32)
        for column, (f, theta) in enumerate(zip(utilities, thetas, strict=True)):
            g = f[self.winner] - f[self.loser]
            table[:, column] = likelihood.with_theta(theta).log_prob(g, self.outcomes).value
        return table

    @property
    def are_broken_choices(self) -> bool:
        """Whether pairs look as if they were broken out of choices or rankings.

        A choice out of three or more gives all of its pairs one winner, so that nobody wins
        against a single item; a ranking gives every pair of its items, without a cycle.
        Independent pairs of hardly any user are like that.

        >>> Answers.of(Comparisons.from_pairs([2, 2], [0, 1], user=[0, 0])).are_broken_choices
        True
        """
        at, n = self.counts.indices, 1 + int(np.max([self.winner, self.loser], initial=0))
        winner, loser = self.user * n + self.winner[at], self.user * n + self.loser[at]
        (cell, wins), items = np.unique(winner, return_counts=True), np.unique([winner, loser])
        k, n_users = np.bincount(items // n, minlength=self.n_users), self.n_users
        of = wins == 1, wins, wins**2
        lone, total, squares = (np.bincount(cell // n, each, n_users) for each in of)
        is_ranking = (2 * total == k * (k - 1)) & (6 * squares == k * (k - 1) * (2 * k - 1))
        is_whole = (lone == 0) | (is_ranking & (k > 2))
        asked = total > 1
        return bool(asked.any() and is_whole[asked].mean() >= BROKEN_SHARE)

    def shards(self, size: int = SHARD_SIZE) -> Iterator[tuple[slice, sparse.csr_array]]:
        """Consecutive users and their rows of counts."""
        for start in range(0, self.n_users, size):
            part = slice(start, start + size)
            yield part, self.counts[part]


def sample_users(answers: Answers, most: int) -> IntArray:
    """Positions of at most `most` users, sampled by the keys of their answers.

    >>> data = Comparisons.from_pairs([0, 0, 1], [1, 1, 0], user=["ann", "bob", "bob"])
    >>> renamed = Comparisons.from_pairs([1, 0, 0], [0, 1, 1], user=["a", "a", "b"])
    >>> [sample_users(Answers.of(each), 1).tolist() for each in (data, renamed)]
    [[1], [0]]
    """
    return np.argsort(answers.user_keys, kind="stable")[:most]


def _distinct(key: IntArray) -> tuple[IntArray, LabelArray]:
    """A row of each distinct key, ascending, and which of them each row has.

    >>> _distinct(np.array([7, 3, 7]))[1].tolist()
    [1, 0, 1]
    """
    n_keys = int(key.max(initial=-1)) + 1
    if n_keys > FEW_KEYS * len(key):  # a table of all keys would be mostly empty
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        return first, which.astype(np.int32)
    row = np.full(n_keys, -1, dtype=np.intp)
    row[key] = np.arange(len(key))
    given = np.flatnonzero(row >= 0)
    place = np.zeros(n_keys, dtype=np.int32)
    place[given] = np.arange(len(given))
    return row[given], place[key]


def log_likelihoods(counts: sparse.csr_array, table: FloatArray | SingleArray) -> SingleArray:
    """(U, K) log-likelihood of each user's answers under each component, given tables (m, K).

    Components are on the leading axis in memory, where reductions over the few of them are fast.
    """
    return np.ascontiguousarray((counts @ table.astype(np.float32, copy=False)).T).T


def responsibilities(
    counts: sparse.csr_array, table: FloatArray | SingleArray, log_weights: AnyFloats
) -> AnyFloats:
    """(U, K) r ∝ exp(log_weights + P table), rows sum to one: given weights (K,), tables (m, K)."""
    r: AnyFloats = softmax(log_weights + log_likelihoods(counts, table), axis=1)
    return r


def draw_labels(weights: AnyFloats, uniform: AnyFloats) -> LabelArray:
    """(U,) a column of each row, drawn by the weights (U, K); uniform: (U,) in (0, 1].

    >>> draw_labels(np.array([[0.9, 0.1], [0.1, 0.9]]), np.full(2, 0.5))
    array([0, 1], dtype=int32)
    """
    cumulative = weights.T.copy()
    for previous, following in pairwise(cumulative):  # numpy's own cumsum takes twice as long
        following += previous
    # the first column whose cumulative weight reaches the threshold: never one of weight zero
    threshold = uniform * cumulative[-1]
    labels = np.zeros(len(weights), dtype=np.int32)
    for column in cumulative[:-1]:
        labels += column < threshold
    return labels


def count_pairs(counts: sparse.csr_array, assignment: LabelArray, n_groups: int) -> FloatArray:
    """(n_groups, m): how often each answer was given within each group of users.

    >>> P = sparse.csr_array(np.array([[1, 2], [0, 3]], dtype=np.float32))
    >>> count_pairs(P, np.array([1, 1], dtype=np.int32), 2)
    array([[0., 0.], [1., 5.]])
    """
    m = counts.shape[1]
    cell = np.repeat(assignment.astype(np.intp) * m, np.diff(counts.indptr)) + counts.indices
    return np.asarray(np.bincount(cell, counts.data, n_groups * m).reshape(n_groups, m))


def soft_counts(answers: Answers, responsibilities: FloatArray) -> FloatArray:
    """(K, m): Pᵀ r, how often each answer was given in each community."""
    counts = np.zeros((answers.n_answers, responsibilities.shape[1]))
    single = responsibilities.astype(np.float32, order="C")  # as the counts: else they are copied
    for part, shard in answers.shards():
        counts += shard.T @ single[part]
    return np.ascontiguousarray(counts.T)


def separate_pairs(data: Comparisons) -> Comparisons:
    """The single pairs, and one pair of every choice, sampled by content.

    The pairs inside a ranking depend on each other: as separate answers they look like personal
    taste. So of each choice "T out of S" one item of T and one of the others are sampled. Under a
    softmax the pair (i chosen, j left) is e^(x_i − x_j) times as likely as the reverse, so it is
    exactly the answer to a pair; and the choices of a ranking are independent given utilities.

    >>> data = Comparisons.from_rankings([["tea", "milk", "water"]], users=["ann"])
    >>> len(data.as_pairs()), len(separate_pairs(data))
    (3, 2)
    """
    if data.rankings is None or data.rankings.user is None:
        return data.as_pairs()
    content = content_keys(data.as_pairs())
    drawn = [_draw_pairs(stage, content) for stage in data.rankings.stages()]
    winner, loser, user = np.hstack(drawn)
    one, no_tie = np.ones_like(winner), np.zeros(len(winner), dtype=bool)
    table = Table(winner, loser, one, user, no_tie, None).merge()
    return data.bare().single_pairs().extend(Comparisons.from_table(table, data.items, data.users))


def _draw_pairs(stage: ChoiceStages, content: ContentKeys) -> tuple[IntArray, IntArray, IntArray]:
    """Winner, loser and user of a pair for every time that a choice was made."""
    rows, copy = _copies(stage.count)
    item, chosen = stage.item[rows], stage.chosen[rows]
    user = np.zeros(len(rows), dtype=np.intp) if stage.user is None else stage.user[rows]
    of_item = content.item[item]
    of_choice = hashed(content.user[user], of_item.sum(axis=1), copy)
    keys = hashed(of_item.ravel() + np.repeat(of_choice, item.shape[1])).reshape(item.shape)
    winner, loser = (
        item[np.arange(len(rows)), np.where(side, keys, 0).argmax(axis=1)]
        for side in (chosen, ~chosen)
    )
    return winner, loser, user


@dataclass(frozen=True, eq=False)
class LikelihoodTerms:
    """Log-likelihoods of all answers, and their derivatives along the edges, at given differences.

    A single pair has one edge. A choice out of a set has all pairs of the set, with a joint
    gradient (see `likelihoods.choices`); answers that share a pair share its edge.

    pairs: of the single pairs, whose edges come first; value: (m,) log-likelihoods. answer, edge,
    pull, tau: (N,) of every pair inside every choice, with the first and the negative second
    derivative along it. groups: the choices with their scaled utilities, by the size of the set.
    """

    pairs: LogProb
    value: FloatArray
    n_edges: int
    groups: tuple[tuple[ChoiceGroup, FloatArray], ...]
    scale: float
    answer: IntArray
    edge: IntArray
    pull: FloatArray
    tau: FloatArray

    @classmethod
    def at(cls, g: FloatArray, likelihood: Likelihood, outcomes: Outcomes) -> "LikelihoodTerms":
        """At differences g (E,)."""
        if outcomes.cliques is None:
            pairs = likelihood.log_prob(g, outcomes)
            none, nothing = np.zeros(0, dtype=np.intp), np.zeros(0)
            return cls(pairs, pairs.value, len(g), (), 1.0, none, none, nothing, nothing)
        cliques, scale = outcomes.cliques, likelihood.choice_scale or 1.0
        n = len(g) - cliques.n_edges
        pairs = likelihood.log_prob(g[:n], outcomes._replace(cliques=None))
        groups = tuple((group, scale * group.utilities(g[n:])) for group in cliques.groups)
        value, slope, tau = zip(*(group.curvature(x) for group, x in groups), strict=True)
        sizes = np.concatenate([np.full(len(t), t.shape[1]) for t in tau])
        return cls(
            pairs,
            np.concatenate([pairs.value, *value]),
            len(g),
            groups,
            scale,
            answer=np.repeat(np.arange(n, n + len(sizes)), sizes),
            edge=n + np.concatenate([group.edge.ravel() for group, _ in groups]),
            pull=scale * np.concatenate([on_pairs(each).ravel() for each in slope]),
            tau=scale**2 * np.concatenate([each.ravel() for each in tau]),
        )

    @property
    def n_pairs(self) -> int:
        """How many of the answers are single pairs."""
        return len(self.pairs.value)

    @cached_property
    def precision(self) -> FloatArray:
        """(n,) k of single pairs, cut off at zero where a likelihood is not log-concave."""
        return np.maximum(-self.pairs.d2, 0.0)

    def gradient(self, weights: FloatArray) -> FloatArray:
        """(E,) Σ w ∂ℓ/∂g."""
        return self._on_edges(weights, self.pairs.d1, self.pull)

    def curvature(self, weights: FloatArray) -> FloatArray:
        """(E,) −Σ w ∂²ℓ/∂g², of choices as the Laplacian of their clique."""
        return self._on_edges(weights, self.precision, self.tau)

    def log_det_gradient(self, weights: FloatArray, var: FloatArray) -> FloatArray:
        """(E,) −½ Σ w var ∂k/∂g: the gradient of −½ log |H| in the differences."""
        n, pairs = self.n_pairs, self.pairs
        third = np.where(pairs.d2 < 0.0, pairs.d3, 0.0)  # k is cut off at zero, and flat there
        choices = [
            on_pairs(group.drift(x, var[n + group.edge])).ravel() for group, x in self.groups
        ]
        bent = self.scale**3 * np.concatenate(choices) if choices else self.pull
        return self._on_edges(weights, 0.5 * third * var[:n], bent)

    def slope(self, var: FloatArray, move: FloatArray) -> FloatArray:
        """(m,) ℓ − ½ var·k + h·move of every answer, with its own k and h along its edges."""
        n = self.n_pairs
        pairs = self.value[:n] - 0.5 * var[:n] * self.precision + self.pairs.d1 * move[:n]
        along = self.pull * move[self.edge] - 0.5 * self.tau * var[self.edge]
        of_choices = np.bincount(self.answer - n, along, len(self.value) - n)
        return np.append(pairs, self.value[n:] + of_choices)

    def user_gradients(self, counts: sparse.csr_array) -> sparse.csr_array:
        """(users, E) gradient of each user's log-likelihood, given counts (users, m)."""
        if not self.groups:
            pull = counts.data * self.pairs.d1[counts.indices]
            return sparse.csr_array((pull, counts.indices, counts.indptr), shape=counts.shape)
        n = np.arange(self.n_pairs)
        ends = np.append(n, self.answer), np.append(n, self.edge)
        values = np.append(self.pairs.d1, self.pull)
        return counts @ sparse.csr_array((values, ends), shape=(len(self.value), self.n_edges))

    def _on_edges(self, weights: FloatArray, pairs: FloatArray, choices: FloatArray) -> FloatArray:
        """(E,) weighted answers added up on their edges."""
        weighted: FloatArray = weights[: self.n_pairs] * pairs
        if not self.groups:
            return weighted
        total = np.bincount(self.edge, weights[self.answer] * choices, self.n_edges)
        total[: self.n_pairs] = weighted
        return np.asarray(total, dtype=np.float64)
