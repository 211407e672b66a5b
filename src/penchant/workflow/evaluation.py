"""How well models predict comparisons that they have not seen."""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
from penchant.models import Estimator, RowTable, check_argument, choice_log_predictive, whole
from penchant.numerics.types import FloatArray, IntArray
from penchant.workflow import html
from penchant.workflow.models import Material, Scorer, as_model, build, choose, name_of, settings_of

BASELINE = "bradley-terry"
"""Label of `BradleyTerry`: everybody together, one strength an item."""


class Evaluated(NamedTuple):
    """One model's scores: means over folds and their standard errors.

    log_loss and calibration_error are NaN for a model without probabilities. seconds: all fits and
    predictions together.
    """

    model: str
    accuracy: float
    accuracy_se: float
    log_loss: float
    log_loss_se: float
    calibration_error: float
    calibration_error_se: float
    seconds: float


@dataclass(frozen=True, repr=False)
class Evaluation(RowTable[Evaluated]):
    """How well models predicted held-out comparisons, the baseline first; prints as a table."""

    folds: int
    n_comparisons: int

    row_type = Evaluated
    left = (0, 1, 2, 3, 4)

    @property
    def best(self) -> Evaluated:
        """The row with the smallest log loss."""
        return min(self.rows, key=lambda row: (np.isnan(row.log_loss), row.log_loss))

    def cells(self) -> list[list[str]]:
        """Header and rows as text."""
        rows = [["model", "accuracy", "log loss", "calibration error", "seconds"]]
        for row in self.rows:
            scores = _as_text(row.accuracy, row.accuracy_se, row.log_loss, row.calibration_error)
            rows.append([row.model, *scores, f"{row.seconds:.1f}"])
        return rows

    def _repr_html_(self) -> str:
        caption = f"{self.n_comparisons:,} comparisons, each predicted in one of {self.folds} folds"
        header, *rows = self.cells()
        return html.table(caption, rows, header)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions for comparisons that a model has not seen.

    prob : (m,) P(winner preferred), or 1, ½, 0 where a model only gives an order; count : (m,).
    Rankings and choices are counted as their pairs. whole_loss : the log loss with rankings and
    choices taken whole, or None where there are none.
    """

    prob: FloatArray
    count: FloatArray
    is_probability: bool
    seconds: float
    whole_loss: float | None = None

    def scores(self) -> tuple[float, float, float]:
        """Accuracy, and for probabilities the log loss and the calibration error, else NaN."""
        p, count = self.prob, self.count
        accuracy = 1.0 - pair_error(p, count)
        if not self.is_probability:
            return accuracy, np.nan, np.nan
        loss = log_loss(p, count) if self.whole_loss is None else self.whole_loss
        return accuracy, loss, calibration(p, counts=count).error

    def cells(self) -> list[str]:
        """The scores as text; the accuracy's error is that of independent comparisons."""
        accuracy, *others = self.scores()
        error = np.sqrt(accuracy * (1.0 - accuracy) / self.count.sum())
        return _as_text(accuracy, error, *others)


def _as_text(accuracy: float, error: float, *others: float) -> list[str]:
    known = ("–" if np.isnan(value) else f"{value:.3f}" for value in others)
    return [f"{accuracy:.3f} ± {error:.3f}", *known]


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

    Accuracy is the share of comparisons predicted rightly, the log loss punishes false confidence,
    the calibration error is the distance between stated and observed frequencies. Models learn from
    ties, but ties are not predicted.

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
                seen[label].append(hold_out(model, replace(material, data=train), test))
                done += 1
                watch(done, n_folds * len(everyone))
    if not done:
        raise DataError("every part is all ties, or leaves only ties to learn from: collect more")
    rows = tuple(_summary(label, per_fold) for label, per_fold in seen.items())
    return Evaluation(rows, n_folds, material.data.n_comparisons)


@contextmanager
def _warned_once() -> Iterator[None]:
    """Show warnings that differ in numbers only once, at the end, with the numbers of the first."""
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
    with warnings.catch_warnings():
        # the score measures the predictions, whether or not chains converged
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = material.fit(clone(model))

    def predict(pairs: IntArray, users: IntArray | None, **shown: Any) -> FloatArray:
        # by name: a model would take the index 3 for an item that is called 3
        named = [(test.items[a], test.items[b]) for a, b in pairs.tolist()]
        who = None if users is None else [test.users[u] for u in users.tolist()]
        return fitted.predict_proba(named, who, **shown)

    def decided(data: Comparisons) -> tuple[FloatArray, FloatArray]:
        """P(winner preferred) and count of each comparison that is not a tie."""
        rows = ~data.tie
        pairs = np.column_stack([data.winner, data.loser])[rows]
        count = data.count[rows].astype(np.float64)
        if isinstance(fitted, Scorer):
            winner, loser = np.asarray(fitted.predict())[pairs].T
            return 0.5 + 0.5 * np.sign(winner - loser), count
        users = None if data.user is None else data.user[rows]
        shown = as_shown(fitted, data, rows)
        return predict(pairs, users, **shown) if rows.any() else np.zeros(0), count

    prob, count = decided(test)
    is_probability, whole_loss = not isinstance(fitted, Scorer), None
    if is_probability and test.rankings is not None:
        single, single_count = decided(test.single_pairs())

        def both_ways(*asked: Any, **shown: Any) -> tuple[FloatArray, FloatArray]:
            first = predict(*asked, **shown)
            return first, 1.0 - first

        choice_log, choice_count = choice_log_predictive(test.rankings, both_ways)
        log_prob = np.append(np.log(np.maximum(single, np.finfo(float).tiny)), choice_log)
        whole_loss = -float(np.average(log_prob, weights=np.append(single_count, choice_count)))
    return HeldOut(prob, count, is_probability, perf_counter() - begin, whole_loss)


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


@dataclass(eq=False, repr=False)
class BradleyTerry(Estimator):
    """The baseline: strengths by logistic regression on differences of one-hot items."""

    def fit(self, X: Any, data: Comparisons) -> Self:
        """Learn a strength an item; X is ignored."""
        decided = ~data.tie
        m = int(decided.sum())
        rows = np.tile(np.arange(m), 2)
        columns = np.concatenate([data.winner[decided], data.loser[decided]])
        signs = np.repeat([1.0, -1.0], m)
        design = sparse.csr_array((signs, (rows, columns)), shape=(m, data.n_items))
        # scikit-learn needs both classes: each comparison counts half in either direction
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
        return expit(first - second)
