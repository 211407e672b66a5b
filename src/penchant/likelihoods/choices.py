"""Choices out of sets: a likelihood of several differences at once.

"T out of S" has the probability exp(Σ_T x) / Σ_{|T'| = |T|} exp(Σ_T' x), x = κ f on S: a softmax
of x if one item is chosen, a softmax of −x if all but one are. Let X mark the chosen items. The
model is an exponential family in X, so with π = E[X] its gradient in x is X − π and its negative
Hessian is Cov(X). That is the Laplacian of the complete graph on S with weights
τ_ij = π_i π_j − E[X_i X_j] ≥ 0, which is p_i p_j for a choice of one. A choice thus is a clique of
edges whose sites follow jointly from the means. κ is the likelihood's `choice_scale`.
"""

from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import numpy as np
from scipy.special import logsumexp

from penchant.numerics.types import FloatArray, IntArray


@cache
def _subsets(k: int, t: int) -> tuple[FloatArray, FloatArray]:
    """(C, k) the marks of all subsets of t of k items, and (C, k(k−1)/2) of pairs inside each."""
    marks = np.zeros((len(list(combinations(range(k), t))), k))
    for row, subset in enumerate(combinations(range(k), t)):
        marks[row, list(subset)] = 1.0
    i, j = np.triu_indices(k, 1)
    return marks, marks[:, i] * marks[:, j]


@dataclass(frozen=True, eq=False)
class ChoiceGroup:
    """G choices of the same number of items out of sets of the same size k.

    edge: (G, k(k−1)/2) the edge of every pair of a set, f_earlier − f_later, in the order of
    `np.triu_indices`. chosen: (G, k) marks of the chosen items. count: (G,).

    The best of three: its pairs are edges 0, 1 and 2, and the first item was chosen.

    >>> group = ChoiceGroup(np.array([[0, 1, 2]]), np.array([[1.0, 0.0, 0.0]]), np.array([1.0]))
    >>> group.utilities(np.array([0.5, 1.0, 0.5])).tolist()
    [[0.0, -0.5, -1.0]]
    """

    edge: IntArray
    chosen: FloatArray
    count: FloatArray

    @property
    def _marks(self) -> tuple[FloatArray, FloatArray]:
        return _subsets(self.chosen.shape[1], int(self.chosen[0].sum()))

    def utilities(self, g: FloatArray) -> FloatArray:
        """(G, k) utilities relative to the set's first item, from the differences of all edges."""
        k = self.chosen.shape[1]
        return np.concatenate([np.zeros((len(self.edge), 1)), -g[self.edge[:, : k - 1]]], axis=1)

    def log_probabilities(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(G,) log-probability of the chosen subset, and (G, C) probability of every subset."""
        marks, _ = self._marks
        score = x @ marks.T
        total = logsumexp(score, axis=1, keepdims=True)
        value: FloatArray = np.einsum("gk,gk->g", self.chosen, x) - total[:, 0]
        return value, np.exp(score - total)

    def log_predictive(self, log_odds: FloatArray) -> FloatArray:
        """(G,) log-probability of the chosen subset, from the log odds of every edge.

        Under a softmax P(c out of S) = 1/(1 + Σ_j odds(j over c)). The odds may be those of a
        predictive distribution, which include the uncertainty of the difference.
        """
        n, k = self.chosen.shape
        i, j = np.triu_indices(k, 1)
        against = np.zeros((n, k, k))  # [c, j]: log odds of j over c
        against[:, i, j], against[:, j, i] = -log_odds[self.edge], log_odds[self.edge]
        return self.log_probabilities(-np.logaddexp.reduce(against, axis=2))[0]

    def curvature(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log-probabilities (G,), their gradient in x (G, k), and τ of each pair (G, k(k−1)/2)."""
        value, p = self.log_probabilities(x)
        marks, both = self._marks
        rate = p @ marks
        i, j = np.triu_indices(marks.shape[1], 1)
        tau = rate[:, i] * rate[:, j]
        if both.any():
            tau = np.maximum(tau - p @ both, 0.0)  # not negative but for rounding
        return value, self.chosen - rate, tau

    def drift(self, x: FloatArray, var: FloatArray) -> FloatArray:
        """(G, k) −½ Σ var_ij ∂τ_ij/∂x, by third moments: ∂τ_ij/∂x_l = −E[X̃_i X̃_j X̃_l]."""
        _, p = self.log_probabilities(x)
        marks, both = self._marks
        rate = p @ marks
        k = marks.shape[1]
        i, j = np.triu_indices(k, 1)
        V = np.zeros((len(var), k, k))
        V[:, i, j] = V[:, j, i] = var
        Vr = np.einsum("gij,gj->gi", V, rate)
        # Σ_{i<j} v_ij X̃_i X̃_j of every subset
        quadratic = var @ both.T - Vr @ marks.T + 0.5 * np.einsum("gi,gi->g", Vr, rate)[:, None]
        weighted = p * quadratic
        return 0.5 * (weighted @ marks - weighted.sum(axis=1, keepdims=True) * rate)


@dataclass(frozen=True, eq=False)
class Cliques:
    """All choices of a data set: they own the last `n_edges` edges, and `edge` of a group counts
    among those. Choices that share a pair of items share its edge, whose site is the sum.

    >>> group = ChoiceGroup(np.array([[0, 1, 2]]), np.array([[1.0, 0.0, 0.0]]), np.array([4.0]))
    >>> Cliques(3, (group,)).n_choices
    4
    """

    n_edges: int
    groups: tuple[ChoiceGroup, ...]

    @property
    def n_choices(self) -> int:
        """Number of choices, with counts."""
        return int(sum(group.count.sum() for group in self.groups))

    def counted(self, count: FloatArray) -> "Cliques":
        """The same choices with these counts, in the order of the groups."""
        ends = np.cumsum([len(group.count) for group in self.groups])[:-1]
        counts = np.split(count, ends)
        groups = (replace(g, count=c) for g, c in zip(self.groups, counts, strict=True))
        return Cliques(self.n_edges, tuple(groups))

    def chosen(self, choices: IntArray) -> "Cliques":
        """Some of the choices, by ascending number in the order of the groups; all edges stay."""
        kept, start = [], 0
        for group in self.groups:
            rows = choices[(choices >= start) & (choices < start + len(group.count))] - start
            start += len(group.count)
            if len(rows):
                kept.append(ChoiceGroup(group.edge[rows], group.chosen[rows], group.count[rows]))
        return Cliques(self.n_edges, tuple(kept))

    def part(self, edges: IntArray) -> "Cliques":
        """Some of the edges, and the choices whose edges are all among them."""
        place = np.full(self.n_edges, -1)
        place[edges] = np.arange(len(edges))
        kept = []
        for group in self.groups:
            at = place[group.edge]
            whole = (at >= 0).all(axis=1)
            if whole.any():
                kept.append(ChoiceGroup(at[whole], group.chosen[whole], group.count[whole]))
        return Cliques(len(edges), tuple(kept))

    def sites(self, g: FloatArray, scale: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(n_edges,) τ, ν at differences g; log-probabilities, each on its choice's first edge."""
        tau, pull, value = np.zeros((3, self.n_edges))
        for group in self.groups:
            log_p, slope, weight = group.curvature(scale * group.utilities(g))
            tau += self._summed(group, scale**2 * weight)
            pull += self._summed(group, on_pairs(scale * slope))
            value += np.bincount(group.edge[:, 0], group.count * log_p, self.n_edges)
        return tau, tau * g + pull, value

    def drift(self, g: FloatArray, var: FloatArray, scale: float) -> FloatArray:
        """(n_edges,) how log Z changes with the means, see `gp.rules.Rule`."""
        total = np.zeros(self.n_edges)
        for group in self.groups:
            by_item = scale**3 * group.drift(scale * group.utilities(g), var[group.edge])
            total += self._summed(group, on_pairs(by_item))
        return total

    def _summed(self, group: ChoiceGroup, on_pairs: FloatArray) -> FloatArray:
        weights = (group.count[:, None] * on_pairs).ravel()
        return np.asarray(np.bincount(group.edge.ravel(), weights, self.n_edges))


def on_pairs(h: FloatArray) -> FloatArray:
    """A gradient h (G, k) over items that sums to zero, as a gradient (h_i − h_j)/k over pairs."""
    k = h.shape[1]
    i, j = np.triu_indices(k, 1)
    return (h[:, i] - h[:, j]) / k
