"""PreferenceGP: a Gaussian-process preference model with relations between items (paper 000)."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from penchant import gp
from penchant.ask.answers import answers_in_pool, as_answers, is_unnamed
from penchant.data import Comparisons, ShardedComparisons
from penchant.errors import DataError
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood, Raters, get
from penchant.models import store, tables
from penchant.models.base import Answers, Fitted, UtilityModel, warn_unless_converged
from penchant.models.defaults import (
    balanced_kernel,
    choose_lapses,
    choose_sources,
    choose_tie_likelihood,
)
from penchant.models.features import fitted_items
from penchant.models.parameters import (
    DEVICE,
    KERNEL,
    LIKELIHOOD,
    NONE,
    POSITIVE,
    SEED,
    YES_OR_NO,
    check_arguments,
    check_parameters,
    check_restarts,
    one_of,
    parameter,
    whole,
)
from penchant.models.predictive import OutcomeProbabilities, as_days, posterior_of_new_nodes
from penchant.numerics.dispatch import CPU, device_called
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.threads import threads_for
from penchant.numerics.types import FloatArray, IntArray

ItemState = gp.FitState[Any]
"""Of items, or of their paths where utilities drift."""
START_VARIANCE = 0.25
"""First variance of a path, in units of an answer's noise; its first timescale is half of the time
that the comparisons span."""


@dataclass(eq=False, repr=False)
class PreferenceGP(UtilityModel):
    """Utilities of items from comparisons, with uncertainty, features and relations.

    One Gaussian process prior over the items' utilities: a kernel on their features plus one
    graph kernel per relation between them, each with its own weight (paper 000, Eqs. 1–5).
    Comparisons by different people are pooled, for a ranking of people at large. Where five or
    more are named, intervals allow for the correlation of one person's answers (`report_` says by
    how much that widens them); for taste by person see `MultiUserGP`.

    `tell(reconverge=False)` makes a rank-one update in O(rank²) for each answer and keeps the other
    sites. That is the default beyond 500 items, until 2 % of the sites are pending.

    Parameters
    ----------
    kernel : Kernel or None
        Prior covariance over items. None: `LinearRBF` on the standardised features (with one
        lengthscale a feature where the evidence is clear) plus a regularised Laplacian per
        relation, or independent utilities when there is neither; one of them, or neither, where
        answers left out are predicted clearly better so. With features `Independent()` is added, an
        effect of each item: features seldom explain all, and intervals allow for the rest. Graph
        kernels include such an effect; under `max_rank` there is none.
    likelihood : str or Likelihood
        "probit", "logit", "ties", "gaussian" (score differences; utilities are in units of their
        root mean square, `likelihood_.unit`), or an instance, for example
        `Lapse(Probit())` when some answers are given at random. With "ties" and
        optimize="evidence" the evidence decides whether ties mean that items are close
        (`Ties`) or nothing (`Abstain`). With "probit", covariates or an order, and 300 answers, it
        decides whether some answers are given at random (`Lapse`); `Probit()` insists on none.
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
        Whether intervals allow for correlated answers of one person, where people are named, by a
        sandwich covariance. Means stay the same, and intervals never get narrower. False takes
        all answers as independent.
    raters : {"lapse", "noise", None}
        Whether named people differ in reliability: in the share of answers that they give at
        random, or in how sharply they tell items apart. A person who disagrees with everybody
        counts as unreliable here; `MultiUserGP` tells that from taste. `tell` keeps the learned
        reliabilities (a new user has the typical one) until `relearn`.
    drift : {"ou", None}
        Whether utilities change with time, where comparisons have one: each item's is a constant
        (of covariance `kernel`) plus an Ornstein–Uhlenbeck path, whose variance and timescale are
        learned. Predictions are as of the last comparison, or `at=` any date. Order and covariates
        have effects (`effects_`). Time grows with the number of comparisons and the square of that
        of items between their first and last ones. Intervals take answers as independent.
    period : float or None
        With drift, the length of a period in days; None: up to 300 periods.
    half_life : float or None
        The simple alternative to drift: the weight of an answer halves for every so many days
        before the last one. Rankings follow the times; forecasts do not allow for change.
    device : None, "cpu", "cuda" or "cuda:1"
        Where matrices of items × items are kept and computed. None is the CPU, always; a card
        needs `penchant[gpu]` and pays from about a thousand items on. Saved models have no device.
    n_restarts : int
        Further random starts of the evidence climb; with optimize="evidence" alone.
    random_state : None, int or Generator
        Seeds restarts and the draws behind `rank()`.

    Attributes
    ----------
    posterior_ : Posterior
    kernel_, likelihood_ : with learned parameters
    log_evidence_ : float
    report_ : Report, how inference went
    shares_ : shares of features, each relation and item effects in the prior variance
    comparisons_ : the comparisons of the fit, pooled, and of every `tell` since
    effects_ : effects of the order shown and of covariates, where comparisons have them
    n_pending_sites_ : how many answers had a rank-one update alone, see `tell`

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

    kernel: Kernel | None = parameter(None, NONE | KERNEL)
    _: KW_ONLY
    likelihood: str | Likelihood = parameter("probit", LIKELIHOOD)
    inference: str = parameter("ep", one_of(gp.RULES))
    optimize: str | None = parameter("evidence", NONE | one_of(("evidence", "em")))
    max_rank: int | None = parameter(None, NONE | whole(1))
    clustered: bool = parameter(True, YES_OR_NO)
    raters: str | None = parameter(None, NONE | one_of(("lapse", "noise")))
    drift: str | None = parameter(None, NONE | one_of(("ou",)))
    period: float | None = parameter(None, NONE | POSITIVE)
    half_life: float | None = parameter(None, NONE | POSITIVE)
    device: str | None = parameter(None, NONE | DEVICE)
    n_restarts: int = parameter(0, whole(0))
    random_state: RandomState = parameter(None, SEED)

    def fit(
        self,
        X: Any,
        data: Comparisons | ShardedComparisons,
        relations: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn the utilities.

        X : (n_items, d) features, or None. Rows that have names (a frame's index, `encode`) are
            matched by them, others are in the order of `data.items`; docs/howto/features.md.
        data : Comparisons; of those that `scan_comparisons` made, all users' together,
            without their names.
        relations : {"name": graph} between the items: a symmetric (n_items, n_items) matrix,
            dense or sparse, or what `kernels.directed` and `kernels.bipartite` make.
        """
        check_parameters(self)
        check_restarts(self)
        if self.period is not None and self.drift is None:
            raise DataError(
                f"PreferenceGP: period={self.period!r} without drift: periods are those of "
                "utilities that drift; leave period out, or give drift='ou'"
            )
        data = data.pooled if isinstance(data, ShardedComparisons) else self._comparisons(data)
        columns, items = fitted_items(X, data, relations, self.kernel)
        items = items.on(device_called(self.device))
        return self._set_fit(self._learn(items, data), columns)

    # Learning

    def _learn(self, items: Inputs, data: Comparisons) -> ItemState:
        if self.drift is not None:
            return self._learn_paths(items, data)
        likelihood = get(self.likelihood, data.margin, data.count)
        if self.raters is not None:
            tables.check_named(data, f"raters={self.raters!r}")
            likelihood = Raters.alike(likelihood, self.raters, data.n_users)
        problem = self._problem(items, data, likelihood)
        likelihood.check(problem.edges.outcomes)
        start = gp.ItemHyper(self._item_kernel(items), likelihood)
        is_climb = self.optimize == "evidence"
        with threads_for(len(problem.edges.items)):
            if self.kernel is None and is_climb:
                start, solution = choose_sources(problem, start, self._solve)
            else:
                solution = self._solve(problem, start)
            if self.likelihood == "ties" and self.raters is None and is_climb:
                solution = choose_tie_likelihood(problem, start, solution, self._solve)
            if self.likelihood == "probit" and self.raters is None and is_climb:
                solution = choose_lapses(problem, start, solution, self._solve)
            if self.raters is not None:
                learn = None if self.optimize is None else partial(self._solve, problem)
                solution = gp.learn_raters(problem, solution, False, learn)
            learned = gp.FitState.of(data, problem, solution)
        warn_unless_converged(learned.report)
        return learned

    def _learn_paths(self, items: Inputs, data: Comparisons) -> ItemState:
        """The same for utilities that drift."""
        if device_called(self.device) is not CPU:
            raise DataError(
                f"drift is worked on by the CPU alone, got device={self.device!r}: leave it at None"
            )
        others = ("raters", "half_life", "max_rank")
        if given := [name for name in others if getattr(self, name) is not None]:
            raise DataError(f"drift= does not go together with {', '.join(given)}: leave one out")
        time = gp.check_time(data)
        calendar = gp.TimeGrid.of(time, self.period)
        rows, settings = gp.timed_rows(data, calendar), gp.Settings(self.inference)
        problem = gp.PathProblem(items, rows, calendar, settings)
        likelihood = get(self.likelihood, data.margin, data.count)
        likelihood.check(problem.edges.outcomes)
        span = float(time.max() - time.min()) or 1.0
        start = gp.PathHyper(self._item_kernel(items), START_VARIANCE, 0.5 * span, likelihood)
        with threads_for(len(items)):
            learned = gp.FitState.of(data, problem, self._solve(problem, start))
        warn_unless_converged(learned.report)
        return learned

    def _solve(self, problem: Any, start: Any) -> Any:
        if self.optimize is None:
            return gp.solve(problem, start)
        if self.optimize == "em":
            return gp.expectation_maximize(problem, start)
        begin = gp.start_at_mode(problem, start) if isinstance(problem, gp.ItemProblem) else None
        rng = as_rng(self.random_state) if self.n_restarts else None
        return gp.maximize_evidence(problem, start, self.n_restarts, rng, begin)

    def _item_kernel(self, items: Inputs) -> Kernel:
        if self.kernel is None:
            return balanced_kernel(items, self.max_rank)
        return self.kernel.at_scale_of(items)

    def _problem(
        self,
        items: Inputs,
        data: Comparisons,
        likelihood: Likelihood,
        shown: gp.Covariates | None = None,
    ) -> gp.ItemProblem:
        """The rows, with their weights and who answered; shown: known effects."""
        weight: FloatArray | float = 1.0
        if self.half_life is not None:
            data = data.as_pairs()
            weight = faded_counts(data, self.half_life) / data.count
        edges = gp.Rows.pooled(data, shown, likelihood.by_rater)
        if self.half_life is not None:
            edge = gp.edges_of(data, np.arange(len(data)), edges)
            count = np.bincount(edge, weight * data.count, len(edges))
            edges = edges.weighted(count.astype(np.float64))
        is_clustered = self.clustered and data.user is not None
        people = gp.People.of(data, edges, weight) if is_clustered else None
        settings = gp.Settings(self.inference)
        return gp.ItemProblem(items, edges, settings, self.max_rank, people=people)

    # Fitted attributes

    @property
    def posterior_(self) -> gp.Posterior:
        """The posterior over the items' utilities."""
        return self._fitted().learned.posterior

    @property
    def log_evidence_(self) -> float:
        """log p(answers | hyperparameters)."""
        return float(self._fitted().learned.log_evidence)

    @property
    def shares_(self) -> dict[str, tables.SourceShare]:
        """Source → share of the prior variance of a random difference, before and after learning.

        The sources are features, each relation, and item effects. A kernel that is given is
        described only.
        """
        learned = self._fitted().learned
        items = learned.problem.universe
        return tables.shares(self._item_kernel(items), learned.hyper.kernel, items)

    @property
    def report_(self) -> tables.SourcesReport:
        """How inference went, the shares of the prior's sources, the calibration of predictions,
        and by how much correlated answers widen intervals."""
        learned = self._fitted().learned
        slope = learned.posterior.calibration.slope
        entries = {**vars(learned.report), "shares": self.shares_, "slope": slope}
        if self.drift is None and learned.posterior.widening is not None:
            entries["n_people"] = len(np.unique(learned.data.user))
            entries["widened"] = learned.posterior.widened
        return tables.SourcesReport(**entries)

    # Predictions

    def predict(
        self,
        X: Any = None,
        *,
        users: Any = None,
        return_std: bool = False,
        relations: Mapping[str, Any] | None = None,
        at: Any = None,
        source: str | None = None,
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Mean utilities (n,) relative to the average item of the fit; with return_std also their
        standard deviations.

        X : None for the training items, or (k, d) features of new ones; a row is a new item
            even where a training item has the same features.
        users : one row for each, all the same: the model is pooled.
        relations : for new items in a relational model, the graphs over the training items
            followed by the new ones.
        at : a date, where utilities drift; None: that of the last comparison.
        source : the part of the utilities that one source explains, by its name in `shares_`:
            "features", a relation, "item effects" (f and g of paper 000). The means of all sources
            add up to those of None, the sum; the variances do not.
        """
        then = self._as_of(at)
        part = None if source is None else self._part(source)
        if relations is None:
            if part is not None:
                learned = then._fitted().learned
                own = replace(learned, posterior=learned.posterior.of_source(part))
                then = self._copy_with(own)
            return UtilityModel.predict(then, X, users=users, return_std=return_std)
        check_arguments(self, "predict", return_std=(return_std, YES_OR_NO))
        fitted = self._fitted()
        posterior = posterior_of_new_nodes(fitted.learned, fitted.columns, X, relations)
        if part is not None:
            posterior = posterior.of_source(part)
        if at is not None and isinstance(posterior, gp.PathPosterior):
            (posterior,) = posterior.when(as_days([at]))
        known = posterior.universe.take(np.arange(fitted.learned.data.n_items))
        mean, var = posterior.relative_to(posterior.at(known))
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
        at: Any = None,
    ) -> FloatArray:
        """P(first preferred to second), (k,), given that one of them is.

        pairs : (k, 2) item names or indices; with X given, rows of X. users : ignored, the model
            is pooled. ties : return (k, 3) instead: win, tie and loss of the first.
        first : +1 where the first of a pair is shown first, −1 where the second is; None, or 0:
            at equal sides. covariates : first minus second, by name; None: equal.
        at : where utilities drift, a date for all pairs, or one for each; None: that of the
            last comparison.
        """
        then = self._as_of(at, several=True)
        return UtilityModel.predict_proba(
            then, pairs, users, X, ties=ties, first=first, covariates=covariates
        )

    def rank(
        self, user: Any = None, level: float = 0.95, n_samples: int = 4000, at: Any = None
    ) -> tables.Ranking:
        """Items from best to worst with intervals, P(best) and rank intervals.

        user : whose; None for people at large. level : of the intervals.
        n_samples : joint draws behind P(best) and the rank intervals.
        at : a date, where utilities drift; None: that of the last comparison.
        """
        return UtilityModel.rank(self._as_of(at), user, level, n_samples)

    def paths(self, times: Any) -> tuple[FloatArray, FloatArray]:
        """Mean utilities (k, n_items) and their standard deviations at k times, drift given.

        They are relative to the average item at each time, as in `rank`.
        """
        self._as_of(0.0)
        each = self._fitted().learned.posterior.when(np.atleast_1d(as_days(times)))
        mean = np.array([then.mean - then.mean.mean() for then in each])
        return mean, np.sqrt([then.contrast_var for then in each])

    def _part(self, source: str) -> Kernel:
        """The part of the prior that a source is."""
        if self.drift is not None:
            raise DataError(
                "predict: source= does not go with utilities that drift: fit without drift, or "
                "with half_life= in its place, and ask that model"
            )
        kernel = self._fitted().learned.hyper.kernel
        parts = {tables.source_name(part): part for part in kernel.parts}
        if isinstance(source, str) and source in parts:
            return parts[source]
        raise DataError(
            f"predict: source is {source!r}: it must be one of {', '.join(map(repr, parts))} "
            "(see shares_), or None for all together"
        )

    def _as_of(self, at: Any, several: bool = False) -> Self:
        """The model as of another time; several: or of a time for each difference."""
        learned: ItemState = self._fitted().learned
        if at is None:
            return self
        if not isinstance(learned.posterior, gp.PathPosterior):
            raise DataError(f"at={at!r} needs utilities that drift: fit with drift='ou'")
        days = as_days(at)
        if not days.ndim:
            (then,) = learned.posterior.when(days[None])
        elif several:
            then = replace(learned.posterior, days=days)
        else:
            raise DataError(f"at holds {len(days)} times: it must be one; see paths for several")
        return self._copy_with(replace(learned, posterior=then))

    def _data(self, fitted: Fitted) -> Comparisons:
        return fitted.pooled

    def _users(self, fitted: Fitted, users: Any) -> IntArray | None:
        return None if users is None else np.zeros(np.size(users), dtype=np.intp)

    def _at(self, fitted: Fitted, X: Any) -> gp.Posterior:
        posterior: gp.Posterior = fitted.learned.posterior
        return posterior.at(fitted.new_items(X))

    def _belief(self, fitted: Fitted, user: int | None) -> gp.Posterior:
        return fitted.learned.posterior

    def _utilities(self, fitted: Fitted, users: IntArray | None, X: Any) -> gp.Normal:
        posterior = self._at(fitted, X)
        var = posterior.relative_to(fitted.learned.posterior).var
        return gp.Normal(_for_all(posterior.mean, users), _for_all(var, users))

    def _means(self, fitted: Fitted, users: IntArray | None, X: Any) -> FloatArray:
        return _for_all(self._at(fitted, X).mean, users)

    def _probabilities(
        self,
        fitted: Fitted,
        pairs: IntArray,
        users: IntArray | None,
        X: Any,
        z: FloatArray | None = None,
        time: FloatArray | None = None,
    ) -> OutcomeProbabilities:
        if time is not None and isinstance(fitted.learned.posterior, gp.PathPosterior):
            fitted = self._as_of(time, several=True)._fitted()
        if isinstance(known := fitted.learned.posterior, gp.PathPosterior):
            known.check(len(pairs))  # also where X has items that are alike at all times
        posterior = self._at(fitted, X)
        difference = posterior.difference(pairs[:, 0], pairs[:, 1], z)
        calibration = posterior.calibration if self.kernel is None else gp.AS_IT_IS
        return OutcomeProbabilities.of(posterior.likelihood, difference, calibration)

    def _effects(self, fitted: Fitted) -> tables.Estimates:
        posterior: gp.Posterior = fitted.learned.posterior
        return tables.Estimates.of(posterior.effects, posterior.lower)

    def _answers_of_raters(self, fitted: Fitted) -> gp.RaterAnswers:
        learned: ItemState = fitted.learned
        problem = self._problem_after(learned, learned.data)
        data, edges = learned.data.single_pairs(), problem.edges
        edge = np.arange(len(data))  # paths have an edge a row
        if isinstance(problem, gp.ItemProblem):
            edge = gp.edges_of(data, edge, edges)
        mean, var = gp.leave_one_out(problem, learned.hyper, learned.sites, personal=False)
        givers, times = np.asarray(data.user), faded_counts(data, self.half_life)
        outcomes = edges.outcomes.part(edge)
        return gp.RaterAnswers(givers, mean[edge], var[edge], outcomes, times, data.n_users)

    # Adding and removing answers

    def _add(self, fitted: Fitted, answers: Comparisons, reconverge: bool | None) -> ItemState:
        learned: ItemState = fitted.learned
        data = learned.data.extend(answers)
        # a choice is not one change of one difference: inference converges again
        is_plain = self.raters is None and self.drift is None and self.half_life is None
        is_plain = is_plain and answers.rankings is None
        if is_plain and learned.takes_rank_one_updates(answers.n_comparisons, reconverge):
            updated = gp.rank_one_update(learned, answers, data)
            if updated is not None:
                return updated
        return self._refit(fitted, data)

    def _refit(self, fitted: Fitted, data: Comparisons) -> ItemState:
        learned: ItemState = fitted.learned
        return learned.reconverge(data, self._problem_after(learned, data))

    def _relearn(self, fitted: Fitted) -> ItemState:
        learned: ItemState = fitted.learned
        return self._learn(learned.problem.universe, learned.data)

    def _problem_after(
        self, learned: ItemState, data: Comparisons
    ) -> gp.ItemProblem | gp.PathProblem:
        """The problem of other answers, or of the same ones: files do not store it."""
        known: gp.ItemProblem | gp.PathProblem = learned.problem
        if isinstance(known, gp.PathProblem):
            return replace(known, edges=gp.timed_rows(data, known.calendar))
        likelihood, shown = learned.hyper.likelihood, known.edges.shown
        problem = self._problem(known.universe, data, likelihood, shown)
        return replace(problem, settings=known.settings, max_rank=known.max_rank)

    def _rebuild(self) -> None:
        learned: ItemState = self.state_.learned
        learned = store.rebuilt(learned, self._problem_after(learned, learned.data))
        self.state_ = replace(self.state_, learned=learned)

    def _answers(self, fitted: Fitted, given: Answers, user: Any, to_add: bool) -> Comparisons:
        data: Comparisons = fitted.learned.data
        if not to_add:
            return answers_in_pool(data, given, user, self.raters is None)
        # answers without a name stay unnamed
        return as_answers(data, given, gp.UNNAMED if is_unnamed(data, given, user) else user)


def _for_all(numbers: FloatArray, users: IntArray | None) -> FloatArray:
    """The same row for each of the users, where there are any."""
    return numbers if users is None else np.tile(numbers, (len(users), 1))


def faded_counts(data: Comparisons, half_life: float | None) -> FloatArray:
    """(m,) counts, halved for every half-life before the last of all comparisons; as they are
    where half_life is None."""
    if half_life is None:
        return data.count.astype(np.float64)
    time = gp.check_time(data)
    count: FloatArray = data.count * np.exp2((time - time.max()) / half_life)
    return np.maximum(count, np.finfo(float).tiny)  # zero is no power
