"""Data on which defaults meet fixed choices of a prior: each a stream of rounds to be scored."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from penchant.data import Comparisons
from penchant.datasets.items import Cora, Regression
from penchant.io import GradedDocuments
from penchant.kernels import Inputs, as_relations
from penchant.models import PreferenceGP, Scaling, default_kernel
from penchant.numerics.types import FloatArray, IntArray
from penchant.reproduce.cora import draw_pairs
from penchant.reproduce.ohsumed import draw_queries

DEFAULTS = "defaults"
FEATURES, LINKS, BOTH = "features only", "links only", "both, old start"
OLD_FEATURES, ITEMS = "features only, old start", "item effects only"
INDEPENDENT, FREE, TASTES = "independent items", "free covariance", "features and item effects"
SINGLE = (FEATURES, OLD_FEATURES, LINKS, ITEMS, INDEPENDENT, FREE, TASTES)
"""The choices that take one source alone; of many people, one covariance."""
BEFORE = (BOTH, OLD_FEATURES, TASTES, FREE)
"""What once was the default: the first of these that a set allows."""
ASKED = 1_000
"""Pairs that are foreseen in each round."""


class Contest(NamedTuple):
    """Answers to learn from, pairs (k, 2) to foresee, the better one first, and what may fit.

    fits : name of a choice → what makes a fitted model; users : (k,) who is asked, or None.
    """

    asked: IntArray
    fits: Mapping[str, Callable[[], Any]]
    users: IntArray | None = None


@dataclass(frozen=True, eq=False)
class ContestItems:
    """Items with features, dense or sparse, or relations, or both."""

    n: int
    X: Any = None
    relations: Mapping[str, Any] | None = None

    def round(self, known: Comparisons, asked: IntArray) -> Contest:
        """The defaults and every fixed choice that these items allow."""
        fits = {DEFAULTS: lambda: PreferenceGP().fit(self.X, known, self.relations)}
        if self.X is not None:
            fits[OLD_FEATURES] = lambda: self._old(known, None)
        if self.X is not None and self.relations:
            fits[FEATURES] = lambda: PreferenceGP().fit(self.X, known)
            fits[BOTH] = lambda: self._old(known, self.relations)
        if self.relations:
            fits[LINKS] = lambda: PreferenceGP().fit(None, known, self.relations)
        else:
            fits[ITEMS] = lambda: PreferenceGP().fit(None, known)
        return Contest(asked, fits)

    def _old(self, known: Comparisons, relations: Mapping[str, Any] | None) -> PreferenceGP:
        """Unit variances, whatever they mean for a difference."""
        X = self.X.toarray() if sparse.issparse(self.X) else self.X
        X = Scaling.of(X).apply(X)
        items = Inputs(X, as_relations(relations or {}, self.n), np.arange(self.n))
        return PreferenceGP(default_kernel(items)).fit(X, known, relations)


def cora_rounds(
    cora: Cora, links: str, n_pairs: int, n_repeats: int, n_topics: int | None = None
) -> Iterator[Contest]:
    """A topic's papers beat others; links as they are, or rewired to be useless or misleading."""
    X = sparse.csr_array(cora.features, dtype=float)
    items = ContestItems(X.shape[0], X, {"cites": rewired(cora, links)})
    for topic in np.unique(cora.labels)[:n_topics]:
        relevant = cora.labels == topic
        for repeat in range(n_repeats):
            rng = np.random.default_rng([int(topic), repeat])
            known = draw_pairs(relevant, n_pairs, rng)
            asked = draw_pairs(relevant, ASKED, rng)
            yield items.round(known, np.column_stack([asked.winner, asked.loser]))


def rewired(cora: Cora, links: str) -> sparse.csr_array:
    """The citations: "true", "random" (between any two papers), "other topics" (never the same)."""
    found = sparse.triu(cora.citations + cora.citations.T, k=1).tocoo()
    first, second = found.row.copy(), found.col.copy()
    n, rng = len(cora.labels), np.random.default_rng(0)
    if links != "true":
        moved = np.ones(len(first), dtype=bool)
        while moved.any():
            second[moved] = rng.integers(n, size=int(moved.sum()))
            same_topic = cora.labels[first] == cora.labels[second]
            moved = (first == second) | (same_topic & (links == "other topics"))
    graph = sparse.csr_array((np.ones(len(first)), (first, second)), shape=(n, n))
    return sparse.csr_array(((graph + graph.T) > 0).astype(float))


def ohsumed_rounds(
    documents: GradedDocuments, n_pairs: int, n_queries: int, n_repeats: int
) -> Iterator[Contest]:
    """Documents of a query, with links between nearest neighbours."""
    for query in draw_queries(documents, n_queries, n_pairs):
        items = ContestItems(len(query.y), query.X, {"near": query.graphs()["kNN"]})
        for repeat in range(n_repeats):
            shuffled = np.random.default_rng([n_pairs, repeat]).permutation(query.pairs)
            known = Comparisons.from_pairs(*shuffled[:n_pairs].T, items=range(items.n))
            yield items.round(known, shuffled[n_pairs:][:ASKED])


def regression_rounds(table: Regression, n_pairs: int, n_repeats: int) -> Iterator[Contest]:
    """Rows of a table: the one with the larger target is better. At most 200 of them."""
    for repeat in range(n_repeats):
        rng = np.random.default_rng([n_pairs, repeat])
        rows = rng.permutation(len(table.y))[:200]
        X, y = table.X[rows], table.y[rows]
        items = ContestItems(len(y), X[:, np.ptp(X, axis=0) > 0])
        known, asked = better_first(y, n_pairs, rng), better_first(y, ASKED, rng)
        yield items.round(Comparisons.from_pairs(*known.T, items=range(items.n)), asked)


def better_first(score: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """(size, 2) random pairs of different scores, the better one first."""
    first, second = rng.integers(len(score), size=(2, 20 * size))
    different = score[first] != score[second]
    first, second = first[different][:size], second[different][:size]
    swap = score[first] < score[second]
    pairs: IntArray = np.column_stack(
        [np.where(swap, second, first), np.where(swap, first, second)]
    )
    return pairs


def crowd_rounds(
    data: Comparisons, X: FloatArray | None, n_pairs: int, n_repeats: int
) -> Iterator[Contest]:
    """Answers of everybody taken together, some known and some to be foreseen."""
    items = ContestItems(data.n_items, X)
    pairs = np.column_stack([data.winner, data.loser])[~data.tie]
    for repeat in range(n_repeats):
        shuffled = np.random.default_rng([n_pairs, repeat]).permutation(pairs)
        known = Comparisons.from_pairs(*shuffled[:n_pairs].T, items=range(items.n))
        yield items.round(known, shuffled[n_pairs:][:ASKED])


def simulated_rounds(kind: str, n_pairs: int, n_repeats: int) -> Iterator[Contest]:
    """200 items of two topics and a taste of their own; noisy answers.

    kind : "both tell" (words and links follow the topic), "links mislead" (they join the topics),
    "only links tell" (words are noise).
    """
    for repeat in range(n_repeats):
        rng = np.random.default_rng([1, repeat])
        n = 200
        topic = rng.integers(2, size=n)
        likely = 0.05 + 0.15 * (rng.random((2, 300)) < 0.3)
        words = rng.random((n, 300)) < likely[topic if kind != "only links tell" else 0 * topic]
        joined = topic[:, None] == topic if kind != "links mislead" else topic[:, None] != topic
        links = np.triu(rng.random((n, n)) < np.where(joined, 6.0, 0.5) / n, 1).astype(float)
        items = ContestItems(n, sparse.csr_array(words.astype(float)), {"links": links + links.T})
        utility = 2.0 * topic + 0.5 * rng.standard_normal(n)
        known = _answered(utility, n_pairs, rng)
        yield items.round(
            Comparisons.from_pairs(*known.T, items=range(n)), _answered(utility, ASKED, rng)
        )


def _answered(utility: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """(size, 2) answers about random pairs, with noise of variance one, the winner first."""
    first = rng.integers(len(utility), size=size)
    second = (first + 1 + rng.integers(len(utility) - 1, size=size)) % len(utility)
    won = utility[first] - utility[second] + rng.standard_normal(size) > 0
    pairs: IntArray = np.column_stack([np.where(won, first, second), np.where(won, second, first)])
    return pairs
