"""Comparisons as edges between points.

A *point* is what the prior is factored over. In item space the points are the compared items and
A has rows e_winner − e_loser; in comparison space the points are the differences themselves and
A only renames them. Everything downstream is written once, for a general A.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from penchant.data import Comparisons, Differences
from penchant.gp.cliques import clique_edges
from penchant.gp.effects import Runs, Shown, told
from penchant.likelihoods import Outcomes
from penchant.numerics.linalg import column_squares, diagonal, multiply_symmetric
from penchant.numerics.types import FloatArray, IntArray


@dataclass(frozen=True)
class Edges:
    """The distinct comparisons, restricted to the items that occur in them.

    After the single pairs stand the edges of choices, those of `outcomes.cliques`.

    winner, loser: (m,) positions in `items`; items: (p,) positions in the universe;
    count: (m,) how often each comparison was seen; shown: how it was made, where that is told.
    """

    winner: IntArray
    loser: IntArray
    count: FloatArray
    items: IntArray
    outcomes: Outcomes
    shown: Shown | None = None

    @classmethod
    def of(cls, data: Comparisons, like: Shown | None = None, by_rater: bool = False) -> "Edges":
        """Edges of all users' comparisons taken together.

        like: effects that are known already; by_rater: each user's edges are their own.
        """
        made = told(data) or like is not None
        pooled = data.bare(keep=("first", "covariates") if made else ())
        pooled = pooled if by_rater else pooled.pooled()
        pairs = pooled.single_pairs()
        outcomes = Outcomes(pairs.tie if pairs.tie.any() else None, pairs.margin, rater=pairs.user)
        winner, loser, count = pairs.winner, pairs.loser, pairs.count.astype(float)
        shown = Shown.of(pairs, like) if made else None
        if pooled.rankings is not None:
            _, first, second, cliques = clique_edges(pooled.rankings, pooled.n_items)
            winner, loser = np.append(winner, first), np.append(loser, second)
            # counts of choices are inside their sites, and nobody knows the sides of a choice
            count = np.append(count, np.ones(cliques.n_edges))
            outcomes = outcomes._replace(cliques=cliques)
            shown = None if shown is None else shown.padded(cliques.n_edges)
        return replace(cls.between(winner, loser, count, outcomes), shown=shown)

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

    def weighted(self, count: FloatArray) -> "Edges":
        """The same edges with other counts (m,), which may be below one; of single pairs alone."""
        power = np.minimum(count, 1.0) if (count < 1.0).any() else None
        return replace(self, count=count, outcomes=self.outcomes._replace(power=power))

    def __len__(self) -> int:
        return len(self.winner)

    @cached_property
    def ends(self) -> tuple[IntArray, IntArray]:
        """Winners and losers as positions in the universe."""
        return self.items[self.winner], self.items[self.loser]

    @property
    def keys(self) -> tuple[IntArray | FloatArray, ...]:
        """What tells edges apart, beside their outcomes."""
        return self.ends if self.shown is None else (*self.ends, *self.shown.z)

    @cached_property
    def runs(self) -> Runs:
        """Neighbours that compare the same two items."""
        changes = (np.diff(self.winner) != 0) | (np.diff(self.loser) != 0)
        starts = np.append(0, 1 + np.flatnonzero(changes))
        return Runs(starts, np.diff(np.append(starts, len(self))))

    @cached_property
    def pairs(self) -> "Edges":
        """What the prior has to know of: with effects, each run of the same pair once."""
        if self.shown is None:
            return self
        starts = self.runs.starts
        count = self.runs.sum(self.count)
        return Edges(self.winner[starts], self.loser[starts], count, self.items, Outcomes())

    def take(self, rows: IntArray) -> "Edges":
        """Some of the comparisons, over the items that occur in them."""
        winner, loser = self.ends
        outcomes = self.outcomes.part_of(rows, len(self))
        part = Edges.between(winner[rows], loser[rows], self.count[rows], outcomes)
        return part if self.shown is None else replace(part, shown=self.shown.part(rows))


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

    def laplacian_times(self, weight: FloatArray, rows: FloatArray) -> FloatArray:
        """L rows."""
        return multiply_symmetric(self.laplacian(weight), rows)

    def variances(self, half: FloatArray) -> FloatArray:
        """diag(A Σ Aᵀ) for Σ = halfᵀ half."""
        return self.forward(column_squares(half))

    def variances_under(self, covariance: FloatArray) -> FloatArray:
        """diag(A Σ Aᵀ) from the lower triangle of Σ."""
        return self.forward(diagonal(covariance))


Design = Differences | EdgePoints
