"""Sparse-EP: what is kept, and that predictions rest on it alone."""

import numpy as np
import pytest

from penchant.errors import DataError
from penchant.gp import Settings, UserHyper, UserProblem, restrict, select, solve
from penchant.kernels import RBF, Constant
from penchant.likelihoods import Probit

SHARING = 0.35


@pytest.fixture
def solved(study):
    problem = UserProblem.of(study.items, study.users, study.votes, Settings(tolerance=1e-10))
    hyper = UserHyper(RBF((0.8, 1.4), 2.0), Constant(1.0), SHARING, Probit())
    return problem, solve(problem, hyper)


def covariance(study, solution):
    K_user = SHARING * np.ones((7, 7)) + (1 - SHARING) * np.eye(7)
    return np.kron(K_user, solution.hyper.kernel(study.items))


def test_entropy_is_half_the_log_of_the_variances(study, solved, dense):
    problem, solution = solved
    kept = select(problem, solution, 3, 4)
    K, votes = covariance(study, solution), study.votes
    state = dense.infer(K, votes, 6, Probit(), problem.settings).state
    i, j = votes.user * 6 + votes.winner, votes.user * 6 + votes.loser
    before = K[i, i] + K[j, j] - 2 * K[i, j]
    removed = 0.5 * np.log(before / state.var)
    expected = [removed[votes.user == user].sum() for user in range(7)]
    np.testing.assert_allclose(kept.user_entropy, expected, atol=1e-8)
    assert kept.item_entropy.sum() == pytest.approx(2 * removed.sum())
    assert kept.user_entropy[2] == 0.0  # never compared anything


def test_the_most_informative_are_kept(solved):
    problem, solution = solved
    kept = select(problem, solution, 3, 4)
    assert len(kept.users) == 3
    assert len(kept.items) == 4
    others = np.setdiff1d(np.arange(7), kept.users)
    assert kept.user_entropy[kept.users].min() >= kept.user_entropy[others].max()
    assert (np.diff(kept.user_entropy[kept.users]) <= 0).all()


def test_predictions_rest_on_the_kept_sites_alone(study, solved, dense):
    problem, solution = solved
    kept = select(problem, solution, 3, 4)
    few, smaller = restrict(problem, solution, kept)
    assert len(few.edges) == kept.n_comparisons < len(problem.edges)
    assert set(few.edges.user) <= set(kept.users)
    assert {*few.edges.winner, *few.edges.loser} <= set(kept.items)
    posteriors = few.posterior(smaller)
    weight, shift = posteriors.sites.weight, posteriors.sites.shift
    A = dense.design(few.edges, 6, 7)
    expected, cov, _ = dense.condition(covariance(study, solution), A, weight, shift)
    mean, var = posteriors.utilities(np.arange(7))
    np.testing.assert_allclose(mean.ravel(), expected, atol=1e-9)
    np.testing.assert_allclose(var.ravel(), np.diagonal(cov), atol=1e-9)


def test_keeping_everything_changes_nothing(solved):
    problem, solution = solved
    few, smaller = restrict(problem, solution, select(problem, solution, 100, 100))
    everyone = np.arange(7)
    whole = problem.posterior(solution).utilities(everyone)
    np.testing.assert_allclose(
        few.posterior(smaller).utilities(everyone).mean, whole.mean, atol=1e-12
    )


def test_keeping_nothing_is_an_error(solved):
    problem, solution = solved
    with pytest.raises(DataError, match="keeps no comparison"):
        select(problem, solution, 3, 1)
