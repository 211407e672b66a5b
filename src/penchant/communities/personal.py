"""Personal taste inside communities: f_u = mean + f_community + r_u.

The multi-user model with memberships M for features is this: its prior over users is
K_u = ρ₀ 11ᵀ + (1 − ρ₀) [s M Mᵀ + (1 − s) I], so that S = (1 − ρ₀)(1 − s) K_x is the covariance of
everybody's deviations. With s = 0, or one community, everybody deviates from one population: that
is MultiUserGP, exactly. With s near 1 all taste is communal. ρ₀ and the item covariance are learned
by evidence at s = 0. The communal share s cannot be: memberships were learned from the same
answers, and evidence would count them twice. It is chosen by answers held out from both.

Whether people vary at all inside communities, and how many communities are left once they may, is
chosen by evidence: `variation_of`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from penchant.communities.assignment import Answers, some_of
from penchant.communities.content import drawn_counts
from penchant.communities.division import allocate
from penchant.communities.effects import beside_effects
from penchant.communities.mixture import Grouping
from penchant.communities.moves import MEMBER, disagreement
from penchant.communities.one_taste import CLEAR_EVIDENCE, OneTaste, ballots_of, one_taste
from penchant.communities.separate import separate_pairs
from penchant.communities.variation import Modes, prune
from penchant.data import Comparisons
from penchant.gp import (
    ItemHyper,
    Learned,
    Settings,
    UserHyper,
    UserProblem,
    UserSolution,
    Votes,
    solve,
)
from penchant.kernels import Constant, Inputs, Kernel, Linear
from penchant.likelihoods import Likelihood
from penchant.numerics.types import FloatArray

COMMUNAL_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95)
HELD_OUT = 0.2
"""Share of the answers by which the communal share is chosen."""
AFFORDABLE = 1e7
"""Answers times items up to which personal taste is considered without being asked for."""
CHOICE_ANSWERS = 8_000
"""Of some users, by which is chosen whether people vary, where there are more."""


class Varied(NamedTuple):
    """Communities whose members vary: (U, K) memberships of those who voted, largest first.

    hyper: of the communities' utilities; evidence: log evidence, with what is gained by the users
    that were looked at.
    """

    membership: FloatArray
    hyper: ItemHyper
    evidence: float


def variation_of(grouping: Grouping, *, required: bool, fixed: bool) -> Varied | None:
    """Communities with personal variation, their number chosen again by evidence.

    required: personal variation is wanted; else None where the evidence does not clearly speak
    for it, or where it would cost too much. fixed: the number of communities is given.
    """
    crowd, plain = grouping.allocation.crowd, grouping.allocation.responsibilities
    answers, K = crowd.answers, grouping.n_communities
    if not required and answers.counts.nnz * len(crowd.items) > AFFORDABLE:
        return None
    if K == 1 and required:
        return Varied(plain, grouping.hyper, grouping.objective)
    seen = required or _sticks_out(grouping)
    if K == 1 and not seen:
        return None
    some = _sample(grouping)
    # where nobody sticks out, only an evidence above that of the communities would matter
    around = one_taste(some, -np.inf if seen else some.objective)
    evidence, modes = around.evidence - around.price, None
    # communities inside which nobody sticks out, and which beat one taste, leave nothing to explain
    if K > 1 and (seen or evidence > some.objective):
        modes, gain = around.modes_of(some)
        if fixed:
            gain = max(gain, 0.0)
        elif gain > CLEAR_EVIDENCE:
            fewer = prune(around.cloud, modes)
            gain, modes = gain + fewer.objective - modes.objective, fewer
        else:
            gain, modes = 0.0, None
        evidence += gain
    if not required and evidence <= some.objective + CLEAR_EVIDENCE:
        return None
    evidence += grouping.objective - some.objective
    if modes is None:
        return Varied(np.ones((answers.n_users, 1)), around.one.model.hyper, evidence)
    members = plain if fixed else _members(around, modes, answers)
    return Varied(members, grouping.hyper, evidence)


def _sticks_out(grouping: Grouping) -> bool:
    """Whether members of any community differ along some direction by more than noise."""
    allocation = grouping.allocation
    for c in range(allocation.n_communities):
        members = np.flatnonzero(allocation.responsibilities[:, c] > MEMBER)
        if len(members) > 1 and disagreement(allocation, c, members, 1).strength[0] > 1.0:
            return True
    return False


def _sample(grouping: Grouping) -> Grouping:
    """The same communities, by some of the users where there are very many answers."""
    allocation = grouping.allocation
    crowd, n_answers = allocation.crowd, allocation.crowd.answers.counts.nnz
    if n_answers <= CHOICE_ANSWERS:
        return grouping
    chosen = some_of(crowd.answers, max(1, crowd.answers.n_users * CHOICE_ANSWERS // n_answers))
    few = replace(allocation.model, crowd=replace(crowd, answers=crowd.answers.take(chosen)))
    members = allocation.responsibilities[chosen]
    return Grouping(allocate(few, members, allocation.tastes), members, grouping.trace)


def _members(around: OneTaste, modes: Modes, answers: Answers) -> FloatArray:
    """(U, K) of all who voted, the largest mode first."""
    if len(modes.membership) == answers.n_users:
        membership = modes.membership
    else:
        size = max(1, CHOICE_ANSWERS * answers.n_users // answers.counts.nnz)
        membership = np.concatenate(
            [
                modes.place(ballots_of(around.one, around.loading, replace(answers, counts=rows)))
                for _, rows in answers.shards(size)
            ]
        )
    order = np.argsort(-membership.sum(axis=0), kind="stable")
    return np.ascontiguousarray(membership[:, order])


class Personal(NamedTuple):
    """Every user's own utilities, and the share of taste that communities explain.

    membership: (U, K), the users' features: of one community, where several explain nothing.
    """

    learned: Learned[UserProblem]
    communal_share: float
    membership: FloatArray


def as_features(membership: FloatArray) -> Inputs:
    """Users whose features are their memberships; a plain dict of relations can be copied."""
    return Inputs(membership, {}, np.arange(len(membership)))


class PersonalModel(NamedTuple):
    """What to start from: items, item kernel, likelihood, and who belongs where by answers.

    learn: how hyperparameters are found from a start, or None where they stay as given; unites:
    communities that explain nothing of the answers held out become one.
    """

    items: Inputs
    kernel: Kernel
    likelihood: Likelihood
    members: Callable[[Answers], FloatArray]
    settings: Settings
    learn: Callable[[UserProblem, UserHyper], UserSolution] | None = None
    unites: bool = False

    def problem(self, data: Comparisons, membership: FloatArray) -> UserProblem:
        """Users with their memberships for features, beside effects of how things were shown."""
        votes = Votes.as_shown(data)
        return UserProblem.of(self.items, as_features(membership), votes, self.settings)


def fit_personal(model: PersonalModel, data: Comparisons, membership: FloatArray) -> Personal:
    """Learn the population, choose the communal share, infer all users' utilities."""
    problem = model.problem(data, membership)
    start = UserHyper(model.kernel, Constant(1.0), 0.5, model.likelihood)
    population = (model.learn or solve)(problem, start)
    if membership.shape[1] == 1:
        return Personal(Learned.of(data, problem, population), 0.0, membership)
    # whoever gave one ranking would have nothing left to be placed by, were it held out whole
    pairs = separate_pairs(data)
    drawn = drawn_counts(pairs, HELD_OUT)
    kept, held_out = pairs._with_count(pairs.count - drawn), pairs._with_count(drawn)
    partial = model.problem(kept, model.members(Answers.of(kept)))
    losses = [_losses(partial, _shared(population.hyper, s), held_out) for s in COMMUNAL_SHARES]
    best = COMMUNAL_SHARES[_first_as_good_as_the_best(np.stack(losses))]
    if best > 0.0:
        population = solve(problem, _shared(population.hyper, best))
    elif model.unites:
        membership = np.ones((data.n_users, 1))
        problem = model.problem(data, membership)
    return Personal(Learned.of(data, problem, population), best, membership)


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
    votes = Votes.as_shown(held_out, problem.edges.shown)
    if votes.outcomes.tie is not None:
        votes = votes.part(np.flatnonzero(~votes.outcomes.tie))
    posterior = problem.posterior(solve(problem, hyper))
    difference = posterior.differences(votes.user, votes.winner, votes.loser)
    if votes.shown is not None:
        difference = beside_effects(posterior, difference, votes.shown.z)
    prob = hyper.likelihood.prob(*difference)
    losses = -np.log(np.maximum(prob, np.finfo(float).tiny))
    return np.repeat(losses, votes.count.astype(np.intp))


def _first_as_good_as_the_best(losses: FloatArray) -> int:
    """The first row whose mean is within one standard error of the best row's, pairwise; the
    first of all where nothing was held out but ties.

    Communities were found with the held-out answers in sight, which flatters large shares.
    """
    if not losses.shape[1]:
        return 0
    excess = losses - losses[int(np.argmin(losses.mean(axis=1)))]
    error = excess.std(axis=1) / np.sqrt(excess.shape[1])
    return int(np.flatnonzero(excess.mean(axis=1) <= error)[0])
