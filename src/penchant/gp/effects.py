"""Effects of how a comparison was made: the order shown, and its covariates.

With z of a comparison, odd in the pair,  g = f_w − f_l + zᵀβ  and β ~ N(0, diag(sd²)): rows of A
become (e_w − e_l, z). The algebra of utilities, whatever it is, stays as it was: with D = diag(cτ)
and C = AΣAᵀ the covariance of differences when β is known,

    T = Z − C D Z,   P = diag(sd⁻²) + Zᵀ D T,   β̂ = P⁻¹ Zᵀ(b − D C b)

give the joint posterior of differences: means C b + T β̂, covariance C + T P⁻¹ Tᵀ. Comparisons of
the same two items, in whatever order and of whatever length, share their row of A: C is worked out
once a pair, and T = Z − (C D Z of the pair).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Generic, NamedTuple

import numpy as np

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp.loop import State
from penchant.gp.posterior import EffectPosterior
from penchant.gp.rules import BLOCK
from penchant.numerics.linalg import cholesky, gram, log_det_lower, multiply, solve_lower
from penchant.numerics.threads import in_blocks
from penchant.numerics.types import BoolArray, FloatArray, IntArray

ORDER = "shown first"
PRIOR_SD = 1.0
"""Of an effect on the scale of an answer's noise: of being shown first, and of a covariate's root
mean square. One number cannot tell the spread that it was drawn from, so this is not learned; a
shift of one turns equals into 84 : 16, and hardly anything known is larger."""


@dataclass(frozen=True)
class Shown:
    """How comparisons were made: z (q, m), odd in the pair; names and prior sd of its effects."""

    names: tuple[str, ...]
    z: FloatArray
    sd: FloatArray

    @classmethod
    def of(cls, data: Comparisons, like: "Shown | None" = None) -> "Shown | None":
        """What the data tell; None where that is nothing.

        like: effects that are known already, which come first and keep their priors; a column
        that these data do not have is zero.
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
    def known(cls, effects: EffectPosterior | None) -> "Shown | None":
        """Names and priors of known effects, of no comparison."""
        if effects is None:
            return None
        return cls(effects.names, np.zeros((len(effects.names), 0)), effects.sd)

    def part(self, rows: IntArray) -> "Shown":
        """Of some of the comparisons."""
        return replace(self, z=self.z[:, rows])

    def padded(self, n: int) -> "Shown":
        """The same, and then n comparisons of which nothing is told."""
        return replace(self, z=np.pad(self.z, ((0, 0), (0, n))))

    @cached_property
    def scaled(self) -> FloatArray:
        """(q, m) in units in which every effect has prior variance one."""
        scaled: FloatArray = self.z * self.sd[:, None]
        return scaled


def z_of(data: Comparisons, names: tuple[str, ...]) -> FloatArray:
    """(q, m) z of the effects that are called so; zero where the data do not tell."""
    columns, nothing = _columns(data), np.zeros(len(data))
    return np.stack([columns.get(name, nothing) for name in names])


def told(data: Comparisons) -> bool:
    """Whether comparisons say anything about how they were made."""
    return data.covariates is not None or (data.first is not None and bool(data.first.any()))


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
    square = 1.0 if name == ORDER else float(np.average(z * z, weights=count)) if len(z) else 0.0
    return PRIOR_SD / np.sqrt(square) if square > 0.0 else PRIOR_SD


class Runs(NamedTuple):
    """Comparisons in runs of the same pair: where each starts, how long it is."""

    starts: IntArray
    sizes: IntArray

    def sum(self, y: FloatArray) -> FloatArray:
        """(…, runs) of y (…, m)."""
        return np.add.reduceat(y, self.starts, axis=-1)

    def repeat(self, x: FloatArray) -> FloatArray:
        """(…, m) of x (…, runs)."""
        return np.repeat(x, self.sizes, axis=-1)

    def blocks(self) -> list[tuple[slice, slice]]:
        """Rows whose numbers stay in cache while they are worked on, in whole runs; and these."""
        ends = self.starts + self.sizes
        cuts = [0]
        while cuts[-1] < len(ends):
            full = int(np.searchsorted(ends, self.starts[cuts[-1]] + BLOCK, side="right"))
            cuts.append(max(full, cuts[-1] + 1))
        return [
            (slice(int(self.starts[one]), int(ends[two - 1])), slice(one, two))
            for one, two in pairwise(cuts)
        ]


@dataclass(frozen=True)
class WithEffects(Generic[State]):
    """A prior of utilities, and independent of them one of effects.

    inner: the prior over runs of comparisons, each of which is one of its own where runs is None.
    """

    inner: Any
    shown: Shown
    runs: Runs | None = None

    @property
    def rank(self) -> int:
        """Of the factor over items."""
        return int(self.inner.rank)

    @property
    def residual(self) -> float:
        """The largest variance that the factor leaves out."""
        return float(self.inner.residual)

    @property
    def space(self) -> str:
        """Where the linear algebra of utilities happens."""
        return str(self.inner.space)

    @property
    def flops(self) -> float:
        """Of the dense algebra of one `refresh`."""
        return float(self.inner.flops)

    def coarse(self, tolerance: float) -> "WithEffects[State]":
        """The same prior with a factor of lower rank."""
        return replace(self, inner=self.inner.coarse(tolerance))

    def sum(self, y: FloatArray) -> FloatArray:
        """What is said of comparisons, added up by run."""
        return y if self.runs is None else self.runs.sum(y)

    def refresh(self, weight: FloatArray, shift: FloatArray) -> "EffectsState[State]":
        """The joint posterior given sites."""
        z, q = self.shown.scaled, len(self.shown.names)
        state = self.inner.refresh(self.sum(weight), self.sum(shift))
        pulls, outer = self._met(weight)
        given = np.stack([state.respond(pull) for pull in pulls])
        precision = np.eye(q) + outer - multiply(pulls, given.T)
        pull = multiply(z, shift) - multiply(pulls, state.mean)
        lower = cholesky(0.5 * (precision + precision.T)).lower
        effect = solve_lower(lower, solve_lower(lower, pull), transposed=True)
        mean, var = self._marginals(state, given, effect, lower)
        return EffectsState(
            inner=state,
            shown=self.shown,
            weight=weight,
            shift=shift,
            mean=mean,
            var=var,
            log_det=state.log_det + log_det_lower(lower),
            quadratic=state.quadratic + float(pull @ effect),
            effect=effect,
            lower=lower,
            given=given,
            runs=self.runs,
        )

    def _met(self, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """D Z added up by run, (q, runs), and Zᵀ D Z."""
        z, blocks = self.shown.scaled, self._blocks
        pulls = np.empty((len(z), len(weight) if self.runs is None else len(self.runs.starts)))
        outer = np.empty((len(blocks), len(z), len(z)))

        def meet(number: slice) -> None:
            rows, runs = blocks[number.start]
            pulled = weight[rows] * z[:, rows]
            outer[number.start] = multiply(pulled, z[:, rows].T)
            if self.runs is not None:
                pulled = np.add.reduceat(pulled, self.runs.starts[runs] - rows.start, axis=1)
            pulls[:, runs] = pulled

        in_blocks(meet, len(blocks), 1)
        return pulls, outer.sum(axis=0)

    def _marginals(
        self, state: Any, given: FloatArray, effect: FloatArray, lower: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances of the differences with effects, (m,) each."""
        z, blocks, sizes = self.shown.scaled, self._blocks, self.runs and self.runs.sizes
        half = solve_lower(lower, np.eye(len(z)))
        known = np.vstack([given, state.mean, state.var])
        mean, var = np.empty((2, z.shape[1]))

        def add(number: slice) -> None:
            rows, runs = blocks[number.start]
            own = known[:, runs] if sizes is None else np.repeat(known[:, runs], sizes[runs], 1)
            through = z[:, rows] - own[:-2]
            spread = multiply(half, through)
            mean[rows] = own[-2] + multiply(through.T, effect)
            var[rows] = own[-1] + np.einsum("ij,ij->j", spread, spread)

        in_blocks(add, len(blocks), 1)
        return mean, var

    @cached_property
    def _blocks(self) -> list[tuple[slice, slice]]:
        if self.runs is not None:
            return self.runs.blocks()
        m = self.shown.z.shape[1]
        return [(slice(k, k + BLOCK), slice(k, k + BLOCK)) for k in range(0, m, BLOCK)]


@dataclass(frozen=True)
class EffectsState(Generic[State]):
    """Joint posterior of utilities and effects; inner: that of the utilities if effects were zero.

    effect, lower: mean and Cholesky factor of the precision of β/sd; given: (q, runs) by how much
    the differences give way to each effect, C D Z.
    """

    inner: State
    shown: Shown
    weight: FloatArray
    shift: FloatArray
    mean: FloatArray
    var: FloatArray
    log_det: float
    quadratic: float
    effect: FloatArray
    lower: FloatArray
    given: FloatArray
    runs: Runs | None = None

    @property
    def jitter(self) -> float:
        """What had to be added to a diagonal for a factor to succeed."""
        return self.inner.jitter

    @cached_property
    def spread(self) -> FloatArray:
        """(q, m): what the effects' uncertainty adds to the covariance is spreadᵀ spread."""
        given = self.given if self.runs is None else self.runs.repeat(self.given)
        return solve_lower(self.lower, self.shown.scaled - given)

    def respond(self, pull: FloatArray) -> FloatArray:
        """A Σ Aᵀ pull, (m,)."""
        through = multiply(self.spread.T, multiply(self.spread, pull))
        if self.runs is None:
            return through + self.inner.respond(pull)
        return through + self.runs.repeat(self.inner.respond(self.runs.sum(pull)))

    @property
    def offset(self) -> FloatArray:
        """(m,) zᵀβ̂."""
        return multiply(self.shown.scaled.T, self.effect)

    def beside(
        self, mean: FloatArray, lower: FloatArray, U: FloatArray
    ) -> tuple[FloatArray, FloatArray, EffectPosterior]:
        """Weights with effects integrated out, their mean and precision factor; and the effects.

        mean, lower: of the weights w if effects were zero, precision B; U: (r, q) by how much they
        give way to each effect. The precision of (b, w) is [[M, Hᵀ], [H, B]] with H = B U and
        M = P + HᵀU; the effects stand first, so that the last block of its factor is w's own.
        """
        own, H = gram(lower.T), multiply(lower, multiply(lower.T, U))
        first = cholesky(gram(self.lower.T) + multiply(H.T, U)).lower
        coupling = solve_lower(first, H.T).T
        own_lower = cholesky(own - gram(coupling.T)).lower
        names, sd = self.shown.names, self.shown.sd
        effects = EffectPosterior(names, sd, self.effect, first, coupling)
        return mean - multiply(U, self.effect), own_lower, effects


def as_shown(model: Any, data: Comparisons, rows: BoolArray) -> dict[str, Any]:
    """How and when some comparisons were made, as far as a model takes that into account: for its
    `predict_proba`."""
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
