"""Lapses (answers at random), and raters who differ in reliability.

Both wrap any likelihood of finitely many answers.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.special import expit, logit

from penchant.errors import DataError
from penchant.likelihoods.base import WINS, Likelihood, LogProb, Outcomes, Tilted, lies_within
from penchant.likelihoods.gaussian import Gaussian
from penchant.numerics.types import FloatArray, IntArray


@dataclass(frozen=True)
class Lapse(Likelihood):
    """p = (1 − rate) p_base + rate / (number of possible answers): robust to careless answers.

    A lapse explains a surprising answer, so that utilities do not follow it; the likelihood is
    therefore not log-concave. With ``learn`` the rate is a parameter: its logit is the last entry
    of ``theta``, after those of the base.

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
        return _mix_log_prob(self.base.log_prob(g, outcomes), self.rate, self.n_answers)

    def tilted(self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS) -> Tilted:
        return _mix_tilted(self.base.tilted(mean, var, outcomes), self.rate, self.n_answers)

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
        log_base = self.base.tilted(mean, var, outcomes).log_z
        _, attentive = _mix(log_base, self.rate, self.n_answers)
        base = attentive * self.base.tilted_gradient(mean, var, outcomes)
        own = 1.0 - attentive - self.rate  # ε(1 − ε) ∂log Z/∂ε, simplified
        return np.vstack([base, own]) if self.learn else base

    def check_pairs(self, outcomes: Outcomes) -> None:
        self.base.check_pairs(outcomes)


@dataclass(frozen=True)
class Raters(Likelihood):
    """p = (1 − ε_u) p_base(s_u g) + ε_u / (number of possible answers), for rater u.

    kind "lapse": ε_u is the rater's level, the share of answers given at random, and s_u = 1. Kind
    "noise": s_u is the rater's level, a scale of utility differences, and ε_u = 0. `gp.raters`
    learns the levels, in turn with the other parameters. `typical` is the level of an unknown
    rater; predictions are for such a rater.

    >>> import numpy as np
    >>> from penchant.likelihoods import Probit
    >>> raters = Raters(Probit(), "lapse", levels=(0.02, 0.98), typical=0.1)
    >>> who = Outcomes(rater=np.array([0, 1]))
    >>> np.exp(raters.log_prob(np.array([9.0, 9.0]), who).value).round(2)
    array([0.99, 0.51])
    """

    base: Likelihood
    kind: Literal["lapse", "noise"] = "lapse"
    levels: tuple[float, ...] = ()
    typical: float = 0.05

    by_rater: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.base, Likelihood) or isinstance(self.base, Gaussian | Raters):
            raise DataError(
                f"base of Raters is {self.base!r}: it must be a likelihood of finitely many "
                "answers: Probit, Logit or Ties"
            )
        if self.kind not in ("lapse", "noise"):
            raise DataError(f"kind of Raters is {self.kind!r}: it must be 'lapse' or 'noise'")
        every = np.append(self.levels, self.typical)
        high = 1.0 if self.kind == "lapse" else np.inf
        if not ((every > 0.0) & (every < high)).all():
            raise DataError(
                f"levels of Raters with kind {self.kind!r} must lie strictly within 0 and {high:g}"
            )

    @property
    def log_concave(self) -> bool:  # type: ignore[override]
        """Lapses make a likelihood that is not log-concave, scales do not."""
        return self.kind == "noise" and self.base.log_concave

    @classmethod
    def alike(cls, base: Likelihood, kind: str, n_raters: int) -> "Raters":
        """So many raters, all of the default level, from which learning starts."""
        level = 0.05 if kind == "lapse" else 1.0
        return cls(base, kind, (level,) * n_raters, level)  # type: ignore[arg-type]  # checked

    @property
    def n_answers(self) -> int:
        return self.base.n_answers

    def log_prob(self, g: FloatArray, outcomes: Outcomes = WINS) -> LogProb:
        level = self.level_of(outcomes)
        if self.kind == "noise":
            terms = self.base.log_prob(level * g, outcomes)
            return LogProb(*(level**k * term for k, term in enumerate(terms)))
        return _mix_log_prob(self.base.log_prob(g, outcomes), level, self.n_answers)

    def tilted(self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS) -> Tilted:
        return self.tilted_at(self.level_of(outcomes), mean, var, outcomes)

    def tilted_at(
        self, level: FloatArray | float, mean: FloatArray, var: FloatArray, outcomes: Outcomes
    ) -> Tilted:
        """`tilted` with this level for every answer's rater."""
        if self.kind == "noise":  # s g ~ N(s m, s² v)
            terms = self.base.tilted(level * mean, np.square(level) * var, outcomes)
            return Tilted(terms.log_z, level * terms.d1, np.square(level) * terms.d2)
        return _mix_tilted(self.base.tilted(mean, var, outcomes), level, self.n_answers)

    def tilted_power(
        self, power: FloatArray, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS
    ) -> Tilted:
        if self.kind == "lapse":
            return super().tilted_power(power, mean, var, outcomes)
        level = self.level_of(outcomes)  # as in `tilted_at`
        terms = self.base.tilted_power(power, level * mean, level**2 * var, outcomes)
        return Tilted(terms.log_z, level * terms.d1, level**2 * terms.d2)

    def prob(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        return self._predicted(self.base.prob(*self._seen(mean, var)), 1.0)

    def prob_tie(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        has_ties = 1.0 if self.n_answers == 3 else 0.0
        return self._predicted(self.base.prob_tie(*self._seen(mean, var)), has_ties)

    def _seen(self, mean: FloatArray, var: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of s g for a typical rater."""
        scale = self.typical if self.kind == "noise" else 1.0
        return scale * mean, scale**2 * var

    def _predicted(self, attentive: FloatArray, possible: float) -> FloatArray:
        rate = self.typical if self.kind == "lapse" else 0.0
        return (1.0 - rate) * attentive + possible * rate / self.n_answers

    @property
    def theta(self) -> FloatArray:
        return self.base.theta

    @property
    def bounds(self) -> FloatArray:
        return self.base.bounds

    @property
    def names(self) -> tuple[str, ...]:
        return self.base.names

    def with_theta(self, theta: FloatArray) -> Self:
        return replace(self, base=self.base.with_theta(theta))

    def tilted_gradient(
        self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS
    ) -> FloatArray:
        level = self.level_of(outcomes)
        if self.kind == "noise":
            return self.base.tilted_gradient(level * mean, level**2 * var, outcomes)
        log_base = self.base.tilted(mean, var, outcomes).log_z
        _, attentive = _mix(log_base, level, self.n_answers)
        return attentive * self.base.tilted_gradient(mean, var, outcomes)

    def tilted_power_gradient(
        self, power: FloatArray, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS
    ) -> FloatArray:
        if self.kind == "lapse":
            return super().tilted_power_gradient(power, mean, var, outcomes)
        level = self.level_of(outcomes)
        return self.base.tilted_power_gradient(power, level * mean, level**2 * var, outcomes)

    def check_pairs(self, outcomes: Outcomes) -> None:
        self.base.check_pairs(outcomes)

    @cached_property
    def _known(self) -> FloatArray:
        """(raters + 1,) levels, the typical one last."""
        return np.append(self.levels, self.typical)

    def level_of(self, outcomes: Outcomes) -> FloatArray:
        """(m,) level of each answer's rater; the typical one where the rater is unknown."""
        if outcomes.rater is None:
            return self._known[-1:]
        n = len(self.levels)
        known: IntArray = np.where(outcomes.rater < n, outcomes.rater, n)
        return self._known[known]


def _mix(
    log_base: FloatArray, rate: FloatArray | float, n_answers: int
) -> tuple[FloatArray, FloatArray]:
    """log((1 − rate) p + rate / n_answers) with p = e^log_base, and the probability w that the
    answer was an attentive one."""
    log_attentive = np.log1p(-rate) + log_base
    value = np.logaddexp(log_attentive, np.log(rate / n_answers))
    return value, np.exp(log_attentive - value)


def _mix_log_prob(base: LogProb, rate: FloatArray | float, n_answers: int) -> LogProb:
    """log p of the mixture and its derivatives, from those of the base."""
    value, w = _mix(base.value, rate, n_answers)
    _, d1, d2, d3 = base
    slope = w * d1
    bend = (1.0 - w) * slope  # w(1 − w) d1, in this order so that d1² does not overflow
    third = w * d3 + 3.0 * bend * d2 + (1.0 - 2.0 * w) * bend * d1 * d1
    return LogProb(value, slope, w * d2 + bend * d1, third)


def _mix_tilted(base: Tilted, rate: FloatArray | float, n_answers: int) -> Tilted:
    """The mixture's log Z and its derivatives, from those of the base."""
    log_z, w = _mix(base.log_z, rate, n_answers)
    slope = w * base.d1
    return Tilted(log_z, slope, w * base.d2 - (1.0 - w) * slope * base.d1)
