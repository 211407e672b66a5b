"""Utilities of items beside the effects of how comparisons were made, as one Gaussian."""

from dataclasses import replace

import numpy as np

from penchant.gp.effects import EffectsState, WithEffects
from penchant.gp.items.prior import LowRankState
from penchant.gp.posterior import EffectPosterior, Posterior
from penchant.gp.rank_one import Weights
from penchant.numerics.types import FloatArray


def marginals(
    prior: WithEffects[LowRankState], state: EffectsState[LowRankState]
) -> tuple[FloatArray, FloatArray, EffectPosterior]:
    """Mean and precision factor of the weights with effects integrated out, and the effects."""
    utilities, design = state.inner, prior.inner.design
    rows = (prior.sum(state.weight * row) for row in state.shown.scaled)
    pulls = [utilities.solve(design.adjoint(row)) for row in rows]
    return state.beside(utilities.coefficients, utilities.lower, np.stack(pulls, axis=1))


def as_weights(posterior: Posterior) -> Weights:
    """Effects, where there are any, and weights of the utilities as one Gaussian."""
    half, effects = vars(posterior).get("half"), posterior.effects
    half = half if posterior.widening is None else None
    if effects is None:
        return Weights(posterior.coefficients, posterior.lower, half)
    q, r = len(effects.names), len(posterior.lower)
    lower = np.zeros((q + r, q + r))
    lower[:q, :q], lower[q:, :q], lower[q:, q:] = effects.lower, effects.coupling, posterior.lower
    if half is not None:  # effects say nothing of an item's utility once the weights are known
        half = np.concatenate([np.zeros((q, half.shape[1])), half])
    return Weights(np.append(effects.scaled_mean, posterior.coefficients), lower, half)


def from_weights(posterior: Posterior, weights: Weights) -> Posterior:
    """The posterior with other weights; what was worked out and still holds is handed over."""
    q = 0 if posterior.effects is None else len(posterior.effects.names)
    changed = replace(posterior, coefficients=weights.mean[q:], lower=weights.lower[q:, q:])
    if posterior.effects is not None:
        effects = replace(
            posterior.effects,
            scaled_mean=weights.mean[:q],
            lower=weights.lower[:q, :q],
            coupling=weights.lower[q:, :q],
        )
        changed = replace(changed, effects=effects)
    if "features" in vars(posterior):
        vars(changed)["features"] = posterior.features
    if weights.half is not None:
        vars(changed)["half"] = weights.half[q:]
    return changed
