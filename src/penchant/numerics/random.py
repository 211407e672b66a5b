"""One way to turn a seed into a generator."""

import numpy as np

from penchant.errors import DataError

RandomState = None | int | np.integer | np.random.Generator


def as_rng(random_state: RandomState) -> np.random.Generator:
    """Return a NumPy generator for None, an integer seed, or a generator (passed through).

    >>> bool(as_rng(3).integers(100) == as_rng(3).integers(100))
    True
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None or isinstance(random_state, int | np.integer):
        return np.random.default_rng(random_state)
    raise DataError(
        f"random_state is {random_state!r}: it must be None, an integer or a numpy Generator"
    )
