"""MultiUserGP: what each of many users prefers, learned together (papers 003, 004 section 2)."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

from penchant.data import Comparisons, ShardedComparisons, as_comparisons
from penchant.engines import ENGINES
from penchant.errors import DataError
from penchant.gp import (
    RULES,
    Learned,
    Settings,
    UserProblem,
    Votes,
    check_newcomers,
    with_newcomers,
)
from penchant.gp import absorb_votes as absorb
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood
from penchant.models.features import FeatureColumns, fitted_items
from penchant.models.sharded import Elsewhere, check_all_here, whereabouts
from penchant.models.sources import SourceShare, shares
from penchant.models.state import Fitted
from penchant.models.user_answers import problem_after
from penchant.models.user_learning import UserLearning
from penchant.models.user_views import UserViews
from penchant.models.validation import (
    DEVICE,
    KERNEL,
    LIKELIHOOD,
    NONE,
    SEED,
    TEXT,
    YES_OR_NO,
    Constraint,
    Constraints,
    between,
    check_in_memory,
    check_restarts,
    one_of,
    warn_far_lengthscale,
    whole,
)
from penchant.numerics.dispatch import HOST, device_called
from penchant.numerics.random import RandomState

ASKED_FOR = "users whom it knows are asked for by predict(users=)"
"""What to do instead where no comparisons were scanned."""


class MultiUserGP(UserViews):
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
    kernel : Kernel, "free" or None
        Prior covariance over items. "free" learns every entry of it from the users themselves,
        which suits up to a hundred items. None: whatever predicts answers best that it was not
        learned from, of independent items, an RBF on the standardised features with a graph
        kernel per relation (where there are any), few directions of taste (up to 400 items) and
        "free" (up to 60). `report_.optimizer` tells which, and the others' scores.
    user_kernel : Kernel or None
        What users share. None: a population mean, and besides an RBF on user features
        (standardised) and a graph kernel per relation between users, where there are any.
    sharing : float in (0, 1)
        ρ, how much of taste is shared; where the learning starts.
    likelihood : str or Likelihood
        "probit", "logit", "ties", "gaussian" or an instance. "ties" are of close items, or come
        at any difference and say nothing, with a warning, where that is likelier.
    inference : {"ep", "laplace", "variational", "exact"}
        The local rule.
    optimize : {"evidence", "em", None}
        How parameters are learned: "evidence" climbs it by gradient; "em" is for
        kernel="free", slower; None keeps everything as given.
    sparse : (n_users, n_items) or None
        Sparse-EP: predict from so many most informative users and items alone.
    raters : {"lapse", "noise", None}
        Whether people differ in how reliably they answer: by the share of answers that they give
        at random, or by how sharply they tell items apart. Each is held against what their own
        other answers foresee, so that taste of their own is no unreliability.
    max_user_rank : int or None
        Bound on the rank of the user kernel. None: as many as its tolerance needs, while one dense
        system of that rank times the items' stays below 3,072. Where it is not enough, a warning
        says by how much variances and probabilities may be off.
    n_restarts : int
        Further random starts of the evidence climb; with optimize="evidence" alone.
    engine : {"local", "ray"}
        Who works on the shards of scanned comparisons: this process, or Ray's actors. Refused
        with comparisons in memory, which need none.
    address : str or None
        Of a running Ray cluster; None for RAY_ADDRESS, or Ray on this machine.
    device : None, "cpu", "cuda" or "cuda:1"
        Where what there is of each user is worked on while fitting and answering; see
        docs/gpu.md. A card needs `penchant[gpu]` and pays with thousands of users. Saved
        models know no device.
    progress : bool
        Show a progress bar while learning, on a terminal only.
    random_state : None, int or Generator
        Seeds restarts and the draws behind `rank()`.

    Attributes
    ----------
    posterior_ : UserPosteriors; `posterior_.for_user(index)` is one user's `Posterior`
    kernel_, user_kernel_, sharing_, likelihood_ : with learned parameters
    log_evidence_ : float
    shares_ : what features, each relation and item effects count in the item kernel
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
    >>> gp.predict(users=["ann", "bob"]).shape
    (2, 3)
    >>> bool(gp.predict_proba([("tea", "water")], users="cem")[0] > 0.5)
    True
    """

    constraints: ClassVar[Constraints] = {
        "kernel": NONE | one_of(("free",)) | KERNEL,
        "user_kernel": NONE | KERNEL,
        "sharing": between(0.0, 1.0),
        "likelihood": LIKELIHOOD,
        "inference": one_of(RULES),
        "optimize": NONE | one_of(("evidence", "em")),
        "sparse": NONE
        | Constraint(
            "(n_users, n_items) to keep, at least one each, such as (4, 8)",
            lambda value: (
                isinstance(value, tuple | list)
                and len(value) == 2
                and all(whole(1).holds(number) for number in value)
            ),
        ),
        "raters": NONE | one_of(("lapse", "noise")),
        "max_user_rank": NONE | whole(1),
        "n_restarts": whole(0),
        "engine": one_of(ENGINES),
        "address": NONE | TEXT,
        "device": NONE | DEVICE,
        "progress": YES_OR_NO,
        "random_state": SEED,
    }

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        user_kernel: Kernel | None = None,
        *,
        sharing: float = 0.5,
        likelihood: str | Likelihood = "probit",
        inference: str = "ep",
        optimize: str | None = "evidence",
        sparse: tuple[int, int] | None = None,
        raters: str | None = None,
        max_user_rank: int | None = None,
        n_restarts: int = 0,
        engine: str = "local",
        address: str | None = None,
        device: str | None = None,
        progress: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.user_kernel = user_kernel
        self.sharing = sharing
        self.likelihood = likelihood
        self.inference = inference
        self.optimize = optimize
        self.sparse = sparse
        self.raters = raters
        self.max_user_rank = max_user_rank
        self.n_restarts = n_restarts
        self.engine = engine
        self.address = address
        self.device = device
        self.progress = progress
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        data: Comparisons | ShardedComparisons,
        relations: Mapping[str, Any] | None = None,
        *,
        user_features: Any = None,
        user_relations: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn everybody's utilities.

        X : (n_items, d) features, or None. Rows that have names (a frame's index, `encode`) are
            matched by them, others are in the order of `data.items`; docs/howto/features.md.
        data : Comparisons with users. Of those that `scan_comparisons` made, hyperparameters are
            learned from the first 500,000 distinct answers; what users share, from all. The model
            then knows the users of those first answers; `knowing` brings in others.
        relations : {"name": graph} between the items.
        user_features : (n_users, k) by name or in the order of `data.users`, or None.
        user_relations : {"name": graph} between the users, such as who knows whom.
        """
        self._check()
        check_restarts(self)
        self.__dict__.pop("_elsewhere", None)  # of an earlier fit
        learning = UserLearning.of(self)
        if isinstance(data, ShardedComparisons):
            self._check_scanned(user_features=user_features, user_relations=user_relations)
            columns, items = fitted_items(X, data.everybody, relations, self.kernel)
            learned, self._elsewhere = learning.swept(items, data)
            return self._keep(learned, columns, FeatureColumns(0, None))
        check_in_memory(self)
        data = as_comparisons(data)
        votes = Votes.as_shown(data, by_rater=self.raters is not None)
        columns, items = fitted_items(X, data, relations, self.kernel)
        user_columns, users = FeatureColumns.of(
            user_features, data.users, "users", self.user_kernel is None, user_relations
        )
        if users.X is not None:
            warn_far_lengthscale(self.user_kernel, users)
        problem = UserProblem.of(items, users, votes, Settings(self.inference), self.max_user_rank)
        problem = problem.on(device_called(self.device))
        self._check_user_rank(users)
        return self._keep(learning.learned(problem, data), columns, user_columns)

    def _check_user_rank(self, users: Inputs) -> None:
        is_known = self.user_kernel is not None or users.X is not None or bool(users.relations)
        if self.max_user_rank is not None and not is_known:
            raise DataError(
                f"MultiUserGP: max_user_rank={self.max_user_rank}: nothing is known of users, who "
                "then share one thing, what people like on average; leave max_user_rank out, or "
                "give user_features, user_relations or user_kernel"
            )

    def _check_scanned(self, **given: Any) -> None:
        """Users of scanned comparisons share one thing: what people like on average."""
        given |= {
            name: getattr(self, name)
            for name in ("user_kernel", "sparse", "raters", "max_user_rank")
        }
        given["device"] = None if device_called(self.device) is HOST else self.device
        if told := [name for name, value in given.items() if value is not None]:
            raise DataError(
                f"scanned comparisons do not go together with {', '.join(told)} yet: leave it out, "
                "or read the comparisons of some users with read_comparisons"
            )

    def knowing(self, users: Any) -> Self:
        """A copy of this model that knows these users of the scanned comparisons, by name.

        What it says of them is what a fit in memory would say. The folder of the scanned data must
        still be there.
        """
        learned: Learned[UserProblem] = self._fitted().learned
        return self._with(whereabouts(self, ASKED_FOR).learned(learned, users))

    def write_predictions(self, folder: str | PathLike[str]) -> None:
        """Write mean and standard deviation of every utility of every user of the scanned
        comparisons: Parquet files of the columns user, item, mean and sd, each by a shard.

        folder : made if it is not there; files of an earlier call are replaced.
        """
        elsewhere: Elsewhere = whereabouts(self, ASKED_FOR)
        elsewhere.write(self.posterior_, Path(folder), self.engine, self.address)

    @property
    def shares_(self) -> dict[str, SourceShare]:
        """Source → share of the prior variance of a random difference between items, before and
        after learning: of features, each relation, item effects, or a learned covariance."""
        items = self.posterior_.items
        start = UserLearning.of(self).item_kernel(items)
        return shares(start, self.posterior_.kernel, items)

    def fold_in(self, data: Comparisons, user_features: Any = None) -> Self:
        """A copy of this model that knows new users too, without fitting the others again.

        data : comparisons by users who were not in the fit, between items that were.
        user_features : (n_new_users, k) by name or in the order of `data.users`, if the fit had
            any.

        >>> from penchant.data import Comparisons
        >>> old = Comparisons.from_pairs(["a", "b", "a"], ["b", "c", "c"], user=[1, 2, 2])
        >>> new = Comparisons.from_pairs(["c"], ["a"], user=["eva"])
        >>> gp = MultiUserGP(optimize=None).fit(None, old).fold_in(new)
        >>> gp.predict(users="eva").shape
        (1, 3)
        """
        fitted = self._fitted()
        learned: Learned[UserProblem] = fitted.learned
        data = as_comparisons(data)
        check_newcomers(learned.data, data)
        newcomers = fitted.user_columns.rows_of(data.users, user_features, "users")
        return self._with(with_newcomers(learned, learned.data.extend(data), newcomers))

    def _told(
        self, fitted: Fitted, answers: Comparisons, polish: bool | None
    ) -> Learned[UserProblem]:
        check_all_here(fitted.learned.n_elsewhere)
        learned: Learned[UserProblem] = fitted.learned
        data = learned.data.extend(answers)
        problem = problem_after(learned, data)
        # beside choices, rows are not one user after the other: everything is settled
        plain = self.raters is None and data.rankings is None
        if plain and learned.is_absorbed(answers.n_comparisons, polish):
            absorbed = absorb(learned, data, problem)
            if absorbed is not None:
                return absorbed
        return UserLearning.of(self).resettled(learned, data, problem)

    def _without(self, fitted: Fitted, data: Comparisons) -> Learned[UserProblem]:
        check_all_here(fitted.learned.n_elsewhere)
        learned: Learned[UserProblem] = fitted.learned
        return UserLearning.of(self).resettled(learned, data, problem_after(learned, data))

    def _relearned(self, fitted: Fitted) -> Learned[UserProblem]:
        check_all_here(fitted.learned.n_elsewhere)
        return UserLearning.of(self).learned(fitted.learned.problem, fitted.learned.data)
