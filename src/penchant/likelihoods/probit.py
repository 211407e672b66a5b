"""The probit (Thurstone) likelihood: the noisy difference g + N(0, 1) is positive."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from penchant.likelihoods.base import WINS, Likelihood, LogProb, Outcomes, Tilted
from penchant.numerics.special import log_ndtr_derivatives, log_ndtr_slopes
from penchant.numerics.types import FloatArray


@dataclass(frozen=True)
class Probit(Likelihood):
    """P(win | g) = Φ(g): Gaussian noise of variance one on the difference; no parameters.

    >>> import numpy as np
    >>> Probit().prob(np.array([0.0, 2.0]), np.array([1.0, 3.0])).round(4)
    array([0.5   , 0.8413])
    """

    log_concave: ClassVar[bool] = True

    @property
    def choice_scale(self) -> float:
        return 1.702  # the logistic function of κ g that is nearest to Φ(g)

    def log_prob(self, g: FloatArray, outcomes: Outcomes = WINS) -> LogProb:
        return LogProb(*log_ndtr_derivatives(g))

    def tilted(self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS) -> Tilted:
        scale = np.sqrt(1.0 + var)
        log_z, d1, d2 = log_ndtr_slopes(mean / scale)  # 000, Eq. 11
        return Tilted(log_z, d1 / scale, -d2 / (1.0 + var))

    def prob(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        return np.asarray(ndtr(mean / np.sqrt(1.0 + var)))
