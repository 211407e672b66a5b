"""What a fitted model of many users tells: of people at large, of known users, of newcomers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from penchant.data import Lookup
from penchant.errors import DataError
from penchant.gp import Answered, Kept, Normal, Posterior, UserPosteriors
from penchant.kernels import Kernel
from penchant.models.contract import UtilityModel
from penchant.models.effects import Estimates
from penchant.models.odds import Odds
from penchant.models.state import Fitted
from penchant.models.user_answers import foreseen_votes
from penchant.models.validation import YES_OR_NO, check_arguments, n_rows, one_user_a_pair
from penchant.numerics.types import FloatArray, IntArray


class UserViews(UtilityModel):
    """A model whose fit is a `Learned` of many users, read off in all ways."""

    @property
    def posterior_(self) -> UserPosteriors:
        """The posterior over all users' utilities."""
        posterior: UserPosteriors = self._fitted().learned.posterior
        return posterior

    @property
    def log_evidence_(self) -> float:
        """log p(answers | hyperparameters)."""
        return float(self._fitted().learned.log_evidence)

    @property
    def user_kernel_(self) -> Kernel:
        """What users share, with learned parameters."""
        kernel: Kernel = self._fitted().learned.hyper.user_kernel
        return kernel

    @property
    def sharing_(self) -> float:
        """ρ, learned: how much of taste is shared."""
        return float(self._fitted().learned.hyper.sharing)

    @property
    def kept_(self) -> Kept | None:
        """With `sparse`, what was kept, and how informative everything was."""
        return self.posterior_.kept

    @property
    def kept_users_(self) -> tuple[Any, ...]:
        """With `sparse`, the users that predictions rest on."""
        kept = self.kept_
        return () if kept is None else tuple(self.comparisons_.users[i] for i in kept.users)

    @property
    def kept_items_(self) -> tuple[Any, ...]:
        """With `sparse`, the items that predictions rest on."""
        kept = self.kept_
        return () if kept is None else tuple(self.comparisons_.items[i] for i in kept.items)

    def predict(
        self,
        X: Any = None,
        *,
        users: Any = None,
        return_std: bool = False,
        user_features: Any = None,
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Mean utilities (n_items,) of the population, or (n_users, n_items) with users.

        X : None for the training items, or (k, d) features of new ones.
        users : a user or a sequence of them, names or indices; None for the population.
        user_features : (k, d) for new users of whom only features are known; `users` are then
            rows of it, all by default.
        """
        if user_features is None:
            return super().predict(X, users=users, return_std=return_std)
        check_arguments(self, "predict", return_std=(return_std, YES_OR_NO))
        posterior, who = self._newcomers(self._fitted(), users, user_features, X)
        mean, var = posterior.utilities(who, relative=True)
        return (mean, np.sqrt(var)) if return_std else mean

    def predict_proba(
        self,
        pairs: Any,
        users: Any = None,
        X: Any = None,
        *,
        ties: bool = False,
        first: Any = None,
        covariates: Mapping[str, Any] | None = None,
        user_features: Any = None,
    ) -> FloatArray:
        """P(first preferred to second), (k,), given that one of them is: win/(win + loss).

        pairs : (k, 2) item names or indices; with X given, rows of X.
        users : one user for all pairs, or one for each; None for the population; with
            user_features, rows of those.
        ties : return (k, 3) instead: win, tie and loss of the first.
        first, covariates : how a pair is shown, if not at equal sides and covariates; of known
            users.
        """
        if user_features is None:
            shown = {"first": first, "covariates": covariates}
            return super().predict_proba(pairs, users, X, ties=ties, **shown)
        if first is not None or covariates:
            raise DataError("first and covariates cannot be given together with user_features")
        fitted = self._fitted()
        posterior, who = self._newcomers(fitted, users, user_features, X)
        index = fitted.pair_index(pairs, X)
        difference = posterior.differences(one_user_a_pair(who, len(index)), *index.T)
        return Odds.of(posterior.likelihood, difference).told(ties)

    def posterior_for(self, user: Any = None) -> Posterior:
        """The joint posterior of one user's utilities; without a user, the population's."""
        fitted = self._fitted()
        index = None if user is None else int(fitted.learned.data.user_index(user))
        return self._believed(fitted, index)

    def _newcomers(
        self, fitted: Fitted, users: Any, user_features: Any, X: Any
    ) -> tuple[UserPosteriors, IntArray]:
        """The posterior with users of whom only features are known, and which of them are asked."""
        posterior = self._at(fitted, X)
        first, k = len(posterior), n_rows(user_features, "user_features")
        newcomers = fitted.user_columns.rows(user_features, k, "users")
        rows = Lookup(tuple(range(k)), "row of user_features")
        asked = np.arange(k) if users is None else rows.index(users)
        return posterior.with_users(newcomers), first + np.atleast_1d(asked)

    def _at(self, fitted: Fitted, X: Any) -> UserPosteriors:
        posterior: UserPosteriors = fitted.learned.posterior
        return posterior.at(None if X is None else fitted.columns.new_items(X))

    def _believed(self, fitted: Fitted, user: int | None) -> Posterior:
        posterior: UserPosteriors = fitted.learned.posterior
        return posterior.belief(user)

    def _spread(self, fitted: Fitted) -> FloatArray:
        posterior: UserPosteriors = fitted.learned.posterior
        return posterior.spread()

    def _utilities(self, fitted: Fitted, users: IntArray | None, X: Any) -> Normal:
        return self._at(fitted, X).known_utilities(users)

    def _odds(
        self,
        fitted: Fitted,
        pairs: IntArray,
        users: IntArray | None,
        X: Any,
        z: FloatArray | None = None,
    ) -> Odds:
        posterior = self._at(fitted, X)
        mean, var = posterior.known_differences(users, pairs[:, 0], pairs[:, 1])
        if z is not None and posterior.effects is not None:
            shift = posterior.effects.shift(z, posterior.shared_lower)
            mean, var = mean + shift.mean, var + shift.var
        return Odds.of(posterior.likelihood, Normal(mean, var))

    def _effects(self, fitted: Fitted) -> Estimates | None:
        posterior: UserPosteriors = fitted.learned.posterior
        return Estimates.of(posterior.effects, posterior.shared_lower)

    def _answered(self, fitted: Fitted) -> Answered:
        return foreseen_votes(fitted.learned)
