"""How likely answers are: of pairs, of choices out of several items, and of whole comparisons."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from penchant.data import ChoiceStages, Comparisons, Rankings
from penchant.errors import DataError
from penchant.gp import ORDER, EffectPosterior, Normal, feasible, z_of
from penchant.likelihoods import ChoiceGroup, Likelihood
from penchant.numerics.types import FloatArray, IntArray


class Estimates(NamedTuple):
    """Effects by name, their means and variances, (q,) each."""

    names: tuple[str, ...]
    mean: FloatArray
    var: FloatArray

    @classmethod
    def of(cls, found: EffectPosterior | None, lower: FloatArray) -> "Estimates | None":
        """Of a posterior beside utilities; lower: the factor of their precision."""
        if found is None:
            return None
        return cls(found.names, found.mean, np.diagonal(found.covariance(lower)))


class OutcomeProbabilities(NamedTuple):
    """P(first preferred), P(tie), P(second preferred), (k,) each."""

    win: FloatArray
    tie: FloatArray
    loss: FloatArray

    @classmethod
    def of(cls, likelihood: Likelihood, difference: Normal) -> "OutcomeProbabilities":
        """Of differences that are normal."""
        mean, var = difference
        win, loss = likelihood.prob(mean, var), likelihood.prob(-mean, var)
        return cls(win, likelihood.prob_tie(mean, var), loss)

    def given_decision(self, ties: bool) -> FloatArray:
        """P(first preferred), (k,), given that one is; with ties, (k, 3) of all three."""
        if ties:
            return np.column_stack(self)
        decided: FloatArray = self.win / (self.win + self.loss)
        return decided


Foresee = Callable[
    [IntArray, IntArray | None, FloatArray | None, FloatArray | None], OutcomeProbabilities
]
"""Pairs (k, 2), who is asked (k,), z (q, k) of the effects and when, (k,) days → their odds."""


def mean_log_prob(data: Comparisons, foresee: Foresee, effects: tuple[str, ...] | None) -> float:
    """Mean log-probability of all answers; effects: names of those that odds know, or None.

    Ties count where they have odds at all; a choice counts as one answer.
    """
    single, orders = data.single_pairs(), data.rankings
    log_prob, count = np.zeros(0), np.zeros(0)
    if len(single):
        z = None if effects is None else z_of(single, effects)
        pairs = np.column_stack([single.winner, single.loser])
        win, tie, _ = foresee(pairs, single.user, z, single.time)
        counted = np.where(single.tie, tie > 0.0, True)
        prob = np.where(single.tie, tie, win)[counted]
        log_prob = np.log(np.maximum(prob, np.finfo(float).tiny))
        count = single.count[counted].astype(float)
    if orders is not None:
        choices = choice_log_predictive(
            orders, lambda pairs, who: foresee(pairs, who, None, None)[::2]
        )
        log_prob, count = np.append(log_prob, choices[0]), np.append(count, choices[1])
    if not len(count):
        raise DataError("there is nothing to score: all comparisons are ties")
    return float(np.average(log_prob, weights=count))


Foreseen = Callable[[IntArray, IntArray | None], tuple[FloatArray, FloatArray]]
"""Pairs (k, 2) and who is asked (k,) → P(first preferred) and P(second preferred)."""


def choice_log_predictive(rankings: Rankings, foresee: Foreseen) -> tuple[FloatArray, FloatArray]:
    """Log-probability of every choice that the rankings consist of, and how often it was made."""
    stages = [part for stage in rankings.stages() for part in feasible(stage)]
    logs = [_log_probs(stage, foresee) for stage in stages]
    return np.concatenate(logs), np.concatenate([s.count.astype(float) for s in stages])


def _log_probs(stage: ChoiceStages, foresee: Foreseen) -> FloatArray:
    n, k = stage.item.shape
    i, j = np.triu_indices(k, 1)
    pairs = np.stack([stage.item[:, i].ravel(), stage.item[:, j].ravel()], axis=1)
    users = None if stage.user is None else np.repeat(stage.user, len(i))
    tiny = np.finfo(float).tiny
    first, second = (np.log(np.maximum(p, tiny)) for p in foresee(pairs, users))
    edge = np.arange(len(pairs)).reshape(n, -1)
    group = ChoiceGroup(edge, stage.chosen.astype(float), stage.count.astype(float))
    return group.log_foreseen(first - second)


def as_z(
    names: tuple[str, ...], n_pairs: int, first: Any, covariates: Mapping[str, Any] | None
) -> FloatArray | None:
    """(q, n_pairs) z of questions; None where they are asked at equal sides and covariates."""
    if first is None and not covariates:
        return None
    given = dict(covariates or {}) | ({} if first is None else {ORDER: first})
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
