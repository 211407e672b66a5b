"""What answers say at given differences: log-likelihoods, and how they pull at their edges.

A single pair has one edge. A choice out of a set has all pairs of the set, and pulls at them
jointly (see `likelihoods.choices`); answers that share a pair share its edge. So answers are
m numbers and edges E, and what a community knows of an edge is a sum over weighted answers.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from penchant.likelihoods import ChoiceGroup, Likelihood, LogProb, Outcomes
from penchant.likelihoods.choices import on_pairs
from penchant.numerics.types import FloatArray


class LocalChoices(NamedTuple):
    """Choices of one size at the scaled utilities x (G, k) of their sets.

    value: (G,) log-probabilities; pull, tau: (G, k(k−1)/2) first and negative second derivative
    along each pair.
    """

    group: ChoiceGroup
    scale: float
    x: FloatArray
    value: FloatArray
    pull: FloatArray
    tau: FloatArray

    @classmethod
    def of(cls, group: ChoiceGroup, g: FloatArray, scale: float) -> "LocalChoices":
        """At the differences g of all edges of choices."""
        x = scale * group.utilities(g)
        value, slope, tau = group.curvature(x)
        return cls(group, scale, x, value, on_pairs(scale * slope), scale**2 * tau)

    def drift(self, var: FloatArray) -> FloatArray:
        """(G, k(k−1)/2) −½ Σ var ∂τ along each pair, from variances of all edges of choices."""
        return on_pairs(self.scale**3 * self.group.drift(self.x, var[self.group.edge]))


@dataclass(frozen=True, eq=False)
class Local:
    """All answers at the differences of all edges: single pairs, and after them choices.

    pairs: of the single pairs, whose edges come first; n_edges: E.
    """

    pairs: LogProb
    choices: tuple[LocalChoices, ...]
    n_edges: int

    @classmethod
    def at(cls, g: FloatArray, likelihood: Likelihood, outcomes: Outcomes) -> "Local":
        """At differences g (E,)."""
        cliques = outcomes.cliques
        if cliques is None:
            return cls(likelihood.log_prob(g, outcomes), (), len(g))
        n, scale = len(g) - cliques.n_edges, likelihood.choice_scale or 1.0
        choices = tuple(LocalChoices.of(group, g[n:], scale) for group in cliques.groups)
        return cls(likelihood.log_prob(g[:n], outcomes._replace(cliques=None)), choices, len(g))

    @property
    def n_pairs(self) -> int:
        """How many of the answers are single pairs."""
        return len(self.pairs.value)

    @cached_property
    def value(self) -> FloatArray:
        """(m,) log-likelihoods of the answers."""
        return np.concatenate([self.pairs.value, *(choices.value for choices in self.choices)])

    @cached_property
    def precision(self) -> FloatArray:
        """(n,) k of single pairs, cut off at zero where a likelihood is not log-concave."""
        return np.maximum(-self.pairs.d2, 0.0)

    def force(self, weights: FloatArray) -> FloatArray:
        """(E,) Σ w ∂ℓ/∂g."""
        return self._summed(weights, self.pairs.d1, [c.pull for c in self.choices])

    def curvature(self, weights: FloatArray) -> FloatArray:
        """(E,) −Σ w ∂²ℓ/∂g², of choices as the Laplacian of their clique."""
        return self._summed(weights, self.precision, [c.tau for c in self.choices])

    def drift(self, weights: FloatArray, var: FloatArray) -> FloatArray:
        """(E,) −½ Σ w var ∂k: how the curvature answers a move of the differences."""
        n, pairs = self.n_pairs, self.pairs
        third = np.where(pairs.d2 < 0.0, pairs.d3, 0.0)  # k is cut off at zero, and flat there
        return self._summed(
            weights, 0.5 * third * var[:n], [c.drift(var[n:]) for c in self.choices]
        )

    def slope(self, var: FloatArray, move: FloatArray) -> FloatArray:
        """(m,) ℓ − ½ var·k + h·move of every answer, with its own k and h along its edges."""
        n = self.n_pairs
        parts = [self.pairs.value - 0.5 * var[:n] * self.precision + self.pairs.d1 * move[:n]]
        for choices in self.choices:
            edge = n + choices.group.edge
            bent = np.einsum("ge,ge->g", choices.tau, var[edge])
            parts.append(
                choices.value - 0.5 * bent + np.einsum("ge,ge->g", choices.pull, move[edge])
            )
        return np.concatenate(parts)

    @cached_property
    def pulls(self) -> sparse.csr_array:
        """(m, E) how each answer pulls at each edge."""
        n = self.n_pairs
        pull, edge, size = [self.pairs.d1], [np.arange(n)], [np.ones(n, dtype=np.intp)]
        for choices in self.choices:
            pull.append(choices.pull.ravel())
            edge.append(n + choices.group.edge.ravel().astype(np.intp))
            size.append(np.full(len(choices.value), choices.pull.shape[1]))
        starts = np.append(0, np.cumsum(np.concatenate(size)))
        return sparse.csr_array(
            (np.concatenate(pull), np.concatenate(edge), starts),
            shape=(len(starts) - 1, self.n_edges),
        )

    def _summed(
        self, weights: FloatArray, pairs: FloatArray, choices: list[FloatArray]
    ) -> FloatArray:
        """Weighted answers added up on their edges."""
        n = self.n_pairs
        if not choices:
            weighted: FloatArray = weights * pairs
            return weighted
        total = np.zeros(self.n_edges)
        total[:n] = weights[:n] * pairs
        mine = np.split(weights[n:], np.cumsum([len(along) for along in choices])[:-1])
        for local, along, w in zip(self.choices, choices, mine, strict=True):
            at = local.group.edge.ravel()
            total[n:] += np.bincount(at, (w[:, None] * along).ravel(), self.n_edges - n)
        return total
