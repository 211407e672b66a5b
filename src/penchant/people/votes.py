"""Comparisons with the user who made each."""

from dataclasses import dataclass

from penchant.data import Comparisons
from penchant.errors import DataError
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
    def of(cls, data: Comparisons) -> "Votes":
        """All comparisons of all users."""
        if data.user is None:
            raise DataError(
                "these comparisons do not say who made them: give a user for each, or use "
                "PreferenceGP for everybody together"
            )
        outcomes = Outcomes(data.tie if data.tie.any() else None, data.margin)
        return cls(data.user, data.winner, data.loser, data.count.astype(float), outcomes)

    def __len__(self) -> int:
        return len(self.user)
