"""Newcomers: cold, and with a few comparisons."""

from dataclasses import replace

import numpy as np
import pytest

from penchant.gp import Rows, Settings, UserHyper, UserProblem, fold_in, solve
from penchant.kernels import RBF, Constant, Inputs
from penchant.likelihoods import Outcomes, Probit

N_USERS, N_ITEMS, SHARING = 7, 6, 0.35
PRECISE = Settings(tolerance=1e-11, max_sweeps=1000)


@pytest.fixture(params=[Constant(1.0), 1.0 + RBF((1.0, 2.0), 0.7)], ids=repr)
def fitted(request, study):
    problem = UserProblem.of(study.items, study.users, study.votes, PRECISE)
    hyper = UserHyper(RBF((0.8, 1.4), 2.0), request.param, SHARING, Probit())
    return problem, hyper, problem.posterior(solve(problem, hyper))


def newcomers_votes():
    ends, user = (np.array([5, 5, 2, 1]), np.array([0, 1, 3, 4])), np.array([7, 7, 7, 8])
    return Rows(*ends, np.ones(4), Outcomes(), user=user)


def test_cold_users_equal_silent_users_of_a_joint_fit(fitted, study, rng):
    _, hyper, posteriors = fitted
    new = rng.standard_normal((2, 2))
    everybody = Inputs(np.concatenate([study.users.X, new]), index=np.arange(N_USERS + 2))
    joint = UserProblem.of(study.items, everybody, study.votes, PRECISE)
    expected = joint.posterior(solve(joint, hyper)).utilities(np.array([7, 8]))
    got = posteriors.with_users(Inputs(new)).utilities(np.array([7, 8]))
    np.testing.assert_allclose(got.mean, expected.mean, atol=1e-7)
    np.testing.assert_allclose(got.var, expected.var, atol=1e-7)


def test_one_newcomer_folded_in_is_near_a_refit_and_leaves_the_others_alone(fitted, study, rng):
    _, hyper, posteriors = fitted
    new = Inputs(rng.standard_normal((1, 2)))
    more = newcomers_votes().part(np.arange(3))
    folded, report = fold_in(posteriors, new, more, PRECISE)
    assert report.converged
    known = np.arange(N_USERS)
    np.testing.assert_array_equal(folded.utilities(known).mean, posteriors.utilities(known).mean)
    names = ("winner", "loser", "count", "user")
    *joined, user = [
        np.concatenate([getattr(v, name) for v in (study.votes, more)]) for name in names
    ]
    everybody = Inputs(np.concatenate([study.users.X, new.X]), index=np.arange(N_USERS + 1))
    joint = UserProblem.of(study.items, everybody, Rows(*joined, Outcomes(), user=user), PRECISE)
    newcomer = np.array([N_USERS])
    refit = joint.posterior(solve(joint, hyper)).utilities(newcomer)
    cold = posteriors.with_users(new).utilities(newcomer)
    got = folded.utilities(newcomer)
    # a refit differs only in what the newcomer changes in the others' sites
    assert np.abs(got.mean - refit.mean).max() < 0.05 * np.abs(cold.mean - refit.mean).max()
    np.testing.assert_allclose(got.var, refit.var, rtol=0.02)


def test_folding_in_conditions_exactly_on_the_sites(fitted, rng, dense):
    """Against Bayes' rule on the newcomer's joint Gaussian with the sites that were found."""
    _, _, posteriors = fitted
    new = Inputs(rng.standard_normal((2, 2)))
    folded, _ = fold_in(posteriors, new, newcomers_votes(), PRECISE)
    prior = posteriors.with_users(new).for_user(7)
    A = dense.design(replace(newcomers_votes().part(np.arange(3)), user=0), N_ITEMS, 1)
    weight, shift = folded.sites.weight[-4:-1], folded.sites.shift[-4:-1]
    shift = shift - weight * (A @ prior.mean)
    mean, covariance, _ = dense.condition(prior.covariance(), A, weight, shift)
    after = folded.for_user(7)
    np.testing.assert_allclose(after.mean, prior.mean + mean, atol=1e-8)
    np.testing.assert_allclose(after.covariance(), covariance, atol=1e-8)


def test_differences_agree_with_each_users_own_posterior(fitted, rng):
    _, _, posteriors = fitted
    folded, _ = fold_in(posteriors, Inputs(rng.standard_normal((2, 2))), newcomers_votes(), PRECISE)
    users, first, second = np.array([7, 3, 7, 2]), np.array([0, 1, 2, 4]), np.array([5, 4, 3, 1])
    together = folded.differences(users, first, second)
    for row, user in enumerate(users):
        alone = folded.for_user(user).difference(first[[row]], second[[row]])
        assert together.mean[row] == pytest.approx(alone.mean[0], abs=1e-9)
        assert together.var[row] == pytest.approx(alone.var[0], abs=1e-9)


def test_new_items_from_features(fitted, rng):
    _, _, posteriors = fitted
    target = Inputs(rng.standard_normal((3, 2)))
    users = np.array([0, 3])
    there = posteriors.at(target)
    mean, var = there.utilities(users)
    for row, user in enumerate(users):
        alone = posteriors.for_user(user).at(target)
        np.testing.assert_allclose(mean[row], alone.mean, atol=1e-9)
        np.testing.assert_allclose(var[row], alone.var, atol=1e-9)
    pairs = there.differences(users, np.array([0, 1]), np.array([2, 2]))
    alone = posteriors.for_user(3).at(target).difference(np.array([1]), np.array([2]))
    assert pairs.var[1] == pytest.approx(alone.var[0], abs=1e-9)


def test_population_is_what_users_share(fitted):
    problem, hyper, posteriors = fitted
    population = posteriors.population()
    if isinstance(hyper.user_kernel, Constant):
        silent = posteriors.utilities(np.array([2]))  # knows nothing but what is shared
        np.testing.assert_allclose(population.mean, silent.mean[0], atol=1e-9)
        personal = (1 - SHARING) * hyper.kernel.diag(problem.items)
        np.testing.assert_allclose(population.var + personal, silent.var[0], atol=1e-9)
    else:
        assert (population.var < posteriors.utilities(np.array([2])).var[0]).all()
