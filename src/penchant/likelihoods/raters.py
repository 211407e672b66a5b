"""People who differ in how reliably they answer: a wrapper around any likelihood of answers."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np

from penchant.errors import DataError
from penchant.likelihoods.base import WINS, Likelihood, LogProb, Outcomes, Tilted
from penchant.likelihoods.gaussian import Gaussian
from penchant.numerics.types import FloatArray, IntArray


@dataclass(frozen=True)
class Raters(Likelihood):
    """p = (1 − ε_u) p_base(s_u g) + ε_u / (number of possible answers), for rater u.

    kind "lapse": ε_u is the rater's level, the share of answers given at random, and s_u = 1; kind
    "noise": s_u is the rater's level, how sharply they tell items apart, and ε_u = 0. Levels are
    learned beside the other parameters (`gp.raters`), not with them. `typical` is the level of
    somebody who is not known, whom predictions are about.

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
        """A lapse is not, sharpness is."""
        return self.kind == "noise" and self.base.log_concave

    @classmethod
    def alike(cls, base: Likelihood, kind: str, n_raters: int) -> "Raters":
        """As many raters, all of a usual level, from which theirs are learned."""
        usual = 0.05 if kind == "lapse" else 1.0
        return cls(base, kind, (usual,) * n_raters, usual)  # type: ignore[arg-type]  # checked

    @property
    def n_answers(self) -> int:
        return self.base.n_answers

    def log_prob(self, g: FloatArray, outcomes: Outcomes = WINS) -> LogProb:
        level = self.level_of(outcomes)
        if self.kind == "noise":
            terms = self.base.log_prob(level * g, outcomes)
            return LogProb(*(level**k * term for k, term in enumerate(terms)))
        log_base, d1, d2, d3 = self.base.log_prob(g, outcomes)
        value, attentive = self._mix(log_base, level)
        slope = attentive * d1
        bend = (1.0 - attentive) * slope  # w(1 − w) d1, in this order lest d1² overflow
        return LogProb(
            value,
            slope,
            attentive * d2 + bend * d1,
            attentive * d3 + 3.0 * bend * d2 + (1.0 - 2.0 * attentive) * bend * d1 * d1,
        )

    def tilted(self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS) -> Tilted:
        return self.tilted_at(self.level_of(outcomes), mean, var, outcomes)

    def tilted_at(
        self, level: FloatArray | float, mean: FloatArray, var: FloatArray, outcomes: Outcomes
    ) -> Tilted:
        """`tilted` with raters of this level instead of their own."""
        if self.kind == "noise":  # s g ~ N(s m, s² v)
            terms = self.base.tilted(level * mean, np.square(level) * var, outcomes)
            return Tilted(terms.log_z, level * terms.d1, np.square(level) * terms.d2)
        log_base, d1, d2 = self.base.tilted(mean, var, outcomes)
        log_z, attentive = self._mix(log_base, level)
        slope = attentive * d1
        return Tilted(log_z, slope, attentive * d2 - (1.0 - attentive) * slope * d1)

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
        """The difference as somebody typical tells it apart."""
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
        _, attentive = self._mix(self.base.tilted(mean, var, outcomes).log_z, level)
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
        """(m,) level of who gave each answer: the typical one where nobody knows."""
        if outcomes.rater is None:
            return self._known[-1:]
        n = len(self.levels)
        known: IntArray = np.where(outcomes.rater < n, outcomes.rater, n)
        level: FloatArray = self._known[known]
        return level

    def _mix(self, log_base: FloatArray, rate: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """log of the mixture, and the probability w that the answer was an attentive one."""
        log_attentive = np.log1p(-rate) + log_base
        value = np.logaddexp(log_attentive, np.log(rate / self.n_answers))
        return value, np.exp(log_attentive - value)
