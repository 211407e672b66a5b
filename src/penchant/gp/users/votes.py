"""Comparisons with the user who made each, and the sites that stand in for them."""

from dataclasses import dataclass, fields, replace

import numpy as np

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp.cliques import clique_edges
from penchant.gp.effects import Shown, told
from penchant.gp.posterior import EffectPosterior
from penchant.gp.sites import Sites
from penchant.likelihoods import Outcomes
from penchant.numerics.linalg import multiply
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
    def as_shown(cls, data: Comparisons, like: Shown | None = None) -> "Votes":
        """All comparisons of all users, and how they were made; like: effects known already."""
        if not told(data) and like is None:
            return cls.of(data)
        data = data.bare(keep=("first", "covariates"))
        votes, shown = cls._of(data), Shown.of(data.single_pairs(), like)
        if shown is not None:
            shown = shown.padded(len(votes) - shown.z.shape[1])
        return replace(votes, shown=shown)

    @classmethod
    def _of(cls, data: Comparisons) -> "Votes":
        if data.user is None:
            raise DataError(
                "these comparisons do not say who made them: give a user for each, or use "
                "PreferenceGP for everybody together"
            )
        pairs = data.single_pairs()
        outcomes = Outcomes(pairs.tie if pairs.tie.any() else None, pairs.margin)
        who = data.user if pairs.user is None else pairs.user
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
