"""A criterion in one file: ask about what is furthest apart."""

import numpy as np

from penchant.ask import criterion


@criterion("gap")
def gap(belief, pairs, rng):
    return np.abs(belief.difference(pairs[:, 0], pairs[:, 1]).mean)
