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
from penchant.likelihoods import Outcomes
from penchant.numerics.linalg import column_squares
from penchant.numerics.types import FloatArray, IntArray


@dataclass(frozen=True)
class Edges:
    """The distinct comparisons, restricted to the items that occur in them.

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
        outcomes = Outcomes(pooled.tie if pooled.tie.any() else None, pooled.margin)
        return cls.between(pooled.winner, pooled.loser, pooled.count.astype(float), outcomes)

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
        return Edges.between(winner[rows], loser[rows], self.count[rows], self.outcomes.part(rows))


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
        return self.forward(column_squares(half))


Design = Differences | EdgePoints
