"""Inference at given hyperparameters, and the gradient of its evidence.

At a fixed point of the sites  ∂ log Z/∂θ = ½ αᵀ ∂K α − ½ tr(R ∂K)  with R = L − L Σ L: one matrix
G = ½ (ααᵀ − R), pulled back through the kernel by the problem. No n × n × p array exists.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from penchant.errors import DataError
from penchant.gp.effects import WithEffects
from penchant.gp.loop import State, converge, infer
from penchant.gp.model import Hyper, Prior, Problem, Solution
from penchant.gp.rules import BLOCK, RULES, drift, slopes
from penchant.gp.sites import Sites
from penchant.numerics.dispatch import memory_errors
from penchant.numerics.threads import in_blocks
from penchant.numerics.types import FloatArray

COARSE_TOLERANCE = 3e-4
ROUGH_TOLERANCE = 1e-3
"""Of the factor, and of the sites, when a first guess at the sites is made."""
COARSE_SHARE = 0.7
"""A coarse factor with more than this share of the full rank is not worth the detour."""


def solve(
    problem: Problem[Hyper, State],
    hyper: Hyper,
    sites: Sites | None = None,
    tolerance: float = 0.0,
) -> Solution[Hyper, State]:
    """Factor the prior and run inference, from the given sites or from a rough guess at them.

    tolerance: of the sites, where the problem's own is finer than need be.
    """
    settings = problem.settings
    settings = replace(settings, tolerance=max(tolerance, settings.tolerance))
    with _memory_named():
        prior = problem.prior(hyper)
        if sites is None:
            sites = _rough_sites(problem, hyper, prior)
        inference = converge(prior, hyper.likelihood, problem.edges, settings, sites)
    report = replace(inference.report, rank=prior.rank, residual=prior.residual, space=prior.space)
    return Solution(hyper, prior, replace(inference, report=report))


@contextmanager
def _memory_named() -> Iterator[None]:
    """What to do where memory runs out, the host's or a card's."""
    try:
        with memory_errors():
            yield
    except MemoryError as error:
        raise DataError(
            f"memory ran out ({error}): an exact fit holds a few matrices of items × items; give "
            "max_rank= (say max_rank=500; for many users max_user_rank=) to bound them, or leave "
            "out items"
        ) from None


def _rough_sites(problem: Problem[Hyper, State], hyper: Hyper, prior: Prior[State]) -> Sites | None:
    """Nearly the right sites at a fraction of the cost, from the factor's leading pivots; or where
    comparisons are very many beside effects, from some of them."""
    few = problem.while_learning() if isinstance(prior, WithEffects) else problem
    if few.edges is not problem.edges:
        return _foreseen(problem, hyper, few.posterior(solve(few, hyper)))
    coarse = prior.coarse(COARSE_TOLERANCE)
    if coarse.rank > COARSE_SHARE * prior.rank:
        return None
    edges, settings = problem.edges, problem.settings
    settings = replace(settings, tolerance=max(ROUGH_TOLERANCE, settings.tolerance))
    return infer(coarse.refresh, hyper.likelihood, edges.outcomes, edges.count, settings).sites


def _foreseen(problem: Problem[Hyper, State], hyper: Hyper, known: Any) -> Sites:
    """The sites that all comparisons would have by what some of them taught, block by block."""
    edges, propose = problem.edges, RULES[problem.settings.rule].propose
    sites = Sites.zeros(len(edges))

    def work(block: slice) -> None:
        rows = np.arange(block.start, min(block.stop, len(edges)))
        rows, marginals = problem.expect(known, rows)
        outcomes, nothing = edges.outcomes.part(rows), Sites.zeros(len(rows))
        proposal = propose(*marginals, nothing, hyper.likelihood, outcomes)
        sites.tau[rows], sites.nu[rows] = proposal.tau, proposal.nu

    in_blocks(work, len(edges), BLOCK)
    return sites


def gradient(problem: Problem[Hyper, Any], solution: Solution[Hyper, Any]) -> FloatArray:
    """∂ log Z / ∂ theta at the solution's sites."""
    rule, edges = RULES[problem.settings.rule], problem.edges
    inference, likelihood = solution.inference, solution.hyper.likelihood
    marginals = inference.state.mean, inference.state.var
    moving = drift(rule, marginals, likelihood, edges.outcomes)
    moving = None if moving is None else edges.count * moving
    by_likelihood = slopes(rule, marginals, inference.sites, likelihood, edges.outcomes)
    with _memory_named():
        by_prior = problem.pullback(solution, moving)
    return np.concatenate([by_prior, by_likelihood @ edges.count])
