"""What a fitted model of communities tells: of them, of their members, of the items."""

from typing import Any

import numpy as np

from penchant.ask import Belief
from penchant.communities import Chain, Draws, Found, common_effects
from penchant.data import Comparisons
from penchant.gp import Normal, Posterior, UserPosteriors
from penchant.models.community_odds import believed_of, odds_among
from penchant.models.community_report import (
    Community,
    Disagreement,
    ItemView,
    Names,
    disagreements,
    introduce,
    view_items,
)
from penchant.models.contract import UtilityModel
from penchant.models.effects import Estimates
from penchant.models.odds import Odds
from penchant.models.state import Fitted
from penchant.models.validation import check_arguments, whole
from penchant.numerics.types import FloatArray, IntArray


class CommunityViews(UtilityModel):
    """A model whose fit is a `Found`, read off in all ways."""

    @property
    def membership_(self) -> FloatArray:
        """A row a user, a column a community: rows sum to one."""
        membership: FloatArray = self._fitted().learned.membership.view()
        membership.flags.writeable = False
        return membership

    @property
    def posteriors_(self) -> tuple[Posterior, ...]:
        """Each community's utilities."""
        posteriors: tuple[Posterior, ...] = self._fitted().learned.posteriors
        return posteriors

    @property
    def n_communities_(self) -> int:
        """The likeliest number of communities that their answers support."""
        return len(self.posteriors_)

    @property
    def has_communities_(self) -> bool:
        """Whether more than one community is likelier than one."""
        return self.n_communities_ > 1

    @property
    def community_counts_(self) -> dict[int, float]:
        """Posterior over the number of communities, from chains; of a search, what it found."""
        found: Found = self._fitted().learned
        return {self.n_communities_: 1.0} if found.draws is None else found.draws.counts()

    @property
    def communities_(self) -> list[Community]:
        """Who the communities are, largest first."""
        fitted = self._fitted()
        found: Found = fitted.learned
        names = Names(found.data.items, fitted.columns.names, fitted.user_columns.names)
        return introduce(found, names, np.random.default_rng(found.seed))

    @property
    def personal_(self) -> UserPosteriors | None:
        """Everybody's own utilities, where people vary inside communities."""
        personal = self._fitted().learned.personal
        return None if personal is None else personal.posterior

    @property
    def communal_share_(self) -> float:
        """How much of taste communities explain: all, unless people vary inside them."""
        return float(self._fitted().learned.communal_share)

    @property
    def chains_(self) -> tuple[Chain, ...]:
        """Where the chains are; `resume` goes on from there."""
        chains: tuple[Chain, ...] = self._fitted().learned.chains
        return chains

    @property
    def draws_(self) -> Draws | None:
        """What was kept of the chains; None after a search."""
        draws: Draws | None = self._fitted().learned.draws
        return draws

    @property
    def sampled_(self) -> Comparisons:
        """The data that the chains ran on."""
        data: Comparisons = self._fitted().learned.sampled
        return data

    def consensus(self, k: int = 5) -> list[ItemView]:
        """The k items that communities agree on most, liked or not."""
        check_arguments(self, "consensus", k=(k, whole(1)))
        return view_items(self._fitted().learned)[:k]

    def divisive(self, k: int = 5) -> list[ItemView]:
        """The k items that divide communities most."""
        check_arguments(self, "divisive", k=(k, whole(1)))
        return view_items(self._fitted().learned)[::-1][:k]

    def disagreement(self, k: int = 3) -> list[Disagreement]:
        """The k main directions along which people differ, whether or not they fall into groups.

        None where nobody is told apart: one community without personal taste.
        """
        check_arguments(self, "disagreement", k=(k, whole(1)))
        return disagreements(self._fitted().learned, k)

    def _believed(self, fitted: Fitted, user: int | None) -> Belief:
        return believed_of(fitted.learned, user)

    def _spread(self, fitted: Fitted) -> FloatArray:
        found: Found = fitted.learned
        own = found.personal
        spread: FloatArray = found.population().spread if own is None else own.posterior.spread()
        return spread

    def _utilities(self, fitted: Fitted, users: IntArray | None, X: Any) -> Normal:
        found: Found = fitted.learned
        return found.utilities(users, None if X is None else fitted.columns.new_items(X))

    def _odds(
        self,
        fitted: Fitted,
        pairs: IntArray,
        users: IntArray | None,
        X: Any,
        z: FloatArray | None = None,
    ) -> Odds:
        target = None if X is None else fitted.columns.new_items(X)
        return odds_among(fitted.learned, pairs, users, target, z)

    def _effects(self, fitted: Fitted) -> Estimates | None:
        if fitted.learned.personal is not None:
            own = fitted.learned.personal.posterior
            return Estimates.of(own.effects, own.shared_lower)
        found = common_effects(fitted.learned.posteriors)
        return None if found is None else Estimates(found[0], *found[1])
