"""Array aliases used in signatures throughout."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

__all__ = ["BoolArray", "FloatArray", "IntArray"]
