"""Predictions: what may be asked of a fitted model, and the probabilities of its answers."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from penchant import gp
from penchant.data import ChoiceStages, Comparisons, Rankings, as_column, read_times
from penchant.errors import DataError
from penchant.kernels import Inputs, as_relations
from penchant.kernels.inputs import Names, is_numbered, row_names
from penchant.likelihoods import ChoiceGroup, Likelihood
from penchant.models.features import FeatureColumns, in_order, named_relations
from penchant.numerics.types import FloatArray, IntArray

TINY = np.finfo(float).tiny


class OutcomeProbabilities(NamedTuple):
    """P(first preferred), P(tie), P(second preferred), (k,) each."""

    win: FloatArray
    tie: FloatArray
    loss: FloatArray

    @classmethod
    def of(
        cls,
        likelihood: Likelihood,
        difference: gp.Normal,
        calibration: gp.Recalibration = gp.AS_IT_IS,
        where: Any = True,
    ) -> "OutcomeProbabilities":
        """Of pairs whose difference of utilities is normal. where: what is calibrated."""
        total = np.zeros((3, len(difference.mean)))
        for weight, (mean, var) in calibration.differences(difference, where):
            win, loss = likelihood.prob(mean, var), likelihood.prob(-mean, var)
            total += weight * np.stack([win, likelihood.prob_tie(mean, var), loss])
        return cls(*total)

    @classmethod
    def of_users(
        cls,
        posterior: "gp.UserPosteriors",
        users: IntArray | None,
        pairs: IntArray,
        z: FloatArray | None,
    ) -> "OutcomeProbabilities":
        """Of pairs that each user compares, or people at large where a user is −1, or None."""
        difference = posterior.known_differences(users, pairs[:, 0], pairs[:, 1], z)
        is_known = False if users is None else users >= 0
        return cls.of(posterior.likelihood, difference, posterior.calibration, is_known)

    def given_decision(self, ties: bool) -> FloatArray:
        """P(first preferred), (k,), given that one is; with ties, (k, 3) of all three."""
        if ties:
            return np.column_stack(self)
        return self.win / (self.win + self.loss)


# What is asked


def check_row_pairs(pairs: Any, n: int) -> IntArray:
    """(k, 2) row numbers below n."""
    index = np.asarray(pairs)
    if index.ndim != 2 or index.shape[1] != 2 or index.dtype.kind not in "iu":
        raise DataError(
            f"pairs has shape {index.shape} and type {index.dtype}: with X given it must be (k, 2) "
            "row numbers of X"
        )
    if index.size and (index.min() < 0 or index.max() >= n):
        raise DataError(f"pairs names row {index.max()} and X has {n} rows: count from 0")
    return index.astype(np.intp)


def n_rows(X: Any, name: str = "X") -> int:
    """The number of rows of features that are not checked yet."""
    try:
        return int(X.shape[0]) if sparse.issparse(X) else len(X)
    except TypeError:
        raise DataError(f"{name} is {X!r}: it must be a matrix of features") from None


def one_user_a_pair(users: IntArray, n_pairs: int) -> IntArray:
    """(n_pairs,) users: the same one for all pairs, or one for each.

    >>> one_user_a_pair(np.array([4]), 3).tolist()
    [4, 4, 4]
    """
    if len(users) not in (1, n_pairs):
        raise DataError(
            f"there are {n_pairs} pairs and {len(users)} users: give one user for all pairs, or "
            "one for each"
        )
    return np.broadcast_to(users, n_pairs)


def effect_values(names: tuple[str, ...], n_pairs: int, given: Mapping[str, Any]) -> FloatArray:
    """(q, n_pairs) values of the named effects for pairs; zero where none is given."""
    unknown = [name for name in given if name not in names]
    if unknown:
        known = ", ".join(map(repr, names)) or "none"
        raise DataError(
            f"{unknown[0]!r} is none of the effects that the model knows, {known}: fit it on "
            "comparisons with first= or covariates=, or leave it out here"
        )
    z = np.zeros((len(names), n_pairs))
    for name, values in given.items():
        try:
            z[names.index(name)] = np.asarray(values, dtype=float)
        except (TypeError, ValueError):
            raise DataError(
                f"{name!r} must be one number for all {n_pairs} pairs, or one for each"
            ) from None
    if not np.isfinite(z).all():
        raise DataError("first and covariates of pairs must be finite numbers")
    return z


def as_days(at: Any) -> FloatArray:
    """A date, a moment, a text such as "2024-05-31" or a number of days, as days since 1970; or
    several of them, (k,).

    >>> as_days("1970-01-03").tolist(), as_days([2.5, "1970-01-02"]).tolist()
    (2.0, [2.5, 1.0])
    """
    is_one = isinstance(at, str | bytes) or not isinstance(at, Iterable)
    values = [at] if is_one else as_column(at, "at")
    if not len(values):
        raise DataError("at is empty: give one time, or one for each pair")
    are_dates = all(isinstance(each, np.datetime64) for each in values)
    days = read_times(np.array(values, dtype="datetime64[us]") if are_dates else values)
    is_bool = np.array([isinstance(each, bool | np.bool_) for each in values], dtype=bool)
    wrong = is_bool | ~np.isfinite(days)
    if wrong.any():
        bad = at if is_one else values[int(np.argmax(wrong))]
        raise DataError(
            f"at={bad!r}: it must be a date, a text such as '2024-05-31', or a number of days"
        )
    return days[0] if is_one else days  # type: ignore[no-any-return]  # a NumPy number


def posterior_of_new_nodes(
    learned: gp.FitState[gp.ItemProblem],
    columns: FeatureColumns,
    X: Any,
    relations: Mapping[str, Any],
) -> gp.Posterior:
    """New nodes change the graph, so the prior is rebuilt over old and new items together.

    The comparisons are the same, so the old sites are a warm start.
    """
    known = learned.problem.universe
    n_old, n_all = len(known), _size_of_relations(relations)
    features, names = known.X, _all_names(learned.data.items, n_all, X, relations)
    if features is not None:
        new = columns.rows(in_order(X, names[n_old:], "items"), n_all - n_old, "items").X
        if isinstance(features, sparse.sparray):
            features = sparse.csr_array(sparse.vstack([features, sparse.csr_array(new)]))
        else:
            dense = new.toarray() if isinstance(new, sparse.sparray) else new
            features = np.concatenate([features, dense])
    graphs = named_relations(relations, names, "items")
    universe = Inputs(features, graphs, np.arange(n_all)).on(known.device)
    problem = replace(learned.problem, universe=universe)
    extended: gp.Posterior = learned.reconverge(learned.data, problem).posterior
    return extended.at(universe.take(np.arange(n_old, n_all)))


def _size_of_relations(relations: Mapping[str, Any]) -> int:
    """How many items the graphs cover."""
    if not isinstance(relations, Mapping):
        raise DataError(
            f"relations is {relations!r}: it must be a dictionary {{name: graph}}, each graph over "
            "the training items followed by the new ones"
        )
    weights: list[Any] = [getattr(graph, "weights", graph) for graph in relations.values()]
    shapes = {np.shape(each) for each in weights}
    sizes = {shape[0] if len(shape) == 2 else 0 for shape in shapes}
    if len(sizes) != 1 or 0 in sizes:
        raise DataError(
            f"relations cover {sorted(sizes)} items: every graph must cover the training items "
            "followed by the new ones"
        )
    return int(sizes.pop())


def _all_names(known: Names, n: int, X: Any, relations: Mapping[str, Any]) -> Names:
    """The items of the fit and then the new ones, as X or else a graph names them."""
    named = [row_names(X), *(r.names for r in as_relations(relations, n).values())]
    old = set(map(str, known))
    for names in named:
        if names is not None and not is_numbered(names):
            return (*known, *(name for name in names if str(name) not in old))
    return (*known, *range(len(known), n))


# Log predictive probabilities


def mean_log_predictive(
    data: Comparisons, effects: tuple[str, ...], predict: Callable[..., OutcomeProbabilities]
) -> float:
    """Of single pairs, and of the choices that rankings consist of, weighted by their counts.

    predict: pairs (k, 2), users (k,) or None, and for single pairs the values of the effects
    (q, k) and times (k,) → probabilities.
    """
    single, log_prob, count = data.single_pairs(), np.zeros(0), np.zeros(0)
    if len(single):
        z = gp.z_of(single, effects) if effects else None
        pairs = np.column_stack([single.winner, single.loser])
        win, tie, _ = predict(pairs, single.user, z, single.time)
        counted = ~single.tie | (tie > 0.0)
        log_prob = np.log(np.maximum(np.where(single.tie, tie, win)[counted], TINY))
        count = single.count[counted].astype(float)
    if data.rankings is not None:
        choices = choice_log_predictive(data.rankings, lambda *asked: predict(*asked)[::2])
        log_prob, count = np.append(log_prob, choices[0]), np.append(count, choices[1])
    if not len(count):
        raise DataError("there is nothing to score: all comparisons are ties")
    return float(np.average(log_prob, weights=count))


PairProbabilities = Callable[[IntArray, IntArray | None], tuple[FloatArray, FloatArray]]
"""Pairs (k, 2) and users (k,) → P(first preferred) and P(second preferred)."""


def choice_log_predictive(
    rankings: Rankings, predict: PairProbabilities
) -> tuple[FloatArray, FloatArray]:
    """Log-probability of every choice that the rankings consist of, and how often it was made."""
    stages = [part for stage in rankings.stages() for part in gp.feasible(stage)]
    logs = [_stage_log_predictive(stage, predict) for stage in stages]
    return np.concatenate(logs), np.concatenate([s.count.astype(float) for s in stages])


def _stage_log_predictive(stage: ChoiceStages, predict: PairProbabilities) -> FloatArray:
    n, k = stage.item.shape
    i, j = np.triu_indices(k, 1)
    pairs = np.stack([stage.item[:, i].ravel(), stage.item[:, j].ravel()], axis=1)
    users = None if stage.user is None else np.repeat(stage.user, len(i))
    first, second = (np.log(np.maximum(p, TINY)) for p in predict(pairs, users))
    edge = np.arange(len(pairs)).reshape(n, -1)
    group = ChoiceGroup(edge, stage.chosen.astype(float), stage.count.astype(float))
    return group.log_predictive(first - second)
