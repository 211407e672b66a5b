"""Comparisons with the period in which they were made."""

from dataclasses import dataclass

import numpy as np

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp.effects import PRIOR_SD, Shown, z_of
from penchant.likelihoods import Outcomes
from penchant.numerics.types import BoolArray, FloatArray, IntArray

MOST_PERIODS = 300
"""Into which the time of all comparisons is divided, if nobody says otherwise."""
FURTHEST = 1e12
"""Periods from the first; paths have long relaxed by then."""


@dataclass(frozen=True)
class Calendar:
    """Periods of equal length from a first day on, numbered from 0; days since 1970."""

    origin: float
    length: float

    @classmethod
    def of(cls, time: FloatArray, length: float | None) -> "Calendar":
        """Of the length given, else as many periods as there are times, up to a few hundred."""
        days = np.unique(time)
        if length is None:
            gap = float(np.diff(days).min(initial=np.inf))
            span = float(days[-1] - days[0])
            length = max(span / MOST_PERIODS, gap) if span else 1.0
        return cls(float(days[0]), float(length))

    def period(self, time: FloatArray) -> IntArray:
        """The number of each time's period."""
        number = np.floor((time - self.origin) / self.length + 1e-9)
        return np.clip(number, -FURTHEST, FURTHEST).astype(np.intp)


@dataclass(frozen=True)
class Meetings:
    """Comparisons of items in periods; covariates: (m, q) columns of further coefficients.

    winner, loser: (m,) items; period: (m,) numbers in the calendar.
    """

    winner: IntArray
    loser: IntArray
    period: IntArray
    covariates: FloatArray
    count: FloatArray
    tie: BoolArray | None
    margin: FloatArray | None

    @classmethod
    def of(cls, data: Comparisons, calendar: Calendar) -> "Meetings":
        """All comparisons; the side shown first is the first covariate, where it is told."""
        time = check_time(data)
        names = effect_names(data)
        covariates = z_of(data, names).T if names else np.zeros((len(data), 0))
        tie = data.tie if data.tie.any() else None
        period, count = calendar.period(time), data.count.astype(float)
        return cls(data.winner, data.loser, period, covariates, count, tie, data.margin)

    @property
    def outcomes(self) -> Outcomes:
        """Ties and margins."""
        return Outcomes(self.tie, self.margin)

    def __len__(self) -> int:
        return len(self.winner)

    @property
    def effect_sd(self) -> FloatArray:
        """(q,) prior standard deviations of the coefficients: by the root mean square of what a
        covariate is where it is not zero, so that its unit does not matter."""
        told, count = self.covariates != 0.0, self.count[:, None]
        n_told = np.sum(count * told, axis=0)
        square = np.sum(count * self.covariates**2, axis=0) / np.maximum(n_told, 1.0)
        return PRIOR_SD / np.sqrt(np.where(n_told > 0.0, square, 1.0))

    @property
    def keys(self) -> tuple[IntArray, ...]:
        """What tells meetings apart, beside their outcomes."""
        return (self.winner, self.loser, self.period, *self.covariates.T)


def effect_names(data: Comparisons) -> tuple[str, ...]:
    """What is told of how comparisons were made: the side shown first, and covariates."""
    shown = Shown.of(data)
    return () if shown is None else shown.names


def check_time(data: Comparisons) -> FloatArray:
    """The times of comparisons, which drift and half-lives need."""
    if data.time is None:
        raise DataError(
            "these comparisons do not say when they were made: give time=… for each (dates or "
            "days), or leave drift and half_life out"
        )
    return data.time
