"""PreferenceGP: a Gaussian-process preference model with relations between items (paper 000)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from penchant.data import Comparisons, ShardedComparisons, as_comparisons
from penchant.errors import DataError
from penchant.gp import (
    RULES,
    ItemProblem,
    Learned,
    Normal,
    Posterior,
)
from penchant.gp.items.absorb import absorb
from penchant.gp.paths.meetings import effect_names
from penchant.gp.paths.posterior import PathPosterior
from penchant.gp.raters import Answered
from penchant.kernels import Kernel
from penchant.likelihoods import Likelihood
from penchant.models.contract import UtilityModel
from penchant.models.effects import Estimates
from penchant.models.features import FeatureColumns, fitted_items
from penchant.models.item_learning import ItemLearning
from penchant.models.new_nodes import posterior_of_new_nodes
from penchant.models.odds import Odds
from penchant.models.pooling import Answers, answers_in_pool, answers_to_pool, foreseen_in_pool
from penchant.models.ranking import Ranking
from penchant.models.sources import SourceShare, SourcesReport, shares
from penchant.models.state import Fitted
from penchant.models.time import as_days
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
    whole,
)
from penchant.numerics.device import device_called
from penchant.numerics.random import RandomState
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
        items = items.on(device_called(self.device))
        learned = ItemLearning.of(self).learned(items, data)
        return self._keep(learned, columns, FeatureColumns(0, None))

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
        start = ItemLearning.of(self).item_kernel(items)
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
        fitted = self._fitted()
        posterior = posterior_of_new_nodes(fitted.learned, fitted.columns, X, relations)
        return (posterior.mean, np.sqrt(posterior.var)) if return_std else posterior.mean

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
        return ItemLearning.of(self).resettled(fitted.learned, data)

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
        return foreseen_in_pool(fitted.learned)

    def _relearned(self, fitted: Fitted) -> Learned[Any]:
        learned: Learned[Any] = fitted.learned
        return ItemLearning.of(self).learned(learned.problem.universe, learned.data)
