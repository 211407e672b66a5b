"""How `MultiUserGP` learns: from a problem of many users to what is known of them."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from penchant.data import Comparisons, ShardedComparisons
from penchant.errors import ConvergenceWarning, warn
from penchant.gp import (
    Learned,
    Settings,
    UserHyper,
    UserProblem,
    UserSolution,
    Votes,
    expectation_maximize,
    largest_left,
    learn_raters,
    maximize,
    of_utilities,
    rank_error,
    restrict,
    select,
    solve,
    with_word,
)
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood, Raters, get
from penchant.models.defaults import sharing_kernel, taste_kernel
from penchant.models.learning import Learning
from penchant.models.progress import progress_bar
from penchant.models.sharded import Elsewhere, Shards, first_users, learn_shards
from penchant.models.tastes import learn_tastes
from penchant.models.tie_meaning import with_ties_understood
from penchant.numerics.random import RandomState
from penchant.numerics.threads import threads_for


@dataclass(frozen=True, eq=False)
class UserLearning(Learning):
    """By the parameters of `MultiUserGP`, where they are explained."""

    kernel: Kernel | str | None
    user_kernel: Kernel | None
    sharing: float
    likelihood: str | Likelihood
    optimize: str | None
    sparse: tuple[int, int] | None
    raters: str | None
    n_restarts: int
    inference: str
    engine: str
    address: str | None
    progress: bool
    random_state: RandomState

    def learned(self, problem: UserProblem, data: Comparisons) -> Learned[UserProblem]:
        """Everything, hyperparameters included."""
        users = problem.users
        n_shared = 1 if users.X is None else 1 + users.X.shape[1]
        with threads_for(len(problem.items) * n_shared):
            return self._settled(data, problem, self.solution(problem, data))

    def solution(self, problem: UserProblem, data: Comparisons) -> UserSolution:
        """The hyperparameters, and the inference under them."""
        likelihood = get(self.likelihood, data.margin, data.count)
        if self.raters is not None:
            likelihood = Raters.alike(likelihood, self.raters, data.n_users)
        likelihood.check(problem.edges.outcomes)
        items, users = problem.items, problem.users
        start = UserHyper(
            self.item_kernel(items),
            self.shared_kernel(users),
            self.sharing,
            likelihood,
        )
        solution = self._solve(problem, start)
        if self.raters is None:
            return self._ties_understood(problem, solution)
        learn = None if self.optimize is None else partial(self._solve, problem)
        return learn_raters(problem, solution, True, learn)

    def swept(
        self, items: Inputs, data: ShardedComparisons
    ) -> tuple[Learned[UserProblem], Elsewhere]:
        """The same from users in shards: what is known of some, and where the others are."""
        some = first_users(data)
        users = Inputs(index=np.arange(some.n_users))
        problem = UserProblem.of(items, users, Votes.of(some), Settings(self.inference))
        with threads_for(len(items)):
            solution = self.solution(problem, some)
            with progress_bar("sweeping all users", self.progress) as watch:
                shards = Shards(data, self.engine, self.address)
                learned, elsewhere = learn_shards(shards, problem, some, solution, watch)
        if not learned.report.converged:
            warn(learned.report.advice(), ConvergenceWarning)
        return learned, elsewhere

    def item_kernel(self, items: Inputs) -> Kernel:
        """The kernel given, or what is known of items before any answer."""
        if isinstance(self.kernel, Kernel):
            return self.kernel.at_scale_of(items)
        return taste_kernel(
            replace(items, X=None, relations={}) if self.kernel == "free" else items
        )

    def shared_kernel(self, users: Inputs) -> Kernel:
        """The user kernel given, or what is known of users before any answer."""
        if self.user_kernel is None:
            return sharing_kernel(users)
        return self.user_kernel.at_scale_of(users)

    def resettled(
        self, learned: Learned[UserProblem], data: Comparisons, problem: UserProblem
    ) -> Learned[UserProblem]:
        """After other answers, under the hyperparameters that were learned."""
        solution = solve(problem, learned.hyper, learned.carried(problem))
        return self._settled(data, problem, solution)

    def _ties_understood(self, problem: UserProblem, solution: UserSolution) -> UserSolution:
        if self.likelihood != "ties" or self.optimize != "evidence":
            return solution
        said = solution.inference.report.optimizer

        def learn(problem: UserProblem, start: UserHyper) -> UserSolution:
            return with_word(maximize(problem, start), said)

        return with_ties_understood(problem, solution.hyper, solution, learn)[1]

    def _solve(self, problem: UserProblem, start: UserHyper) -> UserSolution:
        if self.optimize is None:
            return solve(problem, start)
        with progress_bar("learning from users", self.progress) as watch:
            if self.optimize == "em":
                return expectation_maximize(problem, start, watch)
            how = (self.kernel, self.n_restarts, self.random_state, watch)
            return learn_tastes(problem, start, *how)

    def _settled(
        self, data: Comparisons, problem: UserProblem, solution: UserSolution
    ) -> Learned[UserProblem]:
        """What inference found; with `sparse`, what is left of it."""
        prior, state = of_utilities(solution)
        users = prior.users
        if users.missed is not None:
            largest = largest_left(solution.hyper.user_kernel, problem.users, users)
            error = rank_error(state, largest)
            said = f"the user kernel has rank {users.rows.shape[1]} of more: {error.word}"
            advice = "raise max_user_rank, or give fewer or smoother user features"
            warn(f"{said}; {advice}", ConvergenceWarning)
            solution = with_word(solution, said)
        learned = Learned.of(data, problem, solution)
        if not learned.report.converged:
            warn(learned.report.advice(), ConvergenceWarning)
        if self.sparse is None:
            return learned
        kept = select(problem, solution, *self.sparse)
        few, restricted = restrict(problem, solution, kept)
        posterior = few.posterior(restricted).changed(kept=kept)
        return replace(learned, posterior=posterior, sites=None)
