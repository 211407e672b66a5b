"""What was lost so far by not presenting the best."""

import numpy as np
from numpy.typing import ArrayLike

from penchant.metrics import check
from penchant.numerics.types import FloatArray


def regret(best: ArrayLike, achieved: ArrayLike) -> FloatArray:
    """Mean regret after each round (002, Eq. 1): the running mean of best − achieved.

    ``best`` and ``achieved`` (n_rounds,) are utilities (or DCG values) of the best possible and
    of the presented object.

    >>> regret([1.0, 1.0, 1.0], [0.0, 0.5, 1.0])
    array([1.  , 0.75, 0.5 ])
    """
    best = check.vector("best", best)
    loss = best - check.vector("achieved", achieved, best.size)
    return np.cumsum(loss) / np.arange(1.0, best.size + 1.0)
