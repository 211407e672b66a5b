"""The table of `effects_`: what the order shown and covariates do to a comparison."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, log10
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from penchant.errors import DataError
from penchant.gp import ORDER, EffectPosterior
from penchant.likelihoods import Likelihood
from penchant.models.row_table import RowTable
from penchant.numerics.types import FloatArray

LEVEL = 0.95


class Estimates(NamedTuple):
    """Effects by name, their means and variances, (q,) each."""

    names: tuple[str, ...]
    mean: FloatArray
    var: FloatArray

    @classmethod
    def of(cls, found: EffectPosterior | None, lower: FloatArray) -> "Estimates | None":
        """Of a posterior beside utilities; lower: the factor of their precision."""
        if found is None:
            return None
        return cls(found.names, found.mean, np.diagonal(found.covariance(lower)))


class Effect(NamedTuple):
    """What one unit of a covariate, or being shown first, adds to a utility.

    low, high: its interval. prob_first: of the order shown, the probability that the first of two
    equals wins, given a decision; None for a covariate.
    """

    name: str
    estimate: float
    low: float
    high: float
    prob_first: float | None


@dataclass(frozen=True, repr=False)
class Effects(RowTable[Effect]):
    """Effects of how comparisons were made; empty where nothing is known of that.

    >>> print(Effects((Effect("shown first", 0.25, 0.2, 0.3, 0.6),), 0.95))
    effect       estimate  95 % interval     P(first wins)
    shown first    +0.250  [+0.200, +0.300]          0.600
    """

    level: float

    row_type = Effect
    left = (0, 2)

    @classmethod
    def of(cls, found: Estimates | None, likelihood: Likelihood, level: float = LEVEL) -> "Effects":
        """From means and variances."""
        if found is None:
            return cls((), level)
        reach = float(ndtri(0.5 + 0.5 * level)) * np.sqrt(found.var)
        win, loss = (likelihood.prob(sign * found.mean, found.var) for sign in (1.0, -1.0))
        columns = (found.mean, found.mean - reach, found.mean + reach, win / (win + loss))
        numbers = np.column_stack(columns).tolist()
        rows = (
            Effect(name, estimate, low, high, prob if name == ORDER else None)
            for name, (estimate, low, high, prob) in zip(found.names, numbers, strict=True)
        )
        return cls(tuple(rows), level)

    def cells(self) -> list[list[str]]:
        """Header and rows as text: the same in print and in a report."""
        return self._cells()

    def _cells(self) -> list[list[str]]:
        header = ["effect", "estimate", f"{100 * self.level:.3g} % interval", "P(first wins)"]
        cells = [header]
        for row in self.rows:
            # two significant digits of the estimate and of the interval's half, at least
            least = min(abs(n) for n in (row.estimate, row.high - row.estimate, 1.0) if n)
            decimals = max(3, 1 - floor(log10(least)))
            numbers = (row.estimate, row.low, row.high)
            estimate, low, high = (f"{number:+.{decimals}f}" for number in numbers)
            first = "" if row.prob_first is None else f"{row.prob_first:.3f}"
            cells.append([row.name, estimate, f"[{low}, {high}]", first])
        return cells

    def __str__(self) -> str:
        if not self.rows:
            return "no order shown and no covariates are known"
        return super().__str__()


def as_z(
    names: tuple[str, ...], n_pairs: int, first: Any, covariates: Mapping[str, Any] | None
) -> FloatArray | None:
    """(q, n_pairs) z of questions; None where they are asked at equal sides and covariates."""
    if first is None and not covariates:
        return None
    given = dict(covariates or {}) | ({} if first is None else {ORDER: first})
    unknown = [name for name in given if name not in names]
    if unknown:
        known = ", ".join(map(repr, names)) or "none"
        raise DataError(
            f"{unknown[0]!r} is none of the effects that the model knows, {known}: fit it on "
            "comparisons with first= or covariates=, or leave it out here"
        )
    z = np.zeros((len(names), n_pairs))
    for name, values in given.items():
        try:
            z[names.index(name)] = np.asarray(values, dtype=float)
        except (TypeError, ValueError):
            raise DataError(
                f"{name!r} must be one number for all {n_pairs} pairs, or one for each"
            ) from None
    if not np.isfinite(z).all():
        raise DataError("first and covariates of pairs must be finite numbers")
    return z
