"""How well models predict comparisons that they have not seen."""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from penchant.data import Comparisons
from penchant.errors import ConvergenceWarning, DataError, warn
from penchant.gp import as_shown
from penchant.io import as_comparisons
from penchant.metrics import calibration, log_loss, pair_error
from penchant.models import BaseEstimator, check_argument, choice_log_predictive, whole
from penchant.numerics.types import FloatArray, IntArray
from penchant.workflow import html
from penchant.workflow.choosing import choose
from penchant.workflow.models import (
    Material,
    Scorer,
    as_model,
    build,
    name_of,
    settings_of,
)

BASELINE = "bradley-terry"
"""Everybody taken together, one strength an item, ridge-penalised logistic regression."""


class Scores(NamedTuple):
    """Accuracy, and for probabilities the log loss and the calibration error, else NaN."""

    accuracy: float
    log_loss: float
    calibration_error: float

    def cells(self, error: float) -> tuple[str, ...]:
        """As texts; error: of the accuracy."""
        known = ("–" if np.isnan(value) else f"{value:.3f}" for value in self[1:])
        return (f"{self.accuracy:.3f} ± {error:.3f}", *known)


class Evaluated(NamedTuple):
    """One model's scores, each a mean over folds and its standard error.

    NaN: it gives no probabilities. seconds: of all fits and predictions.
    """

    model: str
    accuracy: float
    accuracy_se: float
    log_loss: float
    log_loss_se: float
    calibration_error: float
    calibration_error_se: float
    seconds: float

    @property
    def scores(self) -> Scores:
        """The means."""
        return Scores(self.accuracy, self.log_loss, self.calibration_error)


@dataclass(frozen=True)
class Evaluation:
    """How well models predicted held-out comparisons, the baseline first; prints as a table."""

    rows: tuple[Evaluated, ...]
    folds: int
    n_comparisons: int

    @property
    def best(self) -> Evaluated:
        """The row with the smallest log loss."""
        return min(self.rows, key=lambda row: (np.isnan(row.log_loss), row.log_loss))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Evaluated]:
        return iter(self.rows)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Rows as plain dictionaries."""
        return [row._asdict() for row in self.rows]

    def to_pandas(self) -> Any:
        """A pandas data frame, one row a model."""
        import pandas

        return pandas.DataFrame(self.to_dicts())

    def _cells(self) -> list[tuple[str, ...]]:
        return [(r.model, *r.scores.cells(r.accuracy_se), f"{r.seconds:.1f}") for r in self.rows]

    def _repr_html_(self) -> str:
        caption = f"{self.n_comparisons:,} comparisons, each predicted in one of {self.folds} folds"
        return html.table(caption, self._cells(), _HEADER)

    def __str__(self) -> str:
        lines = [_HEADER, *self._cells()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


_HEADER = ("model", "accuracy", "log loss", "calibration error", "seconds")


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions for comparisons that a model has not seen, oriented winner first.

    prob : (m,) P(what happened), or 1, ½, 0 where a model only gives an order; count : (m,).
    They are pairs, those of rankings and choices too; whole_loss : the log loss with these taken
    whole, where there are any.
    """

    prob: FloatArray
    count: FloatArray
    is_probability: bool
    seconds: float
    whole_loss: float | None = None

    def scores(self) -> Scores:
        """How good they are."""
        p, count = self.prob, self.count
        accuracy = 1.0 - pair_error(p, count)
        if not self.is_probability:
            return Scores(accuracy, np.nan, np.nan)
        loss = log_loss(p, count) if self.whole_loss is None else self.whole_loss
        return Scores(accuracy, loss, calibration(p, counts=count).error)

    def accuracy_error(self) -> float:
        """Standard error of the accuracy, with comparisons treated as independent."""
        accuracy = 1.0 - pair_error(self.prob, self.count)
        return float(np.sqrt(accuracy * (1.0 - accuracy) / self.count.sum()))


def evaluate(
    models: Any,
    data: Comparisons,
    X: Any = None,
    *,
    folds: int = 5,
    random_state: int = 0,
    **about: Any,
) -> Evaluation:
    """Compare models by how well they predict comparisons that they have not seen.

    models : estimators, or their short names ("auto", "gp", "multi-user", "community",
        "rank-rls", "kpc-rank"): one, several, or a mapping from labels to them. A Bradley–Terry
        model of everybody is always there to compare with.
    data : comparisons, or a file or data frame of them.
    X : (n_items, d) features, or None.
    folds : each part is predicted by models that learned from the others.
    about : what `fit` takes besides: relations=, user_features=, user_relations=.

    Accuracy is the share of comparisons foreseen, the log loss punishes false confidence, the
    calibration error is the distance between stated and observed frequencies. Ties are learned
    from but not predicted.

    >>> import penchant as pc
    >>> data = pc.datasets.simulate_pairs([0.0, 1.0, 2.0, 3.0], 200, random_state=0)
    >>> table = pc.evaluate({"utilities": pc.PreferenceGP(optimize=None)}, data, folds=2)
    >>> [row.model for row in table]
    ['bradley-terry', 'utilities']
    >>> all(0.7 < row.accuracy < 1.0 for row in table)
    True
    """
    check_argument("evaluate", "folds", folds, whole(2))
    material = Material(as_comparisons(data), X, **about)
    contestants = _contestants(models, material, random_state)
    return cross_validate(contestants, material, folds, random_state)


def cross_validate(
    models: Mapping[str, Any],
    material: Material,
    n_folds: int,
    seed: int,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> Evaluation:
    """Every model and the baseline on every fold; `watch` gets the number of fits done."""
    everyone = {BASELINE: BradleyTerry(), **models}
    seen: dict[str, list[HeldOut]] = {label: [] for label in everyone}
    done = 0
    with _warned_once():
        for train, test in _folds(material.data, n_folds, seed):
            for label, model in everyone.items():
                seen[label].append(hold_out(model, material.only(train), test))
                done += 1
                watch(done, n_folds * len(everyone))
    if not done:
        raise DataError("every part is all ties, or leaves only ties to learn from: collect more")
    rows = tuple(_summary(label, per_fold) for label, per_fold in seen.items())
    return Evaluation(rows, n_folds, material.data.n_comparisons)


@contextmanager
def _warned_once() -> Iterator[None]:
    """What many fits have to say about the same items is said once, at the end, with the numbers of
    the first."""
    with warnings.catch_warnings(record=True) as caught:
        yield
    said: dict[tuple[type[Warning], str], str] = {}
    for each in caught:
        text = str(each.message)
        said.setdefault((each.category, re.sub(r"\d[\d.,]*", "#", text)), text)
    for (category, _), text in said.items():
        warn(text, category)


def hold_out(model: Any, material: Material, test: Comparisons) -> HeldOut:
    """Fit a copy of the model, and predict the comparisons of `test` that are not ties."""
    begin = perf_counter()
    decided = ~test.tie
    # names, because a model would take the index 3 for an item that is called 3
    pairs = [
        (test.items[a], test.items[b])
        for a, b in zip(test.winner[decided].tolist(), test.loser[decided].tolist(), strict=True)
    ]
    who = None if test.user is None else [test.users[u] for u in test.user[decided].tolist()]
    with warnings.catch_warnings():
        # the score says what the predictions are worth, whether chains settled or not
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = material.fit(clone(model))
    if isinstance(fitted, Scorer):
        scores = fitted.predict()
        prob = 0.5 + 0.5 * np.sign(scores[test.winner[decided]] - scores[test.loser[decided]])
    else:
        prob = fitted.predict_proba(pairs, who, **as_shown(fitted, test, decided))
    count = test.count[decided].astype(np.float64)
    is_probability = not isinstance(fitted, Scorer)
    whole_loss = None
    if is_probability and test.rankings is not None:
        whole_loss = _whole_loss(fitted, test)
    return HeldOut(prob, count, is_probability, perf_counter() - begin, whole_loss)


def _whole_loss(fitted: Any, test: Comparisons) -> float:
    """Mean log loss of an answer: a pair, a choice, or each of the choices of a ranking."""

    def predict(
        pairs: IntArray, who: IntArray | None, **shown: Any
    ) -> tuple[FloatArray, FloatArray]:
        named = [(test.items[a], test.items[b]) for a, b in pairs.tolist()]
        users = None if who is None else [test.users[u] for u in who.tolist()]
        first = fitted.predict_proba(named, users, **shown)
        return first, 1.0 - first

    log_prob, count = np.zeros(0), np.zeros(0)
    single = test.single_pairs()
    decided = ~single.tie
    if decided.any():
        pairs = np.column_stack([single.winner, single.loser])[decided]
        who = None if single.user is None else single.user[decided]
        prob = predict(pairs, who, **as_shown(fitted, single, decided))[0]
        log_prob = np.log(np.maximum(prob, np.finfo(float).tiny))
        count = single.count[decided].astype(np.float64)
    if test.rankings is not None:
        choices = choice_log_predictive(test.rankings, predict)
        log_prob, count = np.append(log_prob, choices[0]), np.append(count, choices[1])
    return -float(np.average(log_prob, weights=count))


def _contestants(models: Any, material: Material, seed: int) -> dict[str, Any]:
    if isinstance(models, Mapping):
        given = list(models.items())
    else:
        several = [models] if isinstance(models, str) or hasattr(models, "fit") else list(models)
        given = [(None, model) for model in several]
    contestants: dict[str, Any] = {}
    for label, model in given:
        if isinstance(model, str):
            name = choose(material)[0] if model == "auto" else model
            own = {"random_state": seed} if "random_state" in settings_of(name) else {}
            model = build(name, material.data, own)
        model = as_model(model)
        label = label or name_of(model)
        if label in contestants or label == BASELINE:
            raise DataError(
                f"two models are called {label!r}: give a mapping from labels of your own to them"
            )
        contestants[label] = model
    return contestants


def _folds(data: Comparisons, n_folds: int, seed: int) -> Iterator[tuple[Comparisons, Comparisons]]:
    """(train, test) pairs in which every comparison is in exactly one test."""
    n_decided = int(data.count[~data.tie].sum())
    if n_decided < n_folds:
        raise DataError(
            f"{n_decided} comparisons are no ties, too few for {n_folds} parts: take fewer folds "
            "or collect more"
        )
    rng = np.random.default_rng(seed)
    rest, parts = data, []
    for left in range(n_folds, 1, -1):
        rest, part = rest.split(1.0 / left, random_state=rng)
        parts.append(part)
    parts.append(rest)
    for k, test in enumerate(parts):
        train = reduce(add, parts[:k] + parts[k + 1 :])
        if not (train.tie.all() or test.tie.all()):
            yield train, test


def _summary(label: str, per_fold: Sequence[HeldOut]) -> Evaluated:
    scores = np.array([fold.scores() for fold in per_fold])
    error = np.full(3, np.nan)
    if len(scores) > 1:
        error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
    values = np.column_stack([scores.mean(axis=0), error]).ravel().tolist()
    return Evaluated._make([label, *values, sum(fold.seconds for fold in per_fold)])


class BradleyTerry(BaseEstimator):
    """The baseline: strengths by logistic regression on differences of one-hot items."""

    def fit(self, X: Any, data: Comparisons) -> Self:
        """Learn a strength an item; features are not looked at."""
        decided = ~data.tie
        m = int(decided.sum())
        rows = np.tile(np.arange(m), 2)
        columns = np.concatenate([data.winner[decided], data.loser[decided]])
        signs = np.repeat([1.0, -1.0], m)
        design = sparse.csr_array((signs, (rows, columns)), shape=(m, data.n_items))
        # scikit-learn wants both classes: every comparison also stands there turned round
        model = LogisticRegression(fit_intercept=False, max_iter=1000)
        model.fit(
            sparse.vstack([design, -design]),
            np.repeat([1, 0], m),
            sample_weight=np.tile(data.count[decided], 2) / 2.0,
        )
        self.comparisons_, self.strength_ = data, model.coef_[0]
        return self

    def predict_proba(self, pairs: Any, users: Any = None) -> FloatArray:
        """P(first preferred to second), the same for every user."""
        first, second = self.strength_[self.comparisons_.pair_index(pairs)].T
        prob: FloatArray = expit(first - second)
        return prob
