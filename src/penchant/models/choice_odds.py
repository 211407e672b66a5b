"""How likely choices out of several items are, foreseen from the odds of their pairs.

Under a softmax P(c out of S) = 1/(1 + Σ_j odds(j over c)), and the odds of a pair under the
posterior hold its uncertainty already. With both, a choice of two is the pair itself, and no draws
are needed; what is left to the sets is that their probabilities add up to one.
"""

from collections.abc import Callable

import numpy as np

from penchant.data import ChoiceStages, Rankings
from penchant.gp import feasible
from penchant.likelihoods import ChoiceGroup
from penchant.numerics.types import FloatArray, IntArray

Foreseen = Callable[[IntArray, IntArray | None], tuple[FloatArray, FloatArray]]
"""Pairs (k, 2) and who is asked (k,) → P(first preferred) and P(second preferred)."""


def foreseen_choices(rankings: Rankings, foresee: Foreseen) -> tuple[FloatArray, FloatArray]:
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
