"""Answers added one by one: each is a rank-one change of the posterior precision, O(r²)."""

from dataclasses import replace

import numpy as np

from penchant.data import Comparisons
from penchant.gp.items.edges import Edges
from penchant.gp.items.effects import as_weights, from_weights
from penchant.gp.items.problem import ItemProblem
from penchant.gp.posterior import Posterior
from penchant.gp.rules import RULES
from penchant.gp.sites import Sites
from penchant.gp.update import Learned, joined
from penchant.numerics.linalg import host
from penchant.numerics.types import FloatArray

UNEXPLAINED = 1e-8
"""Share of a difference's prior variance that a basis may miss and still carry its answer."""


def absorb(
    learned: Learned[ItemProblem], more: Comparisons, data: Comparisons
) -> Learned[ItemProblem] | None:
    """Add answers one by one, each by the moments of its own update; the other sites stay.

    data: the known comparisons with `more`. None where it cannot be: an item outside the basis
    (unless the basis is bounded on purpose), an effect of which nothing is known yet, or an answer
    that lowers the precision, as a lapse may.
    """
    posterior, problem = learned.posterior, learned.problem
    known = problem.edges.shown
    edges = Edges.of(more, known)
    if edges.shown is not None and (known is None or edges.shown.names != known.names):
        return None
    is_bounded = problem.max_rank is not None and len(posterior.coefficients) >= problem.max_rank
    directions = _directions(posterior, edges, is_bounded)
    if directions is None:
        return None
    likelihood, propose = posterior.likelihood, RULES[problem.settings.rule].propose
    weights = as_weights(posterior)
    added, log_evidence = Sites.zeros(len(edges)), learned.log_evidence
    for e in np.repeat(np.arange(len(edges)), edges.count.astype(np.intp)):
        z, mean, var = weights.along(directions[e])
        outcome = edges.outcomes.part(np.array([e]))
        proposal = propose(mean, var, Sites.zeros(1), likelihood, outcome)
        tau, nu = float(proposal.tau[0]), float(proposal.nu[0])
        if tau <= 0.0:
            return None
        weights = weights.with_site(z, tau, nu - tau * float(mean[0]))
        log_evidence += float(likelihood.tilted(mean, var, outcome).log_z[0])
        added.tau[e] += tau
        added.nu[e] += nu
    union = Edges.of(data, known)
    return replace(
        learned,
        data=data,
        problem=replace(problem, edges=union),
        posterior=from_weights(posterior, weights),
        sites=joined(learned, added, edges, union),
        log_evidence=log_evidence,
        report=replace(learned.report, n_sweeps=0),
        n_unsettled=learned.n_unsettled + more.n_comparisons,
    )


def _directions(posterior: Posterior, edges: Edges, is_bounded: bool) -> FloatArray | None:
    """(m, q + r) z and φ_winner − φ_loser, or None where the basis does not carry one of them."""
    items = posterior.universe.take(edges.items)
    features = posterior.basis.features(posterior.kernel, posterior.universe, items)
    directions = host(features[edges.winner] - features[edges.loser])
    variances = posterior.kernel.diag(items)
    between = posterior.kernel.paired(items.take(edges.winner), items.take(edges.loser))
    prior = variances[edges.winner] + variances[edges.loser] - 2.0 * between
    missing = prior - np.einsum("ij,ij->i", directions, directions)
    if not is_bounded and np.any(missing > UNEXPLAINED * prior):
        return None
    return directions if edges.shown is None else np.hstack([edges.shown.scaled.T, directions])
