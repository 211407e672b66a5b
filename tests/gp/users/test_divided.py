"""Users' directions that have some of the items' columns: predictions, updates, and files."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

import penchant as pc
from penchant.data import Comparisons
from penchant.gp import Rows, Settings, UserHyper, UserProblem, solve
from penchant.kernels import RBF, Independent, Inputs
from penchant.likelihoods import Probit

HYPER = UserHyper(RBF((2.0, 3.0), 2.0), 1.0 + RBF((1.0, 2.0), 0.7), 0.6, Probit())


@pytest.fixture
def fitted(rng):
    """12 users and 10 items; W may have 15 entries in place of 120."""
    n_users, n, m = 12, 10, 90
    first = rng.integers(n, size=m)
    second = (first + 1 + rng.integers(n - 1, size=m)) % n
    data = Comparisons.from_pairs(
        first, second, user=rng.integers(n_users, size=m), items=range(n), users=range(n_users)
    )
    items, users = (Inputs(rng.standard_normal((k, 2)), index=np.arange(k)) for k in (n, n_users))
    problem = UserProblem.of(items, users, Rows.by_user(data), Settings("ep", 1e-11, 1000))
    problem = replace(problem, shared_size=15)
    solution = solve(problem, HYPER)
    assert solution.prior.depth < solution.prior.rank
    return problem, solution, problem.posterior(solution)


def test_fitted_answers_are_predicted_as_they_were_inferred(fitted):
    problem, solution, posterior = fitted
    votes, state = problem.edges, solution.inference.state
    found = posterior.differences(votes.user, votes.winner, votes.loser)
    np.testing.assert_allclose(found.mean, state.mean, atol=1e-8)
    np.testing.assert_allclose(found.var, state.var, atol=1e-8)


def test_every_user_has_the_same_posterior_alone(fitted):
    _, _, posterior = fitted
    a, b = np.triu_indices(10, k=1)
    everybody = posterior.utilities(np.arange(12), relative=True)
    for user in range(12):
        alone = posterior.for_user(user)
        found = posterior.differences(np.full(len(a), user), a, b)
        mine = alone.difference(a, b)
        np.testing.assert_allclose(mine.mean, found.mean, atol=1e-8)
        np.testing.assert_allclose(mine.var, found.var, atol=1e-8)
        relative = alone.relative_to(alone)
        np.testing.assert_allclose(relative.mean, everybody.mean[user], atol=1e-8)
        np.testing.assert_allclose(relative.var, everybody.var[user], atol=1e-8)


def test_new_items_with_known_features_are_the_known_items(fitted):
    problem, _, posterior = fitted
    again = Inputs(problem.items.X)
    known, new = (each.utilities(np.arange(12)) for each in (posterior, posterior.at(again)))
    np.testing.assert_allclose(new.mean, known.mean, atol=1e-7)
    np.testing.assert_allclose(new.var, known.var, atol=1e-7)


KERNELS = RBF(2.0, 2.0) + Independent(0.001), 1.0 + RBF(0.3, 0.7)


def fit(likelihood):
    """60 users and 60 items: all directions with all columns would be 3,600."""
    rng = np.random.default_rng(5)
    X, Z = rng.standard_normal((60, 2)), rng.standard_normal((60, 2))
    first = rng.integers(60, size=600)
    second = (first + 1 + rng.integers(59, size=600)) % 60
    margin = (X[first] - X[second]) @ np.ones(2) + rng.standard_normal(600)
    won = margin > 0
    data = pc.Comparisons.from_pairs(
        np.where(won, first, second),
        np.where(won, second, first),
        user=rng.integers(60, size=600),
        margin=np.abs(margin) if likelihood == "gaussian" else None,
        items=range(60),
        users=range(60),
    )
    model = pc.MultiUserGP(*KERNELS, likelihood=likelihood, optimize=None, progress=False)
    model.fit(X, data, user_features=Z)
    assert "all but the first with" in model.report_.optimizer
    return model


def test_a_model_read_from_a_file_predicts_the_same(tmp_path):
    model = fit("probit")
    model.save(tmp_path / "model.pen")
    again = pc.load(tmp_path / "model.pen")
    for one, two in zip(
        model.predict(users=range(60), return_std=True),
        again.predict(users=range(60), return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(one, two, atol=1e-6)


def test_a_rank_one_update_is_exact_where_answers_are_gaussian():
    quick = fit("gaussian")
    exact = deepcopy(quick)
    more = pc.Comparisons.from_pairs(
        [3, 9], [4, 30], user=[7, 7], margin=[2.5, 0.3], items=range(60), users=range(60)
    )
    quick.tell(more, reconverge=False)
    exact.tell(more, reconverge=True)
    for one, two in zip(
        quick.predict(users=range(60), return_std=True),
        exact.predict(users=range(60), return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(one, two, atol=1e-6)
