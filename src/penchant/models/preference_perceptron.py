"""PreferencePerceptron: learning online from improved presentations (paper 002)."""

from dataclasses import KW_ONLY, dataclass, field
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from penchant.errors import DataError
from penchant.models import store
from penchant.models.parameters import (
    CALLABLE,
    NONE,
    POSITIVE,
    PROBABILITY,
    SEED,
    YES_OR_NO,
    Estimator,
    check_parameters,
    one_of,
    parameter,
    whole,
)
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.types import FloatArray, IntArray
from penchant.online import perceptron
from penchant.online.feedback import LabelUser, Round, group, rounds_of
from penchant.online.perceptron import FeatureMap, Rounds
from penchant.online.rule import LOSSES, UPDATES, Real, State, UpdateRule, new_state

LABEL_DEPTH = 25
"""How far down the list a labelled query is read (paper 002, Section 4)."""


@dataclass(eq=False, repr=False)
class PreferencePerceptron(Estimator):
    """Learns a linear utility from what users do with the rankings it presents.

    Each round it presents documents, receives an order that would have been better, and moves
    its weights by φ(docs, feedback) − φ(docs, presented), where φ discounts the first k places
    by 1/log2(i + 1) (Figure 1 and Eq. 5). Ties in score keep the given order, so the first
    presentation of the untouched model is the order in which the documents came.

    Parameters
    ----------
    k : int
        Places of the ranking that count.
    feature_map : callable or None
        Another joint feature map: `feature_map(docs, order)` → (d,) for the documents placed so
        far. Presented greedily, place by place (exact for k = 1); runs in plain Python.
    loss : {"linear", "perceptron", "hinge", "logistic"}
        Convex loss of wᵀ(φ(docs, feedback) − φ(docs, presented)), whose slope scales the update.
        Linear is the paper's algorithm. On rankings that the model itself presented, linear,
        perceptron and hinge are the same; they differ on pairs and on logged orders.
    update : {"additive", "adaptive", "exponentiated"}
        Additive: the paper's. Adaptive: a step per coordinate, divided by the root of its summed
        squared gradients. Exponentiated: weights stay a convex combination of the features
        (give −x as further features where a weight may be negative).
    rate : float
        Step size. Additive with the linear loss presents the same rankings at every rate.
    average : bool
        Also keep the average of all weights, and let `predict` use it; `present` does not.
    exploration : float
        Probability with which `present` exchanges places 1 and 2, 3 and 4, and so on: randomised
        so that clicks at the top can be told from merit. 0 presents the best ranking.
    dtype : {"float64", "float32"}
    random_state : None, int or Generator
        Seeds exploration.

    Attributes
    ----------
    coef_ : (d,) weights
    average_coef_ : (d,) mean of the weights after each round, with `average`
    n_rounds_ : int

    Examples
    --------
    >>> docs = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = PreferencePerceptron(k=2)
    >>> shown = model.present(docs)
    >>> shown.tolist()
    [0, 1, 2]
    >>> model.learn(docs, shown, feedback=[2, 0]).present(docs).tolist()
    [2, 0, 1]
    """

    coef_: Real = field(init=False)
    log_coef_: FloatArray = field(init=False)
    squares_: FloatArray = field(init=False)
    total_: FloatArray = field(init=False)
    n_rounds_: int = field(init=False)
    seed_: int = field(init=False)

    k: int = parameter(5, whole(1))
    _: KW_ONLY
    feature_map: FeatureMap | None = parameter(None, NONE | CALLABLE)
    loss: str = parameter("linear", one_of(LOSSES))
    update: str = parameter("additive", one_of(UPDATES))
    rate: float = parameter(1.0, POSITIVE)
    average: bool = parameter(False, YES_OR_NO)
    exploration: float = parameter(0.0, PROBABILITY)
    dtype: str = parameter("float64", one_of(("float64", "float32")))
    random_state: RandomState = parameter(None, SEED)

    def present(self, docs: Any) -> IntArray:
        """Return the order, (n,), that the current weights think best, best first."""
        rule = self._rule()
        if self.feature_map is None:
            block = perceptron.check_docs(docs, self.dtype)
            weights = self._state(rule, block.shape[1]).weights
            order = perceptron.present_sorted(perceptron.check_scores(block @ weights))
        else:
            first = self.feature_map(docs, np.arange(min(self.k, len(docs))))
            weights = self._state(rule, np.size(first)).weights
            order = perceptron.present_greedily(self.feature_map, docs, weights, self.k)
        if self.exploration == 0.0:
            return order
        seed = self.seed_ if hasattr(self, "seed_") else _draw_seed(self.random_state)
        # A generator per round: what is presented depends on the state alone, so a model that
        # was saved and restored goes on in the same way.
        rng = np.random.default_rng([seed, getattr(self, "n_rounds_", 0)])
        return perceptron.swap_neighbours(order, self.exploration, rng)

    def learn(self, docs: Any, presented: ArrayLike, feedback: ArrayLike) -> Self:
        """Learn from the order that was presented and the better one that came back.

        Orders are document numbers, best first; only the first k places are read. One round is
        (n, d) with orders (≥ min(k, n),); arrays of rounds are (T, n, d) with orders
        (T, ≥ min(k, n)), learned one after the other.
        """
        rule = self._rule()
        if self.feature_map is not None:
            return self._learn_mapped(self.feature_map, docs, presented, feedback)
        blocks = perceptron.check_docs(docs, self.dtype, ndims=(2, 3))
        shown = perceptron.check_order(presented, blocks.shape[:-1], self.k, "presented")
        better = perceptron.check_order(feedback, blocks.shape[:-1], self.k, "feedback")
        if blocks.ndim == 2:
            blocks, shown, better = blocks[None], shown[None], better[None]
        return self._advance("logged", rule, blocks.shape[-1], blocks, shown, better)

    def learn_pairs(self, X: ArrayLike, winner: ArrayLike, loser: ArrayLike) -> Self:
        """Learn from comparisons in the order given: rows `winner` of X beat rows `loser`.

        Each is a round of two documents with Δ = x_winner − x_loser. Choose `loss="perceptron"`
        to learn from mistakes only, or "logistic" for log-odds.

        >>> model = PreferencePerceptron(loss="perceptron")
        >>> model.learn_pairs(np.eye(2), winner=[1], loser=[0]).coef_.tolist()
        [-1.0, 1.0]
        """
        rule = self._rule()
        rows = perceptron.check_docs(X, self.dtype)
        better, worse = (
            perceptron.check_rows(index, len(rows), name)
            for index, name in ((winner, "winner"), (loser, "loser"))
        )
        if better.size != worse.size:
            raise DataError(
                f"winner has {better.size} rows and loser {worse.size}: they must pair up"
            )
        return self._advance("pairs", rule, rows.shape[1], rows, better, worse)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Learn from graded documents, one round per query in the order of first appearance.

        Each query is presented, and answered as a user would who reads the first 25 documents
        and brings the k best-graded up. X (n, d); y (n,) labels; qid (n,), None: a single query.

        >>> X, y = np.array([[0.0], [1.0], [2.0], [1.0]]), [0, 1, 1, 0]
        >>> PreferencePerceptron(k=1).partial_fit(X, y, qid=[7, 7, 8, 8]).coef_.tolist()
        [1.0]
        """
        rule = self._rule()
        rows = perceptron.check_docs(X, self.dtype)
        grades = perceptron.check_grades(y, len(rows))
        queries = perceptron.check_queries(qid, len(rows))
        if self.feature_map is not None:
            return self._learn_rounds(rounds_of(rows, grades, queries))
        order, starts = group(queries)
        if order is not None:
            rows, grades = rows[order], grades[order]
        return self._advance("graded", rule, rows.shape[1], rows, starts, grades, LABEL_DEPTH)

    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Forget everything, then learn as `partial_fit` does: one pass."""
        for name in (*_STATE, "seed_"):
            self.__dict__.pop(name, None)
        return self.partial_fit(X, y, qid)

    def predict(self, X: ArrayLike) -> Real:
        """Return the utility of each document, (n,)."""
        check_is_fitted(self)
        if self.feature_map is not None:
            raise DataError(
                "predict scores single documents, and feature_map scores orders: use present, or "
                "coef_ @ feature_map(docs, order)"
            )
        rows = perceptron.check_docs(X, self.dtype)
        weights = self._state(self._rule(), rows.shape[1]).weights
        return perceptron.check_scores(rows @ (self.average_coef_ if self.average else weights))

    @property
    def n_features_in_(self) -> int:
        """The number of features that the weights are for."""
        return self.coef_.size

    @property
    def average_coef_(self) -> FloatArray:
        """(d,) mean of the weights after each round."""
        check_is_fitted(self)
        if not self.average:
            raise AttributeError("average_coef_ needs PreferencePerceptron(average=True)")
        return self.total_ / self.n_rounds_

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to one file; `penchant.load` restores it and it goes on exactly."""
        store.save(self, path)

    def _learn_mapped(
        self, feature_map: FeatureMap, docs: Any, presented: ArrayLike, feedback: ArrayLike
    ) -> Self:
        rule = self._rule()
        shown = perceptron.check_order(presented, (len(docs),), self.k, "presented")
        better = perceptron.check_order(feedback, (len(docs),), self.k, "feedback")
        delta: Real = np.subtract(
            feature_map(docs, better), feature_map(docs, shown), dtype=self.dtype
        )
        return self._advance("differences", rule, delta.size, delta[None])

    def _learn_rounds(self, rounds: list[Round]) -> Self:
        user, rng = LabelUser(self.k, LABEL_DEPTH), np.random.default_rng()
        for round_ in rounds:
            presented = self.present(round_.docs)
            self.learn(round_.docs, presented, user(round_, presented, rng))
        return self

    def _rule(self) -> UpdateRule:
        check_parameters(self)
        return UpdateRule(
            perceptron.discounts(self.k),
            LOSSES[self.loss],
            UPDATES[self.update],
            float(self.rate),
            self.average,
        )

    def _state(self, rule: UpdateRule, n_features: int) -> State:
        if not hasattr(self, "coef_"):
            return new_state(rule, n_features, self.dtype)
        arrays = (self.coef_, self.log_coef_, self.squares_, self.total_)
        for array in arrays:  # compiled loops check no bounds, and a file may hold anything
            if array.shape != (n_features,):
                raise DataError(
                    f"X has {n_features} features, but PreferencePerceptron is expecting "
                    f"{array.size} features as input: use those that it began with, or fit anew"
                )
        weights = self.coef_.astype(self.dtype, copy=False)
        return State(weights, *arrays[1:], rounds=np.array([self.n_rounds_], dtype=np.intp))

    def _advance(self, kind: Rounds, rule: UpdateRule, n_features: int, *rounds: Any) -> Self:
        """Learn from rounds of a kind, and keep the state."""
        state = perceptron.learn(kind, rule, self._state(rule, n_features), *rounds)
        values = (*state[:-1], int(state.rounds[0]))
        new = dict(zip(_STATE, values, strict=True))
        if not hasattr(self, "seed_"):
            new["seed_"] = _draw_seed(self.random_state)
        # One update of the dictionary: an interrupt finds the old state or the new, never a mix.
        self.__dict__.update(new)
        return self


_STATE = ("coef_", "log_coef_", "squares_", "total_", "n_rounds_")


def _draw_seed(random_state: RandomState) -> int:
    return int(as_rng(random_state).integers(2**32))
