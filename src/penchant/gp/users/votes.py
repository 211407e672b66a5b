"""Comparisons with the user who made each, and the sites that stand in for them."""

from dataclasses import dataclass, fields

import numpy as np

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp.sites import Sites
from penchant.likelihoods import Outcomes
from penchant.numerics.types import FloatArray, IntArray


@dataclass(frozen=True)
class Votes:
    """Who preferred what to what: (m,) positions among the users and among the items."""

    user: IntArray
    winner: IntArray
    loser: IntArray
    count: FloatArray
    outcomes: Outcomes

    @classmethod
    def of(cls, data: Comparisons, by_rater: bool = False) -> "Votes":
        """All comparisons of all users; by_rater: answers depend on who gives them."""
        data = data.bare()
        if data.user is None:
            raise DataError(
                "these comparisons do not say who made them: give a user for each, or use "
                "PreferenceGP for everybody together"
            )
        tie, rater = data.tie if data.tie.any() else None, data.user if by_rater else None
        outcomes = Outcomes(tie, data.margin, rater)
        return cls(data.user, data.winner, data.loser, data.count.astype(float), outcomes)

    def __len__(self) -> int:
        return len(self.user)

    @property
    def keys(self) -> tuple[IntArray, ...]:
        """What tells votes apart, beside their outcomes."""
        return self.user, self.winner, self.loser

    def part(self, rows: IntArray) -> "Votes":
        """Some of the comparisons."""
        return Votes(
            self.user[rows],
            self.winner[rows],
            self.loser[rows],
            self.count[rows],
            self.outcomes.part(rows),
        )


@dataclass(frozen=True, eq=False)
class VoteSites:
    """Converged sites with their comparisons: all of the data that predictions need.

    user, winner, loser: (m,) as in `Votes`; weight = count · τ, shift = count · ν.
    """

    user: IntArray
    winner: IntArray
    loser: IntArray
    weight: FloatArray
    shift: FloatArray

    @classmethod
    def of(cls, votes: Votes, sites: Sites) -> "VoteSites":
        """Votes and the sites that inference found for them."""
        where = (votes.user, votes.winner, votes.loser)
        return cls(*where, votes.count * sites.tau, votes.count * sites.nu)

    def per_copy(self, count: FloatArray) -> Sites:
        """The sites of one copy each, (m,) counts being those of the same comparisons."""
        return Sites(self.weight / count, self.shift / count)

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
