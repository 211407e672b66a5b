"""Tasks and scores for `defaults`: items with features and links, and people."""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from experiments import FloatArray, IntArray
from experiments.page import spread
from experiments.xpgp import draw_pairs, draw_queries
from penchant.data import Comparisons
from penchant.datasets import Cars, Cora, MovieLens, Regression, Sushi
from penchant.io import GradedDocuments
from penchant.kernels import Independent, Inputs, Kernel, as_relations
from penchant.metrics import calibration
from penchant.models import (
    MultiUserGP,
    PreferenceGP,
    Scaling,
    default_kernel,
    fitted_items,
    taste_kernel,
)

# Data on which defaults meet fixed choices of a prior: each a stream of rounds to be scored.

DEFAULTS = "defaults"
FEATURES, LINKS, BOTH = "features only", "links only", "both, old start"
OLD_FEATURES, ITEMS = "features only, old start", "item effects only"
INDEPENDENT, FREE, TASTES = "independent items", "free covariance", "features and item effects"
SINGLE = (FEATURES, OLD_FEATURES, LINKS, ITEMS, INDEPENDENT, FREE, TASTES)
"""The choices that take one source alone; of many people, one covariance."""
BEFORE = (BOTH, OLD_FEATURES, TASTES, FREE)
"""The default of earlier versions is the first of these that a set allows."""
ASKED = 1_000
"""Pairs that are predicted in each round."""


class Contest(NamedTuple):
    """Models to fit, and pairs (k, 2) to predict, the better one first.

    fits : name of a choice → function that returns a fitted model; users : (k,), or None.
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
    """Pooled answers, some to learn from and some to predict."""
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


# Predictions of defaults and of fixed choices of a prior, scored round by round.

HEAD = ("choice", "error", "log-likelihood", "ECE", "over", "shares, or what was chosen")


class ContestScores(NamedTuple):
    """By choice, (rounds,) errors and log-likelihoods, all probabilities, and what was learned."""

    errors: Mapping[str, FloatArray]
    log_likelihoods: Mapping[str, FloatArray]
    probs: Mapping[str, FloatArray]
    told: Mapping[str, str]

    def rows(self) -> list[list[str]]:
        """Of a table, one line a choice."""
        return [
            [
                name,
                spread(self.errors[name]),
                spread(self.log_likelihoods[name]),
                f"{calibration(self.probs[name]).error:.3f} ({by_chance(self.probs[name]):.3f})",
                f"{self.overconfidence(name):+.3f}",
                self.told[name],
            ]
            for name in self.errors
        ]

    @property
    def regret(self) -> float:
        """In log-likelihood, against the best choice at its old start, or of one source alone."""
        means = {name: values.mean() for name, values in self.log_likelihoods.items()}
        return float(max(means.values()) - means[DEFAULTS])

    @property
    def ratio(self) -> float:
        """Of errors, defaults to the better single source."""
        single = min(self.errors[name].mean() for name in SINGLE if name in self.errors)
        return float(self.errors[DEFAULTS].mean() / max(single, 1e-9))

    def overconfidence(self, name: str) -> float:
        """Mean stated probability of the likelier outcome, less how often that came true."""
        p = self.probs[name]
        return float(np.maximum(p, 1.0 - p).mean() - (1.0 - _error(p)))

    @property
    def before(self) -> FloatArray:
        """Probabilities by the default of earlier versions."""
        return next(self.probs[name] for name in BEFORE if name in self.probs)


def by_chance(p: FloatArray, n_draws: int = 50) -> float:
    """The calibration error to expect of statements p that are all right."""
    rng = np.random.default_rng(0)
    came_true = (np.where(rng.random(p.size) < p, p, 1.0 - p) for _ in range(n_draws))
    return float(np.mean([calibration(each).error for each in came_true]))


def score(rounds: Iterable[Contest]) -> ContestScores:
    """Fit every choice in every round, and score its predictions."""
    probs: dict[str, list[FloatArray]] = {}
    shares: dict[str, list[dict[str, float]]] = {}
    for each in rounds:
        for name, fit in each.fits.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = fit()
            probs.setdefault(name, []).append(model.predict_proba(each.asked, each.users))
            shares.setdefault(name, []).append(_learned(model))
    return ContestScores(
        {name: np.array([_error(p) for p in each]) for name, each in probs.items()},
        {name: np.array([np.log(p).mean() for p in each]) for name, each in probs.items()},
        {name: np.concatenate(each) for name, each in probs.items()},
        {name: _told(each) for name, each in shares.items()},
    )


def _error(prob: FloatArray) -> float:
    return float(np.mean((prob < 0.5) + 0.5 * (prob == 0.5)))


def _learned(model: PreferenceGP | MultiUserGP) -> dict[str, float]:
    """What each source counts; of many people, one for the covariance that was chosen."""
    if isinstance(model, PreferenceGP):
        return {source: share.posterior for source, share in model.shares_.items()}
    chosen = re.match(r"item covariance: ([^(;]+?) \(", model.report_.optimizer)
    return {chosen[1]: 1.0} if chosen else {}


def _told(learned: list[dict[str, float]]) -> str:
    """The mean over rounds, in words."""
    names = dict.fromkeys(name for each in learned for name in each)
    mean = {name: sum(each.get(name, 0.0) for each in learned) / len(learned) for name in names}
    return ", ".join(f"{name} {share:.2f}" for name, share in mean.items())


# Answers of many people, each with a taste of their own: the default item covariance against each
# fixed one, as rounds of `reproduce defaults`.

MOVIELENS_FILMS = 50
"""The films rated most: a covariance can still be learned entry by entry."""


class UserSet(NamedTuple):
    """Features of the items or None, what to learn from, and what is held out."""

    X: FloatArray | None
    train: Comparisons
    test: Comparisons

    def contest(self) -> Contest:
        """The default and every fixed covariance that these items allow."""
        fits = {
            DEFAULTS: lambda: self._fitted(None),
            INDEPENDENT: lambda: self._fitted(Independent()),
            FREE: lambda: self._fitted("free"),
        }
        if self.X is not None:
            _, items = fitted_items(self.X, self.train, None, scale=True)
            fits[TASTES] = lambda: self._fitted(taste_kernel(items))
        asked = np.column_stack([self.test.winner, self.test.loser])
        rows = np.repeat(np.arange(len(asked)), self.test.count)
        return Contest(asked[rows], fits, np.asarray(self.test.user)[rows])

    def _fitted(self, kernel: Kernel | str | None) -> MultiUserGP:
        X = self.X
        if X is not None and isinstance(kernel, Kernel):
            X = np.asarray(Scaling.of(X).apply(X))
        return MultiUserGP(kernel, progress=False).fit(X, self.train)


Draw = Callable[[np.random.Generator], UserSet]


def people_rounds(draw: Draw, n_repeats: int) -> Iterator[Contest]:
    """A set drawn and split anew in each round."""
    for repeat in range(n_repeats):
        yield draw(np.random.default_rng([2, repeat])).contest()


def simulated_people(kind: str) -> Draw:
    """33 items, 120 users, 25 answers each: tastes "apart", along two "directions", or "alike"."""

    def draw(rng: np.random.Generator) -> UserSet:
        n, n_users, n_votes = 33, 120, 25
        own = {"apart": 0.7, "directions": 0.3, "alike": 0.1}[kind]
        f = rng.standard_normal(n) + own * rng.standard_normal((n_users, n))
        if kind == "directions":
            f = f + 0.8 * rng.standard_normal((n_users, 2)) @ rng.standard_normal((2, n))
        user = np.repeat(np.arange(n_users), n_votes)
        a = rng.integers(n, size=len(user))
        b = (a + 1 + rng.integers(n - 1, size=len(user))) % n
        won = f[user, a] - f[user, b] + rng.standard_normal(len(user)) > 0
        return _split(None, user, np.where(won, a, b), np.where(won, b, a), rng)

    return draw


def people_of_sushi(sushi: Sushi) -> Draw:
    """15 of the pairs of each of 500 rankings of ten kinds."""

    def draw(rng: np.random.Generator) -> UserSet:
        n_users = min(500, len(sushi.rankings))
        rankings = rng.choice(sushi.rankings, n_users, replace=False)
        better, worse = np.triu_indices(10, 1)
        chosen = rng.permuted(np.tile(np.arange(45), (n_users, 1)), axis=1)[:, :15].ravel()
        user = np.repeat(np.arange(n_users), 15)
        winner, loser = rankings[user, better[chosen]], rankings[user, worse[chosen]]
        return _split(sushi.item_features, user, winner, loser, rng)

    return draw


def people_of_cars(cars: Cars) -> Draw:
    """Everybody's choices between cars."""
    answers = cars.comparisons
    user, winner, loser = (
        np.repeat(column, answers.count)
        for column in (np.asarray(answers.user), answers.winner, answers.loser)
    )
    return lambda rng: _split(cars.item_features, user, winner, loser, rng)


class FilmRatings(NamedTuple):
    """Ratings of the films that were rated most: by whom, of which of these films, and how."""

    user: IntArray
    film: IntArray
    rating: FloatArray
    genres: FloatArray

    @classmethod
    def of(cls, films: MovieLens) -> "FilmRatings":
        """Of all that were rated."""
        seen = np.bincount(films.item, minlength=len(films.titles))
        kept = np.sort(np.argsort(-seen, kind="stable")[:MOVIELENS_FILMS])
        rows = np.flatnonzero(np.isin(films.item, kept))
        film = np.searchsorted(kept, films.item[rows])
        return cls(films.user[rows], film, films.rating[rows], films.genres[kept])

    def pairs(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Each user's ratings as a chain in any order: the better one and the other, or a tie."""
        rows = rng.permutation(len(self.user))
        rows = rows[np.argsort(self.user[rows], kind="stable")]
        same = self.user[rows[:-1]] == self.user[rows[1:]]
        first, second = rows[:-1][same], rows[1:][same]
        is_better = self.rating[first] > self.rating[second]
        return np.where(is_better, first, second), np.where(is_better, second, first)


def people_of_movielens(films: MovieLens) -> Draw:
    """Pairs of differently rated films among those rated most, a chain of each user's."""
    rated = FilmRatings.of(films)

    def draw(rng: np.random.Generator) -> UserSet:
        best, worst = rated.pairs(rng)
        differ = rated.rating[best] != rated.rating[worst]
        best, worst = best[differ], worst[differ]
        return _split(rated.genres, rated.user[best], rated.film[best], rated.film[worst], rng)

    return draw


def _split(X: Any, user: Any, winner: Any, loser: Any, rng: np.random.Generator) -> UserSet:
    """A third of the answers held out; items and users are counted from zero."""
    n_items = int(max(winner.max(), loser.max())) + 1 if X is None else len(X)
    data = Comparisons.from_pairs(
        winner, loser, user=user, items=range(n_items), users=range(int(user.max()) + 1)
    )
    return UserSet(X, *data.split(1 / 3, random_state=rng))
