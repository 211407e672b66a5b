"""Ties: of items that are close (a threshold), or at random (abstentions)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from penchant.likelihoods.base import (
    WINS,
    Likelihood,
    LogProb,
    Outcomes,
    Parameter,
    Tilted,
    lies_within,
)
from penchant.likelihoods.logit import Logit
from penchant.likelihoods.probit import Probit
from penchant.numerics.types import BoolArray, FloatArray

_LINKS: dict[str, Likelihood] = {"probit": Probit(), "logit": Logit()}


@dataclass(frozen=True)
class Ties(Likelihood):
    """P(win) = F(g − t), P(loss) = F(−g − t) and a tie otherwise, with a threshold t > 0.

    F is the link's distribution function: "probit" is the ordered probit model, "logit" that of
    Rao and Kupper. The threshold is learnable (its log is ``theta``).

    Everything follows from the link. A win is the link at g − t. A tie has the probability
    F(u + t) − F(u − t) at u = −|g|, on the side where both terms are small and their difference
    keeps its digits. The tilted integrals of the link are used in the same way.

    >>> import numpy as np
    >>> ties = Ties(threshold=0.5)
    >>> g, known = np.array([0.0, 1.0]), np.zeros(2)
    >>> ties.prob(g, known).round(3), ties.prob_tie(g, known).round(3)
    (array([0.309, 0.691]), array([0.383, 0.242]))
    """

    threshold: float = 0.5
    link: Literal["probit", "logit"] = "probit"

    log_concave: ClassVar[bool] = True
    parameter: ClassVar[Parameter] = Parameter("threshold", 1e-3, 10.0)

    def __post_init__(self) -> None:
        hint = "it must be positive; without ties use likelihood='probit' or 'logit'"
        self._require("threshold", lies_within(self.threshold, np.inf), hint)
        self._require("link", self.link in _LINKS, f"it must be one of {sorted(_LINKS)}")

    @property
    def n_answers(self) -> int:
        return 3

    @property
    def choice_scale(self) -> float | None:
        return _LINKS[self.link].choice_scale

    def log_prob(self, g: FloatArray, outcomes: Outcomes = WINS) -> LogProb:
        link, tie, t = _LINKS[self.link], _ties(outcomes, g.shape[-1]), self.threshold
        out = np.empty((4, *g.shape))
        out[..., ~tie] = link.log_prob(g[..., ~tie] - t)
        u = -np.abs(g[..., tie])
        out[..., tie] = _log_difference(link.log_prob(u + t), link.log_prob(u - t))
        out[1::2, ..., tie] *= _side(g[..., tie])
        return LogProb(*out)

    def tilted(self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS) -> Tilted:
        link, tie = _LINKS[self.link], _ties(outcomes, mean.size)
        out = np.empty((3, mean.size))
        out[:, ~tie] = link.tilted(mean[~tie] - self.threshold, var[~tie])
        log_z, slope, curvature = _log_difference(*self._bracket(mean[tie], var[tie]))
        out[:, tie] = log_z, slope * _side(mean[tie]), -curvature
        return Tilted(*out)

    def prob(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        return _LINKS[self.link].prob(mean - self.threshold, var)

    def prob_tie(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        mean, var = np.broadcast_arrays(mean, var)
        log_z = _log_difference(*self._bracket(mean.ravel(), var.ravel()))[0]
        return np.exp(log_z).reshape(mean.shape)

    def tilted_gradient(
        self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS
    ) -> FloatArray:
        link, tie = _LINKS[self.link], _ties(outcomes, mean.size)
        slope = np.empty(mean.size)
        slope[~tie] = -link.tilted(mean[~tie] - self.threshold, var[~tie]).d1
        upper, lower = self._bracket(mean[tie], var[tie])
        # A wider band moves both ends outwards: ∂/∂t of log(e^upper − e^lower).
        ratio = _exp_ratio(lower[0] - upper[0])
        slope[tie] = upper[1] + ratio * (upper[1] + lower[1])
        return self.threshold * slope[None]

    def _bracket(
        self, mean: FloatArray, var: FloatArray
    ) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
        """The link's log Z and its two derivatives at the two ends of the band of ties."""
        link, u = _LINKS[self.link], -np.abs(mean)
        upper, lower = link.tilted(u + self.threshold, var), link.tilted(u - self.threshold, var)
        return (upper.log_z, upper.d1, -upper.d2), (lower.log_z, lower.d1, -lower.d2)


def _ties(outcomes: Outcomes, size: int) -> BoolArray:
    return np.zeros(size, dtype=bool) if outcomes.tie is None else outcomes.tie


def _side(g: FloatArray) -> FloatArray:
    """∂u/∂g of u = −|g|."""
    return np.where(g > 0, -1.0, 1.0)


def _exp_ratio(x: FloatArray) -> FloatArray:
    """e^x/(1 − e^x) for x < 0."""
    return np.exp(x) / -np.expm1(x)


def _log_difference(upper: Sequence[FloatArray], lower: Sequence[FloatArray]) -> list[FloatArray]:
    """log(e^a − e^b) and its derivatives, from a and b and theirs: two or three, as given.

    With x = b − a it is a + log(1 − e^x), whose derivatives in x are −k, −k(1 + k) and
    −k(1 + k)(1 + 2k) with k = e^x/(1 − e^x); the chain rule does the rest.
    """
    value, *x = (b - a for a, b in zip(upper, lower, strict=True))
    k = _exp_ratio(value)
    k2 = k * (1.0 + k)
    terms = [
        upper[0] + np.log(-np.expm1(value)),
        upper[1] - k * x[0],
        upper[2] - k * x[1] - k2 * x[0] ** 2,
    ]
    if len(upper) > 3:
        third = k * x[2] + 3.0 * k2 * x[0] * x[1] + k2 * (1.0 + 2.0 * k) * x[0] ** 3
        terms.append(upper[3] - third)
    return terms


# Abstentions: ties that say nothing about how close two items are.


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
    parameter: ClassVar[Parameter] = Parameter("rate", 1e-6, 1.0 - 1e-6, is_share=True)

    def __post_init__(self) -> None:
        is_plain = isinstance(self.base, Probit | Logit)
        self._require("base", is_plain, "it must be Probit() or Logit()")
        self._require("rate", lies_within(self.rate, 1.0), "it must lie strictly within 0 and 1")

    @property
    def n_answers(self) -> int:
        return 3

    @property
    def choice_scale(self) -> float | None:
        return self.base.choice_scale

    def log_prob(self, g: FloatArray, outcomes: Outcomes = WINS) -> LogProb:
        tie = _ties(outcomes, g.shape[-1])
        value, *slopes = self.base.log_prob(g)
        decided = np.where(tie, np.log(self.rate), np.log1p(-self.rate) + value)
        return LogProb(decided, *(np.where(tie, 0.0, slope) for slope in slopes))

    def tilted(self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS) -> Tilted:
        tie = _ties(outcomes, mean.size)
        log_z, d1, d2 = self.base.tilted(mean, var)
        decided = np.where(tie, np.log(self.rate), np.log1p(-self.rate) + log_z)
        return Tilted(decided, np.where(tie, 0.0, d1), np.where(tie, 0.0, d2))

    def prob(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        return (1.0 - self.rate) * self.base.prob(mean, var)

    def prob_tie(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        return np.full(np.broadcast_shapes(mean.shape, var.shape), self.rate)

    def tilted_gradient(
        self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS
    ) -> FloatArray:
        tie = _ties(outcomes, mean.size)
        return np.where(tie, 1.0 - self.rate, -self.rate)[None]
