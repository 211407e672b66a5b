"""CommunityGP: communities of taste, found by a Dirichlet-process mixture (paper 004)."""

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from penchant.data import Comparisons, check_connected
from penchant.errors import ConvergenceWarning, DataError, DataWarning
from penchant.inference import Hyperparameters, Settings
from penchant.kernels import Independent, Inputs, Kernel
from penchant.likelihoods import Likelihood, get
from penchant.models.community_report import (
    Community,
    ItemView,
    Names,
    feature_names,
    introduce,
    summarize,
    view_items,
)
from penchant.models.defaults import default_kernel
from penchant.models.features import FeatureColumns
from penchant.models.storage import save
from penchant.models.validation import check_choice, check_features
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.types import FloatArray, IntArray
from penchant.people.assignment import Answers
from penchant.people.community import Chain, Plan, run_chains, start_chain
from penchant.people.community_diagnostics import diagnose
from penchant.people.community_draws import Draws, align
from penchant.people.community_personal import PersonalModel, fit_personal
from penchant.people.community_progress import sweep_progress
from penchant.people.community_utility import Mixture, fit_reported
from penchant.people.fold_in import fold_in
from penchant.people.free import FreeCovariance
from penchant.people.insight import feature_contrasts
from penchant.people.posterior import UserPosteriors
from penchant.people.samplers import SAMPLERS
from penchant.people.votes import Votes

SITE_TOLERANCE = 1e-3
"""Of expectation propagation within a chain: far finer than what a draw varies by."""


class CommunityGP(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Groups of users with a common taste, their number included, and what each prefers.

    A Dirichlet-process mixture: every user belongs to a community, every community has its own
    utilities with a Gaussian process prior over the items. Memberships are sampled, so whatever
    is uncertain (who belongs where, how many communities there are) comes with probabilities.

    Parameters
    ----------
    concentration : float or (shape, rate)
        λ: the larger, the more communities are expected. A pair has it learned under a Gamma
        prior.
    kernel : Kernel or None
        Prior covariance over items. None: an RBF on the standardised features, or independent
        items without X.
    likelihood : str or Likelihood
        "probit", "logit", "ties", "gaussian" or an instance.
    sampler : {"collapsed", "blocked"}
        "collapsed" reassigns users one after another; "blocked" all at once given weights, for
        very many users.
    personal : bool
        Also learn how each user deviates from their community: better predictions where users
        answered much.
    n_sweeps : int
        Sweeps of each chain; the first half warms it up and is not used.
    n_chains : int
        Independent chains, compared in `diagnostics_`.
    hyperparameters : {"shared", "community"}
        One set for all communities, or each its own, held near the shared ones.
    optimize : {"evidence", None}
        Learn hyperparameters while warming up, or keep them as given.
    rank : int or None
        Bound on the rank of the prior's factor, for very many items.
    progress : bool
        Show a progress bar, on a terminal only.
    random_state : None, int or Generator
        The same seed gives the same result.

    Attributes
    ----------
    n_communities_ : int, the likeliest number of communities that their answers support
    community_counts_ : dict, posterior over the number
    membership_ : (n_users, n_communities_), rows sum to one
    communities_ : list of `Community`, largest first
    posteriors_ : tuple of `Posterior`, one a community
    diagnostics_ : `Diagnostics`: traces, effective sample size, agreement of chains
    kernel_, likelihood_ : with learned parameters
    personal_ : `UserPosteriors` with personal=True, else None
    communal_share_ : how much of taste communities explain, with personal=True
    chains_, draws_ : what was sampled; `resume` goes on from there
    comparisons_ : the data that were fitted

    Examples
    --------
    >>> from penchant.data import Comparisons
    >>> tea = ["tea", "milk", "water"]
    >>> users = range(12)
    >>> data = Comparisons.from_rankings([tea] * 6 + [tea[::-1]] * 6, users=users)
    >>> model = CommunityGP(n_sweeps=20, n_chains=1, random_state=0).fit(None, data)
    >>> model.n_communities_
    2
    >>> bool(model.predict_proba([("tea", "water")], users=0)[0] > 0.8)
    True
    """

    def __init__(
        self,
        concentration: float | tuple[float, float] = 1.0,
        *,
        kernel: Kernel | None = None,
        likelihood: str | Likelihood = "probit",
        sampler: str = "collapsed",
        personal: bool = False,
        n_sweeps: int = 100,
        n_chains: int = 2,
        hyperparameters: str = "shared",
        optimize: str | None = "evidence",
        rank: int | None = None,
        progress: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self.concentration = concentration
        self.kernel = kernel
        self.likelihood = likelihood
        self.sampler = sampler
        self.personal = personal
        self.n_sweeps = n_sweeps
        self.n_chains = n_chains
        self.hyperparameters = hyperparameters
        self.optimize = optimize
        self.rank = rank
        self.progress = progress
        self.random_state = random_state

    def fit(self, X: Any, data: Comparisons, user_features: Any = None) -> Self:
        """Find the communities.

        X : (n_items, d) features in the order of `data.items`, or None.
        data : Comparisons with users.
        user_features : (n_users, q) in the order of `data.users`, or None: not used to find
            communities, but to tell afterwards who their members are.

        An interrupt from the keyboard stops sampling and leaves a model of what there is by then.
        """
        self._check_parameters()
        likelihood = get(self.likelihood)
        self.item_columns_, items = FeatureColumns.of(
            X, data.n_items, "items", scale=self.kernel is None
        )
        self.user_features_ = check_features(user_features, data.n_users, "users")
        if (message := check_connected(data)) is not None:
            warnings.warn(message, DataWarning, stacklevel=2)
        self.item_feature_names_ = feature_names(X, "feature")
        self.user_feature_names_ = feature_names(user_features, "user feature")
        hyper = Hyperparameters(self.kernel or default_kernel(items), likelihood)
        self.comparisons_, self.start_theta_ = data, hyper.theta
        mixture = self._mixture(items, hyper)
        likelihood.check(mixture.answers.outcomes)
        seed = int(as_rng(self.random_state).integers(2**32))
        chains = [
            Chain.of(start_chain(mixture, self._plan(), (seed, number)))
            for number in range(self.n_chains)
        ]
        return self._run(mixture, chains, self.n_sweeps)

    def resume(self, n_sweeps: int) -> Self:
        """Let every chain go on from where it is, exactly as if it had never stopped."""
        check_is_fitted(self, "chains_")
        hyper = Hyperparameters(self.kernel_, self.likelihood_).at(self.start_theta_)
        mixture = self._mixture(self.posteriors_[0].universe, hyper)
        return self._run(mixture, self.chains_, n_sweeps)

    def _check_parameters(self) -> None:
        check_choice(self, "sampler", SAMPLERS)
        check_choice(self, "optimize", ("evidence", None))
        check_choice(self, "hyperparameters", ("shared", "community"))
        for name, least in (("n_sweeps", 2), ("n_chains", 1)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < least:
                raise DataError(f"CommunityGP: {name}={value!r}: it must be at least {least}")
        numbers = np.atleast_1d(np.asarray(self.concentration, dtype=float))
        if len(numbers) > 2 or not (np.isfinite(numbers) & (numbers > 0)).all():
            raise DataError(
                f"CommunityGP: concentration={self.concentration!r}: it must be a positive number, "
                "or (shape, rate) of a Gamma prior, both positive"
            )

    def _plan(self) -> Plan:
        *rest, last = np.ravel(self.concentration).tolist()
        prior = (rest[0], last) if rest else None
        return Plan(
            sampler=self.sampler,
            n_warmup=self.n_sweeps // 2,
            concentration=rest[0] / last if rest else last,
            concentration_prior=prior,
            learn=self.optimize is not None,
            own=self.hyperparameters == "community",
        )

    def _mixture(self, items: Inputs, hyper: Hyperparameters) -> Mixture:
        """Over the users who answered anything: the others belong anywhere."""
        answers = self._answers()
        active = np.flatnonzero(np.diff(answers.counts.indptr))
        if len(active) < answers.n_users:
            answers = answers.take(active)
        return Mixture(answers, items, hyper, Settings(tolerance=SITE_TOLERANCE), self.rank)

    def _run(self, mixture: Mixture, chains: Sequence[Chain], n_sweeps: int) -> Self:
        with sweep_progress(len(chains) * n_sweeps, self.progress) as watch:
            done, completed = run_chains(mixture, self._plan(), chains, n_sweeps, watch)
        self._store(mixture, done, completed)
        if self.personal and completed:
            self._fit_personal(mixture.items)
        return self

    def _store(self, mixture: Mixture, chains: tuple[Chain, ...], completed: bool) -> None:
        """Everything that the chains say."""
        kept = tuple(draw for chain in chains for draw in chain.draws)
        draws = align(Draws(kept, mixture.hyper.likelihood, 1), mixture.answers)
        theta = np.mean([chain.state.theta for chain in chains], axis=0)
        self.chains_, self.draws_ = chains, draws
        self.kernel_, self.likelihood_ = mixture.hyper.at(theta)
        self.n_communities_, self.community_counts_ = draws.n_communities, draws.counts()
        answers = self._answers()
        self.membership_ = draws.membership(answers)
        pair_counts = np.ascontiguousarray((answers.counts.T @ self.membership_).T)
        fits = fit_reported(mixture, pair_counts, theta, self.hyperparameters == "community")
        self.posteriors_ = tuple(fit.posterior for fit in fits)
        self.personal_: UserPosteriors | None = None
        self.communal_share_ = 1.0
        n_warmup = self._plan().n_warmup
        self.diagnostics_ = diagnose(chains, draws, mixture.answers, n_warmup, completed)
        if (message := self.diagnostics_.advice()) is not None:
            warnings.warn(message, ConvergenceWarning, stacklevel=4)

    def _fit_personal(self, items: Inputs) -> None:
        kernel = self.kernel or _personal_kernel(items)
        model = PersonalModel(items, kernel, get(self.likelihood), self.draws_, Settings())
        rng = np.random.default_rng(self.chains_[0].state.seed)
        self.personal_, self.communal_share_ = fit_personal(model, self.comparisons_, rng)

    def _answers(self) -> Answers:
        """All users' answers, indexed once for each set of comparisons."""
        indexed = getattr(self, "_indexed", None)
        if indexed is None or indexed[0] is not self.comparisons_:
            self._indexed = indexed = (self.comparisons_, Answers.of(self.comparisons_))
        answers: Answers = indexed[1]
        return answers

    @property
    def has_communities_(self) -> bool:
        """Whether more than one community is likelier than one."""
        check_is_fitted(self, "draws_")
        return bool(self.n_communities_ > 1)

    @property
    def communities_(self) -> list[Community]:
        """Who the communities are, largest first."""
        check_is_fitted(self, "draws_")
        names = Names(self.comparisons_.items, self.item_feature_names_, self.user_feature_names_)
        contrasts = np.zeros((self.n_communities_, 0))
        if self.user_features_ is not None:
            fitted = self.membership_[: len(self.user_features_)]
            contrasts = feature_contrasts(fitted, self.user_features_)
        rng = np.random.default_rng(self.chains_[0].state.seed)
        return introduce(self.posteriors_, self.membership_.sum(axis=0), contrasts, names, rng)

    def consensus(self, k: int = 5) -> list[ItemView]:
        """The k items that communities agree on most, liked or not."""
        return self._item_views()[:k]

    def divisive(self, k: int = 5) -> list[ItemView]:
        """The k items that divide communities most."""
        return self._item_views()[::-1][:k]

    def _item_views(self) -> list[ItemView]:
        check_is_fitted(self, "draws_")
        sizes = self.membership_.sum(axis=0)
        return view_items(self.posteriors_, sizes, self.comparisons_.items)

    def describe(self) -> str:
        """What was found, in a few lines; says so when there is no evidence of communities."""
        return summarize(self.community_counts_, self.communities_, self._item_views())

    def predict(self, users: Any = None) -> FloatArray:
        """Expected utilities (n_users, n_items).

        users : a user or a sequence of them, names or indices; None for all, in order.
        """
        who = self._users(users)
        if self.personal_ is not None:
            mean: FloatArray = self.personal_.utilities(who).mean
            return mean
        utilities: FloatArray = self.draws_.utilities(self._answers().take(who))
        return utilities

    def predict_proba(self, pairs: Any, users: Any) -> FloatArray:
        """P(first preferred to second), (k,), by each user's posterior over communities.

        pairs : (k, 2) item names or indices. users : one for all pairs, or one for each.
        """
        who = self._users(users)
        index = self.comparisons_.pair_index(pairs)
        if len(who) not in (1, len(index)):
            raise DataError(
                f"there are {len(index)} pairs and {len(who)} users: give one user for all pairs, "
                "or one for each"
            )
        who = np.broadcast_to(who, len(index))
        first, second = index[:, 0], index[:, 1]
        if self.personal_ is not None:
            difference = self.personal_.differences(who, first, second)
            prob: FloatArray = self.personal_.likelihood.prob(*difference)
            return prob
        distinct, owner = np.unique(who, return_inverse=True)
        prob = self.draws_.prob(self._answers().take(distinct), owner, first, second)
        return prob

    def _users(self, users: Any) -> IntArray:
        check_is_fitted(self, "draws_")
        if users is None:
            return np.arange(self.comparisons_.n_users)
        return np.atleast_1d(self.comparisons_.user_index(users))

    def fold_in(self, data: Comparisons) -> Self:
        """A copy of this model that knows new users too, without sampling again.

        data : comparisons by users who were not in the fit, between items that were. Their rows
        of `membership_` come after the others.
        """
        check_is_fitted(self, "draws_")
        known: Comparisons = self.comparisons_
        if again := set(data.users) & set(known.users):
            raise DataError(
                f"{len(again)} of the users to fold in were fitted already, such as "
                f"{min(again, key=str)!r}: fold in new users only, and fit again for the others"
            )
        items = known.item_index(data.items)
        model = copy.copy(self)
        model.comparisons_ = known.extend(data)
        newcomers = np.arange(known.n_users, model.comparisons_.n_users)
        added = self.draws_.membership(model._answers().take(newcomers))
        model.membership_ = np.concatenate([self.membership_, added])
        if self.personal_ is not None:
            votes = Votes.of(data)
            votes = replace(
                votes,
                user=votes.user + known.n_users,
                winner=items[votes.winner],
                loser=items[votes.loser],
            )
            features = Inputs(added, index=np.arange(len(added)))
            model.personal_, _ = fold_in(self.personal_, features, votes, Settings())
        return model

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file; `penchant.load(path)` reads it back."""
        save(self, path)


def _personal_kernel(items: Inputs) -> Kernel:
    """How deviations of taste go together: learned entry by entry where items have no features."""
    if items.X is None:
        return FreeCovariance.of(np.eye(len(items)))
    return default_kernel(items) + Independent()
