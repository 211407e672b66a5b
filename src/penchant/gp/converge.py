"""To the fixed point: sweeps of the engine while it is far, frozen steps between them when near.

Near the fixed point a plain sweep leaves a third of every move, mostly because the means follow
slowly. Frozen steps take them there first, and a sweep then leaves a twentieth.
"""

from dataclasses import replace

import numpy as np

from penchant.gp.items.edges import Edges
from penchant.gp.items.prior import LowRankState, Prior
from penchant.gp.loop import Inference, Settings, infer
from penchant.gp.rules import RULES
from penchant.gp.sites import Sites
from penchant.likelihoods import Likelihood
from penchant.numerics.linalg import multiply, solve_lower

NEAR = 0.5
"""Largest move, in an edge's own standard deviations, that the frozen steps are trusted with."""
FROZEN_STEPS = 10
RULE_FLOPS = 1000.0
"""What a frozen step costs an edge, in flops of the dense algebra that a sweep costs: with many
comparisons of few items a plain sweep is cheaper."""
FROZEN_SHARE = 0.03
"""What may remain of a move before the covariances are worked out again."""


def converge(
    prior: Prior, likelihood: Likelihood, edges: Edges, settings: Settings, sites: Sites | None
) -> Inference[LowRankState]:
    """The engine's fixed point from the given sites (or none), in fewer sweeps than it needs."""

    def sweep(tolerance: float, max_sweeps: int, start: Sites | None) -> Inference[LowRankState]:
        limits = replace(settings, tolerance=tolerance, max_sweeps=max_sweeps)
        return infer(prior.refresh, likelihood, edges.outcomes, edges.count, limits, start)

    n_frozen = min(FROZEN_STEPS, int(_flops(prior) / (RULE_FLOPS * max(1, len(edges)))))
    near = NEAR if likelihood.log_concave and n_frozen > 1 else 0.0
    inference = sweep(max(near, settings.tolerance), settings.max_sweeps, sites)
    n_sweeps = inference.report.n_sweeps
    while settings.tolerance <= inference.report.change < near and n_sweeps < settings.max_sweeps:
        before, known = inference.report.change, inference.sites
        stepped = _frozen_steps(prior, inference, likelihood, edges, settings.rule, n_frozen)
        del inference  # its matrices make room for those of the next
        inference = sweep(settings.tolerance, 0, stepped)
        n_sweeps += 1
        if inference.report.change > 0.5 * before:
            inference = sweep(settings.tolerance, settings.max_sweeps - n_sweeps, known)
            n_sweeps += inference.report.n_sweeps
            break
    report = inference.report
    return replace(
        inference,
        report=replace(
            report,
            n_sweeps=n_sweeps,
            tolerance=settings.tolerance,
            converged=report.change < settings.tolerance,
        ),
    )


def _flops(prior: Prior) -> float:
    """Of a sweep's dense algebra, n r²."""
    n_points, rank = map(float, prior.factor.shape)
    return n_points * rank * rank


def _frozen_steps(
    prior: Prior,
    inference: Inference[LowRankState],
    likelihood: Likelihood,
    edges: Edges,
    rule: str,
    n_steps: int,
) -> Sites:
    """Move the sites while covariances stand still, but for what each edge's own site does.

    Means follow exactly: one Newton step on the weights a round, O(p r + r²) instead of O(p r²).
    """
    state, sites = inference.state, inference.sites
    design, factor, count = prior.design, prior.factor, edges.count
    weights, known = state.coefficients, sites.tau
    mean, var = state.mean, state.var
    for _ in range(n_steps):
        proposal = RULES[rule](mean, var, sites, likelihood, edges.outcomes)
        moved = Sites(proposal.tau, proposal.nu)
        move = np.abs(count * (moved.nu - sites.nu) * np.sqrt(var)).max()
        sites = moved
        if move < FROZEN_SHARE * inference.report.change:
            break
        pull = design.adjoint(count * (sites.nu - sites.tau * mean))
        slope = multiply(factor.T, pull) - weights
        step = solve_lower(state.lower, solve_lower(state.lower, slope), transposed=True)
        weights = weights + step
        mean = design.forward(multiply(factor, weights))
        var = state.var / (1.0 + count * (sites.tau - known) * state.var)
    return sites
