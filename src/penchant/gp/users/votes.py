"""Comparisons with the user who made each, and the sites that stand in for them."""

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp.cliques import clique_edges
from penchant.gp.effects import Shown, told
from penchant.gp.posterior import EffectPosterior
from penchant.gp.sites import Sites
from penchant.likelihoods import Outcomes
from penchant.numerics.linalg import multiply
from penchant.numerics.random import ContentKeys, pair_keys
from penchant.numerics.types import FloatArray, IntArray


@dataclass(frozen=True)
class Votes:
    """Who preferred what to what: (m,) positions among the users and among the items.

    After the single pairs stand the edges of choices, those of `outcomes.cliques`.
    """

    user: IntArray
    winner: IntArray
    loser: IntArray
    count: FloatArray
    outcomes: Outcomes
    shown: Shown | None = None

    @classmethod
    def of(cls, data: Comparisons) -> "Votes":
        """All comparisons of all users, whatever they tell of how they were made."""
        return cls._of(data.bare())

    @classmethod
    def as_shown(
        cls, data: Comparisons, like: Shown | None = None, by_rater: bool = False
    ) -> "Votes":
        """All comparisons of all users, and how they were made.

        like: effects known already; by_rater: answers depend on who gives them.
        """
        if not told(data) and like is None:
            return cls._of(data.bare(), by_rater)
        data = data.bare(keep=("first", "covariates"))
        votes, shown = cls._of(data, by_rater), Shown.of(data.single_pairs(), like)
        if shown is not None:
            shown = shown.padded(len(votes) - shown.z.shape[1])
        return replace(votes, shown=shown)

    @classmethod
    def _of(cls, data: Comparisons, by_rater: bool = False) -> "Votes":
        if data.user is None:
            raise DataError(
                "these comparisons do not say who made them: give a user for each, or use "
                "PreferenceGP for everybody together"
            )
        pairs = data.single_pairs()
        who = data.user if pairs.user is None else pairs.user
        tie, rater = pairs.tie if pairs.tie.any() else None, who if by_rater else None
        outcomes = Outcomes(tie, pairs.margin, rater=rater)
        votes = cls(who, pairs.winner, pairs.loser, pairs.count.astype(float), outcomes)
        if data.rankings is None or data.rankings.user is None:
            return votes
        user, first, second, cliques = clique_edges(data.rankings, data.n_items)
        return cls(
            np.append(who, user),
            np.append(votes.winner, first),
            np.append(votes.loser, second),
            # counts of choices are inside their sites
            np.append(votes.count, np.ones(cliques.n_edges)),
            outcomes._replace(cliques=cliques),
        )

    def __len__(self) -> int:
        return len(self.user)

    @property
    def keys(self) -> tuple[IntArray | FloatArray, ...]:
        """What tells votes apart, beside their outcomes."""
        z = () if self.shown is None else tuple(self.shown.z)
        return self.user, self.winner, self.loser, *z

    @cached_property
    def content(self) -> ContentKeys:
        """Keys of users and items that do not depend on names, see `pair_keys`."""
        pairs = self.as_pairs()  # the orientation of a choice's edges depends on the items' order
        tie = pairs.outcomes.tie
        return pair_keys(pairs.winner, pairs.loser, pairs.user, pairs.count, tie)

    def item_order(self, n_items: int) -> IntArray:
        """(n_items,) the place of each item in a random order that names do not decide."""
        key = np.zeros(n_items, dtype=np.uint64)
        key[: len(self.content.item)] = self.content.item
        return np.argsort(np.argsort(key, kind="stable"), kind="stable")

    def part(self, rows: IntArray) -> "Votes":
        """Some of the comparisons."""
        return Votes(
            self.user[rows],
            self.winner[rows],
            self.loser[rows],
            self.count[rows],
            self.outcomes.part_of(rows, len(self)),
            None if self.shown is None else self.shown.part(rows),
        )

    def as_pairs(self) -> "Votes":
        """The same with choices broken into the pairs that they decide, each an answer of its own.

        >>> data = Comparisons.from_rankings([["tea", "milk", "water"]], users=["ann"])
        >>> votes = Votes.of(data).as_pairs()
        >>> [(data.items[w], data.items[l]) for w, l in zip(votes.winner, votes.loser)]
        [('tea', 'milk'), ('milk', 'water'), ('tea', 'water')]
        """
        cliques = self.outcomes.cliques
        if cliques is None:
            return self
        n, decided = len(self) - cliques.n_edges, []
        for group in cliques.groups:
            i, j = np.triu_indices(group.chosen.shape[1], 1)
            row, pair = np.nonzero(group.chosen[:, i] != group.chosen[:, j])
            first_won = group.chosen[row, i[pair]] > 0
            decided.append((group.edge[row, pair], first_won, group.count[row]))
        edge, first_won, count = (np.concatenate(part) for part in zip(*decided, strict=True))
        answer, same = np.unique(2 * edge.astype(np.intp) + first_won, return_inverse=True)
        rows, won = np.append(np.arange(n), n + answer // 2), answer % 2 == 1
        first, second = self.winner[rows], self.loser[rows]
        won = np.append(np.ones(n, dtype=bool), won)
        tie = self.outcomes.tie
        return Votes(
            self.user[rows],
            np.where(won, first, second),
            np.where(won, second, first),
            np.append(self.count[:n], np.bincount(same, count, len(answer))),
            Outcomes(None if tie is None else np.append(tie, np.zeros(len(answer), dtype=bool))),
            None if self.shown is None else self.shown.part(rows),
        )

    def offset(self, effects: EffectPosterior | None) -> FloatArray:
        """(m,) zᵀβ̂, by what is known of the effects."""
        if self.shown is None or effects is None:
            return np.zeros(len(self))
        return multiply(self.shown.z.T, effects.mean)


@dataclass(frozen=True, eq=False)
class VoteSites:
    """Converged sites with their comparisons: all of the data that predictions need.

    user, winner, loser: (m,) as in `Votes`; weight = count · τ, shift = count · ν, less weight ·
    zᵀβ̂ where effects are known: sites on the difference of utilities alone.
    """

    user: IntArray
    winner: IntArray
    loser: IntArray
    weight: FloatArray
    shift: FloatArray

    @classmethod
    def of(cls, votes: Votes, sites: Sites, effects: EffectPosterior | None = None) -> "VoteSites":
        """Votes and the sites that inference found for them."""
        where = (votes.user, votes.winner, votes.loser)
        weight, shift = votes.count * sites.tau, votes.count * sites.nu
        return cls(*where, weight, shift - weight * votes.offset(effects))

    def per_copy(self, votes: Votes, effects: EffectPosterior | None = None) -> Sites:
        """The sites of one copy each of the same comparisons, on all that they depend on."""
        shift = self.shift + self.weight * votes.offset(effects)
        return Sites(self.weight / votes.count, shift / votes.count)

    def take(self, rows: IntArray) -> "VoteSites":
        """Some of them, or all in another order."""
        return VoteSites(*(getattr(self, f.name)[rows] for f in fields(self)))

    def join(self, more: "VoteSites") -> "VoteSites":
        """These and more."""
        columns = ((getattr(self, f.name), getattr(more, f.name)) for f in fields(self))
        return VoteSites(*map(np.concatenate, columns))


@dataclass(frozen=True, eq=False)
class Kept:
    """What Sparse-EP kept, most informative first, and how informative everything was.

    users, items: positions; user_entropy (U,), item_entropy (n,): entropy removed, in nats;
    n_comparisons: rows of data that predictions rest on.
    """

    users: IntArray
    items: IntArray
    user_entropy: FloatArray
    item_entropy: FloatArray
    n_comparisons: int
