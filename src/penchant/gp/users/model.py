"""Many users at once: hyperparameters, inference, evidence and its gradient.

The same verbs as `inference.evidence`, on the arrow instead of one item-space factor.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from penchant.errors import DataError
from penchant.gp import Basis, Inference, Settings, Sites, infer
from penchant.gp.rules import cavity
from penchant.gp.users.arrow import ArrowPrior, ArrowState
from penchant.gp.users.blocks import Block, arrange
from penchant.gp.users.gradient import item_slopes, outer_vectors, user_slopes
from penchant.gp.users.pivots import UserFactor, factor_users
from penchant.gp.users.posterior import UserPosteriors
from penchant.gp.users.votes import Votes, VoteSites
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood
from penchant.numerics.linalg import FACTOR_TOLERANCE, PivotedCholesky, pivoted_cholesky
from penchant.numerics.types import FloatArray

USER_RANK = 32
SHARED_SIZE = 1024
"""Bounds on the rank of the users' kernel, and on that rank times the items' (one dense system)."""
MAX_ITEMS = 5_000
SHARING_BOUNDS = (1e-4, 1.0 - 1e-4)


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
    bound = min(USER_RANK, max(1, SHARED_SIZE // rank))
    users = factor_users(hyper.user_kernel, problem.users, bound, tolerance)
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


def posteriors_of(problem: Problem, solution: Solution) -> UserPosteriors:
    """The posterior over all users and all items."""
    hyper, inference, votes = solution.hyper, solution.inference, problem.votes
    items, users = solution.item_factor, solution.user_factor
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
        sites=VoteSites.of(votes, inference.sites),
        n_fitted=len(problem.users),
    )
