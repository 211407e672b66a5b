"""The papers' experiments and claims of our own, one module each, with our numbers beside theirs.

    python -m experiments                 # the list
    python -m experiments xpgp --quick    # one, in small

Every experiment has `run(quick=False, out=None)`. It returns its page as Markdown and writes
figures into the folder `out`. `page.produce` writes the page too, and the table of all claims.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
