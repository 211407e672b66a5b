"""People who sometimes answer at random: a wrapper around any likelihood of answers."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit, logit

from penchant.errors import DataError
from penchant.likelihoods.base import WINS, Likelihood, LogProb, Outcomes, Tilted, lies_within
from penchant.likelihoods.gaussian import Gaussian
from penchant.numerics.types import FloatArray


@dataclass(frozen=True)
class Lapse(Likelihood):
    """p = (1 − rate) p_base + rate / (number of possible answers): robust to careless answers.

    A surprising answer is explained by a lapse rather than by utilities that bend towards it;
    the likelihood is therefore not log-concave. With ``learn`` the rate is a parameter (its
    logit is the last entry of ``theta``, after those of the base).

    >>> import numpy as np
    >>> from penchant.likelihoods import Probit
    >>> Lapse(Probit(), rate=0.1).prob(np.array([0.0, 9.0]), np.zeros(2)).round(4)
    array([0.5 , 0.95])
    """

    base: Likelihood
    rate: float = 0.02
    learn: bool = True

    log_concave: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if isinstance(self.base, Gaussian):
            raise DataError(
                "base of Lapse is Gaussian: a lapse is an answer at random among finitely many, "
                "and margins have no such set; wrap Probit, Logit or Ties"
            )
        if not isinstance(self.base, Likelihood):
            raise DataError(
                f"base of Lapse is {self.base!r}: it must be a likelihood, e.g. Lapse(Probit())"
            )
        if not lies_within(self.rate, 1.0):
            raise DataError(f"rate of Lapse is {self.rate!r}: it must lie strictly within 0 and 1")

    @property
    def n_answers(self) -> int:
        return self.base.n_answers

    def log_prob(self, g: FloatArray, outcomes: Outcomes = WINS) -> LogProb:
        log_base, d1, d2, d3 = self.base.log_prob(g, outcomes)
        value, attentive = self._mix(log_base)
        slope = attentive * d1
        bend = (1.0 - attentive) * slope  # w(1 − w) d1, in this order lest d1² overflow
        return LogProb(
            value,
            slope,
            attentive * d2 + bend * d1,
            attentive * d3 + 3.0 * bend * d2 + (1.0 - 2.0 * attentive) * bend * d1 * d1,
        )

    def tilted(self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS) -> Tilted:
        log_base, d1, d2 = self.base.tilted(mean, var, outcomes)
        log_z, attentive = self._mix(log_base)
        slope = attentive * d1
        return Tilted(log_z, slope, attentive * d2 - (1.0 - attentive) * slope * d1)

    def prob(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        return (1.0 - self.rate) * self.base.prob(mean, var) + self.rate / self.n_answers

    def prob_tie(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        lapse = self.rate / self.n_answers if self.n_answers == 3 else 0.0
        return (1.0 - self.rate) * self.base.prob_tie(mean, var) + lapse

    @property
    def theta(self) -> FloatArray:
        return np.append(self.base.theta, logit(self.rate) if self.learn else [])

    @property
    def bounds(self) -> FloatArray:
        own = logit([[1e-4, 0.5]]) if self.learn else np.empty((0, 2))
        return np.vstack([self.base.bounds, own])

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.base.names, "rate") if self.learn else self.base.names

    def with_theta(self, theta: FloatArray) -> Self:
        n_base = len(self.base.names)
        rate = float(expit(theta[n_base])) if self.learn else self.rate
        return replace(self, base=self.base.with_theta(theta[:n_base]), rate=rate)

    def tilted_gradient(
        self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS
    ) -> FloatArray:
        _, attentive = self._mix(self.base.tilted(mean, var, outcomes).log_z)
        base = attentive * self.base.tilted_gradient(mean, var, outcomes)
        own = 1.0 - attentive - self.rate  # ε(1 − ε) ∂log Z/∂ε, simplified
        return np.vstack([base, own]) if self.learn else base

    def check_pairs(self, outcomes: Outcomes) -> None:
        self.base.check_pairs(outcomes)

    def _mix(self, log_base: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log of the mixture, and the probability w that the answer was an attentive one."""
        log_attentive = np.log1p(-self.rate) + log_base
        value = np.logaddexp(log_attentive, np.log(self.rate / self.n_answers))
        return value, np.exp(log_attentive - value)
