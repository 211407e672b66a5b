"""Problems and scores for `defaults`: items with features and links, and people."""

import re
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from experiments import FloatArray, IntArray
from experiments.page import spread, standard_error
from experiments.xpgp import draw_pairs, draw_queries
from penchant.data import Comparisons
from penchant.datasets import Cars, Cora, MovieLens, Regression, Sushi
from penchant.io import GradedDocuments
from penchant.kernels import Independent, Inputs, Kernel, as_relations
from penchant.metrics import calibration
from penchant.models import (
    CommunityGP,
    MultiUserGP,
    PreferenceGP,
    Scaling,
    default_kernel,
    fitted_items,
    taste_kernel,
)
from penchant.workflow import Material, choose_model

# What is fitted to a problem: the defaults, fixed choices of a prior, simple baselines.

DEFAULTS = "defaults"
"""`MultiUserGP()` where answers tell people apart, else `PreferenceGP()`."""
COMMUNITIES, POOLED, CHOSEN = "CommunityGP", "PreferenceGP, everybody", "choose_model"
DRIFTING = "PreferenceGP, drift"
FEATURES, LINKS, BOTH = "features only", "links only", "both, old start"
OLD_FEATURES, ITEMS = "features only, old start", "item effects only"
INDEPENDENT, FREE, TASTES = "independent items", "free covariance", "features and item effects"
SINGLE = (FEATURES, OLD_FEATURES, LINKS, ITEMS, INDEPENDENT, FREE, TASTES)
"""The choices that take one source alone; of many people, one covariance."""
FIXED = (*SINGLE, BOTH)
BEFORE = (BOTH, OLD_FEATURES, TASTES, FREE)
"""The default of earlier versions is the first of these that a set allows."""
BT, BT_USERS, BT_FEATURES = "BT", "BT+u", "BT+features"
BASELINES = (BT, BT_USERS, BT_FEATURES)
"""Ridge logistic regressions on items; on items and user × item; on features, and items if that
predicts more."""
JUDGED = (DEFAULTS, COMMUNITIES, POOLED, CHOSEN, DRIFTING)
"""What is compared with baselines: models with nothing chosen, and drift where there are times."""
ASKED = 1_000
"""Pairs that are predicted in each round."""
SLOW = 60.0
"""Seconds after which a fit with drift is given up."""


class Asked(NamedTuple):
    """Single decided answers, the winner first, and the circumstances under which they were given.

    users, first : (k,) or None; covariates : (k,) by name; time : (k,) or None.
    """

    pairs: IntArray
    users: IntArray | None
    first: IntArray | None
    covariates: Mapping[str, FloatArray]
    time: FloatArray | None

    @classmethod
    def of(cls, data: Comparisons) -> "Asked":
        """All of them; a choice is the pairs that it holds."""
        rows = np.repeat(np.arange(len(data)), np.where(data.tie, 0, data.count))
        columns = () if data.covariates is None else data.covariates.T
        return cls(
            np.column_stack([data.winner, data.loser])[rows],
            None if data.user is None else data.user[rows],
            None if data.first is None else data.first[rows],
            {n: each[rows] for n, each in zip(data.covariate_names, columns, strict=True)},
            None if data.time is None else data.time[rows],
        )

    @property
    def shown(self) -> dict[str, Any]:
        """The order of presentation and covariates, as `predict_proba` takes them."""
        shown: dict[str, Any] = {} if self.first is None else {"first": self.first}
        return shown | ({"covariates": self.covariates} if self.covariates else {})


class Problem(NamedTuple):
    """Answers to learn from, answers to predict, and what else `fit` is given."""

    train: Comparisons
    test: Comparisons
    X: Any = None
    user_features: Any = None
    relations: Mapping[str, Any] | None = None

    def judged(self) -> dict[str, Callable[[], Any]]:
        """Models with nothing chosen: name → function that returns a fitted one."""
        if self.train.user is not None:
            return {
                DEFAULTS: lambda: self._fitted(MultiUserGP(progress=False, random_state=0)),
                COMMUNITIES: lambda: self._fitted(CommunityGP(progress=False, random_state=0)),
                POOLED: lambda: self._fitted(PreferenceGP()),
            }
        found = {DEFAULTS: lambda: self._fitted(PreferenceGP())}
        if self.train.time is not None:
            found[DRIFTING] = lambda: self._fitted(PreferenceGP(drift="ou"))
        return found

    def fixed(self) -> dict[str, Callable[[], Any]]:
        """Every fixed choice of a prior that these items allow."""
        found: dict[str, Callable[[], Any]] = {}
        if self.train.user is not None:
            found[INDEPENDENT] = lambda: self._with_kernel(Independent())
            found[FREE] = lambda: self._with_kernel("free")
            if self.X is not None:
                found[TASTES] = lambda: self._with_kernel(
                    taste_kernel(fitted_items(self.X, self.train, None, scale=True)[1])
                )
            return found
        if self.X is not None:
            found[OLD_FEATURES] = lambda: self._old(None)
        if self.X is not None and self.relations:
            found[FEATURES] = lambda: PreferenceGP().fit(self.X, self.train)
            found[BOTH] = lambda: self._old(self.relations)
        if self.relations:
            found[LINKS] = lambda: PreferenceGP().fit(None, self.train, self.relations)
        else:
            found[ITEMS] = lambda: PreferenceGP().fit(None, self.train)
        return found

    def baselines(self) -> dict[str, Callable[[], Any]]:
        """Ridge logistic regressions; their ridge by cross-validation of the known answers."""
        columns: dict[str, tuple[tuple[str, ...], ...]] = {BT: (("items",),)}
        if self.train.user is not None:
            columns[BT_USERS] = (("items", "users"),)
        if self.X is not None:
            columns[BT_FEATURES] = (("features",), ("features", "items"))
        return {
            name: partial(RidgeLogistic.fitted, self.train, self.X, each)
            for name, each in columns.items()
        }

    def choice(self) -> str | None:
        """Which of the fits `choose_model` names, where there is a choice."""
        if self.train.user is None:
            return None
        further = {"relations": self.relations, "user_features": self.user_features}
        name = choose_model(self.train, self.X, **further, random_state=0).name
        return {"multi-user": DEFAULTS, "community": COMMUNITIES, "gp": POOLED}[name]

    def _fitted(self, model: Any) -> Any:
        return Material(self.train, self.X, self.relations, self.user_features).fit(model)

    def _with_kernel(self, kernel: Kernel | str) -> MultiUserGP:
        X = self.X
        if X is not None and isinstance(kernel, Kernel):
            X = np.asarray(Scaling.of(X).apply(X))
        return MultiUserGP(kernel, progress=False).fit(X, self.train)

    def _old(self, relations: Mapping[str, Any] | None) -> PreferenceGP:
        """Unit variances, whatever they mean for a difference."""
        X = self.X.toarray() if sparse.issparse(self.X) else self.X
        X = Scaling.of(X).apply(X)
        n = self.train.n_items
        items = Inputs(X, as_relations(relations or {}, n), np.arange(n))
        return PreferenceGP(default_kernel(items)).fit(X, self.train, relations)


# Simple baselines: what any statistics package fits in a minute.

RIDGES = tuple(10.0**power for power in range(-3, 5))
HALF_DECADE = 10.0**0.5
"""Inverse penalties that are tried; then those half a decade from the best."""
FOLDS = 5


class RidgeLogistic(NamedTuple):
    """A logistic regression on differences of columns, first item less second.

    columns : of "items" (one each), "users" (one for each user and item) and "features"; the order
    shown and covariates are always there. shape : how many users and items there are.
    """

    columns: tuple[str, ...]
    features: sparse.csr_array | None
    shape: tuple[int, int]
    coef: FloatArray

    @classmethod
    def fitted(
        cls, train: Comparisons, X: Any, candidates: Sequence[tuple[str, ...]]
    ) -> "RidgeLogistic":
        """Columns and ridge under which held-out parts of the known answers are likeliest."""
        features = None if X is None else _with_unit_variance(sparse.csr_array(X))
        shape = train.n_users, train.n_items
        folds = [
            (Asked.of(some), Asked.of(rest))
            for some, rest in train.folds(min(FOLDS, train.n_comparisons))
        ]
        tried: dict[tuple[tuple[str, ...], float], float] = {}
        for columns in candidates:
            model = cls(columns, features, shape, np.zeros(0))
            parts = [(model.design(some), model.design(rest)) for some, rest in folds]
            tried |= {(columns, ridge): _held_out(parts, ridge) for ridge in RIDGES}
            _, best = max((key for key in tried if key[0] == columns), key=lambda key: tried[key])
            near = (best / HALF_DECADE, best * HALF_DECADE)
            tried |= {(columns, ridge): _held_out(parts, ridge) for ridge in near}
        columns, ridge = max(tried, key=lambda key: tried[key])
        model = cls(columns, features, shape, np.zeros(0))
        return model._replace(coef=_coefficients(model.design(Asked.of(train)), ridge))

    def design(self, asked: Asked) -> sparse.csr_array:
        """(k, p) differences of the columns."""
        n_users, n_items = self.shape
        items = _differences(asked.pairs, n_items)
        parts = {"items": items}
        if "users" in self.columns:
            own = np.asarray(asked.users)[:, None] * n_items + asked.pairs
            parts["users"] = _differences(own, n_users * n_items)
        if "features" in self.columns:
            parts["features"] = sparse.csr_array(items @ self.features)
        shown = [*asked.covariates.values(), *([] if asked.first is None else [asked.first])]
        effects = [sparse.csr_array(np.asarray(each, dtype=float)[:, None]) for each in shown]
        return sparse.csr_array(sparse.hstack([parts[name] for name in self.columns] + effects))

    def predict_proba(
        self,
        pairs: IntArray,
        users: IntArray | None = None,
        first: IntArray | None = None,
        covariates: Mapping[str, FloatArray] | None = None,
    ) -> FloatArray:
        """(k,) P(first preferred to second)."""
        p: FloatArray = expit(
            self.design(Asked(pairs, users, first, covariates or {}, None)) @ self.coef
        )
        return p


def _differences(pairs: IntArray, n: int) -> sparse.csr_array:
    """(k, n) +1 at the first of a pair, −1 at the second."""
    sign = np.tile([1.0, -1.0], len(pairs))
    row = np.repeat(np.arange(len(pairs)), 2)
    return sparse.csr_array((sign, (row, pairs.ravel())), (len(pairs), n))


def _with_unit_variance(X: sparse.csr_array) -> sparse.csr_array:
    """Columns divided by their standard deviations; constant ones are left out."""
    variance = np.asarray(X.multiply(X).mean(axis=0) - X.mean(axis=0) ** 2).ravel()
    kept = np.flatnonzero(variance > 1e-12 * np.abs(variance).max())
    return sparse.csr_array(X[:, kept] @ sparse.diags_array(variance[kept] ** -0.5))


def _coefficients(design: sparse.csr_array, ridge: float) -> FloatArray:
    """Of a regression without intercept: half of the answers are turned around, which changes
    nothing but gives scikit-learn its two classes."""
    sign = np.where(np.arange(design.shape[0]) % 2, -1.0, 1.0)
    turned = sparse.csr_matrix(sparse.diags_array(sign) @ design)
    turned.indices, turned.indptr = (  # liblinear's integers
        each.astype(np.int32) for each in (turned.indices, turned.indptr)
    )
    model = LogisticRegression(
        C=ridge, fit_intercept=False, solver="liblinear", tol=1e-5, max_iter=1000, random_state=0
    )
    coef: FloatArray = model.fit(turned, sign).coef_[0]
    return coef


def _held_out(parts: Sequence[tuple[sparse.csr_array, sparse.csr_array]], ridge: float) -> float:
    """The log-likelihood of parts, each under what was learned from the others."""
    return float(
        sum(-np.logaddexp(0.0, -(rest @ _coefficients(some, ridge))).sum() for some, rest in parts)
    )


# Data on which defaults meet fixed choices of a prior and baselines: streams of problems.


def cora_rounds(
    cora: Cora, links: str, n_pairs: int, n_repeats: int, n_topics: int | None = None
) -> Iterator[Problem]:
    """A topic's papers beat others; links as they are, or rewired to be useless or misleading."""
    X = sparse.csr_array(cora.features, dtype=float)
    relations = {"cites": rewired(cora, links)}
    for topic in np.unique(cora.labels)[:n_topics]:
        relevant = cora.labels == topic
        for repeat in range(n_repeats):
            rng = np.random.default_rng([int(topic), repeat])
            known, asked = (draw_pairs(relevant, size, rng) for size in (n_pairs, ASKED))
            yield Problem(known, asked, X, relations=relations)


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
) -> Iterator[Problem]:
    """Documents of a query, with links between nearest neighbours."""
    for query in draw_queries(documents, n_queries, n_pairs):
        relations = {"near": query.graphs()["kNN"]}
        for repeat in range(n_repeats):
            shuffled = np.random.default_rng([n_pairs, repeat]).permutation(query.pairs)
            parts = two_parts(shuffled, n_pairs, len(query.y))
            yield Problem(*parts, query.X, relations=relations)


def regression_rounds(table: Regression, n_pairs: int, n_repeats: int) -> Iterator[Problem]:
    """Rows of a table: the one with the larger target is better. At most 200 of them."""
    for repeat in range(n_repeats):
        rng = np.random.default_rng([n_pairs, repeat])
        rows = rng.permutation(len(table.y))[:200]
        X, y = table.X[rows], table.y[rows]
        pairs = np.concatenate([better_first(y, size, rng) for size in (n_pairs, ASKED)])
        yield Problem(*two_parts(pairs, n_pairs, len(y)), X[:, np.ptp(X, axis=0) > 0])


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
) -> Iterator[Problem]:
    """Pooled answers, some to learn from and some to predict."""
    pairs = np.column_stack([data.winner, data.loser])[~data.tie]
    for repeat in range(n_repeats):
        shuffled = np.random.default_rng([n_pairs, repeat]).permutation(pairs)
        yield Problem(*two_parts(shuffled, n_pairs, data.n_items), X)


def two_parts(pairs: IntArray, n_known: int, n_items: int) -> tuple[Comparisons, Comparisons]:
    """The first pairs to learn from, and at most `ASKED` others to predict; winners first."""
    known, asked = pairs[:n_known], pairs[n_known:][:ASKED]
    return (
        Comparisons.from_pairs(*known.T, items=range(n_items)),
        Comparisons.from_pairs(*asked.T, items=range(n_items)),
    )


def simulated_rounds(kind: str, n_pairs: int, n_repeats: int) -> Iterator[Problem]:
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
        utility = 2.0 * topic + 0.5 * rng.standard_normal(n)
        pairs = np.concatenate([answered(utility, size, rng) for size in (n_pairs, ASKED)])
        X, relations = sparse.csr_array(words.astype(float)), {"links": links + links.T}
        yield Problem(*two_parts(pairs, n_pairs, n), X, relations=relations)


def answered(utility: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """(size, 2) answers about random pairs, with noise of variance one, the winner first."""
    first = rng.integers(len(utility), size=size)
    second = (first + 1 + rng.integers(len(utility) - 1, size=size)) % len(utility)
    won = utility[first] - utility[second] + rng.standard_normal(size) > 0
    pairs: IntArray = np.column_stack([np.where(won, first, second), np.where(won, second, first)])
    return pairs


# Predictions of defaults, fixed choices and baselines, scored round by round.

HEAD = (
    *("choice", "error", "log-likelihood", "defaults less it", "slope", "ECE", "over", "seconds"),
    "shares, or what was chosen",
)


class ContestScores(NamedTuple):
    """By model, (rounds,) errors and log-likelihoods, probabilities of what happened by round,
    seconds a fit, and what was learned; NaN where a fit was given up."""

    errors: Mapping[str, FloatArray]
    log_likelihoods: Mapping[str, FloatArray]
    probs: Mapping[str, Sequence[FloatArray]]
    learned: Mapping[str, str]
    seconds: Mapping[str, float]

    def rows(self) -> list[list[str]]:
        """Of a table, one line a model."""
        return [
            [
                name,
                spread(self.errors[name]),
                spread(self.log_likelihoods[name]),
                "" if name == DEFAULTS else self.difference(DEFAULTS, name),
                told_slope(*self.slope(name)),
                f"{calibration(p).error:.3f} ({by_chance(p):.3f})",
                f"{self.overconfidence(name):+.3f}",
                f"{self.seconds[name]:.1f}",
                self.learned[name],
            ]
            for name in self.errors
            if not np.isnan(p := self.all_probs(name)).any()
        ]

    def all_probs(self, name: str) -> FloatArray:
        """Of all rounds."""
        return np.concatenate(self.probs[name])

    def gains(self, name: str, other: str) -> FloatArray:
        """(rounds,) by how much a model's log-likelihood exceeds another's."""
        less: FloatArray = self.log_likelihoods[name] - self.log_likelihoods[other]
        return less

    def difference(self, name: str, other: str) -> str:
        """The mean gain, with the paired error."""
        gains = self.gains(name, other)
        return f"{gains.mean():+.3f} ± {standard_error(gains):.3f}"

    def best_baseline(self, name: str) -> str:
        """The likeliest of those that know no more than a model: one that takes everybody together
        is not compared with one that tells people apart."""
        known = [each for each in BASELINES if each in self.log_likelihoods]
        if name == POOLED:
            known = [each for each in known if each != BT_USERS]
        return max(known, key=lambda each: self.log_likelihoods[each].mean())

    def slope(self, name: str) -> tuple[float, float]:
        """The recalibration slope, and its error by leaving out rounds."""
        p = self.probs[name]
        without = [
            recalibration_slope(np.concatenate([*p[:i], *p[i + 1 :]]))
            for i in range(len(p) if len(p) > 1 else 0)
        ]
        error = float(np.sqrt((len(p) - 1) * np.var(without))) if without else 0.0
        return recalibration_slope(self.all_probs(name)), error

    def called(self, name: str) -> str:
        """A model by its name: the defaults are one of two."""
        if name != DEFAULTS:
            return name
        return "MultiUserGP" if COMMUNITIES in self.log_likelihoods else "PreferenceGP"

    @property
    def has_fixed(self) -> bool:
        """Whether fixed choices of a prior were tried."""
        return any(name in self.log_likelihoods for name in FIXED)

    @property
    def best_fixed(self) -> str:
        """The likeliest choice, the defaults among them."""
        known = [each for each in (DEFAULTS, *FIXED) if each in self.log_likelihoods]
        return max(known, key=lambda each: self.log_likelihoods[each].mean())

    @property
    def regret(self) -> float:
        """In log-likelihood, against the best choice at its old start, or of one source alone."""
        best, ours = self.log_likelihoods[self.best_fixed], self.log_likelihoods[DEFAULTS]
        return float(best.mean() - ours.mean())

    @property
    def choice_regret(self) -> float | None:
        """In log-likelihood, of the model that was chosen, against the best that it could be."""
        if CHOSEN not in self.log_likelihoods:
            return None
        models = (DEFAULTS, COMMUNITIES, POOLED)
        best = max(self.log_likelihoods[name].mean() for name in models)
        return float(best - self.log_likelihoods[CHOSEN].mean())

    @property
    def ratio(self) -> float:
        """Of errors, defaults to the better single source, which makes one at least."""
        single = min(self.errors[name].mean() for name in SINGLE if name in self.errors)
        return float(
            self.errors[DEFAULTS].mean() / max(single, 1.0 / self.all_probs(DEFAULTS).size)
        )

    def overconfidence(self, name: str) -> float:
        """Mean stated probability of the likelier outcome, less how often that came true."""
        p = self.all_probs(name)
        return float(np.maximum(p, 1.0 - p).mean() - (1.0 - _error(p)))

    @property
    def before(self) -> FloatArray:
        """Probabilities by the default of earlier versions."""
        return self.all_probs(next(name for name in BEFORE if name in self.probs))


def told_slope(slope: float, error: float) -> str:
    """In a table.

    >>> told_slope(1.0, 0.05)
    '1.00 ± 0.05'
    """
    return f"{slope:.2f} ± {error:.2f}"


def recalibration_slope(p: FloatArray) -> float:
    """Of a logistic regression, without intercept, of what happened on the logits of p.

    p : probabilities that were stated of what happened. Above 1: too timid; below: too bold.

    >>> said = np.repeat([0.8, 0.2], [80, 20])
    >>> round(recalibration_slope(said), 3)
    1.0
    """
    x = logit(np.clip(p, *STATED))
    found = minimize_scalar(
        lambda slope: np.logaddexp(0.0, -slope * x).sum(), bounds=(-1.0, STEEPEST), method="bounded"
    )
    return float(found.x)


STEEPEST = 20.0
"""The slope where every answer was predicted right."""
STATED = (1e-9, 1.0 - 1e-9)


def by_chance(p: FloatArray, n_draws: int = 50) -> float:
    """The calibration error to expect of statements p that are all right."""
    rng = np.random.default_rng(0)
    came_true = (np.where(rng.random(p.size) < p, p, 1.0 - p) for _ in range(n_draws))
    return float(np.mean([calibration(each).error for each in came_true]))


def score(rounds: Iterable[Problem], fixed: bool = True) -> ContestScores:
    """Fit every model in every round, and score its predictions.

    fixed : fixed choices of a prior, too; with relations they are always tried.
    """
    probs: dict[str, list[FloatArray]] = {}
    learned: dict[str, list[dict[str, float]]] = {}
    seconds: dict[str, list[float]] = {}
    for problem in rounds:
        asked = Asked.of(problem.test)
        chosen = problem.fixed() if fixed or problem.relations else {}
        fits = {**problem.judged(), **chosen, **problem.baselines()}
        for name, fit in fits.items():
            if name in probs and np.isnan(probs[name][-1]).any():
                continue  # it was given up, and would be again
            model, p, time = _predicted(fit, asked, name == DRIFTING)
            probs.setdefault(name, []).append(p)
            learned.setdefault(name, []).append(_learned(model))
            seconds.setdefault(name, []).append(time)
        began = process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            choice = problem.choice()
        if choice is not None:
            probs.setdefault(CHOSEN, []).append(probs[choice][-1])
            learned.setdefault(CHOSEN, []).append({choice: 1.0})
            seconds.setdefault(CHOSEN, []).append(process_time() - began)
    return ContestScores(
        {name: np.array([_error(p) for p in each]) for name, each in probs.items()},
        {name: np.array([np.log(p).mean() for p in each]) for name, each in probs.items()},
        probs,
        {name: _in_words(each) for name, each in learned.items()},
        {name: float(np.mean(each)) for name, each in seconds.items()},
    )


def _predicted(fit: Callable[[], Any], asked: Asked, drifts: bool) -> tuple[Any, FloatArray, float]:
    """A fitted model, its probabilities of what happened, and the seconds of the fit."""
    began = process_time()
    when = {"at": asked.time} if drifts else {}
    try:
        with warnings.catch_warnings(), at_most(SLOW if drifts else None):
            warnings.simplefilter("ignore")
            model = fit()
            time = process_time() - began
            p = model.predict_proba(asked.pairs, asked.users, **asked.shown, **when)
    except TimeoutError:
        return None, np.full(len(asked.pairs), np.nan), process_time() - began
    return model, np.clip(p, *STATED), time


@contextmanager
def at_most(seconds: float | None) -> Iterator[None]:
    """Raise a TimeoutError inside once so many seconds have passed."""
    if seconds is None:
        yield
        return

    def stop(*_: object) -> None:
        raise TimeoutError(f"not finished after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _error(prob: FloatArray) -> float:
    return float(np.mean((prob < 0.5) + 0.5 * (prob == 0.5)))


def _learned(model: Any) -> dict[str, float]:
    """What each source counts; of many people, one for the covariance that was chosen."""
    if isinstance(model, RidgeLogistic):
        return {"and ".join(model.columns): 1.0}
    if isinstance(model, PreferenceGP):
        return {source: share.posterior for source, share in model.shares_.items()}
    if not isinstance(model, MultiUserGP):
        return {}
    chosen = re.match(r"item covariance: ([^(;]+?) \(", model.report_.optimizer)
    return {chosen[1]: 1.0} if chosen else {}


def _in_words(learned: list[dict[str, float]]) -> str:
    """The mean over rounds, in words."""
    names = dict.fromkeys(name for each in learned for name in each)
    mean = {name: sum(each.get(name, 0.0) for each in learned) / len(learned) for name in names}
    return ", ".join(f"{name} {share:.2f}" for name, share in mean.items())


# Answers of many people, each with a taste of their own: the default item covariance against each
# fixed one, as rounds of `reproduce defaults`.

MOVIELENS_FILMS = 50
"""The films rated most: a covariance can still be learned entry by entry."""


Draw = Callable[[np.random.Generator], Problem]


def people_rounds(draw: Draw, n_repeats: int) -> Iterator[Problem]:
    """A set drawn and split anew in each round."""
    for repeat in range(n_repeats):
        yield draw(np.random.default_rng([2, repeat]))


def simulated_people(kind: str) -> Draw:
    """33 items, 120 users, 25 answers each: tastes "apart", along two "directions", or "alike"."""

    def draw(rng: np.random.Generator) -> Problem:
        n, n_users, n_votes = 33, 120, 25
        own = {"apart": 0.7, "directions": 0.3, "alike": 0.1}[kind]
        f = rng.standard_normal(n) + own * rng.standard_normal((n_users, n))
        if kind == "directions":
            f = f + 0.8 * rng.standard_normal((n_users, 2)) @ rng.standard_normal((2, n))
        user = np.repeat(np.arange(n_users), n_votes)
        a = rng.integers(n, size=len(user))
        b = (a + 1 + rng.integers(n - 1, size=len(user))) % n
        won = f[user, a] - f[user, b] + rng.standard_normal(len(user)) > 0
        return split_people(None, user, np.where(won, a, b), np.where(won, b, a), rng)

    return draw


def people_of_sushi(sushi: Sushi) -> Draw:
    """15 of the pairs of each of 500 rankings of ten kinds."""

    def draw(rng: np.random.Generator) -> Problem:
        n_users = min(500, len(sushi.rankings))
        rankings = rng.choice(sushi.rankings, n_users, replace=False)
        better, worse = np.triu_indices(10, 1)
        chosen = rng.permuted(np.tile(np.arange(45), (n_users, 1)), axis=1)[:, :15].ravel()
        user = np.repeat(np.arange(n_users), 15)
        winner, loser = rankings[user, better[chosen]], rankings[user, worse[chosen]]
        return split_people(sushi.item_features, user, winner, loser, rng)

    return draw


def people_of_cars(cars: Cars) -> Draw:
    """Everybody's choices between cars."""
    answers = cars.comparisons
    user, winner, loser = (
        np.repeat(column, answers.count)
        for column in (np.asarray(answers.user), answers.winner, answers.loser)
    )
    return lambda rng: split_people(cars.item_features, user, winner, loser, rng)


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

    def draw(rng: np.random.Generator) -> Problem:
        best, worst = rated.pairs(rng)
        differ = rated.rating[best] != rated.rating[worst]
        best, worst = best[differ], worst[differ]
        return split_people(
            rated.genres, rated.user[best], rated.film[best], rated.film[worst], rng
        )

    return draw


def split_people(X: Any, user: Any, winner: Any, loser: Any, rng: np.random.Generator) -> Problem:
    """A third of the answers held out; items and users are counted from zero."""
    n_items = int(max(winner.max(), loser.max())) + 1 if X is None else len(X)
    data = Comparisons.from_pairs(
        winner, loser, user=user, items=range(n_items), users=range(int(user.max()) + 1)
    )
    return Problem(*data.split(1 / 3, random_state=rng), X)
