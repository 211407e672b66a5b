"""Linear algebra, quadrature, optimisation, random keys and threads, for all other packages."""

from penchant.numerics import arrays as arrays
from penchant.numerics import batched as batched
from penchant.numerics import dispatch as dispatch
from penchant.numerics import linalg as linalg
from penchant.numerics import optimize as optimize
from penchant.numerics import quadrature as quadrature
from penchant.numerics import random as random
from penchant.numerics import threads as threads
