"""Comparisons as edges between points.

A *point* is what the prior is factored over. In item space the points are the compared items and
A has rows e_winner − e_loser; in comparison space the points are the differences themselves and
A only renames them. Everything downstream is written once, for a general A.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from penchant.data import Comparisons
from penchant.data.graph import Differences
from penchant.gp.cliques import clique_edges
from penchant.likelihoods import Outcomes
from penchant.numerics.types import FloatArray, IntArray


@dataclass(frozen=True)
class Edges:
    """The distinct comparisons, restricted to the items that occur in them.

    After the single pairs stand the edges of choices, those of `outcomes.cliques`.

    winner, loser: (m,) positions in `items`; items: (p,) positions in the universe;
    count: (m,) how often each comparison was seen.
    """

    winner: IntArray
    loser: IntArray
    count: FloatArray
    items: IntArray
    outcomes: Outcomes

    @classmethod
    def of(cls, data: Comparisons) -> "Edges":
        """Edges of all users' comparisons taken together."""
        pooled = data.bare().pooled()
        pairs = pooled.single_pairs()
        outcomes = Outcomes(pairs.tie if pairs.tie.any() else None, pairs.margin)
        winner, loser, count = pairs.winner, pairs.loser, pairs.count.astype(float)
        if pooled.rankings is not None:
            _, first, second, cliques = clique_edges(pooled.rankings, pooled.n_items)
            winner, loser = np.append(winner, first), np.append(loser, second)
            # counts of choices are inside their sites
            count = np.append(count, np.ones(cliques.n_edges))
            outcomes = outcomes._replace(cliques=cliques)
        return cls.between(winner, loser, count, outcomes)

    @classmethod
    def between(
        cls, winner: IntArray, loser: IntArray, count: FloatArray, outcomes: Outcomes
    ) -> "Edges":
        """Edges given by positions in the universe."""
        n = 1 + max(winner.max(initial=-1), loser.max(initial=-1))
        occurs, position = np.zeros(n, dtype=bool), np.empty(n, dtype=np.intp)
        occurs[winner] = occurs[loser] = True
        items = np.flatnonzero(occurs)
        position[items] = np.arange(len(items))
        return cls(position[winner], position[loser], count, items, outcomes)

    def __len__(self) -> int:
        return len(self.winner)

    @cached_property
    def ends(self) -> tuple[IntArray, IntArray]:
        """Winners and losers as positions in the universe."""
        return self.items[self.winner], self.items[self.loser]

    @property
    def keys(self) -> tuple[IntArray, ...]:
        """What tells edges apart, beside their outcomes."""
        return self.ends

    def take(self, rows: IntArray) -> "Edges":
        """Some of the comparisons, over the items that occur in them."""
        winner, loser = self.ends
        outcomes = self.outcomes.part_of(rows, len(self))
        return Edges.between(winner[rows], loser[rows], self.count[rows], outcomes)


class EdgePoints:
    """A is a permutation: every point is one comparison's difference (comparison space).

    order: (m,) the edge that each point stands for.
    """

    def __init__(self, order: IntArray) -> None:
        self.order = order
        self.position = np.argsort(order)
        self.n_points = len(order)

    def forward(self, x: FloatArray) -> FloatArray:
        """A x."""
        picked: FloatArray = x[self.position]
        return picked

    def adjoint(self, y: FloatArray) -> FloatArray:
        """Aᵀ y."""
        picked: FloatArray = y[self.order]
        return picked

    def laplacian(self, weight: FloatArray) -> sparse.csr_array:
        """L = Aᵀ diag(weight) A, a diagonal."""
        return sparse.diags_array(weight[self.order]).tocsr()

    def variances(self, half: FloatArray) -> FloatArray:
        """diag(A Σ Aᵀ) for Σ = halfᵀ half."""
        return self.forward(np.einsum("ij,ij->j", half, half))


Design = Differences | EdgePoints
