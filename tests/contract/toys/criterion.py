"""A criterion in one file: ask about what is furthest apart."""

import numpy as np

from penchant.ask import criterion


@criterion(reads_variances=False)
def gap(belief, pairs, rng):
    return np.abs(belief.difference(pairs[:, 0], pairs[:, 1]).mean)
