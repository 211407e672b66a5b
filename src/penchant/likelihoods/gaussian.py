"""The Gaussian likelihood: the score difference itself was observed, with noise."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import ndtr

from penchant.errors import DataError
from penchant.likelihoods.base import (
    WINS,
    Expected,
    Likelihood,
    LogProb,
    Outcomes,
    Parameter,
    Tilted,
    lies_within,
)
from penchant.numerics.types import FloatArray, IntArray

_LOG_2PI = np.log(2.0 * np.pi)


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """margin / unit = g + N(0, noise): regression on score differences; inference is then exact.

    ``noise`` is a variance and is learnable (its log is ``theta``). ``unit`` is the margin of a
    utility difference of one; likelihood="gaussian" sets it to the root mean square of the margins,
    so that no other result depends on the unit of measurement. Densities are of margin / unit.
    ``prob`` is the probability that the *noisy* difference is positive: the probability of the
    observed answer, as in the other likelihoods.

    >>> import numpy as np
    >>> Gaussian(noise=3.0).prob(np.array([2.0]), np.array([1.0])).round(4)
    array([0.8413])
    """

    noise: float = 1.0
    unit: float = 1.0

    log_concave: ClassVar[bool] = True
    parameter: ClassVar[Parameter] = Parameter("noise", 1e-6, 1e6)

    def __post_init__(self) -> None:
        self._require("noise", lies_within(self.noise, np.inf), "it must be a positive variance")
        self._require("unit", lies_within(self.unit, np.inf), "it must be positive and finite")

    def in_units_of(self, margin: FloatArray, count: IntArray) -> Self:
        largest = np.abs(margin).max(initial=0.0)  # divided out first: squares could overflow
        if not 0.0 < largest < np.inf:
            return self
        square = np.average((margin / largest) ** 2, weights=count)
        return replace(self, unit=float(largest * np.sqrt(square)))

    def log_prob(self, g: FloatArray, outcomes: Outcomes = WINS) -> LogProb:
        residual = self.margin(outcomes) - g
        value = -0.5 * (residual**2 / self.noise + np.log(self.noise) + _LOG_2PI)
        curvature = np.full_like(residual, -1.0 / self.noise)
        return LogProb(value, residual / self.noise, curvature, np.zeros_like(residual))

    def tilted(self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS) -> Tilted:
        total = self.noise + var
        residual = self.margin(outcomes) - mean
        log_z = -0.5 * (residual**2 / total + np.log(total) + _LOG_2PI)
        return Tilted(log_z, residual / total, 1.0 / total)

    def expected(self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS) -> Expected:
        value, d1, d2, _ = self.log_prob(mean, outcomes)
        return Expected(value + 0.5 * d2 * var, d1, 0.5 * d2)

    def prob(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        return np.asarray(ndtr(mean / np.sqrt(self.noise + var)))

    def tilted_gradient(
        self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS
    ) -> FloatArray:
        _, d1, d2 = self.tilted(mean, var, outcomes)
        return 0.5 * self.noise * (d1**2 - d2)[None]

    def check_pairs(self, outcomes: Outcomes) -> None:
        if outcomes.margin is None:
            raise DataError(
                "likelihood Gaussian got comparisons without margins: it needs the score "
                "difference of each comparison; build the data from scores, or use "
                "likelihood='probit' when only the winner is known"
            )
        if not np.all(np.isfinite(outcomes.margin)):
            row = int(np.flatnonzero(~np.isfinite(outcomes.margin))[0])
            raise DataError(
                f"margin of comparison {row} is {outcomes.margin[row]}: every margin must be a "
                "finite score difference; drop the row or fill it in"
            )

    def margin(self, outcomes: Outcomes) -> FloatArray:
        """(m,) margins in units of utilities."""
        if outcomes.margin is None:
            raise DataError("likelihood Gaussian needs outcomes with margins: Outcomes(margin=...)")
        return outcomes.margin / self.unit
