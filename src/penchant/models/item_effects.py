"""Whether features tell all about items, or each needs an effect of its own: the evidence says."""

from dataclasses import replace

from penchant.gp import ItemHyper, ItemProblem, maximize, solve
from penchant.gp.items.problem import ItemSolution
from penchant.gp.learn import Guess
from penchant.kernels import RBF, Independent

TRIED = (0.1, 1.0)
"""Variances of an effect, in units of an answer's noise, that are tried before it is learned."""
PROMISING = 1.0
WORTHWHILE = 2.0
"""Gains in log evidence: of a trial, before effects are learned, and then, before they stay."""
SMOOTH = 1.0
"""Least lengthscale beside effects, in standard deviations of a feature: a rougher function only
imitates them, and knows nothing about new items."""


def with_item_effects(problem: ItemProblem, start: ItemHyper, plain: ItemSolution) -> ItemSolution:
    """The solution with `+ Independent()` where comparisons ask for it, else the one given.

    plain: learned from `start`, whose kernel is an RBF on standardised features. The trials cost
    two evaluations of the evidence; only if one promises something is the evidence climbed again.
    """
    kernel = plain.hyper.kernel
    if problem.max_rank is not None or not isinstance(kernel, RBF):
        return plain
    smooth = replace(kernel, lengthscale=_at_least(SMOOTH, kernel.lengthscale))
    rough, sites = problem.while_learning(), plain.inference.sites
    trials = [
        solve(rough, plain.hyper._replace(kernel=smooth + Independent(variance)), sites)
        for variance in TRIED
    ]
    best = max(trials, key=lambda trial: trial.log_evidence)
    if best.log_evidence < plain.log_evidence + PROMISING:
        return plain
    centre = start._replace(kernel=start.kernel + Independent())
    learned = maximize(problem, centre, begin=Guess(best.hyper.theta))
    return learned if learned.log_evidence > plain.log_evidence + WORTHWHILE else plain


def _at_least(least: float, lengthscale: float | tuple[float, ...]) -> float | tuple[float, ...]:
    if isinstance(lengthscale, tuple):
        return tuple(max(least, each) for each in lengthscale)
    return max(least, lengthscale)
