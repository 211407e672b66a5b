"""MultiUserGP: what each of many users prefers, learned together (papers 003, 004 section 2)."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from penchant import gp
from penchant.data import Comparisons, Lookup, ShardedComparisons
from penchant.engines import ENGINES
from penchant.errors import ConvergenceWarning, DataError, DataWarning, warn
from penchant.kernels import (
    Constant,
    FreeCovariance,
    Independent,
    Inputs,
    Kernel,
    LowRankCovariance,
)
from penchant.likelihoods import Likelihood, Raters, get
from penchant.models import sharded
from penchant.models.base import Fitted, UtilityModel, warn_unless_converged
from penchant.models.defaults import choose_tie_likelihood, default_kernel
from penchant.models.features import FeatureColumns, fitted_items, in_order, warn_far_lengthscale
from penchant.models.parameters import (
    DEVICE,
    IS_ONE,
    KERNEL,
    LIKELIHOOD,
    NONE,
    SEED,
    TEXT,
    YES_OR_NO,
    between,
    check_arguments,
    check_in_memory,
    check_parameters,
    check_restarts,
    one_of,
    parameter,
    two,
    whole,
)
from penchant.models.predictive import OutcomeProbabilities, n_rows, one_user_a_pair
from penchant.models.tables import Estimates, SourceShare, shares
from penchant.numerics.dispatch import CPU, device_called
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.threads import STACKS_SIZE, threads_for
from penchant.numerics.types import FloatArray, IntArray

UserState = gp.FitState[gp.UserProblem]

ASKED_FOR = "predict(users=) is for the users of a model in memory"
"""What to do instead where no comparisons were scanned."""


@dataclass(eq=False, repr=False)
class MultiUserGP(UtilityModel):
    """Utilities of items for each of many users, with uncertainty, from all their comparisons.

    Every user's utilities are what users share plus a deviation of their own:
    Cov = (ρ K_user + (1 − ρ) I) ⊗ K_item. Users with few answers are predicted from the others,
    users with many are shrunk less. Time and memory grow linearly with the number of users.

    `tell` takes answers by known and by new users (without features). With reconverge=True it
    equals a refit with the same hyperparameters, also for users who were folded in. With
    reconverge=False the answer of a known user changes that user's utilities and what users share
    by a rank-one update; new users are folded in. That is the default beyond 3,000 distinct
    answers, until 2 % of the sites are pending.

    Parameters
    ----------
    kernel : Kernel, "free" or None
        Prior covariance over items. "free" learns every entry of it from the users themselves,
        which suits up to a hundred items. None: the covariance that best predicts held-out
        answers, of independent items, `LinearRBF` on the standardised features with a graph kernel
        per relation (where there are any), one of low rank (up to 400 items) and "free" (up to
        60). `report_.optimizer` says which, and the scores of the others.
    user_kernel : Kernel or None
        What users share. None: a population mean plus an RBF on the standardised user features
        and a graph kernel per relation between users, where there are any.
    sharing : float in (0, 1]
        ρ, the share of taste that is common; learning starts there. 1 is K_user ⊗ K_item itself,
        with optimize=None alone.
    likelihood : str or Likelihood
        "probit", "logit", "ties", "gaussian" or an instance. With "ties" the evidence decides
        whether ties mean that items are close or nothing; the latter is warned about.
    inference : {"ep", "laplace", "variational", "exact"}
        The local rule.
    optimize : {"evidence", "em", None}
        How parameters are learned: "evidence" maximises it by gradient; "em" is for
        kernel="free", slower; None keeps everything as given.
    sparse : (n_users, n_items) or None
        Sparse-EP: predict from so many users and items. A file has the answers of the users kept
        alone: a model read from it predicts, ranks, asks and folds users in, and refuses `tell`
        and `withdraw`, for which inference converges again on all answers.
    sparse_rule : {"summary", "printed"}
        What `sparse` keeps. "summary": the users with the most information, with their own
        deviations; of all others, what users share with them, along n_users directions of their
        features and at n_items items. "printed": the rule of paper 003, the users and items whose
        answers removed most entropy. It keeps those who contradict the others and predicts worse
        than chance at times; it is there to repeat the paper.
    raters : {"lapse", "noise", None}
        Whether people differ in reliability: in the share of answers that they give at random, or
        in how sharply they tell items apart. Each person's answers are compared with what their
        other answers predict, so that taste of their own does not count as unreliable.
    max_user_rank : int or None
        Bound on the rank of the user kernel. None: the rank that its tolerance needs, while one
        dense system of that rank times the items' stays below 3,072; else as many directions of
        users and columns of the items' factor as matter. `report_.optimizer` says by how much
        probabilities are off, and so does a warning where it is more than .01.
    n_restarts : int
        Further random starts of the optimiser; with optimize="evidence" alone.
    engine : {"local", "ray"}
        Where the shards of scanned comparisons are computed: in this process, or by Ray's actors.
        Refused with comparisons in memory, which have no shards.
    address : str or None
        Of a running Ray cluster; None for RAY_ADDRESS, or Ray on this machine.
    device : None, "cpu", "cuda" or "cuda:1"
        Where the matrices of each user are computed; see docs/gpu.md. A card needs
        `penchant[gpu]` and pays with thousands of users. Saved models have no device.
    progress : bool
        Show a progress bar while learning, on a terminal only.
    random_state : None, int or Generator
        Seeds restarts and the draws behind `rank()`.

    Attributes
    ----------
    posterior_ : UserPosteriors; `posterior_.for_user(index)` is one user's `Posterior`
    kernel_, user_kernel_, sharing_, likelihood_ : with learned parameters
    log_evidence_ : float
    shares_ : shares of features, each relation and item effects in the item kernel
    report_ : Report, how inference went; `report_.slope` is the calibration slope of answers left
        out, by which predictions for known users are corrected where kernel is None
    kept_users_, kept_items_, kept_ : with `sparse`, the users and items that predictions use
    comparisons_ : the comparisons of the fit and of every `tell` since
    n_pending_sites_ : how many answers had a rank-one update alone, see `tell`

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

    kernel: Kernel | str | None = parameter(None, NONE | one_of(("free",)) | KERNEL)
    user_kernel: Kernel | None = parameter(None, NONE | KERNEL)
    _: KW_ONLY
    sharing: float = parameter(0.5, between(0.0, 1.0) | IS_ONE)
    likelihood: str | Likelihood = parameter("probit", LIKELIHOOD)
    inference: str = parameter("ep", one_of(gp.RULES))
    optimize: str | None = parameter("evidence", NONE | one_of(("evidence", "em")))
    sparse: tuple[int, int] | None = parameter(
        None, NONE | two(whole(1), "(n_users, n_items) to keep, at least one each, such as (4, 8)")
    )
    sparse_rule: str = parameter("summary", one_of(gp.SPARSE_RULES))
    raters: str | None = parameter(None, NONE | one_of(("lapse", "noise")))
    max_user_rank: int | None = parameter(None, NONE | whole(1))
    n_restarts: int = parameter(0, whole(0))
    engine: str = parameter("local", one_of(ENGINES))
    address: str | None = parameter(None, NONE | TEXT)
    device: str | None = parameter(None, NONE | DEVICE)
    progress: bool = parameter(True, YES_OR_NO)
    random_state: RandomState = parameter(None, SEED)

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
        data : Comparisons with users. Of scanned comparisons (`scan_comparisons`) hyperparameters
            are learned from the first 500,000 distinct answers, what users share from all. The
            model then has the users of those first answers; `knowing` adds others.
        relations : {"name": graph} between the items.
        user_features : (n_users, k) by name or in the order of `data.users`, or None.
        user_relations : {"name": graph} between the users, such as who knows whom.
        """
        check_parameters(self)
        check_restarts(self)
        self._check_together()
        self.__dict__.pop("_shards", None)  # of an earlier fit
        if isinstance(data, ShardedComparisons):
            self._check_scanned(user_features=user_features, user_relations=user_relations)
            columns, items = fitted_items(X, data.pooled, relations, self.kernel)
            learned, self._shards = self._learn_shards(items, data)
            return self._set_fit(learned, columns)
        check_in_memory(self)
        data = self._comparisons(data)
        votes = gp.Rows.by_user(data, by_rater=self.raters is not None)
        if (k := votes.choice_size) > 2:
            warn(
                f"these pairs look as if they were broken out of choices of one item out of {k}: "
                f"each counts {2 / k:.2g} times, as much as its part of the choice; whole choices "
                "(Comparisons.from_choices) are a little better still",
                DataWarning,
            )
        columns, items = fitted_items(X, data, relations, self.kernel)
        user_columns, users = FeatureColumns.of(
            user_features, data.users, "users", self.user_kernel is None, user_relations
        )
        if users.X is not None:
            warn_far_lengthscale(self.user_kernel, users)
        self._check_user_rank(users)
        settings = gp.Settings(self.inference)
        limits = self.max_user_rank, self.sparse is None and self.optimize != "em"
        problem = gp.UserProblem.of(items, users, votes, settings, *limits)
        problem = problem.on(device_called(self.device))
        return self._set_fit(self._learn(problem, data), columns, user_columns)

    def _check_together(self) -> None:
        """Raise where one parameter would change nothing beside another."""
        if self.sharing == 1 and self.optimize is not None:
            raise DataError(
                f"MultiUserGP: sharing=1 with optimize={self.optimize!r}: learning needs "
                "users' own deviations; give optimize=None, or a sharing below 1"
            )
        if self.sparse is None and self.sparse_rule != "summary":
            raise DataError(
                f"MultiUserGP: sparse_rule={self.sparse_rule!r} without sparse: leave it out, or "
                "give sparse=(n_users, n_items)"
            )

    def _check_user_rank(self, users: Inputs) -> None:
        is_known = self.user_kernel is not None or users.X is not None or bool(users.relations)
        if self.max_user_rank is not None and not is_known:
            raise DataError(
                f"MultiUserGP: max_user_rank={self.max_user_rank}: users have no features or "
                "relations, so that their kernel is constant and has rank one; leave max_user_rank "
                "out, or give user_features, user_relations or user_kernel"
            )

    def _check_scanned(self, **given: Any) -> None:
        """Users of scanned comparisons share a population mean alone."""
        names = ("user_kernel", "sparse", "raters", "max_user_rank")
        given |= {name: getattr(self, name) for name in names}
        given["device"] = None if device_called(self.device) is CPU else self.device
        if refused := [name for name, value in given.items() if value is not None]:
            raise DataError(
                f"scanned comparisons do not go together with {', '.join(refused)} yet: leave it "
                "out, or read the comparisons of some users with read_comparisons"
            )

    # Learning

    def _learn(self, problem: gp.UserProblem, data: Comparisons) -> UserState:
        with threads_for(gp.matrix_size(problem.items), STACKS_SIZE):
            return self._state(data, problem, self._solution(problem, data))

    def _solution(self, problem: gp.UserProblem, data: Comparisons) -> gp.UserSolution:
        """Learn the hyperparameters, and infer under them."""
        likelihood = get(self.likelihood, data.margin, data.count)
        if self.raters is not None:
            likelihood = Raters.alike(likelihood, self.raters, data.n_users)
        likelihood.check(problem.edges.outcomes)
        users, kernel, given = problem.users, self._item_kernel(problem.items), self.user_kernel
        shared = sharing_kernel(users) if given is None else given.at_scale_of(users)
        solution = self._solve(problem, gp.UserHyper(kernel, shared, self.sharing, likelihood))
        if self.raters is not None:
            learn = None if self.optimize is None else partial(self._solve, problem)
            return gp.learn_raters(problem, solution, True, learn)
        if self.likelihood != "ties" or self.optimize != "evidence":
            return solution
        note = solution.inference.report.optimizer

        def maximize(problem: gp.UserProblem, start: gp.UserHyper) -> gp.UserSolution:
            return gp.maximize_evidence(problem, start).with_note(note)

        return choose_tie_likelihood(problem, solution.hyper, solution, maximize)

    def _learn_shards(
        self, items: Inputs, data: ShardedComparisons
    ) -> tuple[UserState, sharded.UserShards]:
        """The same from users in shards: the state of some, and where the others are."""
        some = sharded.first_users(data)
        users = Inputs(index=np.arange(some.n_users))
        votes, settings = gp.Rows.by_user(some.bare()), gp.Settings(self.inference)
        problem = gp.UserProblem.of(items, users, votes, settings)
        with threads_for(gp.matrix_size(items), STACKS_SIZE):
            solution = self._solution(problem, some)
            with progress_bar("sweeping all users", self.progress, _evaluation) as watch:
                where = (data, self.engine, self.address)
                learned, shards = sharded.learn_shards(*where, problem, some, solution, watch)
        warn_unless_converged(learned.report)
        return learned, shards

    def _solve(self, problem: gp.UserProblem, start: gp.UserHyper) -> gp.UserSolution:
        if self.optimize is None:
            return gp.solve(problem, start)
        with progress_bar("learning from users", self.progress, _evaluation) as watch:
            if self.optimize == "em":
                return gp.expectation_maximize(problem, start, watch)
            how = (self.kernel, self.n_restarts, self.random_state, watch)
            return maximize_choosing_covariance(problem, start, *how)

    def _state(
        self, data: Comparisons, problem: gp.UserProblem, solution: gp.UserSolution
    ) -> UserState:
        """The state after inference; with `sparse`, the posterior of the users and items kept."""
        users = solution.prior.users
        if users.missed is not None:
            error = gp.rank_error(problem, solution)
            note = f"the user kernel has rank {users.rows.shape[1]} of more"
            if users.depth is not None:
                note += f", all but the first with {users.depth} of {solution.prior.rank} columns"
            note += f": {error.description}"
            if error.largest > gp.NOTICEABLE:
                advice = "raise max_user_rank, or give fewer or smoother user features"
                warn(f"{note}; {advice}", ConvergenceWarning)
            solution = solution.with_note(note)
        learned = gp.FitState.of(data, problem, solution)
        warn_unless_converged(learned.report)
        if self.sparse is None:
            return learned
        posterior = gp.SPARSE_RULES[self.sparse_rule](problem, solution, *self.sparse)
        return replace(learned, posterior=posterior, sites=None)

    def _item_kernel(self, items: Inputs) -> Kernel:
        if isinstance(self.kernel, Kernel):
            return self.kernel.at_scale_of(items)
        if self.kernel == "free":
            items = replace(items, X=None, relations={})
        return taste_kernel(items)

    # Fitted attributes

    @property
    def posterior_(self) -> gp.UserPosteriors:
        """The posterior over all users' utilities."""
        return self._fitted().learned.posterior

    @property
    def log_evidence_(self) -> float:
        """log p(answers | hyperparameters)."""
        return float(self._fitted().learned.log_evidence)

    @property
    def user_kernel_(self) -> Kernel:
        """The user kernel, with learned parameters."""
        return self._fitted().learned.hyper.user_kernel

    @property
    def sharing_(self) -> float:
        """ρ, the share of taste that is common, learned."""
        return float(self._fitted().learned.hyper.sharing)

    @property
    def shares_(self) -> dict[str, SourceShare]:
        """Source → share of the prior variance of a random difference between items, before and
        after learning: of features, each relation, item effects, or a learned covariance."""
        items = self.posterior_.items
        return shares(self._item_kernel(items), self.posterior_.kernel, items)

    @property
    def kept_(self) -> gp.ActiveSet | None:
        """With `sparse`, the users and items that predictions use, and how informative all were."""
        return self.posterior_.kept

    @property
    def kept_users_(self) -> tuple[Any, ...]:
        """With `sparse`, the users that predictions use."""
        kept = self.kept_
        return () if kept is None else tuple(self.comparisons_.users[i] for i in kept.users)

    @property
    def kept_items_(self) -> tuple[Any, ...]:
        """With `sparse`, the items that predictions use."""
        kept = self.kept_
        return () if kept is None else tuple(self.comparisons_.items[i] for i in kept.items)

    def predict(
        self,
        X: Any = None,
        *,
        users: Any = None,
        return_std: bool = False,
        user_features: Any = None,
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Mean utilities (n_items,) of the population, or (n_users, n_items) with users.

        X : None for the training items, or (k, d) features of new ones.
        users : a user or a sequence of them, names or indices; None for the population.
        user_features : (k, d) for new users, known by features alone; `users` are then rows of
            it, all by default.
        """
        if user_features is None:
            return super().predict(X, users=users, return_std=return_std)
        check_arguments(self, "predict", return_std=(return_std, YES_OR_NO))
        posterior, who = self._newcomers(self._fitted(), users, user_features, X)
        mean, var = posterior.utilities(who, relative=True)
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
        user_features: Any = None,
    ) -> FloatArray:
        """P(first preferred to second), (k,), given that one of them is: win/(win + loss).

        pairs : (k, 2) item names or indices; with X given, rows of X.
        users : one user for all pairs, or one for each; None for the population; with
            user_features, rows of those.
        ties : return (k, 3) instead: win, tie and loss of the first.
        first, covariates : how a pair is shown, if not at equal sides and covariates; of known
            users.
        """
        if user_features is None:
            shown = {"first": first, "covariates": covariates}
            return super().predict_proba(pairs, users, X, ties=ties, **shown)
        if first is not None or covariates:
            raise DataError("first and covariates cannot be given together with user_features")
        fitted = self._fitted()
        posterior, who = self._newcomers(fitted, users, user_features, X)
        index = fitted.pair_index(pairs, X)
        difference = posterior.differences(one_user_a_pair(who, len(index)), *index.T)
        return OutcomeProbabilities.of(posterior.likelihood, difference).given_decision(ties)

    def _newcomers(
        self, fitted: Fitted, users: Any, user_features: Any, X: Any
    ) -> tuple[gp.UserPosteriors, IntArray]:
        """The posterior with new users known by features alone, and which of them are asked."""
        posterior = self._at(fitted, X)
        first, k = len(posterior), n_rows(user_features, "user_features")
        newcomers = fitted.user_columns.rows(user_features, k, "users")
        rows = Lookup(tuple(range(k)), "row of user_features")
        asked = np.arange(k) if users is None else rows.index(users)
        return posterior.with_users(newcomers), first + np.atleast_1d(asked)

    def _at(self, fitted: Fitted, X: Any) -> gp.UserPosteriors:
        posterior: gp.UserPosteriors = fitted.learned.posterior
        return posterior.at(fitted.new_items(X))

    def _belief(self, fitted: Fitted, user: int | None) -> gp.Posterior:
        posterior: gp.UserPosteriors = fitted.learned.posterior
        return posterior.belief(user)

    def _spread(self, fitted: Fitted) -> FloatArray:
        posterior: gp.UserPosteriors = fitted.learned.posterior
        return posterior.spread()

    def _utilities(self, fitted: Fitted, users: IntArray | None, X: Any) -> gp.Normal:
        return self._at(fitted, X).known_utilities(users)

    def _probabilities(
        self,
        fitted: Fitted,
        pairs: IntArray,
        users: IntArray | None,
        X: Any,
        z: FloatArray | None = None,
        time: FloatArray | None = None,
    ) -> OutcomeProbabilities:
        posterior = self._at(fitted, X)
        return OutcomeProbabilities.of_users(posterior, users, pairs, z)

    def _effects(self, fitted: Fitted) -> Estimates:
        posterior: gp.UserPosteriors = fitted.learned.posterior
        return Estimates.of(posterior.effects, posterior.shared_lower)

    def _answers_of_raters(self, fitted: Fitted) -> gp.RaterAnswers:
        learned: UserState = fitted.learned
        problem = problem_after(learned, learned.data)
        votes, sites = problem.edges, learned.sites
        if sites is not None and len(sites.tau) != len(votes):  # some were only folded in
            sites = None
        mean, var = gp.leave_one_out(problem, learned.hyper, sites, personal=True)
        cliques = votes.outcomes.cliques
        n = len(votes) - (0 if cliques is None else cliques.n_edges)  # those of choices stand last
        votes = votes.part(np.arange(n))
        seen = gp.at_typical_scale(votes.user, gp.Normal(mean[:n], var[:n]), votes.count)
        return gp.RaterAnswers(
            votes.user, *seen, votes.outcomes, votes.count, len(problem.users), True
        )

    # Other users

    def fold_in(self, data: Comparisons, user_features: Any = None) -> Self:
        """A copy of this model with new users, without fitting the others again.

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
        learned: UserState = fitted.learned
        data = self._comparisons(data)
        gp.check_newcomers(learned.data, data)
        rows = in_order(user_features, data.users, "users")
        newcomers = fitted.user_columns.rows(rows, data.n_users, "users")
        return self._copy_with(gp.with_newcomers(learned, learned.data.extend(data), newcomers))

    def knowing(self, users: Any) -> Self:
        """A copy of this model with these users of the scanned comparisons, by name.

        Its predictions for them are those of a fit in memory. The folder of the scanned data must
        still exist.
        """
        learned: UserState = self._fitted().learned
        return self._copy_with(sharded.shards_of(self, ASKED_FOR).state_of(learned, users))

    def write_predictions(self, folder: str | PathLike[str]) -> None:
        """Write mean and standard deviation of every utility of every user of the scanned
        comparisons: Parquet files of the columns user, item, mean and sd, each by a shard.

        folder : made if it is not there; files of an earlier call are replaced.
        """
        shards: sharded.UserShards = sharded.shards_of(self, ASKED_FOR)
        shards.write(self.posterior_, Path(folder), self.engine, self.address)

    # Adding and removing answers

    def _add(self, fitted: Fitted, answers: Comparisons, reconverge: bool | None) -> UserState:
        sharded.check_all_here(fitted.learned.n_elsewhere)
        learned: UserState = fitted.learned
        data = learned.data.extend(answers)
        problem = problem_after(learned, data)
        # beside choices, rows are not one user after the other: inference converges again
        is_plain = self.raters is None and data.rankings is None
        if is_plain and learned.takes_rank_one_updates(answers.n_comparisons, reconverge):
            updated = gp.rank_one_update_users(learned, data, problem)
            if updated is not None:
                return updated
        return self._refit(fitted, data)

    def _refit(self, fitted: Fitted, data: Comparisons) -> UserState:
        sharded.check_all_here(fitted.learned.n_elsewhere)
        learned: UserState = fitted.learned
        problem = problem_after(learned, data)
        solution = gp.solve(problem, learned.hyper, learned.carried_sites(problem))
        return self._state(data, problem, solution.with_report(slope=learned.report.slope))

    def _relearn(self, fitted: Fitted) -> UserState:
        return self._learn(fitted.learned.problem, fitted.learned.data)


@contextmanager
def progress_bar(
    title: str, shown: bool, words: Callable[..., str], n_steps: int | None = None
) -> Iterator[Callable[..., None]]:
    """A callback for each step, which shows `words` of its arguments; on a terminal only."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if not shown or not console.is_terminal:  # some versions end a bar that is disabled by a line
        yield lambda *told: None
        return
    left = () if n_steps is None else (BarColumn(), TimeRemainingColumn())
    columns = (SpinnerColumn(), TextColumn("{task.description}"), *left, TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=n_steps)

        def watch(*told: Any) -> None:
            bar.update(task, advance=1, description=f"{title}: {words(*told)}")

        yield watch


def _evaluation(n_evaluations: int, value: float) -> str:
    return f"evaluation {n_evaluations}, log evidence {value:,.1f}"


def problem_after(learned: UserState, data: Comparisons) -> gp.UserProblem:
    """The problem of other answers, new users without features included."""
    posterior: gp.UserPosteriors = learned.posterior
    n_new = data.n_users - len(posterior)
    users = posterior.users
    if n_new and (users.X is not None or users.relations):
        raise DataError(
            f"{n_new} new users answered, and the model was fitted with features of users: "
            "bring them in by fold_in(data, user_features)"
        )
    if n_new:
        users = posterior.with_users(Inputs(index=np.arange(n_new))).users
    by_rater = learned.hyper.likelihood.by_rater
    votes = gp.Rows.by_user(data, learned.problem.edges.shown, by_rater)
    return learned.problem.over(users, votes)


# The item covariance and the user kernel where none is given

FREE_ITEMS, LOW_RANK_ITEMS = 100, (20, 400)
"""Most items for a free covariance; fewest and most items for one of low rank."""
DIRECTIONS = 4
"""Rank of that covariance."""


def taste_kernel(items: Inputs) -> Kernel:
    """The item covariance of users: a free one where items have no features or relations."""
    if items.X is not None or items.relations:
        found = default_kernel(items)
        return found if gp.are_very_many(items) else found + Independent()
    return FreeCovariance.of(np.eye(len(items))) if len(items) <= FREE_ITEMS else Independent()


def sharing_kernel(users: Inputs) -> Kernel:
    """The user kernel: a population mean, plus kernels on features and relations of users."""
    if users.X is None and not users.relations:
        return Constant(1.0)
    return 1.0 + default_kernel(users, linear=False)


def maximize_choosing_covariance(
    problem: gp.UserProblem,
    start: gp.UserHyper,
    kernel: Kernel | str | None,
    n_restarts: int = 0,
    random_state: RandomState = None,
    watch: gp.Callback | None = None,
) -> gp.UserSolution:
    """Maximise the evidence, after choosing an item covariance where no kernel is given.

    start: with the kernel that is given, or with that of the features.
    """
    begin: gp.StartingPoint | None = None
    word, calibration = "", None
    if not isinstance(kernel, Kernel):
        choice = _choose_covariance(problem, start, kernel, watch)
        start, begin = choice.start, gp.StartingPoint(choice.theta)
        calibration = choice.calibration
        word = choice.description + not_tried(problem, kernel)
    rng = as_rng(random_state) if n_restarts else None
    how = (n_restarts, rng, begin, watch, gp.LEARNING)
    solution = gp.maximize_evidence(problem, start, *how).with_note(word)
    if calibration is None:
        calibration = gp.calibrate(problem.edges, solution).calibration
    if kernel is None:
        solution = solution._replace(hyper=solution.hyper._replace(calibration=calibration))
    return solution.with_report(slope=calibration.slope)


def not_tried(problem: gp.UserProblem, kernel: str | None) -> str:
    """Which candidates the number of items rules out, in words."""
    n, most = len(problem.items), LOW_RANK_ITEMS[1]
    if kernel is not None or n <= FREE_ITEMS:
        return ""
    directions = f"few directions of taste (up to {most}) and " if n > most else ""
    return f"; {n:,} items are too many for {directions}a free covariance (up to {FREE_ITEMS})"


def _choose_covariance(
    problem: gp.UserProblem, start: gp.UserHyper, kernel: str | None, watch: gp.Callback | None
) -> gp.CovarianceChoice:
    """The free covariance if it was asked for, else the candidate that predicts best.

    Both learned ones start at the variance and the sharing learned with independent items.
    """
    items, simplest = problem.items, start._replace(kernel=Independent())
    n, (fewest, most) = len(items), LOW_RANK_ITEMS

    def variance(known: gp.UserHyper) -> float:
        return float(known.kernel.diag(Inputs(index=np.zeros(1, dtype=np.intp)))[0])

    def free(known: gp.UserHyper) -> gp.UserHyper:
        covariance = FreeCovariance.of(variance(known) * np.eye(n))
        return known._replace(kernel=covariance.around(covariance))

    def low_rank(known: gp.UserHyper) -> gp.UserHyper:
        place = problem.edges.item_order(n)  # does not depend on names
        covariance = LowRankCovariance.begin(place, DIRECTIONS, variance(known))
        return known._replace(kernel=covariance)

    if kernel == "free":
        if gp.are_very_many(items):
            raise DataError(f"kernel='free' between {n:,} items: it suits up to {FREE_ITEMS}")
        return gp.scaled_start(problem, simplest, free, watch)
    others: dict[str, gp.Start] = {}
    if gp.are_very_many(items):  # independent ones have a factor of full rank
        return gp.CovarianceChoice("features", start, start.theta, {})
    if items.X is not None or items.relations:
        others["features"] = lambda _: start
    if fewest < n <= most:
        others["low rank"] = low_rank
    if n <= FREE_ITEMS:
        others["free"] = free
    fallback = "features" if "features" in others else "independent"
    return gp.choose_covariance(problem, simplest, others, fallback, watch)
