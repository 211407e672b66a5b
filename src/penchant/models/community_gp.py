"""CommunityGP: communities of taste, found by a Dirichlet-process mixture (paper 004)."""

import copy
import warnings
from collections.abc import Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from penchant.communities.assignment import Answers
from penchant.communities.chains import Chain, run_chains, start_chain
from penchant.communities.diagnostics import diagnose
from penchant.communities.draws import Draws, align
from penchant.communities.insight import feature_contrasts
from penchant.communities.personal import PersonalModel, fit_personal
from penchant.communities.update import (
    LEARNING_SWEEPS,
    active,
    carry_over,
    update_membership,
    update_personal,
    update_posteriors,
)
from penchant.communities.utility import Mixture, fit_reported
from penchant.data import Comparisons, check_connected
from penchant.errors import ConvergenceWarning, DataWarning
from penchant.gp import Hyperparameters, Posterior, Settings
from penchant.gp.users.fold_in import check_newcomers, fold_in, votes_of_newcomers
from penchant.gp.users.posterior import UserPosteriors
from penchant.gp.users.update import More
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood, get
from penchant.models.asking import Asking
from penchant.models.community_plan import checked_plan
from penchant.models.community_progress import sweep_progress
from penchant.models.community_report import (
    Community,
    ItemView,
    Names,
    feature_names,
    introduce,
    summarize,
    view_items,
)
from penchant.models.defaults import utility_kernel
from penchant.models.features import FeatureColumns
from penchant.models.people import one_user_a_pair, taste_kernel
from penchant.models.storage import save
from penchant.models.validation import check_features
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.threads import threads_for
from penchant.numerics.types import FloatArray, IntArray

SITE_TOLERANCE = 1e-3
"""Of expectation propagation within a chain: far finer than what a draw varies by."""


class CommunityGP(Asking, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Groups of users with a common taste, their number included, and what each prefers.

    A Dirichlet-process mixture: every user belongs to a community, every community has its own
    utilities with a Gaussian process prior over the items. Memberships are sampled, so whatever
    is uncertain (who belongs where, how many communities there are) comes with probabilities.

    `tell` takes answers by known and by new users. It places those users anew among the
    communities of the draws that there are and infers the reported communities' utilities again
    (not with polish=False), with personal=True also everybody's own; `predict` without personal
    taste rests on the draws and moves by the memberships alone. Which communities there are, and
    the hyperparameters, stay until `relearn` or `resume` lets the chains go on with the answers.

    Parameters
    ----------
    concentration : float or (shape, rate)
        λ: the larger, the more communities are expected. A pair has it learned under a Gamma
        prior.
    kernel : Kernel or None
        Prior covariance over items. None: an RBF on the standardised features, or independent
        items without X, or also where many items share all their features.
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
    comparisons_ : the data that were fitted, and told since; sampled_ : what the chains ran on

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

    membership_: FloatArray
    posteriors_: tuple[Posterior, ...]
    personal_: UserPosteriors | None
    n_unsettled_: int

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
        plan = checked_plan(self)
        likelihood = get(self.likelihood)
        self.item_columns_, items = FeatureColumns.of(
            X, data.n_items, "items", scale=self.kernel is None
        )
        self.user_features_ = check_features(user_features, data.n_users, "users")
        if (message := check_connected(data)) is not None:
            warnings.warn(message, DataWarning, stacklevel=2)
        self.item_feature_names_ = feature_names(X, "feature")
        self.user_feature_names_ = feature_names(user_features, "user feature")
        hyper = Hyperparameters(self.kernel or utility_kernel(items, self.rank), likelihood)
        self._begin(data)
        self.start_theta_ = hyper.theta
        mixture = self._mixture(items, hyper)
        likelihood.check(mixture.answers.outcomes)
        seed = int(as_rng(self.random_state).integers(2**32))
        chains = [
            Chain.of(start_chain(mixture, plan, (seed, number))) for number in range(self.n_chains)
        ]
        return self._run(mixture, chains, self.n_sweeps)

    def resume(self, n_sweeps: int) -> Self:
        """Let every chain go on from where it is, exactly as if it had never stopped.

        Where answers came since (`tell`, `fold_in`), it goes on with them: hyperparameters are
        learned at the first sweep, two sweeps are not used, earlier draws are dropped.
        """
        check_is_fitted(self, "chains_")
        hyper = Hyperparameters(self.kernel_, self.likelihood_).at(self.start_theta_)
        mixture = self._mixture(self.posteriors_[0].universe, hyper)
        chains: Sequence[Chain] = self.chains_
        if self.sampled_ != self.comparisons_:
            before, n_warmup = Answers.of(self.sampled_), checked_plan(self).n_warmup
            chains = [
                carry_over(chain, before, self._answers(), mixture, n_warmup) for chain in chains
            ]
        return self._run(mixture, chains, n_sweeps)

    def _relearn(self) -> None:
        self.resume(self.n_sweeps - self.n_sweeps // 2 + LEARNING_SWEEPS)

    def _learn_from(self, answers: Comparisons, polish: bool | None) -> None:
        known = self.comparisons_
        self.comparisons_ = known.extend(answers)
        told = np.atleast_1d(self.comparisons_.user_index(answers.users))
        self.membership_ = update_membership(self.draws_, self.membership_, self._answers(), told)
        if polish is not False:
            hyper = Hyperparameters(self.kernel_, self.likelihood_)
            mixture = self._mixture(self.posteriors_[0].universe, hyper)
            self.posteriors_ = update_posteriors(self.posteriors_, mixture, self._pair_counts())
        if self.personal_ is not None:
            self.n_unsettled_ += answers.n_comparisons
            more = More(
                known,
                self.comparisons_,
                Inputs(self.membership_, index=np.arange(len(self.membership_))),
            )
            if more.is_settled(polish, self.n_unsettled_):
                self.n_unsettled_ = 0
            self.personal_ = update_personal(self.personal_, more, self.n_unsettled_ == 0)

    def _mixture(self, items: Inputs, hyper: Hyperparameters) -> Mixture:
        """Over the users who answered anything: the others belong anywhere."""
        answers = self._answers()
        some = active(answers)
        if len(some) < answers.n_users:
            answers = answers.take(some)
        return Mixture(answers, items, hyper, Settings(tolerance=SITE_TOLERANCE), self.rank)

    def _run(self, mixture: Mixture, chains: Sequence[Chain], n_sweeps: int) -> Self:
        watching = sweep_progress(len(chains) * n_sweeps, self.progress)
        with watching as watch, threads_for(len(mixture.items)):
            done, completed = run_chains(mixture, checked_plan(self), chains, n_sweeps, watch)
        self._store(mixture, done, completed)
        if self.personal and completed:
            self._fit_personal(mixture.items)
        return self

    def _store(self, mixture: Mixture, chains: tuple[Chain, ...], completed: bool) -> None:
        """Everything that the chains say."""
        kept = tuple(draw for chain in chains for draw in chain.draws)
        draws = align(Draws(kept, mixture.hyper.likelihood, 1), mixture.answers)
        theta = np.mean([chain.state.theta for chain in chains], axis=0)
        membership = draws.membership(self._answers())
        largest_first = np.argsort(-membership.sum(axis=0), kind="stable")
        draws = draws.in_order(largest_first)
        self.membership_ = np.ascontiguousarray(membership[:, largest_first])
        self.chains_, self.draws_ = chains, draws
        self.kernel_, self.likelihood_ = mixture.hyper.at(theta)
        self.n_communities_, self.community_counts_ = draws.n_communities, draws.counts()
        own = self.hyperparameters == "community"
        fits = fit_reported(mixture, self._pair_counts(), theta, own)
        self.posteriors_ = tuple(fit.posterior for fit in fits)
        self.personal_, self.communal_share_, self.n_unsettled_ = None, 1.0, 0
        self.sampled_ = self.comparisons_
        n_warmup = checked_plan(self).n_warmup
        self.diagnostics_ = diagnose(chains, draws, mixture.answers, n_warmup, completed)
        if (message := self.diagnostics_.advice()) is not None:
            warnings.warn(message, ConvergenceWarning, stacklevel=4)

    def _fit_personal(self, items: Inputs) -> None:
        kernel = self.kernel or taste_kernel(items)
        model = PersonalModel(items, kernel, get(self.likelihood), self.draws_, Settings())
        rng = np.random.default_rng(self.chains_[0].state.seed)
        self.personal_, self.communal_share_ = fit_personal(model, self.comparisons_, rng)

    def _pair_counts(self) -> FloatArray:
        """(C, m) how often each answer was given in each community, members counting softly."""
        return np.ascontiguousarray((self._answers().counts.T @ self.membership_).T)

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
        who = one_user_a_pair(who, len(index))
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
        check_newcomers(known, data)
        model = copy.copy(self)
        model._begin(known.extend(data), self.n_learned_)
        newcomers = np.arange(known.n_users, model.comparisons_.n_users)
        model.membership_ = update_membership(
            self.draws_, self.membership_, model._answers(), newcomers
        )
        if self.personal_ is not None:
            features = Inputs(model.membership_[newcomers], index=np.arange(len(newcomers)))
            votes = votes_of_newcomers(known, model.comparisons_)
            model.personal_, _ = fold_in(self.personal_, features, votes, Settings())
        return model

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file; `penchant.load(path)` reads it back."""
        save(self, path)
