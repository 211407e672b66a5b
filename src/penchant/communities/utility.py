"""The utilities of communities: expectation propagation on the counts of their answers.

A community's data are how often its members gave each distinct answer, so inference costs the
distinct answers and not the votes (paper 004 section 3.2), and sites carry over between sweeps.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from penchant.communities.assignment import Answers, SingleArray
from penchant.errors import DataError
from penchant.gp import (
    Edges,
    ItemHyper,
    ItemProblem,
    ItemSolution,
    Limits,
    Posterior,
    Settings,
    Sites,
    climb,
    gradient,
    solve,
)
from penchant.kernels import Inputs
from penchant.likelihoods import Likelihood
from penchant.numerics.linalg import FACTOR_TOLERANCE, multiply, pivoted_cholesky
from penchant.numerics.optimize import weak_prior
from penchant.numerics.types import FloatArray

CHAIN_FACTOR_TOLERANCE = 1e-7
"""Of the prior's factor in a chain: what it drops is far below what a draw varies by."""
CLIMB_STEPS = 10
"""Steps up the evidence each time hyperparameters are learned: membership changes soon anyway."""
CHAIN_SETTINGS = Settings(tolerance=1e-3)
"""Of expectation propagation within a chain: far finer than what a draw varies by."""
OWN_SPREAD = 1.0
"""How far, in logarithms, a community's own hyperparameters stray from the shared ones."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """The data and the model of every community: all that stays the same along a chain.

    hyper: kernel and likelihood; their parameters are where learning starts.
    """

    answers: Answers
    items: Inputs
    hyper: ItemHyper
    settings: Settings = CHAIN_SETTINGS
    factor_tolerance: float = CHAIN_FACTOR_TOLERANCE
    max_rank: int | None = None

    def __post_init__(self) -> None:
        if self.answers.outcomes.cliques is not None:
            raise DataError(
                "chains sample from answers about pairs, and these hold choices out of several "
                "items: break them into pairs with data.as_pairs(), or search for communities "
                "with inference='variational'"
            )

    def precise(self) -> "Mixture":
        """The same, with the tolerances of what is reported instead of those of a chain."""
        return replace(self, settings=Settings(), factor_tolerance=FACTOR_TOLERANCE)

    def table(self, utilities: FloatArray, thetas: FloatArray) -> SingleArray:
        """(m, K) log probabilities of the answers, given utilities (K, n) and parameters (K, p)."""
        return self.answers.table(utilities, self.likelihoods(thetas))

    def likelihoods(self, thetas: Iterable[FloatArray]) -> list[Likelihood]:
        """One for each vector of hyperparameters."""
        n_kernel = len(self.hyper.kernel.theta)
        return [self.hyper.likelihood.with_theta(theta[n_kernel:]) for theta in thetas]


class Fit(NamedTuple):
    """One community's utilities given its answers; tau, nu: (m,) sites of all distinct answers."""

    problem: ItemProblem
    solution: ItemSolution
    tau: FloatArray
    nu: FloatArray

    @property
    def log_evidence(self) -> float:
        """log Z_c: the probability of the community's answers, its utilities integrated out."""
        return self.solution.log_evidence

    @property
    def posterior(self) -> Posterior:
        """Over all items of the universe."""
        return self.problem.posterior(self.solution)


def fit_community(
    mixture: Mixture,
    pair_counts: FloatArray,
    theta: FloatArray,
    start: tuple[FloatArray, FloatArray] | None = None,
) -> Fit:
    """Infer the utilities behind answer counts (m,), from the sites (tau, nu) of `start`."""
    answers = mixture.answers
    given = np.flatnonzero(pair_counts)
    edges = Edges.between(
        answers.winner[given],
        answers.loser[given],
        pair_counts[given],
        answers.outcomes.part(given),
    )
    problem = ItemProblem(
        mixture.items, edges, mixture.settings, mixture.max_rank, mixture.factor_tolerance
    )
    sites = None if start is None else Sites(start[0][given], start[1][given])
    solution = solve(problem, mixture.hyper.at(theta), sites)
    tau, nu = np.zeros((2, answers.n_answers))
    tau[given], nu[given] = solution.inference.sites.tau, solution.inference.sites.nu
    return Fit(problem, solution, tau, nu)


def draw_prior(
    mixture: Mixture, theta: FloatArray, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """(n_draws, n) utilities of communities that nobody belongs to yet."""
    kernel = mixture.hyper.at(theta).kernel
    factor = pivoted_cholesky(kernel(mixture.items), max_rank=mixture.max_rank).in_given_order()
    return multiply(factor, rng.standard_normal((factor.shape[1], n_draws))).T


class Gathered(NamedTuple):
    """Several communities' answers and where their sites start, (K, m) each."""

    pair_counts: FloatArray
    tau: FloatArray
    nu: FloatArray


def learn_shared(mixture: Mixture, groups: Gathered, theta: FloatArray) -> FloatArray:
    """Climb the sum of the communities' evidences: small communities lean on large ones.

    A weak normal prior around where learning started keeps the scale of utilities from vanishing
    while opposite tastes still share a community.
    """
    evidence = _CommunityEvidence(mixture, groups)

    def objective(candidate: FloatArray) -> tuple[float, FloatArray, None]:
        value, slope = mixture.hyper.at(candidate).log_prior(mixture.hyper)
        for c in range(len(groups.pair_counts)):
            its_value, its_slope = evidence(c, candidate)
            value += its_value
            slope += its_slope
        return value, slope, None

    return climb(objective, theta, mixture.hyper.bounds, Limits(CLIMB_STEPS)).theta


def learn_own(mixture: Mixture, groups: Gathered, theta: FloatArray) -> FloatArray:
    """(K, p): each community's own parameters by its evidence, held near the shared `theta`.

    The normal prior around `theta` is the pooling: it decides where a community has few answers
    and gives way where it has many (paper 004 section 3.3 optimises each alone).
    """
    evidence = _CommunityEvidence(mixture, groups)

    def penalised(c: int, candidate: FloatArray) -> tuple[float, FloatArray, None]:
        value, slope = evidence(c, candidate)
        pooled, pull = weak_prior(candidate, theta, OWN_SPREAD)
        return value + pooled, slope + pull, None

    return np.stack(
        [
            climb(partial(penalised, c), theta, mixture.hyper.bounds, Limits(CLIMB_STEPS)).theta
            for c in range(len(groups.pair_counts))
        ]
    )


def fit_reported(
    mixture: Mixture, pair_counts: FloatArray, theta: FloatArray, own: bool
) -> list[Fit]:
    """Utilities of communities with soft members: answers (C, m) count by membership."""
    thetas = np.tile(theta, (len(pair_counts), 1))
    if own:
        blank = np.zeros_like(pair_counts)
        thetas = learn_own(mixture, Gathered(pair_counts, blank, blank), theta)
    precise = mixture.precise()
    return [
        fit_community(precise, counts, its_theta)
        for counts, its_theta in zip(pair_counts, thetas, strict=True)
    ]


class _CommunityEvidence:
    """Log evidence of one community and its slope in theta, remembering the sites."""

    def __init__(self, mixture: Mixture, groups: Gathered) -> None:
        self.mixture, self.pair_counts = mixture, groups.pair_counts
        self.sites = list(zip(groups.tau, groups.nu, strict=True))

    def __call__(self, c: int, theta: FloatArray) -> tuple[float, FloatArray]:
        fit = fit_community(self.mixture, self.pair_counts[c], theta, self.sites[c])
        self.sites[c] = (fit.tau, fit.nu)
        return fit.log_evidence, gradient(fit.problem, fit.solution)
