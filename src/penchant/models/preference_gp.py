"""PreferenceGP: a Gaussian-process preference model with relations between items (paper 000)."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from penchant.data import Comparisons, as_comparisons
from penchant.errors import ConvergenceWarning
from penchant.gp import (
    RULES,
    Edges,
    ItemHyper,
    ItemProblem,
    Learned,
    Normal,
    Posterior,
    Settings,
    expectation_maximize,
    maximize,
    solve,
)
from penchant.gp.items.absorb import absorb
from penchant.gp.items.problem import ItemSolution
from penchant.kernels import Inputs, Kernel, as_relations
from penchant.likelihoods import Likelihood, get
from penchant.models.contract import Fitted, Odds, UtilityModel
from penchant.models.defaults import utility_kernel
from penchant.models.features import FeatureColumns, fitted_items
from penchant.models.item_effects import with_item_effects
from penchant.models.validation import (
    DEVICE,
    KERNEL,
    LIKELIHOOD,
    NONE,
    SEED,
    Constraints,
    one_of,
    size_of_relations,
    whole,
)
from penchant.numerics.device import device_called
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.threads import threads_for
from penchant.numerics.types import FloatArray, IntArray


class PreferenceGP(UtilityModel):
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
        do not tell all (by two nats; with `optimize="evidence"`, no relations and no `max_rank`).
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
    max_rank : int or None
        Bound on the rank of the prior's factor: memory O(n·rank), time O(n·rank²) a sweep.
    device : None, "cpu", "cuda" or "cuda:1"
        Where matrices of items × items live and are worked on. None is the CPU, always; a card
        needs `penchant[gpu]` and pays from about a thousand items on. Saved models know no device.
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

    constraints: ClassVar[Constraints] = {
        "kernel": NONE | KERNEL,
        "likelihood": LIKELIHOOD,
        "inference": one_of(RULES),
        "optimize": NONE | one_of(("evidence", "em")),
        "max_rank": NONE | whole(1),
        "device": NONE | DEVICE,
        "n_restarts": whole(0),
        "random_state": SEED,
    }

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        likelihood: str | Likelihood = "probit",
        inference: str = "ep",
        optimize: str | None = "evidence",
        max_rank: int | None = None,
        device: str | None = None,
        n_restarts: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.inference = inference
        self.optimize = optimize
        self.max_rank = max_rank
        self.device = device
        self.n_restarts = n_restarts
        self.random_state = random_state

    def fit(self, X: Any, data: Comparisons, relations: Mapping[str, Any] | None = None) -> Self:
        """Learn the utilities.

        X : (n_items, d) features in the order of `data.items`, or None.
        data : Comparisons.
        relations : {"name": graph} between the items: a symmetric (n_items, n_items) matrix,
            dense or sparse, or what `kernels.directed` and `kernels.bipartite` make.
        """
        self._check()
        data = as_comparisons(data)
        columns, items = fitted_items(X, data, relations, scale=self.kernel is None)
        data = data.pooled() if data.user is not None else data
        learned = self._learned(items.on(device_called(self.device)), data)
        return self._keep(learned, columns, FeatureColumns(0, None))

    def _learned(self, items: Inputs, data: Comparisons) -> Learned[ItemProblem]:
        problem = ItemProblem(items, Edges.of(data), Settings(self.inference), self.max_rank)
        likelihood = get(self.likelihood)
        likelihood.check(problem.edges.outcomes)
        start = ItemHyper(self.kernel or utility_kernel(items, self.max_rank), likelihood)
        with threads_for(len(problem.edges.items)):
            solution = self._solve(problem, start)
            if self.kernel is None and self.optimize == "evidence":
                solution = with_item_effects(problem, start, solution)
            learned = Learned.of(data, problem, solution)
        if not learned.report.converged:
            warnings.warn(learned.report.advice(), ConvergenceWarning, stacklevel=4)
        return learned

    def _solve(self, problem: ItemProblem, start: ItemHyper) -> ItemSolution:
        if self.optimize is None:
            return solve(problem, start)
        if self.optimize == "em":
            return expectation_maximize(problem, start)
        return maximize(problem, start, self.n_restarts, as_rng(self.random_state))

    @property
    def posterior_(self) -> Posterior:
        """The posterior over the items' utilities."""
        posterior: Posterior = self._fitted().learned.posterior
        return posterior

    @property
    def log_evidence_(self) -> float:
        """log p(answers | hyperparameters)."""
        return float(self._fitted().learned.log_evidence)

    def predict(
        self,
        X: Any = None,
        *,
        users: Any = None,
        return_std: bool = False,
        relations: Mapping[str, Any] | None = None,
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Mean utilities (n,), and their standard deviations if asked.

        X : None for the training items, or (k, d) features of new ones; a row is a new item
            even where a training item has the same features.
        users : one row for each, all the same: everybody is taken together.
        relations : for new items in a relational model, the graphs over the training items
            followed by the new ones.
        """
        if relations is None:
            return super().predict(X, users=users, return_std=return_std)
        posterior = self._posterior_of_new_nodes(self._fitted(), X, relations)
        return (posterior.mean, np.sqrt(posterior.var)) if return_std else posterior.mean

    def _posterior_of_new_nodes(
        self, fitted: Fitted, X: Any, relations: Mapping[str, Any]
    ) -> Posterior:
        """New nodes change the graph, so the prior is rebuilt over old and new items together.

        The comparisons are the same, hence the sites are nearly so: a warm start settles them.
        """
        learned: Learned[ItemProblem] = fitted.learned
        known = learned.problem.universe
        n_old, n_all = len(known), size_of_relations(relations)
        features = known.X
        if features is not None:
            new = fitted.columns.rows(X, n_all - n_old, "items").X
            features = np.concatenate([features, new])
        graphs, every = as_relations(relations, n_all), np.arange(n_all)
        universe = Inputs(features, graphs, every).on(known.device)
        problem = replace(learned.problem, universe=universe)
        extended: Posterior = learned.settle(learned.data, problem).posterior
        return extended.at(universe.take(np.arange(n_old, n_all)))

    def _users(self, fitted: Fitted, users: Any) -> IntArray | None:
        return None if users is None else np.zeros(np.size(users), dtype=np.intp)

    def _believed(self, fitted: Fitted, user: int | None) -> Posterior:
        posterior: Posterior = fitted.learned.posterior
        return posterior

    def _at(self, fitted: Fitted, X: Any) -> Posterior:
        posterior: Posterior = fitted.learned.posterior
        return posterior.at(None if X is None else fitted.columns.new_items(X))

    def _utilities(self, fitted: Fitted, users: IntArray | None, X: Any) -> Normal:
        posterior = self._at(fitted, X)
        mean, var = posterior.mean, posterior.var
        if users is None:
            return Normal(mean, var)
        shape = (len(users), len(mean))
        return Normal(np.broadcast_to(mean, shape).copy(), np.broadcast_to(var, shape).copy())

    def _odds(self, fitted: Fitted, pairs: IntArray, users: IntArray | None, X: Any) -> Odds:
        posterior = self._at(fitted, X)
        return Odds.of(posterior.likelihood, posterior.difference(pairs[:, 0], pairs[:, 1]))

    def _told(
        self, fitted: Fitted, answers: Comparisons, polish: bool | None
    ) -> Learned[ItemProblem]:
        learned: Learned[ItemProblem] = fitted.learned
        data = learned.data.extend(answers)
        if learned.is_absorbed(answers.n_comparisons, polish):
            absorbed = absorb(learned, answers, data)
            if absorbed is not None:
                return absorbed
        return self._without(fitted, data)

    def _without(self, fitted: Fitted, data: Comparisons) -> Learned[ItemProblem]:
        learned: Learned[ItemProblem] = fitted.learned
        return learned.settle(data, replace(learned.problem, edges=Edges.of(data)))

    def _relearned(self, fitted: Fitted) -> Learned[ItemProblem]:
        learned: Learned[ItemProblem] = fitted.learned
        return self._learned(learned.problem.universe, learned.data)
