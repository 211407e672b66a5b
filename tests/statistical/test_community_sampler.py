"""The sampler of communities samples the posterior of its model.

Users, tastes and votes are drawn from the prior. Two checks, for both samplers. A chain started
*at the truth* is in equilibrium from the first sweep on, so after some sweeps every statistic has
the distribution that it has under the prior (Geweke's test): sharp, and blind to slow mixing. A
chain started from one community must get there by itself: then the truth is nowhere special among
its draws (simulation-based calibration).
"""

from dataclasses import dataclass

import numpy as np
import pytest

from penchant.communities import ChainPlan, MixtureData, start_chain, sweep_chain
from penchant.gp import Settings
from penchant.kernels import Independent
from penchant.likelihoods import Probit
from tests.communities.simulation import blank_state, mixture_of, votes

pytestmark = pytest.mark.slow

N_USERS, N_ITEMS, N_VOTES = 12, 5, 6
VARIANCE, CONCENTRATION = 2.0, 1.0


@dataclass
class Study:
    """A draw from the prior, with the answers that it leads to."""

    assignment: np.ndarray
    utilities: np.ndarray
    mixture: MixtureData


def draw_study(rng):
    assignment = [0]
    for _ in range(N_USERS - 1):
        weight = np.append(np.bincount(assignment), CONCENTRATION)
        assignment.append(rng.choice(len(weight), p=weight / weight.sum()))
    assignment = np.array(assignment, dtype=np.int32)
    utilities = np.sqrt(VARIANCE) * rng.standard_normal((assignment.max() + 1, N_ITEMS))
    mixture = mixture_of(
        votes(utilities[assignment], N_VOTES, seed=rng),
        Independent(VARIANCE),
        concentration=CONCENTRATION,
        settings=Settings(tolerance=1e-3),
    )
    return Study(assignment, utilities, mixture)


def plan_of(sampler, n_warmup):
    return ChainPlan(sampler, n_warmup, learn=False, own=False)


def state_at(study, seed):
    """A chain that is at the truth."""
    mixture = study.mixture
    return blank_state(
        study.assignment,
        study.utilities,
        mixture.answers.n_answers,
        CONCENTRATION,
        mixture.hyper.theta,
        seed,
    )


def statistics(study, assignment, utilities):
    """Number and sizes of communities, a pair of users, a taste, and the fit to the answers."""
    sizes = np.bincount(assignment, minlength=len(utilities))
    own = utilities[assignment[0]]
    answers = study.mixture.answers
    table = answers.table(utilities, Probit(), np.zeros((len(utilities), 0)))
    log_lik = (answers.counts @ table)[np.arange(N_USERS), assignment].sum()
    return np.array(
        [
            np.count_nonzero(sizes),
            sizes.max(),
            (sizes**2).sum(),
            assignment[0] == assignment[1],
            (own[0] - own[1]) ** 2,
            log_lik,
        ],
        dtype=float,
    )


@pytest.mark.parametrize("sampler", ["collapsed", "blocked"])
def test_the_prior_is_left_as_it_is(sampler, record_property):
    n_studies, n_sweeps = 200, 6
    change = []
    for number in range(n_studies):
        study = draw_study(np.random.default_rng([1, number]))
        state = state_at(study, (1, number))
        for _ in range(n_sweeps):
            state = sweep_chain(study.mixture, plan_of(sampler, 0), state)
        after = statistics(study, state.assignment, state.utilities)
        change.append(after - statistics(study, study.assignment, study.utilities))
    change = np.array(change)
    z = change.mean(axis=0) / (change.std(axis=0, ddof=1) / np.sqrt(n_studies))
    record_property("drift of six statistics, in σ", " ".join(f"{value:+.1f}" for value in z))
    assert (np.abs(z) < 4).all()


@pytest.mark.parametrize("sampler", ["collapsed", "blocked"])
def test_the_truth_is_nowhere_special_among_the_draws(sampler, assert_uniform, assert_frequencies):
    n_studies, n_warmup, n_draws, thin = 60, 16, 9, 3
    rng = np.random.default_rng(2)
    level_of_number, level_of_taste, together, are_together = [], [], [], []
    for number in range(n_studies):
        study = draw_study(np.random.default_rng([2, number]))
        plan = plan_of(sampler, n_warmup)
        state = start_chain(study.mixture, plan, (2, number))
        pairs, numbers, tastes = [], [], []
        for t in range(n_warmup + n_draws * thin):
            state = sweep_chain(study.mixture, plan, state)
            if t < n_warmup:
                continue
            pairs.append(state.assignment[0] == state.assignment[1])
            if (t - n_warmup) % thin == thin - 1:
                own = state.utilities[state.assignment[0]]
                numbers.append(len(state.utilities))
                tastes.append(own[0] - own[1])
        own = study.utilities[study.assignment[0]]
        level_of_number.append(rank_of(len(study.utilities), numbers, rng))
        level_of_taste.append(rank_of(own[0] - own[1], tastes, rng))
        together.append(np.mean(pairs))
        are_together.append(study.assignment[0] == study.assignment[1])
    assert_uniform(level_of_number, n_bins=5)
    assert_uniform(level_of_taste, n_bins=5)
    assert_frequencies(together, are_together)


def rank_of(truth, draws, rng):
    """The truth's place among the draws, in [0, 1); ties are broken at random."""
    draws = np.asarray(draws)
    below, equal = np.count_nonzero(draws < truth), np.count_nonzero(draws == truth)
    return (below + rng.integers(equal + 1)) / (len(draws) + 1)
