"""PreferenceGP: a Gaussian-process preference model with relations between items (paper 000)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from penchant.data import Comparisons, ShardedComparisons, as_comparisons
from penchant.errors import DataError
from penchant.gp import RULES, ItemProblem, Learned
from penchant.gp import absorb_items as absorb
from penchant.kernels import Kernel
from penchant.likelihoods import Likelihood
from penchant.models.features import FeatureColumns, fitted_items
from penchant.models.item_learning import ItemLearning
from penchant.models.item_views import ItemViews
from penchant.models.pooling import Answers, answers_in_pool, answers_to_pool
from penchant.models.sources import SourceShare, SourcesReport, shares
from penchant.models.state import Fitted
from penchant.models.validation import (
    DEVICE,
    KERNEL,
    LIKELIHOOD,
    NONE,
    POSITIVE,
    SEED,
    YES_OR_NO,
    Constraints,
    check_restarts,
    one_of,
    whole,
)
from penchant.numerics.dispatch import device_called
from penchant.numerics.random import RandomState


class PreferenceGP(ItemViews):
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
        utilities when there is neither. Beside features stands `Independent()`, an effect of
        each item's own: features seldom tell all, and intervals allow for the rest. Relations
        have such an effect in their own kernels; under `max_rank` there is none.
    likelihood : str or Likelihood
        "probit", "logit", "ties", "gaussian" (score differences; utilities are in units of their
        root mean square, `likelihood_.unit`), or an instance, for example
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
        with everybody counts as unreliable here; `MultiUserGP` tells that from taste. `tell`
        keeps reliabilities as they were learned (a newcomer's is the usual one) until `relearn`.
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
        last one. Rankings follow the times, but forecasts know nothing of change.
    device : None, "cpu", "cuda" or "cuda:1"
        Where matrices of items × items live and are worked on. None is the CPU, always; a card
        needs `penchant[gpu]` and pays from about a thousand items on. Saved models know no device.
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

        X : (n_items, d) features, or None. Rows that have names (a frame's index, `encode`) are
            matched by them, others are in the order of `data.items`; docs/howto/features.md.
        data : Comparisons; of those that `scan_comparisons` made, all users' together, as if
            nobody had said who made them.
        relations : {"name": graph} between the items: a symmetric (n_items, n_items) matrix,
            dense or sparse, or what `kernels.directed` and `kernels.bipartite` make.
        """
        self._check()
        self._check_together()
        data = data.everybody if isinstance(data, ShardedComparisons) else as_comparisons(data)
        columns, items = fitted_items(X, data, relations, self.kernel)
        items = items.on(device_called(self.device))
        learned = ItemLearning.of(self).learned(items, data)
        return self._keep(learned, columns, FeatureColumns(0, None))

    def _check_together(self) -> None:
        check_restarts(self)
        if self.period is not None and self.drift is None:
            raise DataError(
                f"PreferenceGP: period={self.period!r} without drift: periods are those of "
                "utilities that drift; leave period out, or give drift='ou'"
            )

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

    def _given(self, fitted: Fitted, more: Answers, user: Any) -> Comparisons:
        return answers_to_pool(fitted.learned.data, more, user)

    def _given_before(self, fitted: Fitted, answers: Answers, user: Any) -> Comparisons:
        return answers_in_pool(fitted.learned.data, answers, user, self.raters is None)

    def _relearned(self, fitted: Fitted) -> Learned[Any]:
        learned: Learned[Any] = fitted.learned
        return ItemLearning.of(self).learned(learned.problem.universe, learned.data)
