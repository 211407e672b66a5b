"""Personal deviations inside communities."""

import numpy as np
import pytest

from penchant.communities import Answers, Draw, Draws
from penchant.communities.population import (
    COMMUNAL_SHARES,
    PersonalModel,
    _shared,
)
from penchant.data import Comparisons
from penchant.gp import Settings, UserHyper
from penchant.kernels import Constant, Independent, Inputs
from penchant.likelihoods import Probit


@pytest.mark.parametrize("s", COMMUNAL_SHARES)
def test_the_prior_over_users_is_the_one_that_is_written(rng, s):
    M = rng.dirichlet(np.ones(3), size=6)
    population = UserHyper(Independent(), Constant(1.0), 0.3, Probit())
    hyper = _shared(population, s)
    users = Inputs(M, index=np.arange(6))
    found = hyper.sharing * hyper.user_kernel(users) + (1.0 - hyper.sharing) * np.eye(6)
    expected = 0.3 + 0.7 * (s * M @ M.T + (1.0 - s) * np.eye(6))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def simulate(rng, deviation, n_users=40, n_votes=14):
    """Users of two opposite tastes who deviate from theirs by so much."""
    taste = np.array([2.0, 1.0, 0.0, -1.0, -2.0])
    sign = np.where(np.arange(n_users) % 2 == 0, 1.0, -1.0)
    f = sign[:, None] * taste + deviation * rng.standard_normal((n_users, 5))
    user = np.repeat(np.arange(n_users), n_votes)
    a = rng.integers(5, size=len(user))
    b = (a + rng.integers(1, 5, size=len(user))) % 5
    wins = f[user, a] - f[user, b] + rng.standard_normal(len(user)) > 0
    data = Comparisons.from_pairs(
        np.where(wins, a, b), np.where(wins, b, a), user=user, items=range(5), users=range(n_users)
    )
    draw = Draw(
        sizes=np.array([n_users // 2, n_users // 2]),
        utilities=np.stack([taste, -taste]),
        likelihood_thetas=np.zeros((2, 0)),
        is_supported=np.ones(2, dtype=bool),
        chain=0,
        labels=np.arange(2),
    )
    draws = Draws((draw,), Probit(), 2)
    model = PersonalModel(
        Inputs(index=np.arange(5)),
        Independent(),
        Probit(),
        draws.membership,
        Settings(tolerance=1e-3),
    )
    return model, data


def test_communities_explain_what_is_communal(rng):
    model, data = simulate(rng, deviation=0.0)
    assert model.fit(data, model.members(Answers.of(data)))[1] >= 0.6


def test_what_is_personal_is_not_put_down_to_communities(rng):
    model, data = simulate(rng, deviation=3.0, n_users=200)
    assert model.fit(data, model.members(Answers.of(data)))[1] <= 0.4
