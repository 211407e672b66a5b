"""Answers added one by one: each is a rank-one update of the posterior precision, O(r²).

The other sites stay as they are, until `FitState.reconverge` sweeps over all of them. Here are the
algebra of a rank-one update and the update of one utility an item; `users.update` has that of many
users.
"""

from dataclasses import dataclass, replace

import numpy as np

from penchant.data import Comparisons
from penchant.gp.items.problem import ItemProblem
from penchant.gp.learn import FitState
from penchant.gp.posterior import Posterior
from penchant.gp.rows import Rows, match
from penchant.gp.rules import RULES, Sites
from penchant.numerics import linalg
from penchant.numerics.dispatch import dispatched
from penchant.numerics.types import FloatArray

BLOCK = 32
"""Columns worked on together: they stay in cache, where whole matrices would not."""


def growth(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The Cholesky factor M of I + z zᵀ in closed form: B + (Lz)(Lz)ᵀ = (LM)(LM)ᵀ.

    With t_k = 1 + Σ_{i≤k} z_i²: M_kk = √(t_k/t_{k−1}) and M_ik = z_i z_k/√(t_k t_{k−1}), i > k.
    Returns (r,) M_kk and z_k/√(t_k t_{k−1}). Products and solves with M are cumulative sums.

    >>> L = np.array([[2.0, 0.0], [1.0, 1.0]])
    >>> d = np.array([1.0, 3.0])
    >>> z = np.linalg.solve(L, d)
    >>> grown = grown_lower(L, z, *growth(z))
    >>> np.allclose(grown @ grown.T, L @ L.T + np.outer(d, d))
    True
    """
    after = 1.0 + np.cumsum(z * z)
    before = np.append(1.0, after[:-1])
    return np.sqrt(after / before), z / np.sqrt(after * before)


@dispatched
def grown_lower(
    lower: FloatArray, z: FloatArray, stretch: FloatArray, share: FloatArray
) -> FloatArray:
    """L M."""
    r = len(lower)
    grown = np.zeros((r, r), order="F")
    for start in range(0, r, BLOCK):
        rows = slice(start, start + BLOCK)
        k = min(start + BLOCK, r)  # right of the diagonal is zero
        part = lower[rows, :k].T
        later = np.cumsum((part * z[:k, None])[::-1], axis=0)[::-1]
        block = part * stretch[:k, None]
        block[:-1] += share[: k - 1, None] * later[1:]
        grown[rows, :k] = block.T
    return grown


@dispatched
def shrunk_half(
    half: FloatArray, z: FloatArray, stretch: FloatArray, share: FloatArray
) -> FloatArray:
    """M⁻¹ half."""
    shrunk = np.empty(half.shape, order="F")
    for start in range(0, half.shape[1], BLOCK):
        part = half[:, start : start + BLOCK]
        earlier = np.cumsum(part * z[:, None], axis=0)
        block = part / stretch[:, None]
        block[1:] -= share[1:, None] * earlier[:-1]
        shrunk[:, start : start + BLOCK] = block
    return shrunk


@dataclass(frozen=True)
class Weights:
    """Weights w ~ N(mean, (lower lowerᵀ)⁻¹); half: (r, n) lower⁻¹ Φᵀ where it is known."""

    mean: FloatArray
    lower: FloatArray
    half: FloatArray | None = None

    def along(self, direction: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """z = lower⁻¹ d, and mean and variance, each (1,), of dᵀ w."""
        z = linalg.solve_lower(self.lower, direction)
        return z, np.array([direction @ self.mean]), np.array([z @ z])

    def with_site(self, z: FloatArray, tau: float, residual: float) -> "Weights":
        """The posterior after a site of precision `tau` along d, of residual ν − τ dᵀ mean."""
        gain, z_site = residual / (1.0 + tau * float(z @ z)), np.sqrt(tau) * z
        factor = growth(z_site)
        return Weights(
            self.mean + gain * linalg.solve_lower(self.lower, z, transposed=True),
            grown_lower(self.lower, z_site, *factor),
            None if self.half is None else shrunk_half(self.half, z_site, *factor),
        )


# Utilities of items, and effects of order and covariates beside them


def as_weights(posterior: Posterior) -> Weights:
    """The scaled effects, if any, and the weights of the utilities as one Gaussian."""
    half, effects = vars(posterior).get("half"), posterior.effects
    half = half if posterior.widening is None else None
    if effects is None:
        return Weights(posterior.coefficients, posterior.lower, half)
    lower = linalg.bordered(posterior.lower, effects.coupling, effects.lower)
    if half is not None:  # given the weights, utilities do not depend on the effects
        half = linalg.prepend_columns(np.zeros((half.shape[1], len(effects.names))), half.T).T
    return Weights(np.append(effects.scaled_mean, posterior.coefficients), lower, half)


def from_weights(posterior: Posterior, weights: Weights) -> Posterior:
    """The posterior with other weights; cached features and `half` stay valid and are kept."""
    q = 0 if posterior.effects is None else len(posterior.effects.names)
    changed = replace(
        posterior, coefficients=weights.mean[q:], lower=linalg.trailing_block(weights.lower, q)
    )
    if posterior.effects is not None:
        effects = replace(
            posterior.effects,
            scaled_mean=weights.mean[:q],
            lower=linalg.to_numpy(weights.lower[:q, :q]),
            coupling=linalg.to_numpy(weights.lower[q:, :q]),
        )
        changed = replace(changed, effects=effects)
    if "features" in vars(posterior):
        vars(changed)["features"] = posterior.features
    if weights.half is not None:
        vars(changed)["half"] = weights.half[q:]
    return changed


UNEXPLAINED = 1e-8
"""Share of a difference's prior variance that the basis may leave out of a rank-one update."""


def rank_one_update(
    fit: FitState[ItemProblem], more: Comparisons, data: Comparisons
) -> FitState[ItemProblem] | None:
    """Add answers one by one, each by moment matching at its own marginal; other sites stay.

    data: the known comparisons with `more`. Returns None where that is not possible: an item lies
    outside the basis (unless its rank is bounded), an effect is new, or an answer lowers the
    precision, as one with lapses may.
    """
    posterior, problem, known = fit.posterior, fit.problem, fit.problem.edges.shown
    rows = Rows.pooled(more, known)
    if rows.shown is not None and (known is None or rows.shown.names != known.names):
        return None
    is_bounded = problem.max_rank is not None and len(posterior.coefficients) >= problem.max_rank
    directions = _directions(posterior, rows, is_bounded)
    if directions is None:
        return None
    likelihood, propose = posterior.likelihood, RULES[problem.settings.rule].propose
    weights, log_evidence = as_weights(posterior), fit.log_evidence
    tau, nu = np.zeros((2, len(rows)))
    for e in np.repeat(np.arange(len(rows)), rows.count.astype(np.intp)):
        z, mean, var = weights.along(directions[e])
        outcome = rows.outcomes.part(np.array([e]))
        proposal = propose(mean, var, Sites.zeros(1), likelihood, outcome)
        if proposal.tau[0] <= 0.0:
            return None
        residual = float(proposal.nu[0] - proposal.tau[0] * mean[0])
        weights = weights.with_site(z, float(proposal.tau[0]), residual)
        log_evidence += float(likelihood.tilted(mean, var, outcome).log_z[0])
        tau[e] += proposal.tau[0]
        nu[e] += proposal.nu[0]
    union = Rows.pooled(data, known)
    return replace(
        fit,
        data=data,
        problem=replace(problem, edges=union),
        posterior=from_weights(posterior, weights),
        sites=_joined(fit, Sites(tau, nu), rows, union),
        log_evidence=log_evidence,
        report=replace(fit.report, n_sweeps=0),
        n_pending_sites=fit.n_pending_sites + more.n_comparisons,
    )


def _joined(fit: FitState[ItemProblem], added: Sites, rows: Rows, union: Rows) -> Sites:
    """Sites per copy of all comparisons; a row that was seen before gets the mean of its copies.

    added: summed sites of the new answers `rows`; union: the known comparisons with them.
    """
    old, sites = fit.problem.edges, fit.sites or Sites.zeros(0)
    tau, nu = np.zeros((2, len(union)))
    before, now = match(union, old), match(union, rows)
    tau[before], nu[before] = old.count * sites.tau, old.count * sites.nu
    tau[now] += added.tau
    nu[now] += added.nu
    return Sites(tau / union.count, nu / union.count)


def _directions(posterior: Posterior, rows: Rows, is_bounded: bool) -> FloatArray | None:
    """(m, q + r) z and φ_winner − φ_loser, or None where the basis leaves out part of one."""
    items = posterior.universe.take(rows.items)
    features = posterior.basis.features(posterior.kernel, posterior.universe, items)
    directions = linalg.to_numpy(features[rows.winner] - features[rows.loser])
    variances = posterior.kernel.diag(items)
    between = posterior.kernel.paired(items.take(rows.winner), items.take(rows.loser))
    prior = variances[rows.winner] + variances[rows.loser] - 2.0 * between
    missing = prior - np.einsum("ij,ij->i", directions, directions)
    if not is_bounded and np.any(missing > UNEXPLAINED * prior):
        return None
    return directions if rows.shown is None else np.hstack([rows.shown.scaled.T, directions])
