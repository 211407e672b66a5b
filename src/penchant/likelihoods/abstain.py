"""Ties that say nothing about how close two items are: people who abstain."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit, logit

from penchant.errors import DataError
from penchant.likelihoods.base import WINS, Likelihood, LogProb, Outcomes, Tilted, lies_within
from penchant.likelihoods.logit import Logit
from penchant.likelihoods.probit import Probit
from penchant.numerics.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Abstain(Likelihood):
    """A tie with probability `rate`, whatever the difference; else an answer by the base.

    Ties then leave utilities alone, and P(tie) is the same for every pair. The rate is learnable
    (its logit is the last entry of ``theta``).

    >>> import numpy as np
    >>> model, g, known = Abstain(Probit(), rate=0.2), np.array([0.0, 9.0]), np.zeros(2)
    >>> model.prob(g, known).round(3), model.prob_tie(g, known).round(3)
    (array([0.4, 0.8]), array([0.2, 0.2]))
    """

    base: Likelihood
    rate: float = 0.2

    log_concave: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.base, Probit | Logit):
            raise DataError(f"base of Abstain is {self.base!r}: it must be Probit() or Logit()")
        if not lies_within(self.rate, 1.0):
            raise DataError(f"rate of Abstain is {self.rate!r}: it must lie strictly in 0 to 1")

    @property
    def n_answers(self) -> int:
        return 3

    @property
    def choice_scale(self) -> float | None:
        return self.base.choice_scale

    def log_prob(self, g: FloatArray, outcomes: Outcomes = WINS) -> LogProb:
        tie = _abstained(outcomes, g.shape[-1])
        value, *slopes = self.base.log_prob(g)
        decided = np.where(tie, np.log(self.rate), np.log1p(-self.rate) + value)
        return LogProb(decided, *(np.where(tie, 0.0, slope) for slope in slopes))

    def tilted(self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS) -> Tilted:
        tie = _abstained(outcomes, mean.size)
        log_z, d1, d2 = self.base.tilted(mean, var)
        decided = np.where(tie, np.log(self.rate), np.log1p(-self.rate) + log_z)
        return Tilted(decided, np.where(tie, 0.0, d1), np.where(tie, 0.0, d2))

    def prob(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        return (1.0 - self.rate) * self.base.prob(mean, var)

    def prob_tie(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        return np.full(np.broadcast_shapes(mean.shape, var.shape), self.rate)

    @property
    def theta(self) -> FloatArray:
        return np.array([logit(self.rate)])

    @property
    def bounds(self) -> FloatArray:
        return np.array(logit([[1e-6, 1.0 - 1e-6]]))

    @property
    def names(self) -> tuple[str, ...]:
        return ("rate",)

    def with_theta(self, theta: FloatArray) -> Self:
        return replace(self, rate=float(expit(theta[0])))

    def tilted_gradient(
        self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS
    ) -> FloatArray:
        tie = _abstained(outcomes, mean.size)
        return np.where(tie, 1.0 - self.rate, -self.rate)[None]

    def check_pairs(self, outcomes: Outcomes) -> None:
        """Wins and ties are both explained."""


def _abstained(outcomes: Outcomes, size: int) -> BoolArray:
    return np.zeros(size, dtype=bool) if outcomes.tie is None else outcomes.tie
