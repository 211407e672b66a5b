"""How likely answers are: the odds of pairs, and how well they foresee comparisons."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp import Normal, z_of
from penchant.likelihoods import Likelihood
from penchant.models.choice_odds import foreseen_choices
from penchant.numerics.types import FloatArray, IntArray


class Odds(NamedTuple):
    """P(first preferred), P(tie), P(second preferred), (k,) each."""

    win: FloatArray
    tie: FloatArray
    loss: FloatArray

    @classmethod
    def of(cls, likelihood: Likelihood, difference: Normal) -> "Odds":
        """Of differences that are normal."""
        mean, var = difference
        win, loss = likelihood.prob(mean, var), likelihood.prob(-mean, var)
        return cls(win, likelihood.prob_tie(mean, var), loss)

    def told(self, ties: bool) -> FloatArray:
        """P(first preferred), (k,), given that one is; with ties, (k, 3) of all three."""
        if ties:
            return np.column_stack(self)
        decided: FloatArray = self.win / (self.win + self.loss)
        return decided


Foresee = Callable[[IntArray, IntArray | None, FloatArray | None, FloatArray | None], Odds]
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
        choices = foreseen_choices(orders, lambda pairs, who: foresee(pairs, who, None, None)[::2])
        log_prob, count = np.append(log_prob, choices[0]), np.append(count, choices[1])
    if not len(count):
        raise DataError("there is nothing to score: all comparisons are ties")
    return float(np.average(log_prob, weights=count))
