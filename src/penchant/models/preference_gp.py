"""PreferenceGP: a Gaussian-process preference model with relations between items (paper 000)."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from penchant.data import Comparisons, ShardedComparisons, as_comparisons
from penchant.errors import ConvergenceWarning, DataError
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
from penchant.gp.effects import Shown
from penchant.gp.items.absorb import absorb
from penchant.gp.items.guess import first_guess
from penchant.gp.items.people import People, edges_of
from penchant.gp.paths.meetings import Calendar, check_time, effect_names
from penchant.gp.paths.posterior import PathPosterior
from penchant.gp.paths.problem import PathProblem, PathSolution
from penchant.gp.raters import Answered, foreseen, learn_raters
from penchant.kernels import Inputs, Kernel, as_relations
from penchant.likelihoods import Likelihood, Raters, get
from penchant.models.contract import Fitted, Odds, UtilityModel
from penchant.models.defaults import arbitrated_kernel
from penchant.models.effects import Estimates
from penchant.models.features import FeatureColumns, fitted_items, stacked
from penchant.models.item_effects import with_item_effects
from penchant.models.pooling import Answers, answers_in_pool, answers_to_pool
from penchant.models.ranking import Ranking
from penchant.models.rater_table import check_named
from penchant.models.relevance import with_relevance
from penchant.models.sources import SourceShare, SourcesReport, shares
from penchant.models.tie_meaning import with_ties_understood
from penchant.models.time import as_days, faded, path_problem, path_start
from penchant.models.validation import (
    DEVICE,
    KERNEL,
    LIKELIHOOD,
    NONE,
    POSITIVE,
    SEED,
    YES_OR_NO,
    Constraints,
    one_of,
    size_of_relations,
    whole,
)
from penchant.numerics.device import HOST, device_called
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.threads import threads_for
from penchant.numerics.types import FloatArray, IntArray


class PreferenceGP(UtilityModel):
    """Utilities of items from comparisons, with uncertainty, features and relations.

    One Gaussian process prior over the items' utilities: a kernel on their features plus one
    graph kernel per relation between them, each with its own weight (paper 000, Eqs. 1–5).
    Comparisons by different people are pooled, for a ranking of people at large. Where five or
    more are named, intervals take into account that answers of one person go together (`report_`
    says by how much that widens them); for taste by person see `MultiUserGP`.

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
        `Lapse(Probit())` when some answers are given at random. Under "ties" and
        optimize="evidence" the evidence decides whether ties mean that items are close
        (`Ties`) or nothing (`Abstain`).
    inference : {"ep", "laplace", "variational", "exact"}
        The local rule. "exact" is for the Gaussian likelihood.
    optimize : {"evidence", "em", None}
        How kernel and likelihood parameters are learned; None keeps them as given. A weak
        log-normal prior around the starting values (a factor of 5.5 is one standard deviation)
        holds those about which the comparisons say nothing. Likelihood parameters are learned
        under "evidence" with "ep" or "exact" only.
    max_rank : int or None
        Bound on the rank of the prior's factor: memory O(n·rank), time O(n·rank²) a sweep.
    clustered : bool
        Whether intervals allow for answers of one person going together, where people are named:
        the curvature is held against how people's scores vary (a sandwich covariance). Means stay
        the same, and intervals never get narrower. False takes all answers for independent.
    raters : {"lapse", "noise", None}
        Whether people differ in how reliably they answer, where they are named: by the share of
        answers that they give at random, or by how sharply they tell items apart. Who disagrees
        with everybody counts as unreliable here; `MultiUserGP` tells that from taste.
    drift : {"ou", None}
        Whether utilities change with time, where comparisons have one: each item's is a constant
        (of covariance `kernel`) plus an Ornstein–Uhlenbeck path, whose variance and timescale are
        learned. Predictions are as of the last comparison, or `at=` any date. What was shown first
        and covariates are coefficients (`effects_`). Time and memory grow linearly with
        periods, with the cube and the square of items. Intervals take answers for independent.
    period : float or None
        With drift, the length of a period in days; None: up to 300 periods.
    half_life : float or None
        The simple alternative to drift: an answer counts half for every so many days before the
        last one. Rankings follow the times, but intervals and forecasts know nothing of change.
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
    shares_ : what features, each relation and item effects count in the prior
    comparisons_ : the data that were fitted, pooled, and told since
    effects_ : of the order shown and of covariates, where comparisons tell them
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
        "clustered": YES_OR_NO,
        "raters": NONE | one_of(("lapse", "noise")),
        "drift": NONE | one_of(("ou",)),
        "period": NONE | POSITIVE,
        "half_life": NONE | POSITIVE,
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
        clustered: bool = True,
        raters: str | None = None,
        drift: str | None = None,
        period: float | None = None,
        half_life: float | None = None,
        device: str | None = None,
        n_restarts: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.inference = inference
        self.optimize = optimize
        self.max_rank = max_rank
        self.clustered = clustered
        self.raters = raters
        self.drift = drift
        self.period = period
        self.half_life = half_life
        self.device = device
        self.n_restarts = n_restarts
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        data: Comparisons | ShardedComparisons,
        relations: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn the utilities.

        X : (n_items, d) features in the order of `data.items`, or None.
        data : Comparisons; of those that `scan_comparisons` made, all users' together, as if
            nobody had said who made them.
        relations : {"name": graph} between the items: a symmetric (n_items, n_items) matrix,
            dense or sparse, or what `kernels.directed` and `kernels.bipartite` make.
        """
        self._check()
        data = data.everybody if isinstance(data, ShardedComparisons) else as_comparisons(data)
        columns, items = fitted_items(X, data, relations, scale=self.kernel is None)
        learned = self._learned(items.on(device_called(self.device)), data)
        return self._keep(learned, columns, FeatureColumns(0, None))

    def _learned(self, items: Inputs, data: Comparisons) -> Learned[Any]:
        if self.drift is not None:
            return self._drifting(items, data)
        likelihood = get(self.likelihood)
        if self.raters is not None:
            check_named(data, f"raters={self.raters!r}")
            likelihood = Raters.alike(likelihood, self.raters, data.n_users)
        edges = self._edges(data, likelihood)
        if edges.shown is not None:
            self._check_on_host("the order shown and covariates are")
        problem = ItemProblem(items, edges, Settings(self.inference), self.max_rank)
        problem = replace(problem, people=self._people(data, edges))
        likelihood.check(problem.edges.outcomes)
        start = ItemHyper(self.kernel or arbitrated_kernel(items, self.max_rank), likelihood)
        with threads_for(len(problem.edges.items)):
            if self.kernel is None and self.optimize == "evidence":
                start, solution = with_relevance(problem, start, self._solve)
            else:
                solution = self._solve(problem, start)
            is_plain = self.raters is None and self.optimize == "evidence"
            if self.likelihood == "ties" and is_plain:
                start, solution = with_ties_understood(problem, start, solution, self._solve, 4)
            if self.kernel is None and self.optimize == "evidence":
                solution = with_item_effects(problem, start, solution)
            if self.raters is not None:
                learn = None if self.optimize is None else partial(self._solve, problem)
                solution = learn_raters(problem, solution, False, learn)
            learned = Learned.of(data, problem, solution)
        return self._warned(learned)

    def _drifting(self, items: Inputs, data: Comparisons) -> Learned[PathProblem]:
        self._check_on_host("drift is")
        others = ("raters", "half_life", "max_rank")
        if given := [name for name in others if getattr(self, name) is not None]:
            raise DataError(f"drift= does not go together with {', '.join(given)}: leave one out")
        calendar = Calendar.of(check_time(data), self.period)
        problem = path_problem(items, data, Settings(self.inference), calendar)
        likelihood = get(self.likelihood)
        likelihood.check(problem.edges.outcomes)
        start = path_start(self.kernel or arbitrated_kernel(items, None), data, likelihood)
        with threads_for(len(items)):
            solution: PathSolution = self._solve(problem, start)
            return self._warned(Learned.of(data, problem, solution))

    def _check_on_host(self, what: str) -> None:
        if device_called(self.device) is not HOST:
            raise DataError(
                f"{what} worked on by the CPU alone, got device={self.device!r}: leave it at None, "
                "or drop them with data.bare()"
            )

    def _warned(self, learned: Learned[Any]) -> Learned[Any]:
        if not learned.report.converged:
            warnings.warn(learned.report.advice(), ConvergenceWarning, stacklevel=5)
        return learned

    def _solve(self, problem: Any, start: Any) -> Any:
        if self.optimize is None:
            return solve(problem, start)
        if self.optimize == "em":
            return expectation_maximize(problem, start)
        begin = first_guess(problem, start) if isinstance(problem, ItemProblem) else None
        return maximize(problem, start, self.n_restarts, as_rng(self.random_state), begin)

    @property
    def posterior_(self) -> Posterior:
        """The posterior over the items' utilities."""
        posterior: Posterior = self._fitted().learned.posterior
        return posterior

    @property
    def shares_(self) -> dict[str, SourceShare]:
        """Source → share of the prior variance of a random difference, before and after learning.

        The sources are features, each relation, and item effects. A hand-made kernel is only
        described: its parameters stay what they are.
        """
        learned = self._fitted().learned
        items = learned.problem.universe
        start = self.kernel or arbitrated_kernel(items, self.max_rank)
        return shares(start, learned.hyper.kernel, items)

    @property
    def report_(self) -> SourcesReport:
        """How inference went, what each source of the prior counts, and by how much answers that
        go together widen intervals."""
        learned = self._fitted().learned
        told = {**vars(learned.report), "shares": self.shares_}
        if self.drift is None and learned.posterior.widening is not None:
            told["n_people"] = len(np.unique(learned.data.user))
            told["widened"] = learned.posterior.widened
        return SourcesReport(**told)

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
        at: Any = None,
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Mean utilities (n,), and their standard deviations if asked.

        X : None for the training items, or (k, d) features of new ones; a row is a new item
            even where a training item has the same features.
        users : one row for each, all the same: everybody is taken together.
        relations : for new items in a relational model, the graphs over the training items
            followed by the new ones.
        at : a date, where utilities drift; None: that of the last comparison.
        """
        if relations is None:
            return UtilityModel.predict(self._as_of(at), X, users=users, return_std=return_std)
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
            features = stacked(features, new)
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

    def _odds(
        self,
        fitted: Fitted,
        pairs: IntArray,
        users: IntArray | None,
        X: Any,
        z: FloatArray | None = None,
    ) -> Odds:
        posterior = self._at(fitted, X)
        return Odds.of(posterior.likelihood, posterior.difference(pairs[:, 0], pairs[:, 1], z))

    def _effects(self, fitted: Fitted) -> Estimates | None:
        posterior: Posterior = fitted.learned.posterior
        if isinstance(posterior, PathPosterior):
            names = effect_names(fitted.learned.data)
            return Estimates(names, *posterior.shown_effects) if names else None
        return Estimates.of(posterior.effects, posterior.lower)

    def _told(
        self, fitted: Fitted, answers: Comparisons, polish: bool | None
    ) -> Learned[ItemProblem]:
        learned: Learned[ItemProblem] = fitted.learned
        data = learned.data.extend(answers)
        # a choice is not one change of one difference: it is always settled
        plain = self.raters is None and self.drift is None and self.half_life is None
        plain = plain and answers.rankings is None
        if plain and learned.is_absorbed(answers.n_comparisons, polish):
            absorbed = absorb(learned, answers, data)
            if absorbed is not None:
                return absorbed
        return self._without(fitted, data)

    def _without(self, fitted: Fitted, data: Comparisons) -> Learned[Any]:
        learned: Learned[Any] = fitted.learned
        if isinstance(learned.problem, PathProblem):
            known = learned.problem
            return learned.settle(
                data, path_problem(known.universe, data, known.settings, known.calendar)
            )
        edges = self._edges(data, learned.hyper.likelihood, learned.problem.edges.shown)
        problem = replace(learned.problem, edges=edges, people=self._people(data, edges))
        return learned.settle(data, problem)

    def _people(self, data: Comparisons, edges: Edges) -> People | None:
        return People.of(data, edges) if self.clustered and self.half_life is None else None

    def _edges(
        self, data: Comparisons, likelihood: Likelihood, known: Shown | None = None
    ) -> Edges:
        if self.half_life is None:
            return Edges.of(data, known, likelihood.by_rater)
        pairs = data.as_pairs()
        return faded(Edges.of(pairs, known, likelihood.by_rater), pairs, self.half_life)

    def _as_of(self, at: Any) -> Self:
        """The model as it sees utilities at another time."""
        learned: Learned[Any] = self._fitted().learned
        if at is None:
            return self
        if not isinstance(learned.posterior, PathPosterior):
            raise DataError(f"at={at!r} needs utilities that drift: fit with drift='ou'")
        (then,) = learned.posterior.when(np.array([as_days(at)]))
        return self._with(replace(learned, posterior=then))

    def paths(self, times: Any) -> tuple[FloatArray, FloatArray]:
        """Mean utilities (k, n_items) and their standard deviations at k times, drift given.

        They are relative to the average item at each time, as in `rank`.
        """
        self._as_of(0.0)
        days = np.array([as_days(at) for at in times])
        each = self._fitted().learned.posterior.when(days)
        mean = np.array([then.mean - then.mean.mean() for then in each])
        return mean, np.sqrt([then.contrast_var for then in each])

    def rank(
        self, user: Any = None, level: float = 0.95, n_samples: int = 4000, at: Any = None
    ) -> Ranking:
        """Items from best to worst with intervals, P(best) and rank intervals.

        user : whose; None for people at large. level : of the intervals.
        n_samples : joint draws behind P(best) and the rank intervals.
        at : a date, where utilities drift; None: that of the last comparison.
        """
        return UtilityModel.rank(self._as_of(at), user, level, n_samples)

    def predict_proba(
        self,
        pairs: Any,
        users: Any = None,
        X: Any = None,
        *,
        ties: bool = False,
        first: Any = None,
        covariates: Mapping[str, Any] | None = None,
        at: Any = None,
    ) -> FloatArray:
        """P(first preferred to second), (k,), given that one of them is.

        pairs : (k, 2) item names or indices; with X given, rows of X. users : ignored, everybody
            is taken together. ties : return (k, 3) instead: win, tie and loss of the first.
        first : +1 where the first of a pair is shown first, −1 where the second is; None, or 0:
            at equal sides. covariates : first minus second, by name; None: equal.
        at : a date, where utilities drift; None: that of the last comparison.
        """
        how: dict[str, Any] = {"ties": ties, "first": first, "covariates": covariates}
        return UtilityModel.predict_proba(self._as_of(at), pairs, users, X, **how)

    def _seen(self, fitted: Fitted) -> Comparisons:
        return fitted.pooled

    def _given(self, fitted: Fitted, more: Answers, user: Any) -> Comparisons:
        return answers_to_pool(fitted.learned.data, more, user)

    def _given_before(self, fitted: Fitted, answers: Answers, user: Any) -> Comparisons:
        return answers_in_pool(fitted.learned.data, answers, user, self.raters is None)

    def _answered(self, fitted: Fitted) -> Answered:
        learned: Learned[ItemProblem] = fitted.learned
        data, edges = learned.data.single_pairs(), learned.problem.edges
        edge = edges_of(data, np.arange(len(data)), edges)
        seen = foreseen(learned.problem, learned.hyper, learned.sites, personal=False)
        givers, times = np.asarray(data.user), data.count.astype(float)
        outcomes = edges.outcomes.part(edge)
        return Answered(givers, seen.mean[edge], seen.var[edge], outcomes, times, data.n_users)

    def _relearned(self, fitted: Fitted) -> Learned[ItemProblem]:
        learned: Learned[ItemProblem] = fitted.learned
        return self._learned(learned.problem.universe, learned.data)
