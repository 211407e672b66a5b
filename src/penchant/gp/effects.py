"""Effects of how a comparison was made, beside any prior of utilities.

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
from typing import Any, Generic

import numpy as np

from penchant.gp.loop import State
from penchant.gp.posterior import EffectPosterior
from penchant.gp.rows import Covariates, Runs
from penchant.gp.rules import BLOCK
from penchant.numerics.linalg import cholesky, gram, log_det_lower, multiply, solve_lower
from penchant.numerics.threads import in_blocks
from penchant.numerics.types import FloatArray


@dataclass(frozen=True)
class WithEffects(Generic[State]):
    """A prior of utilities, and independent of them one of effects.

    inner: the prior over runs of comparisons, each of which is one of its own where runs is None.
    """

    inner: Any
    shown: Covariates
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
            return self.runs.blocks
        m = self.shown.z.shape[1]
        return [(slice(k, k + BLOCK), slice(k, k + BLOCK)) for k in range(0, m, BLOCK)]


@dataclass(frozen=True)
class EffectsState(Generic[State]):
    """Joint posterior of utilities and effects; inner: that of the utilities if effects were zero.

    effect, lower: mean and Cholesky factor of the precision of β/sd; given: (q, runs) by how much
    the differences give way to each effect, C D Z.
    """

    inner: State
    shown: Covariates
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
