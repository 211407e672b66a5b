"""MultiUserGP: what each of many users prefers, learned together (papers 003, 004 section 2)."""

import copy
import warnings
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from penchant.data import Comparisons, check_connected
from penchant.data.names import Lookup
from penchant.errors import ConvergenceWarning, DataWarning
from penchant.gp import RULES, Posterior, Settings
from penchant.gp.users.fold_in import check_newcomers, fold_in, votes_of_newcomers
from penchant.gp.users.learn import expectation_maximize, maximize
from penchant.gp.users.model import Hyperparameters, Problem, Solution, posteriors_of, solve
from penchant.gp.users.posterior import UserPosteriors
from penchant.gp.users.sparse import restrict, select
from penchant.gp.users.update import More, absorb, settle
from penchant.gp.users.votes import Votes
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood, get
from penchant.models.asking import Asking
from penchant.models.features import FeatureColumns
from penchant.models.people import (
    check_sharing,
    check_sparse,
    one_user_a_pair,
    taste_kernel,
    user_kernel,
    with_more_users,
)
from penchant.models.progress import progress_bar
from penchant.models.ranking import Ranking, ranking_of
from penchant.models.storage import save
from penchant.models.validation import check_choice, check_row_pairs
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.threads import threads_for
from penchant.numerics.types import FloatArray, IntArray


class MultiUserGP(Asking, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Utilities of items for each of many users, with uncertainty, from all their comparisons.

    Every user's utilities are what users share plus a deviation of their own:
    Cov = (ρ K_user + (1 − ρ) I) ⊗ K_item. Who compared little is filled in from the others, who
    compared much goes their own way. Time and memory grow linearly with the number of users.

    `tell` takes answers by known and by new users (without features). Settled, it is a refit with
    the same hyperparameters, of users who were folded in too. With polish=False the answer of a
    user who was fitted changes their own utilities and what users share, by one rank-one step;
    new users are folded in. That is the default beyond 3,000 distinct answers, until 2 % are not
    settled; with `sparse` everything is settled always.

    Parameters
    ----------
    item_kernel : Kernel, "free" or None
        Prior covariance over items. "free" learns every entry of it from the users themselves,
        which suits up to a few hundred items. None: "free" without X; with X an RBF on the
        standardised features plus what each item has of its own.
    user_kernel : Kernel or None
        What users share by their features. None: a population mean, and with user features an
        RBF on them (standardised) besides.
    sharing : float in (0, 1)
        ρ, how much of taste is shared; where the learning starts.
    likelihood : str or Likelihood
        "probit", "logit", "ties", "gaussian" or an instance.
    inference : {"ep", "laplace", "variational", "exact"}
        The local rule.
    optimize : {"evidence", "em", None}
        How parameters are learned: "evidence" climbs it by gradient; "em" is for
        item_kernel="free", slower; None keeps everything as given.
    sparse : (n_users, n_items) or None
        Sparse-EP: predict from so many most informative users and items alone.
    progress : bool
        Show a progress bar while learning, on a terminal only.
    random_state : None, int or Generator
        Seeds the draws behind `rank()`.

    Attributes
    ----------
    posterior_ : UserPosteriors; `posterior_.for_user(index)` is one user's `Posterior`
    item_kernel_, user_kernel_, sharing_, likelihood_ : with learned parameters
    log_evidence_ : float
    report_ : Report, how inference went
    kept_users_, kept_items_, kept_ : with `sparse`, whom and what it kept, and by what measure
    comparisons_ : the data that were fitted, and told since
    n_unsettled_ : how many answers were told but only absorbed

    Examples
    --------
    >>> from penchant.data import Comparisons
    >>> data = Comparisons.from_pairs(
    ...     ["tea", "tea", "milk", "tea"], ["milk", "water", "water", "milk"],
    ...     user=["ann", "ann", "bob", "cem"])
    >>> gp = MultiUserGP(optimize=None).fit(None, data)
    >>> gp.predict(["ann", "bob"]).shape
    (2, 3)
    >>> bool(gp.predict_proba([("tea", "water")], users="cem")[0] > 0.5)
    True
    """

    posterior_: UserPosteriors
    n_unsettled_: int

    def __init__(
        self,
        item_kernel: Kernel | str | None = None,
        user_kernel: Kernel | None = None,
        *,
        sharing: float = 0.5,
        likelihood: str | Likelihood = "probit",
        inference: str = "ep",
        optimize: str | None = "evidence",
        sparse: tuple[int, int] | None = None,
        progress: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self.item_kernel = item_kernel
        self.user_kernel = user_kernel
        self.sharing = sharing
        self.likelihood = likelihood
        self.inference = inference
        self.optimize = optimize
        self.sparse = sparse
        self.progress = progress
        self.random_state = random_state

    def fit(
        self, X: FloatArray | None, data: Comparisons, user_features: FloatArray | None = None
    ) -> Self:
        """Learn everybody's utilities.

        X : (n_items, d) features in the order of `data.items`, or None.
        data : Comparisons with users.
        user_features : (n_users, k) in the order of `data.users`, or None.
        """
        self._check_parameters()
        votes, likelihood = Votes.of(data), get(self.likelihood)
        likelihood.check(votes.outcomes)
        if (message := check_connected(data)) is not None:
            warnings.warn(message, DataWarning, stacklevel=2)
        self.item_columns_, items = FeatureColumns.of(
            X, data.n_items, "items", scale=self.item_kernel is None
        )
        self.user_columns_, users = FeatureColumns.of(
            user_features, data.n_users, "users", scale=self.user_kernel is None
        )
        self._begin(data)
        problem = Problem.of(items, users, votes, Settings(self.inference))
        return self._store(problem, self._solve(problem, self._start(items, users)))

    def _learn_from(self, answers: Comparisons, polish: bool | None) -> None:
        known: Comparisons = self.comparisons_
        posterior = self.posterior_
        self.comparisons_ = known.extend(answers)
        more = More(known, self.comparisons_, with_more_users(posterior, self.comparisons_.n_users))
        settings, unsettled = Settings(self.inference), self.n_unsettled_ + answers.n_comparisons
        absorbed = None
        if not more.is_settled(polish, unsettled):
            absorbed = absorb(posterior, more, settings)
        if absorbed is None:
            self._store(*settle(posterior, more, settings))
        else:
            self.posterior_, self.n_unsettled_ = absorbed, unsettled

    def _relearn(self) -> None:
        posterior, votes = self.posterior_, Votes.of(self.comparisons_)
        problem = Problem.of(posterior.items, posterior.users, votes, Settings(self.inference))
        self._store(problem, self._solve(problem, self._start(posterior.items, posterior.users)))

    def _check_parameters(self) -> None:
        check_choice(self, "inference", RULES)
        check_choice(self, "optimize", ("evidence", "em", None))
        if not isinstance(self.item_kernel, Kernel | None):
            check_choice(self, "item_kernel", ("free", None))
        check_sharing(self.sharing)
        check_sparse(self.sparse)

    def _start(self, items: Inputs, users: Inputs) -> Hyperparameters:
        """Where learning starts."""
        given = self.item_kernel
        if given == "free":
            items = replace(items, X=None)
        return Hyperparameters(
            given if isinstance(given, Kernel) else taste_kernel(items),
            self.user_kernel or user_kernel(users),
            self.sharing,
            get(self.likelihood),
        )

    def _solve(self, problem: Problem, start: Hyperparameters) -> Solution:
        if self.optimize is None:
            return solve(problem, start)
        climb = maximize if self.optimize == "evidence" else expectation_maximize
        shared_size = len(problem.items) * (1 + self.user_columns_.n_columns)
        with progress_bar("learning from users", self.progress) as watch, threads_for(shared_size):
            return climb(problem, start, watch)

    def _store(self, problem: Problem, solution: Solution) -> Self:
        hyper, inference = solution.hyper, solution.inference
        self.item_kernel_, self.user_kernel_ = hyper.item_kernel, hyper.user_kernel
        self.sharing_, self.likelihood_ = hyper.sharing, hyper.likelihood
        self.log_evidence_, self.report_ = inference.log_evidence, inference.report
        if not self.report_.converged:
            warnings.warn(self.report_.advice(), ConvergenceWarning, stacklevel=3)
        if self.sparse is not None:
            kept = select(problem, solution, *self.sparse)
            problem, solution = restrict(problem, solution, kept)
            self.kept_ = kept
            self.kept_users_ = tuple(self.comparisons_.users[i] for i in kept.users)
            self.kept_items_ = tuple(self.comparisons_.items[i] for i in kept.items)
        self.posterior_, self.n_unsettled_ = posteriors_of(problem, solution), 0
        return self

    def predict(
        self,
        users: Any = None,
        X: FloatArray | None = None,
        user_features: FloatArray | None = None,
        return_std: bool = False,
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Mean utilities (n_users, n_items), and their standard deviations if asked.

        users : a user or a sequence of them, names or indices; None for all, in order.
        X : None for the training items, or (k, d) features of new ones.
        user_features : (k, d) for new users of whom only features are known; `users` are then
            rows of it, all by default.
        """
        posterior, index = self._look(users, X, user_features)
        mean, var = posterior.utilities(index)
        return (mean, np.sqrt(var)) if return_std else mean

    def predict_proba(
        self,
        pairs: Any,
        users: Any,
        X: FloatArray | None = None,
        user_features: FloatArray | None = None,
    ) -> FloatArray:
        """P(first preferred to second), (k,).

        pairs : (k, 2) item names or indices; with X given, rows of X.
        users : one user for all pairs, or one for each; with user_features, rows of those.
        """
        posterior, who = self._look(users, X, user_features)
        if X is None:
            index = self.comparisons_.pair_index(pairs)
        else:
            index = check_row_pairs(pairs, len(posterior.target))
        who = one_user_a_pair(who, len(index))
        return posterior.likelihood.prob(*posterior.differences(who, index[:, 0], index[:, 1]))

    def rank(self, user: Any = None, level: float = 0.95, n_samples: int = 4000) -> Ranking:
        """One user's items from best to worst with intervals; without a user, the population's.

        level : of the intervals. n_samples : joint draws behind P(best) and the rank intervals.
        """
        items = self.comparisons_.items
        rng = as_rng(self.random_state)
        return ranking_of(self.posterior_for(user), items, level, n_samples, rng)

    def posterior_for(self, user: Any = None) -> Posterior:
        """The joint posterior of one user's utilities; without a user, the population's."""
        check_is_fitted(self, "posterior_")
        posterior: UserPosteriors = self.posterior_
        if user is None:
            return posterior.population()
        return posterior.for_user(int(self.comparisons_.user_index(user)))

    def fold_in(self, data: Comparisons, user_features: FloatArray | None = None) -> Self:
        """A copy of this model that knows new users too, without fitting the others again.

        data : comparisons by users who were not in the fit, between items that were.
        user_features : (n_new_users, k) in the order of `data.users`, if the fit had any.

        >>> from penchant.data import Comparisons
        >>> old = Comparisons.from_pairs(["a", "b", "a"], ["b", "c", "c"], user=[1, 2, 2])
        >>> new = Comparisons.from_pairs(["c"], ["a"], user=["eva"])
        >>> gp = MultiUserGP(optimize=None).fit(None, old).fold_in(new)
        >>> gp.predict("eva").shape
        (1, 3)
        """
        check_is_fitted(self, "posterior_")
        known: Comparisons = self.comparisons_
        check_newcomers(known, data)
        newcomers = self.user_columns_.rows(user_features, data.n_users, "users")
        model = copy.copy(self)
        model._begin(known.extend(data), self.n_learned_)
        model.posterior_, model.report_ = fold_in(
            self.posterior_,
            newcomers,
            votes_of_newcomers(known, model.comparisons_),
            Settings(self.inference),
        )
        return model

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file; `penchant.load(path)` reads it back."""
        save(self, path)

    def _look(
        self, users: Any, X: FloatArray | None, user_features: FloatArray | None
    ) -> tuple[UserPosteriors, IntArray]:
        """The posterior at the asked items and users, and where in it the users are."""
        check_is_fitted(self, "posterior_")
        posterior: UserPosteriors = self.posterior_
        if X is not None:
            new = self.item_columns_.rows(X, len(X), "items")
            posterior = posterior.at(replace(new, index=None))
        if user_features is not None:
            first, k = len(posterior), len(user_features)
            newcomers = self.user_columns_.rows(user_features, k, "users")
            posterior = posterior.with_users(newcomers)
            rows = Lookup(tuple(range(k)), "row of user_features")
            asked = np.arange(k) if users is None else rows.index(users)
            return posterior, first + np.atleast_1d(asked)
        everybody = np.arange(len(posterior))
        return posterior, (
            everybody if users is None else np.atleast_1d(self.comparisons_.user_index(users))
        )
