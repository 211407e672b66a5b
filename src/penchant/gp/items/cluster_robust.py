"""Cluster-robust covariance of a pooled posterior: answers of one person are not independent.

A pooled likelihood counts every answer as independent of the others. Where people differ, or rank
many items at a stroke, their scores s_u = Φᵀ Aᵀ (c_u (ν − τ g)) vary more than its curvature says,
and the posterior of the weights is no longer B⁻¹ but

    B⁻¹ (B + M − J) B⁻¹,    M = U/(U−1) Σ_u s_u s_uᵀ,    J = Φᵀ L Φ = B − I:

the sandwich with the prior in it. Means stay what they are. All is done in units of the posterior's
own standard deviations, t_u = C⁻¹ s_u with B = C Cᵀ, where M is shrunk towards a multiple of J as
far as its own noise asks for (Ledoit and Wolf 2004), and what is below J is left at J: intervals
never get narrower.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from penchant.data import Comparisons
from penchant.gp.choices import CliqueEdges, clique_edges
from penchant.gp.effects import z_of
from penchant.gp.posterior import Posterior
from penchant.gp.rows import Rows, match
from penchant.likelihoods import Outcomes
from penchant.numerics.linalg import gram, solve_lower, to_numpy
from penchant.numerics.random import pair_keys
from penchant.numerics.types import FloatArray, IntArray

UNNAMED = "(not named)"
"""The user of answers without a name among named ones: each counts as a person of its own."""
FEWEST = 5
"""With fewer people the variance between them is too uncertain to use."""
MOST = 5_000
"""Most people whose scores are used: a bound on time; the others are represented by them."""
SMALL, DIRECTIONS = 1_500, 300
"""Up to so many dimensions all eigenvectors are computed, else so many of the largest."""
NEGLIGIBLE = 1e-3
"""Eigenvalues below this share of the posterior variance are dropped."""


@dataclass(frozen=True)
class People:
    """Who gave which answers: rows, each some answers of one person to one edge.

    person: (k,) below `n_seen`; edge: (k,) positions among the edges; weight: (k,) what a person's
    score gets of the edge's: how often they answered so. n_people: of whom `n_seen` are looked at.
    choices: theirs, every person's apart; of a person who is not looked at the number is −1.
    """

    person: IntArray
    edge: IntArray
    weight: FloatArray
    n_seen: int
    n_people: int
    choices: CliqueEdges | None = None

    @classmethod
    def of(
        cls, data: Comparisons, edges: Rows, weight: FloatArray | float = 1.0
    ) -> "People | None":
        """Of the comparisons behind the edges; None where too few people are named.

        weight: (m,) what one answer of each row of single pairs counts.
        """
        if data.user is None or data.n_users < FEWEST:
            return None
        nobody = data.users.index(UNNAMED) if UNNAMED in data.users else -1
        givers = data.user[data.user != nobody]
        present = np.flatnonzero(np.bincount(givers, minlength=data.n_users))
        if len(present) < FEWEST:
            return None
        whole, data = data, data.single_pairs()
        giver = np.zeros(0, dtype=np.intp) if data.user is None else data.user
        named = giver != nobody
        seen = present
        if len(present) > MOST:
            pairs = whole.as_pairs()
            key = pair_keys(pairs.winner, pairs.loser, pairs.user, pairs.count, pairs.tie).user
            seen = present[np.argsort(key[present], kind="stable")[:MOST]]
        number = np.full(whole.n_users, -1, dtype=np.intp)
        number[seen] = np.arange(len(seen))
        person = np.where(named, number[giver], -1)
        # an answer without a name is a person of its own; c of them add c t tᵀ = (√c t)(√c t)ᵀ
        alone = np.flatnonzero(~named)
        person[alone] = len(seen) + np.arange(len(alone))
        rows = np.flatnonzero(person >= 0)
        weight = (weight * np.where(named, data.count, np.sqrt(data.count)))[rows]
        n_seen, n_people = len(seen) + len(alone), len(present) + len(alone)
        choices = None
        if whole.rankings is not None and whole.rankings.user is not None:
            found = clique_edges(whole.rankings, whole.n_items)
            choices = found._replace(user=number[found.user])
        edge = edges_of(data, rows, edges)
        return cls(person[rows], edge, weight, n_seen, n_people, choices)

    def sandwich_factor(
        self, posterior: Posterior, edges: Rows, residual: FloatArray
    ) -> FloatArray | None:
        """(r, q) G, so that the weights' covariance is C⁻ᵀ (I + G Gᵀ) C⁻¹; None where q is zero.

        residual: (m,) ν − τ g of the rows.
        """
        lower = to_numpy(posterior.lower)
        inverse = solve_lower(lower, np.eye(len(lower)))
        scores = solve_lower(lower, self._scores(posterior, edges, residual).T).T
        excess = _excess(scores, self.n_people / self.n_seen, inverse)
        if len(excess) <= SMALL:
            values, vectors = np.linalg.eigh(excess)
        else:  # the largest are what widens; from the same start, the same numbers every time
            start = np.ones(len(excess))
            values, vectors = eigsh(excess, DIRECTIONS, which="LA", v0=start, tol=1e-6)
        wide = values > NEGLIGIBLE
        if not wide.any():
            return None
        return posterior.universe.device.matrix(vectors[:, wide] * np.sqrt(values[wide]))

    def _scores(self, posterior: Posterior, edges: Rows, residual: FloatArray) -> FloatArray:
        """(n_seen, r) C t_u."""
        y = self.weight * residual[self.edge]
        first, second = (ends[self.edge] for ends in edges.ends)
        person, pulled = self.person, y
        if self.choices is not None:
            who, a, b, cliques = self.choices
            g = posterior.mean[a] - posterior.mean[b]
            tau, nu, _ = cliques.sites(g, posterior.likelihood.choice_scale or 1.0)
            seen = who >= 0
            person, pulled = np.append(person, who[seen]), np.append(y, (nu - tau * g)[seen])
            first, second = np.append(first, a[seen]), np.append(second, b[seen])
        place = (np.append(person, person), np.append(first, second))
        size = (self.n_seen, len(posterior))
        by_item = sparse.coo_array((np.append(pulled, -pulled), place), size).tocsr()
        scores: FloatArray = by_item @ to_numpy(posterior.features)
        if posterior.effects is not None and edges.shown is not None:
            # what effects explain of a score is not the utilities': s − H M⁻¹ s_b
            by_effect = [
                np.bincount(self.person, y * z[self.edge], self.n_seen) for z in edges.shown.scaled
            ]
            scores -= (
                posterior.effects.coupling
                @ solve_lower(posterior.effects.lower, np.array(by_effect))
            ).T
        return scores


def edges_of(data: Comparisons, rows: IntArray, edges: Rows) -> IntArray:
    """(k,) the edge that each of these rows was pooled into."""
    tie = data.tie[rows] if edges.outcomes.tie is not None else None
    margin = None if data.margin is None else data.margin[rows]
    rater = None if edges.outcomes.rater is None or data.user is None else data.user[rows]
    outcomes = Outcomes(tie, margin, rater=rater)
    apart = Rows.between(data.winner[rows], data.loser[rows], np.ones(len(rows)), outcomes)
    if edges.shown is not None:
        z = z_of(data, edges.shown.names)[:, rows]
        apart = replace(apart, shown=replace(edges.shown, z=z))
    return match(edges, apart)


def _excess(scores: FloatArray, scale: float, inverse: FloatArray) -> FloatArray:
    """M − J in units of the posterior; scores: (k, r), standing for `scale` times as many.

    inverse: C⁻¹, with which J = I − C⁻¹ C⁻ᵀ.
    """
    k, r = scores.shape
    scores = scores - scores.mean(axis=0)
    J = np.eye(r) - gram(inverse.T)
    M = gram(scores) * (scale * k / (k - 1))
    target = J * (np.trace(M) / np.trace(J))
    # what M varies by itself: Σ_u |t_u t_uᵀ − M/k|², against how far it is from its target; the
    # difference is negative where all scores are of one size
    spread = scale**2 * (np.einsum("ij,ij->i", scores, scores) ** 2).sum() - (M**2).sum() / k
    noise = max(0.0, float(spread))
    distance = ((M - target) ** 2).sum()
    share = 1.0 if distance <= noise else noise / distance
    return (1.0 - share) * M + share * target - J
