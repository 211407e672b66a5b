"""Sparse-EP: what is kept, and that predictions rest on it alone."""

import numpy as np
import pytest

from penchant.errors import DataError
from penchant.gp import SPARSE_RULES, Settings, UserHyper, UserProblem, solve
from penchant.kernels import RBF, Constant
from penchant.likelihoods import Probit

SHARING = 0.35
EVERYONE = np.arange(7)
summarize, restrict = SPARSE_RULES["summary"], SPARSE_RULES["printed"]


@pytest.fixture(params=["one population", "features"])
def solved(study, request):
    problem = UserProblem.of(study.items, study.users, study.votes, Settings(tolerance=1e-10))
    among_users = Constant(1.0) if request.param == "one population" else RBF(0.7)
    hyper = UserHyper(RBF((0.8, 1.4), 2.0), among_users, SHARING, Probit())
    return problem, solve(problem, hyper)


def covariance(study, solution):
    K_user = SHARING * solution.hyper.user_kernel(study.users) + (1 - SHARING) * np.eye(7)
    return np.kron(K_user, solution.hyper.kernel(study.items))


def test_entropy_is_half_the_log_of_the_variances(study, solved, dense):
    problem, solution = solved
    kept = restrict(problem, solution, 3, 4).kept
    K, votes = covariance(study, solution), study.votes
    state = dense.infer(K, votes, 6, Probit(), problem.settings).state
    i, j = votes.user * 6 + votes.winner, votes.user * 6 + votes.loser
    before = K[i, i] + K[j, j] - 2 * K[i, j]
    removed = 0.5 * np.log(before / state.var)
    expected = [removed[votes.user == user].sum() for user in EVERYONE]
    np.testing.assert_allclose(kept.user_entropy, expected, atol=1e-8)
    assert kept.item_entropy.sum() == pytest.approx(2 * removed.sum())
    assert kept.user_entropy[2] == 0.0  # never compared anything


@pytest.mark.parametrize("rule", [summarize, restrict])
def test_users_with_the_most_information_are_kept(solved, rule):
    kept = rule(*solved, 3, 4).kept
    assert (len(kept.users), len(kept.items)) == (3, 4)
    others = np.setdiff1d(EVERYONE, kept.users)
    assert kept.user_entropy[kept.users].min() >= kept.user_entropy[others].max()
    assert (np.diff(kept.user_entropy[kept.users]) <= 0).all()


def test_the_printed_rule_predicts_from_the_kept_sites_alone(study, solved, dense):
    problem, solution = solved
    posteriors = restrict(problem, solution, 3, 4)
    sites, kept = posteriors.sites, posteriors.kept
    assert len(sites.user) == kept.n_comparisons < len(problem.edges)
    assert set(sites.user) <= set(kept.users)
    assert {*sites.winner, *sites.loser} <= set(kept.items)
    A = dense.design(sites, 6, 7)
    K = covariance(study, solution)
    expected, cov, _ = dense.condition(K, A, sites.weight, sites.shift)
    mean, var = posteriors.utilities(EVERYONE)
    np.testing.assert_allclose(mean.ravel(), expected, atol=1e-9)
    np.testing.assert_allclose(var.ravel(), np.diagonal(cov), atol=1e-9)


@pytest.mark.parametrize("rule", [summarize, restrict])
def test_keeping_everything_changes_nothing(solved, rule):
    problem, solution = solved
    whole = problem.posterior(solution).utilities(EVERYONE)
    all_of_it = rule(problem, solution, 100, 100).utilities(EVERYONE)
    np.testing.assert_allclose(all_of_it.mean, whole.mean, atol=1e-9)
    np.testing.assert_allclose(all_of_it.var, whole.var, atol=1e-9)


def test_a_summary_is_the_prior_given_the_shared_utilities_at_the_items_kept(study, solved):
    """Users without sites: the posterior at the kept items, and the prior's conditional beyond."""
    problem, solution = solved
    whole = problem.posterior(solution)
    rank = len(whole.shared_mean)
    summary = summarize(problem, solution, rank, 3)  # every direction of users, three items
    items, K = summary.kept.items, solution.hyper.kernel(study.items)
    silent = np.setdiff1d(EVERYONE, summary.sites.user)
    phi = whole.user_features(silent)
    shared = whole.shared_utilities(phi)[:, items]
    expected = shared @ np.linalg.solve(K[np.ix_(items, items)], K[items])
    np.testing.assert_allclose(summary.utilities(silent).mean, expected, atol=1e-9)
    at_items = problem.posterior(solution).changed(sites=summary.sites).utilities(silent)
    assert summary.utilities(silent).var[:, items] == pytest.approx(at_items.var[:, items])


def test_keeping_nothing_is_an_error(solved):
    with pytest.raises(DataError, match="keeps no comparison"):
        restrict(*solved, 3, 1)
