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

Level = FloatArray | float


class Inattentive:
    """p = (1 − ε) p_base(s g) + ε / (number of possible answers)."""

    base: Likelihood

    def _rate_and_scale(self, outcomes: Outcomes | None) -> tuple[Level, Level]:
        """ε and s of each answer; those of predictions where there are no outcomes."""
        raise NotImplementedError

    @property
    def n_answers(self) -> int:
        return self.base.n_answers

    def log_prob(self, g: FloatArray, outcomes: Outcomes = WINS) -> LogProb:
        rate, scale = self._rate_and_scale(outcomes)
        value, d1, d2, d3 = self.base.log_prob(scale * g, outcomes)
        value, w = self._mix(value, rate)
        slope = w * d1
        bend = (1.0 - w) * slope  # w(1 − w) d1, in this order so that d1² does not overflow
        third = w * d3 + 3.0 * bend * d2 + (1.0 - 2.0 * w) * bend * d1 * d1
        terms = value, slope, w * d2 + bend * d1, third
        return LogProb(*(scale**k * term for k, term in enumerate(terms)))

    def tilted(self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS) -> Tilted:
        return self._tilted(*self._rate_and_scale(outcomes), mean, var, outcomes)

    def _tilted(
        self, rate: Level, scale: Level, mean: FloatArray, var: FloatArray, outcomes: Outcomes
    ) -> Tilted:
        square = np.square(scale)  # s g ~ N(s m, s² v)
        log_z, d1, d2 = self.base.tilted(scale * mean, square * var, outcomes)
        log_z, w = self._mix(log_z, rate)
        slope = w * d1
        return Tilted(log_z, scale * slope, square * (w * d2 - (1.0 - w) * slope * d1))

    def tilted_gradient(
        self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS
    ) -> FloatArray:
        rate, scale = self._rate_and_scale(outcomes)
        at = scale * mean, np.square(scale) * var, outcomes
        return self._mix(self.base.tilted(*at).log_z, rate)[1] * self.base.tilted_gradient(*at)

    def prob(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        rate, scale = self._rate_and_scale(None)
        attentive = self.base.prob(scale * mean, np.square(scale) * var)
        return (1.0 - rate) * attentive + rate / self.n_answers

    def prob_tie(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        rate, scale = self._rate_and_scale(None)
        attentive = self.base.prob_tie(scale * mean, np.square(scale) * var)
        return (1.0 - rate) * attentive + (rate / 3.0 if self.n_answers == 3 else 0.0)

    @property
    def theta(self) -> FloatArray:
        return self.base.theta

    @property
    def bounds(self) -> FloatArray:
        return self.base.bounds

    @property
    def names(self) -> tuple[str, ...]:
        return self.base.names

    def _mix(self, log_base: FloatArray, rate: Level) -> tuple[FloatArray, Level]:
        """log((1 − ε) p + ε / n_answers) with p = e^log_base, and the probability w that the
        answer was an attentive one."""
        if isinstance(rate, float) and rate == 0.0:
            return log_base, 1.0
        log_attentive = np.log1p(-rate) + log_base
        value = np.logaddexp(log_attentive, np.log(rate / self.n_answers))
        return value, np.exp(log_attentive - value)


@dataclass(frozen=True)
class Lapse(Inattentive, Likelihood):
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
        finite = (
            "a lapse is an answer at random among finitely many, and margins have no such set; "
            "wrap Probit, Logit or Ties"
        )
        self._require("base", not isinstance(self.base, Gaussian), finite)
        is_likelihood = isinstance(self.base, Likelihood)
        self._require("base", is_likelihood, "it must be a likelihood, e.g. Lapse(Probit())")
        self._require("rate", lies_within(self.rate, 1.0), "it must lie strictly within 0 and 1")

    def _rate_and_scale(self, outcomes: Outcomes | None) -> tuple[Level, Level]:
        return self.rate, 1.0

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
        gradient = super().tilted_gradient(mean, var, outcomes)
        _, attentive = self._mix(self.base.tilted(mean, var, outcomes).log_z, self.rate)
        own = 1.0 - attentive - self.rate  # ε(1 − ε) ∂log Z/∂ε, simplified
        return np.vstack([gradient, own]) if self.learn else gradient


@dataclass(frozen=True)
class Raters(Inattentive, Likelihood):
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
        is_finite = isinstance(self.base, Likelihood) and not isinstance(
            self.base, Gaussian | Raters
        )
        rule = "it must be a likelihood of finitely many answers: Probit, Logit or Ties"
        self._require("base", is_finite, rule)
        self._require("kind", self.kind in ("lapse", "noise"), "it must be 'lapse' or 'noise'")
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

    def with_theta(self, theta: FloatArray) -> Self:
        return replace(self, base=self.base.with_theta(theta))

    def tilted_at(
        self, level: Level, mean: FloatArray, var: FloatArray, outcomes: Outcomes
    ) -> Tilted:
        """`tilted` with this level for every answer's rater."""
        return self._tilted(*self._by_kind(level), mean, var, outcomes)

    def _rate_and_scale(self, outcomes: Outcomes | None) -> tuple[Level, Level]:
        return self._by_kind(self.typical if outcomes is None else self.level_of(outcomes))

    def _by_kind(self, level: Level) -> tuple[Level, Level]:
        return (level, 1.0) if self.kind == "lapse" else (0.0, level)

    def tilted_power(
        self, power: FloatArray, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS
    ) -> Tilted:
        if self.kind == "lapse":
            return super().tilted_power(power, mean, var, outcomes)
        level = self.level_of(outcomes)
        terms = self.base.tilted_power(power, level * mean, level**2 * var, outcomes)
        return Tilted(terms.log_z, level * terms.d1, level**2 * terms.d2)

    def tilted_power_gradient(
        self, power: FloatArray, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS
    ) -> FloatArray:
        if self.kind == "lapse":
            return super().tilted_power_gradient(power, mean, var, outcomes)
        level = self.level_of(outcomes)
        return self.base.tilted_power_gradient(power, level * mean, level**2 * var, outcomes)

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
