"""A likelihood in one file: a cautious judge who is never surer than 95 %."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from penchant.likelihoods import WINS, Likelihood, LogProb, Outcomes


@dataclass(frozen=True)
class Cautious(Likelihood):
    """p(win | g) = .05 + .9 σ(g); `log_prob` alone, the rest is quadrature."""

    log_concave: ClassVar[bool] = False

    def log_prob(self, g, outcomes: Outcomes = WINS) -> LogProb:
        s = expit(g)
        p = 0.05 + 0.9 * s
        p1 = 0.9 * s * (1 - s)
        p2 = p1 * (1 - 2 * s)
        p3 = p2 * (1 - 2 * s) - 2 * p1 * s * (1 - s)
        d1 = p1 / p
        d2 = p2 / p - d1**2
        return LogProb(np.log(p), d1, d2, p3 / p - 3 * d1 * d2 - d1**3)
