"""More answers for a posterior that is there already: no refit, the hyperparameters stay.

`settle` starts from the sites that the old comparisons had and sweeps until nothing moves: equal
to inference from scratch, in fewer sweeps. `absorb` adds answers one by one and leaves the other
sites where they are: each is a rank-one change of the posterior precision, O(r²) for rank r.
"""

from dataclasses import dataclass, replace

import numpy as np

from penchant.data import Comparisons
from penchant.gp.evidence import Hyperparameters, Problem, Solution, posterior_of, solve
from penchant.gp.items.edges import Edges
from penchant.gp.loop import Settings
from penchant.gp.posterior import Posterior
from penchant.gp.rank_one import Weights
from penchant.gp.rules import RULES
from penchant.gp.sites import Report, Sites
from penchant.numerics.types import FloatArray, IntArray

EXACT_ITEMS = 500
"""Up to this many items settling every site is quick, and the default."""
UNSETTLED_SHARE = 0.02
"""Beyond it, answers are only absorbed until this share of all comparisons is unsettled."""
MOST_ABSORBED = 50
"""More answers than this are cheaper to settle together than to add one by one."""
UNEXPLAINED = 1e-8
"""Share of a difference's prior variance that a basis may miss and still carry its answer."""


@dataclass(frozen=True)
class Learned:
    """What the comparisons so far have taught, under fixed hyperparameters.

    n_unsettled: how many of the answers were absorbed since the sites were last settled.
    """

    data: Comparisons
    posterior: Posterior
    sites: Sites
    log_evidence: float
    report: Report
    n_unsettled: int = 0

    @classmethod
    def of(cls, data: Comparisons, problem: Problem, solution: Solution) -> "Learned":
        """From inference that has settled."""
        inference = solution.inference
        return cls(
            data,
            posterior_of(problem, solution),
            inference.sites,
            inference.log_evidence,
            inference.report,
        )


def tell(
    learned: Learned,
    more: Comparisons,
    settings: Settings,
    rank: int | None = None,
    polish: bool | None = None,
) -> Learned:
    """Learn from more comparisons between known items.

    rank: the bound that the prior's factor was made with. polish: settle every site (True) or
    only absorb the answers; by default what EXACT_ITEMS and UNSETTLED_SHARE say.
    """
    if polish is None:
        unsettled = learned.n_unsettled + more.n_comparisons
        polish = (
            learned.data.n_items <= EXACT_ITEMS
            or unsettled > UNSETTLED_SHARE * learned.data.n_comparisons
        )
    if not polish and more.n_comparisons <= MOST_ABSORBED:
        is_bounded = rank is not None and len(learned.posterior.coefficients) >= rank
        absorbed = absorb(learned, more, settings, is_bounded)
        if absorbed is not None:
            return absorbed
    return settle(learned, more, settings, rank)


def settle(
    learned: Learned, more: Comparisons, settings: Settings, rank: int | None = None
) -> Learned:
    """Sweep until no site moves: what a refit with the same hyperparameters gives."""
    old, data = learned.posterior, learned.data.extend(more)
    problem = Problem(old.universe, Edges.of(data), settings, rank)
    sites = _carried(learned, problem.edges, settings)
    hyper = Hyperparameters(old.kernel, old.likelihood)
    return Learned.of(data, problem, solve(problem, hyper, sites))


def _carried(learned: Learned, edges: Edges, settings: Settings) -> Sites:
    """The sites that known edges have, and for new ones what their marginals suggest."""
    place = place_among(_columns(Edges.of(learned.data)), _columns(edges))
    sites = Sites(learned.sites.tau[place], learned.sites.nu[place])
    new = np.flatnonzero(place < 0)
    winner, loser = edges.items[edges.winner[new]], edges.items[edges.loser[new]]
    proposal = RULES[settings.rule](
        *learned.posterior.difference(winner, loser),
        Sites.zeros(len(new)),
        learned.posterior.likelihood,
        edges.outcomes.part(new),
    )
    sites.tau[new], sites.nu[new] = proposal.tau, proposal.nu
    return sites


def place_among(known: FloatArray, sought: FloatArray) -> IntArray:
    """Where each column that is sought stands among the known ones, −1 where it does not.

    >>> place_among(np.array([[3, 1], [0, 2]]), np.array([[1, 3, 3], [2, 0, 2]])).tolist()
    [1, 0, -1]
    """
    columns = np.concatenate([known, sought], axis=1)
    order = np.lexsort(columns)
    ranked = columns[:, order]
    code = np.empty(len(order), dtype=np.intp)
    code[order] = np.cumsum(np.append(0, (ranked[:, 1:] != ranked[:, :-1]).any(axis=0)))
    place = np.full(len(order), -1, dtype=np.intp)
    n_known = known.shape[1]
    place[code[:n_known]] = np.arange(n_known)
    return place[code[n_known:]]


def _columns(edges: Edges) -> FloatArray:
    """(4, m) what tells edges apart."""
    tie, margin = edges.outcomes
    zeros = np.zeros(len(edges))
    return np.stack(
        [
            edges.items[edges.winner],
            edges.items[edges.loser],
            zeros if tie is None else tie,
            zeros if margin is None else margin,
        ]
    )


def absorb(
    learned: Learned, more: Comparisons, settings: Settings, is_bounded: bool = False
) -> Learned | None:
    """Add answers one by one, each by the moments of its own update; the other sites stay.

    None where that cannot be: an item outside the basis (unless the basis is bounded on
    purpose), or an answer that lowers the precision, as a lapse may.
    """
    posterior, edges = learned.posterior, Edges.of(more)
    directions = _directions(posterior, edges, is_bounded)
    if directions is None:
        return None
    likelihood, rule = posterior.likelihood, RULES[settings.rule]
    weights = Weights(posterior.coefficients, posterior.lower, vars(posterior).get("half"))
    added, log_evidence = Sites.zeros(len(edges)), learned.log_evidence
    for e in np.repeat(np.arange(len(edges)), edges.count.astype(np.intp)):
        z, mean, var = weights.along(directions[e])
        outcome = edges.outcomes.part(np.array([e]))
        proposal = rule(mean, var, Sites.zeros(1), likelihood, outcome)
        tau, nu = float(proposal.tau[0]), float(proposal.nu[0])
        if tau <= 0.0:
            return None
        weights = weights.with_site(z, tau, nu - tau * float(mean[0]))
        log_evidence += float(likelihood.tilted(mean, var, outcome).log_z[0])
        added.tau[e] += tau
        added.nu[e] += nu
    data = learned.data.extend(more)
    return Learned(
        data,
        _reweighted(posterior, weights),
        _joined(learned, edges, added, Edges.of(data)),
        log_evidence,
        replace(learned.report, n_sweeps=0),
        learned.n_unsettled + more.n_comparisons,
    )


def _directions(posterior: Posterior, edges: Edges, is_bounded: bool) -> FloatArray | None:
    """(m, r) φ_winner − φ_loser, or None where the basis does not carry one of them."""
    items = posterior.universe.take(edges.items)
    features = posterior.basis.features(posterior.kernel, posterior.universe, items)
    directions: FloatArray = features[edges.winner] - features[edges.loser]
    variances = posterior.kernel.diag(items)
    between = posterior.kernel.paired(items.take(edges.winner), items.take(edges.loser))
    prior = variances[edges.winner] + variances[edges.loser] - 2.0 * between
    missing = prior - np.einsum("ij,ij->i", directions, directions)
    return directions if is_bounded or np.all(missing <= UNEXPLAINED * prior) else None


def _reweighted(posterior: Posterior, weights: Weights) -> Posterior:
    """The posterior with other weights; what was worked out and still holds is handed over."""
    changed = replace(posterior, coefficients=weights.mean, lower=weights.lower)
    if "features" in vars(posterior):
        vars(changed)["features"] = posterior.features
    if weights.half is not None:
        vars(changed)["half"] = weights.half
    return changed


def _joined(learned: Learned, edges: Edges, added: Sites, union: Edges) -> Sites:
    """Per copy, the sites of all edges: an edge seen again has the mean of its copies' sites."""
    old = Edges.of(learned.data)
    tau, nu = np.zeros((2, len(union)))
    columns = _columns(union)
    before, now = place_among(columns, _columns(old)), place_among(columns, _columns(edges))
    tau[before], nu[before] = old.count * learned.sites.tau, old.count * learned.sites.nu
    tau[now] += added.tau
    nu[now] += added.nu
    return Sites(tau / union.count, nu / union.count)
