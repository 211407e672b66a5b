"""Personal taste inside communities: f_u = mean + f_community + r_u.

The multi-user model with memberships M for features is this: its prior over users is
K_u = ρ₀ 11ᵀ + (1 − ρ₀) [s M Mᵀ + (1 − s) I]. With s = 0 everybody deviates from one population, as
in MultiUserGP; with s near 1 all taste is communal. ρ₀ and the item covariance are learned by
evidence at s = 0. The communal share s cannot be: memberships were learned from the same
answers, and evidence would count them twice. It is chosen by answers held out from both.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from penchant.communities.assignment import Answers
from penchant.data import Comparisons
from penchant.gp import Learned, Settings, UserHyper, UserProblem, maximize, solve
from penchant.gp.users.votes import Votes
from penchant.kernels import Constant, Inputs, Kernel, Linear
from penchant.likelihoods import Likelihood
from penchant.numerics.types import FloatArray

COMMUNAL_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95)
HELD_OUT = 0.2
"""Share of the answers by which the communal share is chosen."""


class Personal(NamedTuple):
    """Every user's own utilities, and the share of taste that communities explain."""

    learned: Learned[UserProblem]
    communal_share: float


class PersonalModel(NamedTuple):
    """What to start from: items, item kernel, likelihood, and who belongs where by answers."""

    items: Inputs
    kernel: Kernel
    likelihood: Likelihood
    members: Callable[[Answers], FloatArray]
    settings: Settings

    def problem(self, data: Comparisons) -> UserProblem:
        """Users with their memberships, given these answers, for features."""
        membership = self.members(Answers.of(data))
        users = Inputs(membership, index=np.arange(data.n_users))
        return UserProblem.of(self.items, users, Votes.of(data), self.settings)


def fit_personal(model: PersonalModel, data: Comparisons, rng: np.random.Generator) -> Personal:
    """Learn the population, choose the communal share, infer all users' utilities."""
    problem = model.problem(data)
    start = UserHyper(model.kernel, Constant(1.0), 0.5, model.likelihood)
    population = maximize(problem, start).hyper
    kept, held_out = data.split(HELD_OUT, random_state=rng)
    partial = model.problem(kept)
    losses = [_losses(partial, _shared(population, s), held_out) for s in COMMUNAL_SHARES]
    best = COMMUNAL_SHARES[_first_as_good_as_the_best(np.stack(losses))]
    return Personal(Learned.of(data, problem, solve(problem, _shared(population, best))), best)


def _shared(population: UserHyper, s: float) -> UserHyper:
    """The prior at communal share s, written as sharing · user_kernel + (1 − sharing) · I."""
    rho = population.sharing
    sharing = rho + (1.0 - rho) * s
    kernel: Kernel = Constant(rho / sharing)
    if s > 0.0:
        kernel = kernel + Linear((1.0 - rho) * s / sharing)
    return population._replace(user_kernel=kernel, sharing=sharing)


def _losses(problem: UserProblem, hyper: UserHyper, held_out: Comparisons) -> FloatArray:
    """(h,) log losses of the held-out answers, ties left out."""
    votes = Votes.of(held_out)
    decided = np.repeat(np.flatnonzero(~held_out.tie), held_out.count[~held_out.tie])
    posterior = problem.posterior(solve(problem, hyper))
    difference = posterior.differences(
        votes.user[decided], votes.winner[decided], votes.loser[decided]
    )
    prob = hyper.likelihood.prob(*difference)
    return -np.log(np.maximum(prob, np.finfo(float).tiny))


def _first_as_good_as_the_best(losses: FloatArray) -> int:
    """The first row whose mean is within one standard error of the best row's, pairwise.

    Communities were found with the held-out answers in sight, which flatters large shares.
    """
    excess = losses - losses[int(np.argmin(losses.mean(axis=1)))]
    error = excess.std(axis=1) / np.sqrt(max(excess.shape[1], 1))
    return int(np.flatnonzero(excess.mean(axis=1) <= error)[0])
