"""What a posterior says about an order: chance of being best, and where an item may rank."""

from typing import NamedTuple

import numpy as np

from penchant.gp.posterior import Posterior
from penchant.numerics.types import FloatArray, IntArray

SAMPLE_BLOCK = 2**24
"""Most numbers drawn at once, so that memory does not grow with items × draws."""


class RankSummary(NamedTuple):
    """Per item, (n,): P(best), and the interval of ranks (1 = best) at the asked level."""

    prob_best: FloatArray
    rank_low: IntArray
    rank_high: IntArray


def summarize_ranks(
    posterior: Posterior, level: float, n_samples: int, rng: np.random.Generator
) -> RankSummary:
    """Rank the items in each of many joint draws of the utilities.

    Draws are taken in blocks; ranks are kept in 32 bits.
    """
    n = len(posterior)
    ranks = np.empty((n_samples, n), dtype=np.int32)
    block = max(1, SAMPLE_BLOCK // n)
    for start in range(0, n_samples, block):
        draws = posterior.sample(min(block, n_samples - start), rng)
        order = np.argsort(-draws, axis=1)
        np.put_along_axis(
            ranks[start : start + len(draws)],
            order,
            np.arange(1, n + 1, dtype=np.int32)[None, :],
            axis=1,
        )
    tail = 0.5 * (1.0 - level)
    low, high = np.quantile(ranks, [tail, 1.0 - tail], axis=0, method="nearest")
    return RankSummary((ranks == 1).mean(axis=0), low.astype(np.intp), high.astype(np.intp))
