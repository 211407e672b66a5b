"""PreferenceGP: a Gaussian-process preference model with relations between items (paper 000)."""

import warnings
from collections.abc import Mapping
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from penchant.data import Comparisons, check_connected
from penchant.errors import ConvergenceWarning, DataError, DataWarning
from penchant.gp import (
    RULES,
    Edges,
    Hyperparameters,
    Posterior,
    Problem,
    Settings,
    Solution,
    expectation_maximize,
    maximize,
    posterior_of,
    solve,
)
from penchant.gp.update import Learned, tell
from penchant.kernels import Inputs, Kernel, as_relations
from penchant.likelihoods import Likelihood, get
from penchant.models.asking import Asking
from penchant.models.defaults import Scaling, utility_kernel
from penchant.models.item_effects import with_item_effects
from penchant.models.ranking import Ranking, RankParameter, ranking_of
from penchant.models.storage import save
from penchant.models.validation import (
    check_choice,
    check_features,
    check_row_pairs,
    size_of_relations,
    warn_constant_features,
)
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.threads import threads_for
from penchant.numerics.types import FloatArray


class PreferenceGP(Asking, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Utilities of items from comparisons, with uncertainty, features and relations.

    One Gaussian process prior over the items' utilities: a kernel on their features plus one
    graph kernel per relation between them, each with its own weight (paper 000, Eqs. 1–5).
    Comparisons by different people are pooled; for taste by person see `MultiUserGP`.

    `tell(polish=False)` absorbs answers in O(rank²) each and leaves the other sites where they
    are; by default that is what happens beyond 500 items, until 2 % of the comparisons are not
    settled.

    Parameters
    ----------
    kernel : Kernel or None
        Prior covariance over items. None: an RBF on the standardised features (one lengthscale
        a feature, up to 20 features) plus a regularised Laplacian per relation, or independent
        utilities when there is neither. `+ Independent()`, an effect of each item's own, joins
        it where many items share all their features, or where the evidence says that features
        do not tell all (by two nats; with `optimize="evidence"`, no relations and no `rank`).
    likelihood : str or Likelihood
        "probit", "logit", "ties", "gaussian" (score differences), or an instance, for example
        `Lapse(Probit())` when some answers are given at random.
    inference : {"ep", "laplace", "variational", "exact"}
        The local rule. "exact" is for the Gaussian likelihood.
    optimize : {"evidence", "em", None}
        How kernel and likelihood parameters are learned; None keeps them as given. A weak
        log-normal prior around the starting values (a factor of 5.5 is one standard deviation)
        holds those about which the comparisons say nothing. Likelihood parameters are learned
        under "evidence" with "ep" or "exact" only.
    rank : int or None
        Bound on the rank of the prior's factor: memory O(n·rank), time O(n·rank²) a sweep.
    n_restarts : int
        Further random starts of the evidence climb.
    random_state : None, int or Generator
        Seeds restarts and the draws behind `rank()`.

    Attributes
    ----------
    posterior_ : Posterior
    kernel_, likelihood_ : with learned parameters
    log_evidence_ : float
    report_ : Report, how inference went
    comparisons_ : the data that were fitted, pooled, and told since
    n_unsettled_ : how many answers were told but only absorbed, see `tell`

    Examples
    --------
    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "tea", "milk"], ["milk", "water", "water"])
    >>> gp = pc.PreferenceGP(random_state=0).fit(None, data)
    >>> gp.rank()[0].item
    'tea'
    >>> bool(gp.predict_proba([("tea", "water")])[0] > 0.5)
    True
    """

    rank = RankParameter()

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        likelihood: str | Likelihood = "probit",
        inference: str = "ep",
        optimize: str | None = "evidence",
        rank: int | None = None,
        n_restarts: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.inference = inference
        self.optimize = optimize
        self.rank = rank  # a descriptor: see RankParameter
        self.n_restarts = n_restarts
        self.random_state = random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor parameters, as scikit-learn expects them."""
        return {**super().get_params(deep), "rank": self._rank_bound}

    def fit(
        self,
        X: FloatArray | None,
        data: Comparisons,
        relations: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn the utilities.

        X : (n_items, d) features in the order of `data.items`, or None.
        data : Comparisons.
        relations : {"name": graph} between the items: a symmetric (n_items, n_items) matrix,
            dense or sparse, or what `kernels.directed` and `kernels.bipartite` make.
        """
        check_choice(self, "inference", RULES)
        check_choice(self, "optimize", ("evidence", "em", None))
        X = check_features(X, data.n_items, "items")
        graphs = as_relations(relations or {}, data.n_items)
        likelihood = get(self.likelihood)
        self.scaling_ = Scaling.of(X) if self.kernel is None and X is not None else None
        edges = Edges.of(data)
        likelihood.check(edges.outcomes)
        nothing_links = X is None and not graphs
        if nothing_links and (message := check_connected(data)) is not None:
            warnings.warn(message, DataWarning, stacklevel=2)
        if X is not None:
            warn_constant_features(X)
        self._begin(data.pooled() if data.user is not None else data)
        self.n_features_in_ = 0 if X is None else X.shape[1]
        return self._learn(Inputs(self._scaled(X), graphs, np.arange(data.n_items)), edges)

    def _learn(self, universe: Inputs, edges: Edges) -> Self:
        problem = Problem(universe, edges, Settings(self.inference), self._rank_bound)
        start = Hyperparameters(
            self.kernel or utility_kernel(universe, self._rank_bound), get(self.likelihood)
        )
        with threads_for(len(edges.items)):
            solution = self._solve(problem, start)
            if self.kernel is None and self.optimize == "evidence":
                solution = with_item_effects(problem, start, solution)
        return self._store(problem, solution)

    def _solve(self, problem: Problem, start: Hyperparameters) -> Solution:
        if self.optimize is None:
            return solve(problem, start)
        if self.optimize == "em":
            return expectation_maximize(problem, start)
        return maximize(problem, start, self.n_restarts, as_rng(self.random_state))

    def _store(self, problem: Problem, solution: Solution) -> Self:
        hyper, inference = solution.hyper, solution.inference
        self.kernel_, self.likelihood_ = hyper.kernel, hyper.likelihood
        self.log_evidence_, self.report_ = inference.log_evidence, inference.report
        self.sites_ = inference.sites
        self.posterior_ = posterior_of(problem, solution)
        self.n_unsettled_ = 0
        if not self.report_.converged:
            warnings.warn(self.report_.advice(), ConvergenceWarning, stacklevel=4)
        return self

    def _scaled(self, X: FloatArray | None) -> FloatArray | None:
        return X if X is None or self.scaling_ is None else self.scaling_.apply(X)

    def _posterior_at(
        self, X: FloatArray | None, relations: Mapping[str, Any] | None = None
    ) -> Posterior:
        """Posterior over the training items, or over new ones."""
        check_is_fitted(self, "posterior_")
        posterior: Posterior = self.posterior_
        if relations is not None:
            return self._posterior_of_new_nodes(X, relations)
        if X is None:
            return posterior
        return posterior.at(Inputs(self._scaled(self._new_features(X))))

    def _new_features(self, X: FloatArray) -> FloatArray:
        X = np.asarray(X)
        checked = check_features(X, len(X), "new items")
        if checked is None or checked.shape[1] != self.n_features_in_:
            raise DataError(
                f"X has shape {X.shape}: the model was fitted on {self.n_features_in_} features an "
                "item; give the same columns in the same order"
            )
        return checked

    def _posterior_of_new_nodes(
        self, X: FloatArray | None, relations: Mapping[str, Any]
    ) -> Posterior:
        """New nodes change the graph, so the prior is rebuilt over old and new items together.

        The comparisons are the same, hence the sites are nearly so: a warm start settles them.
        """
        fitted: Inputs = self.posterior_.universe
        n_old = self.comparisons_.n_items
        n_all = size_of_relations(relations)
        graphs = as_relations(relations, n_all)
        features = fitted.X
        if features is not None:
            new = self._scaled(self._new_features(np.empty((0, 0)) if X is None else X))
            features = np.concatenate([features, new])
        universe = Inputs(features, graphs, np.arange(n_all))
        problem = Problem(
            universe, Edges.of(self.comparisons_), Settings(self.inference), self._rank_bound
        )
        hyper = Hyperparameters(self.kernel_, self.likelihood_)
        extended = posterior_of(problem, solve(problem, hyper, self.sites_))
        return extended.at(universe.take(np.arange(n_old, n_all)))

    def predict(
        self,
        X: FloatArray | None = None,
        return_std: bool = False,
        relations: Mapping[str, Any] | None = None,
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Mean utilities (n,), and their standard deviations if asked.

        X : None for the training items, or (k, d) features of new ones; a row is a new item
            even where a training item has the same features.
        relations : for new items in a relational model, the graphs over the training items
            followed by the new ones.
        """
        posterior = self._posterior_at(X, relations)
        if return_std:
            return posterior.mean, np.sqrt(posterior.var)
        return posterior.mean

    def predict_proba(self, pairs: Any, X: FloatArray | None = None) -> FloatArray:
        """P(first preferred to second), (k,).

        pairs : (k, 2) item names or indices; with X given, rows of X.
        """
        posterior = self._posterior_at(X)
        if X is None:
            index = self.comparisons_.pair_index(pairs)
        else:
            index = check_row_pairs(pairs, len(posterior))
        return posterior.prob(index[:, 0], index[:, 1])

    @rank.table
    def _rank(self, level: float = 0.95, n_samples: int = 4000) -> Ranking:
        """Items from best to worst with intervals, P(best) and rank intervals.

        level : of the intervals. n_samples : joint draws behind P(best) and the rank intervals.
        """
        check_is_fitted(self, "posterior_")
        return ranking_of(
            self.posterior_, self.comparisons_.items, level, n_samples, as_rng(self.random_state)
        )

    def _learn_from(self, answers: Comparisons, polish: bool | None) -> None:
        before = Learned(
            self.comparisons_,
            self.posterior_,
            self.sites_,
            self.log_evidence_,
            self.report_,
            self.n_unsettled_,
        )
        after = tell(before, answers, Settings(self.inference), self._rank_bound, polish)
        self.comparisons_, self.posterior_, self.sites_ = after.data, after.posterior, after.sites
        self.log_evidence_, self.report_ = after.log_evidence, after.report
        self.n_unsettled_ = after.n_unsettled

    def _relearn(self) -> None:
        self._learn(self.posterior_.universe, Edges.of(self.comparisons_))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file; `penchant.load(path)` reads it back."""
        save(self, path)
