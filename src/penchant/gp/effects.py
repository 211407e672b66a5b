"""Effects of how a comparison was made: of being shown first, and of covariates.

Effects β are further points of the rows, g = f[winner] − f[loser] + zᵀβ, each with a prior variance
of its own. Rows that compare the same two items differ in z alone; `Runs` adds them up.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp.posterior import EffectPosterior
from penchant.gp.rules import BLOCK
from penchant.numerics.types import BoolArray, FloatArray, IntArray

ORDER = "shown first"
PRIOR_SD = 1.0
"""Prior sd of an effect, in units of an answer's noise: of being shown first, and of a covariate at
its root mean square. One effect does not identify its variance, so this is not learned; a shift of
one turns equals into 84 : 16, and hardly any known effect is larger."""


@dataclass(frozen=True)
class Covariates:
    """Further points of rows: weights z (q, m), odd in the pair; names and prior sd of effects."""

    names: tuple[str, ...]
    z: FloatArray
    sd: FloatArray

    @classmethod
    def of(cls, data: Comparisons, like: "Covariates | None" = None) -> "Covariates | None":
        """Order and covariates of the data, or None.

        like: known effects, which come first and keep their priors; a column that these data lack
        is zero.
        """
        columns = _columns(data)
        names = () if like is None else like.names
        names += tuple(name for name in columns if name not in names)
        if not names:
            return None
        z = z_of(data, names)
        sd = np.array(
            [_prior_sd(name, row, data.count) for name, row in zip(names, z, strict=True)]
        )
        if like is not None:
            sd[: len(like.names)] = like.sd
        return cls(names, z, sd)

    @classmethod
    def known(cls, effects: EffectPosterior | None) -> "Covariates | None":
        """Names and priors of known effects, without rows."""
        if effects is None:
            return None
        return cls(effects.names, np.zeros((len(effects.names), 0)), effects.sd)

    def part(self, rows: IntArray) -> "Covariates":
        """Of some of the comparisons."""
        return replace(self, z=self.z[:, rows])

    def padded(self, n: int) -> "Covariates":
        """The same with n rows of zeros after them."""
        return replace(self, z=np.pad(self.z, ((0, 0), (0, n))))

    @cached_property
    def scaled(self) -> FloatArray:
        """(q, m) in units in which every effect has prior variance one."""
        return self.z * self.sd[:, None]


def z_of(data: Comparisons, names: tuple[str, ...]) -> FloatArray:
    """(q, m) weights of the named effects; zero where the data lack them."""
    columns, nothing = _columns(data), np.zeros(len(data))
    return np.stack([columns.get(name, nothing) for name in names])


def _columns(data: Comparisons) -> dict[str, FloatArray]:
    columns: dict[str, FloatArray] = {}
    if data.first is not None and data.first.any():
        columns[ORDER] = data.first.astype(float)
    for k, name in enumerate(data.covariate_names if data.covariates is not None else ()):
        if name == ORDER:
            raise DataError(f"a covariate is called {name!r}, as the effect of order is: rename it")
        columns[name] = data.covariates[:, k]  # type: ignore[index]
    return columns


def _prior_sd(name: str, z: FloatArray, count: IntArray) -> float:
    size = 1.0 if name == ORDER else typical_size(z, count)
    return PRIOR_SD / size if size > 0.0 else PRIOR_SD


def typical_size(z: FloatArray, count: IntArray) -> float:
    """Standard deviation around zero by the mean absolute value, which few large ones hardly move.

    >>> round(typical_size(np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4, dtype=int)), 3)
    1.253
    """
    return float(np.sqrt(0.5 * np.pi) * np.average(np.abs(z), weights=count)) if len(z) else 0.0


def as_shown(model: Any, data: Comparisons, rows: BoolArray) -> dict[str, Any]:
    """Arguments for a model's `predict_proba`: order, covariates and time of some comparisons, as
    far as the model uses them."""
    known = {effect.name for effect in getattr(model, "effects_", ())}
    shown: dict[str, Any] = {}
    if ORDER in known and data.first is not None:
        shown["first"] = data.first[rows]
    if data.covariates is not None and known.intersection(data.covariate_names):
        columns = zip(data.covariate_names, data.covariates[rows].T, strict=True)
        shown["covariates"] = {name: column for name, column in columns if name in known}
    if getattr(model, "drift", None) is not None and data.time is not None:
        shown["at"] = data.time[rows]
    return shown


@dataclass(frozen=True, eq=False)
class Runs:
    """Rows in runs of the same pair: where each starts, how long it is."""

    starts: IntArray
    sizes: IntArray

    def sum(self, y: FloatArray) -> FloatArray:
        """(…, runs) of y (…, m)."""
        return np.add.reduceat(y, self.starts, axis=-1)

    def repeat(self, x: FloatArray) -> FloatArray:
        """(…, m) of x (…, runs)."""
        return np.repeat(x, self.sizes, axis=-1)

    @cached_property
    def blocks(self) -> list[tuple[slice, slice]]:
        """Blocks of rows that fit in cache, in whole runs; and their runs."""
        ends = self.starts + self.sizes
        cuts = [0]
        while cuts[-1] < len(ends):
            full = int(np.searchsorted(ends, self.starts[cuts[-1]] + BLOCK, side="right"))
            cuts.append(max(full, cuts[-1] + 1))
        return [
            (slice(int(self.starts[one]), int(ends[two - 1])), slice(one, two))
            for one, two in pairwise(cuts)
        ]
