"""Many users at once: hyperparameters, inference, evidence and the two ways to climb it.

The same verbs as `inference.evidence`, on the arrow instead of one item-space factor.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from penchant.errors import DataError, NumericalError
from penchant.inference import Basis, Inference, Settings, Sites, infer
from penchant.inference.rules import cavity
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood
from penchant.numerics.linalg import FACTOR_TOLERANCE, PivotedCholesky, pivoted_cholesky
from penchant.numerics.types import FloatArray
from penchant.people.arrow import ArrowPrior, ArrowState
from penchant.people.blocks import Block, arrange
from penchant.people.free import FreeCovariance
from penchant.people.gradient import item_slopes, outer_vectors, user_slopes
from penchant.people.pivots import UserFactor, factor_users
from penchant.people.posterior import UserPosteriors
from penchant.people.votes import Votes

LEARNING_SITE_TOLERANCE = 1e-3
"""Sites while climbing: the evidence is stationary in them, so its error is of the order 1e-6."""
LEARNING_FACTOR_TOLERANCE = 1e-7
USER_RANK = 32
SHARED_SIZE = 1024
"""Bounds on the rank of the users' kernel, and on that rank times the items' (one dense system)."""
MAX_ITEMS = 5_000
MAX_STEPS = 100
EM_ROUNDS = 500
EM_TOLERANCE = 1e-6
SHARING_BOUNDS = (1e-4, 1.0 - 1e-4)

Watch = Callable[[int, float], None]
"""Told after each evaluation: how many there were, and the best log evidence so far."""


@dataclass(frozen=True)
class Problem:
    """Data and settings: everything but the hyperparameters."""

    items: Inputs
    users: Inputs
    votes: Votes
    blocks: tuple[Block, ...]
    settings: Settings
    factor_tolerance: float = FACTOR_TOLERANCE

    @classmethod
    def of(cls, items: Inputs, users: Inputs, votes: Votes, settings: Settings) -> "Problem":
        """Arrange the users into blocks."""
        if len(items) > MAX_ITEMS:
            raise DataError(
                f"{len(items):,} items: a covariance between more than {MAX_ITEMS:,} items does "
                "not fit; leave out items that nobody compared, or use PreferenceGP(rank=…)"
            )
        blocks = arrange(votes.user, votes.winner, votes.loser, len(items))
        return cls(items, users, votes, blocks, settings)


class Hyperparameters(NamedTuple):
    """K_u ⊗ K_x with K_u = sharing · user_kernel + (1 − sharing) · I, and a likelihood."""

    item_kernel: Kernel
    user_kernel: Kernel
    sharing: float
    likelihood: Likelihood

    @property
    def theta(self) -> FloatArray:
        """Item kernel, user kernel, logit of sharing, likelihood: on unconstrained scales."""
        parts = (self.item_kernel.theta, self.user_kernel.theta, [logit(self.sharing)])
        return np.concatenate([*parts, self.likelihood.theta])

    @property
    def bounds(self) -> FloatArray:
        """(p, 2) box of `theta`."""
        low, high = logit(SHARING_BOUNDS)
        here = logit(self.sharing)
        sharing = [[min(low, here), max(high, here)]]
        parts = (self.item_kernel.bounds, self.user_kernel.bounds, sharing)
        return np.concatenate([*parts, self.likelihood.bounds])

    def at(self, theta: FloatArray) -> "Hyperparameters":
        """The same kernels and likelihood with other parameters."""
        n_item, n_user = len(self.item_kernel.theta), len(self.user_kernel.theta)
        item, user, sharing, likelihood = np.split(theta, np.cumsum([n_item, n_user, 1]))
        return Hyperparameters(
            self.item_kernel.with_theta(item),
            self.user_kernel.with_theta(user),
            float(expit(sharing[0])),
            self.likelihood.with_theta(likelihood),
        )


class Solution(NamedTuple):
    """Inference under one setting of the hyperparameters."""

    hyper: Hyperparameters
    item_factor: PivotedCholesky
    user_factor: UserFactor
    inference: Inference[ArrowState]


def solve(problem: Problem, hyper: Hyperparameters, sites: Sites | None = None) -> Solution:
    """Factor the prior and run inference."""
    tolerance = problem.factor_tolerance
    items = pivoted_cholesky(hyper.item_kernel(problem.items), tolerance)
    rank = items.rows.shape[1]
    users = factor_users(hyper.user_kernel, problem.users, min(USER_RANK, max(1, SHARED_SIZE // rank)), tolerance)
    prior = ArrowPrior(users.rows, items.in_given_order(), hyper.sharing, problem.blocks)
    votes = problem.votes
    inference = infer(
        prior.refresh, hyper.likelihood, votes.outcomes, votes.count, problem.settings, sites
    )
    report = replace(inference.report, rank=rank, residual=users.residual, space="users × items")
    return Solution(hyper, items, users, replace(inference, report=report))


def gradient(problem: Problem, solution: Solution) -> FloatArray:
    """∂ log Z / ∂ theta at the solution's sites."""
    hyper, inference = solution.hyper, solution.inference
    state, rho = inference.state, hyper.sharing
    outer = outer_vectors(state, _laplace_drift(problem, solution))
    slopes = item_slopes(state, outer)
    G = rho * slopes.shared + (1.0 - rho) * slopes.personal
    factor = state.prior.item_factor
    lean = float(np.vdot((slopes.shared - slopes.personal) @ factor, factor))
    users = np.zeros(0)
    if len(hyper.user_kernel.theta):
        users = solution.user_factor.pullback(
            hyper.user_kernel, problem.users, user_slopes(state, outer)
        )
    return np.concatenate(
        [
            hyper.item_kernel.pullback(problem.items, G),
            users,
            [rho * (1.0 - rho) * lean],
            _likelihood_gradient(problem, solution),
        ]
    )


def _laplace_drift(problem: Problem, solution: Solution) -> FloatArray | None:
    """Laplace sites sit at the mode, which moves with the prior and takes log|B| along."""
    if problem.settings.rule != "laplace":
        return None
    state, votes = solution.inference.state, problem.votes
    third = solution.hyper.likelihood.log_prob(state.mean, votes.outcomes).d3
    return 0.5 * votes.count * state.var * third


def _likelihood_gradient(problem: Problem, solution: Solution) -> FloatArray:
    """EP's evidence is stationary in the cavities, so only the tilted normalisers count."""
    likelihood, inference = solution.hyper.likelihood, solution.inference
    if problem.settings.rule not in ("ep", "exact"):
        return np.zeros(len(likelihood.theta))
    cav = cavity(inference.state.mean, inference.state.var, inference.sites)
    slopes = likelihood.tilted_gradient(cav.mean, cav.var, problem.votes.outcomes)
    return slopes @ problem.votes.count


def maximize(problem: Problem, start: Hyperparameters, watch: Watch | None = None) -> Solution:
    """Climb the evidence (times the prior of a free covariance) by L-BFGS, sites warm-started."""
    climb = _Climb(_while_learning(problem), start, watch)
    low, high = start.bounds.T
    outcome = minimize(
        climb,
        np.clip(start.theta, low, high),
        jac=True,
        method="L-BFGS-B",
        bounds=start.bounds,
        options={"maxiter": MAX_STEPS, "ftol": 1e-6, "gtol": 1e-5, "maxcor": 20},
    )
    solution = solve(problem, start.at(climb.best_theta), climb.sites)
    return _annotated(solution, str(outcome.message), climb.n_evaluations)


class _Climb:
    """Negative penalised log evidence and gradient, remembering sites and the best.

    Both are divided by the length of the first gradient, so that the optimiser's first step is
    one unit of log-parameter long and not a leap to a corner of the box.
    """

    def __init__(self, problem: Problem, start: Hyperparameters, watch: Watch | None) -> None:
        self.problem, self.start, self.watch = problem, start, watch
        self.sites: Sites | None = None
        self.best_value, self.best_theta = -np.inf, start.theta
        self.scale = 0.0
        self.n_evaluations = 0

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        self.n_evaluations += 1
        try:
            solution = solve(self.problem, self.start.at(theta), self.sites)
            slope = gradient(self.problem, solution)
        except NumericalError:
            # a wall that the line search backs away from
            return 1e25, np.zeros_like(theta)
        self.sites = solution.inference.sites
        penalty, pull = _log_prior(solution.hyper.item_kernel)
        value = solution.inference.log_evidence + penalty
        slope[: len(pull)] += pull
        if value > self.best_value:
            self.best_value, self.best_theta = value, theta.copy()
        if self.watch is not None:
            self.watch(self.n_evaluations, self.best_value)
        self.scale = self.scale or max(1.0, float(np.linalg.norm(slope)))
        return -value / self.scale, -slope / self.scale


def _log_prior(kernel: Kernel) -> tuple[float, FloatArray]:
    """Of a free covariance: log density, and its slope in the kernel's theta. None for others."""
    return kernel.log_prior() if isinstance(kernel, FreeCovariance) else (0.0, np.zeros(0))


def expectation_maximize(
    problem: Problem, start: Hyperparameters, watch: Watch | None = None
) -> Solution:
    """EM for a free item covariance and the sharing; user kernel and likelihood stay as given.

    Each round is one EP and one closed-form M-step; many rounds are needed where users answer
    consistently, because the scale of their utilities then grows slowly.
    """
    if not isinstance(start.item_kernel, FreeCovariance):
        raise DataError(
            f"optimize='em' with item kernel {start.item_kernel!r}: EM has a closed form for a "
            "free covariance only; use optimize='evidence', or item_kernel='free'"
        )
    rough = _while_learning(problem)
    hyper, sites, previous = start, None, -np.inf
    for rounds in range(1, EM_ROUNDS + 1):
        solution = solve(rough, hyper, sites)
        sites = solution.inference.sites
        value = solution.inference.log_evidence + _log_prior(hyper.item_kernel)[0]
        if watch is not None:
            watch(rounds, value)
        if value - previous < EM_TOLERANCE * max(1.0, abs(value)):
            break
        previous = value
        hyper = _m_step(rough, solution)
    final = solve(problem, hyper, sites)
    return _annotated(final, f"EM: {rounds} rounds", rounds)


def _m_step(problem: Problem, solution: Solution) -> Hyperparameters:
    """The covariance at the current sharing, then both scales at the new covariance.

    Both increase the same expected log prior of the deviations (one draw from (1−ρ) K a user)
    and of the shared utilities (one draw from ρ K a user feature).
    """
    hyper, state = solution.hyper, solution.inference.state
    rho, kernel = hyper.sharing, cast(FreeCovariance, hyper.item_kernel)
    slopes = item_slopes(state, outer_vectors(state))
    n_users = sum(len(block.users) for block in problem.blocks)
    n_shared = state.prior.user_factor.shape[1]
    G = rho * slopes.shared + (1.0 - rho) * slopes.personal
    new = kernel.updated(G, n_users + n_shared)
    shared = rho * kernel.fitted_scale(new, rho * slopes.shared, n_shared)
    personal = (1.0 - rho) * kernel.fitted_scale(new, (1.0 - rho) * slopes.personal, n_users)
    total = shared + personal
    return hyper._replace(item_kernel=new.scaled(total), sharing=shared / total)


def _while_learning(problem: Problem) -> Problem:
    settings = problem.settings
    return replace(
        problem,
        settings=replace(settings, tolerance=max(LEARNING_SITE_TOLERANCE, settings.tolerance)),
        factor_tolerance=max(LEARNING_FACTOR_TOLERANCE, problem.factor_tolerance),
    )


def _annotated(solution: Solution, optimizer: str, n_evaluations: int) -> Solution:
    inference = solution.inference
    report = replace(inference.report, optimizer=optimizer, n_evaluations=n_evaluations)
    return solution._replace(inference=replace(inference, report=report))


def posteriors_of(problem: Problem, solution: Solution) -> UserPosteriors:
    """The posterior over all users and all items."""
    hyper, inference, votes = solution.hyper, solution.inference, problem.votes
    sites, items, users = inference.sites, solution.item_factor, solution.user_factor
    return UserPosteriors(
        item_kernel=hyper.item_kernel,
        user_kernel=hyper.user_kernel,
        likelihood=hyper.likelihood,
        sharing=hyper.sharing,
        items=problem.items,
        users=problem.users,
        target=problem.items,
        item_basis=Basis(items.pivots, None, items.lower),
        user_basis=Basis(users.pivots, None, users.lower),
        shared_mean=inference.state.response.shared,
        shared_lower=inference.state.lower,
        user=votes.user,
        winner=votes.winner,
        loser=votes.loser,
        weight=votes.count * sites.tau,
        shift=votes.count * sites.nu,
        n_fitted=len(problem.users),
    )
