"""Where a climb begins when comparisons of independent items are very many.

With hundreds of answers an item, the mode of a logistic model says nearly all: a few Newton steps
on the table of wins cost no more than a sweep over the comparisons, and give the scale of utilities
and sites that two sweeps settle. The fixed point and the summit are the same as from anywhere else.
"""

import numpy as np
from scipy.special import expit

from penchant.errors import NumericalError
from penchant.gp.items.edges import Edges
from penchant.gp.items.problem import ItemHyper, ItemProblem
from penchant.gp.learn import Guess
from penchant.gp.rules import RULES, propose
from penchant.gp.sites import Sites
from penchant.kernels import Independent
from penchant.numerics.dispatch import HOST
from penchant.numerics.linalg import cholesky, solve_lower
from penchant.numerics.types import FloatArray

MANY = 100_000
"""Distinct comparisons from which on it pays."""
DENSE = 10
"""Times as many entries as comparisons may the table of wins have."""
NEWTON_STEPS, LONGEST, SHORT = 10, 2.0, 0.2
"""At most in the mode's search; how far a utility may go in one; and the last one, after which
what is left is less than what a logistic model errs by."""


def first_guess(problem: ItemProblem, start: ItemHyper) -> Guess | None:
    """Parameters and sites to begin with, or None where no guess is worth its time."""
    edges, scale = problem.edges, start.likelihood.choice_scale
    is_plain = edges.shown is None and edges.outcomes.cliques is None and problem.max_rank is None
    is_large = len(edges) >= MANY and len(edges.items) ** 2 <= DENSE * len(edges)
    is_known = isinstance(start.kernel, Independent) and problem.universe.device is HOST
    if not (is_plain and is_large and is_known) or scale is None:
        return None
    try:
        f, var = _mode(_wins(edges), scale)
    except NumericalError:
        return None
    marginals = f[edges.winner] - f[edges.loser], var[edges.winner] + var[edges.loser]
    rule, nothing = RULES[problem.settings.rule], Sites.zeros(len(edges))
    wanted = propose(rule, marginals, nothing, start.likelihood, edges.outcomes)
    sites = Sites(wanted.tau, wanted.nu)
    if len(start.theta) > 1:  # near in one parameter alone, a climb's first step leads away
        return Guess(start.theta, sites)
    theta = np.clip(np.log([np.mean(f * f) + np.mean(var)]), *start.bounds.T)
    # −∂²/∂(log σ²)² of −½ Σ f²/σ² − ½ n log σ² at its summit, where answers settle every f
    return Guess(theta, sites, curvature=0.5 * len(f))


def _wins(edges: Edges) -> FloatArray:
    """(n, n) how often the one of the row won against the other; a tie is half a win for each."""
    n, count, tie = len(edges.items), edges.count, edges.outcomes.tie
    pair = edges.winner * n + edges.loser
    wins: FloatArray = np.bincount(pair, count, n * n).astype(np.float64, copy=False)
    wins = wins.reshape(n, n)
    if tie is not None:
        tied = 0.5 * np.bincount(pair[tie], count[tie], n * n).reshape(n, n)
        wins += tied.T - tied
    return wins


def _mode(wins: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
    """Utilities of unit prior variance where P(i wins) = expit(κ (fᵢ − fⱼ)), and their variances.

    In single precision but for the solves: it is a guess.
    """
    n, won = len(wins), wins.sum(axis=1)
    met = (wins + wins.T).astype(np.float32)
    shares = 1.0 / np.maximum(met, 1.0, dtype=np.float32)
    f = np.zeros(n)
    for _ in range(NEWTON_STEPS):
        g = np.float32(scale) * f.astype(np.float32)
        expected = expit(g[:, None] - g) * met
        weight = expected * expected.T  # m p · m (1 − p), m the meetings
        weight *= np.float32(scale**2) * shares
        H = np.asarray(-weight, dtype=np.float64)
        H[np.diag_indices(n)] = 1.0 - H.sum(axis=1)
        slope = scale * (won - expected.sum(axis=1)) - f
        lower = cholesky(H.T, overwrite=True).lower
        step = solve_lower(lower, solve_lower(lower, slope), transposed=True)
        f += np.clip(step, -LONGEST, LONGEST)
        if np.abs(step).max() < SHORT:
            break
    diagonal = 1.0 + weight.sum(axis=1, dtype=np.float64)
    return f, 1.0 / diagonal
