"""The deterministic search for communities: its evidence, its slopes, what it finds."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from penchant.communities import Answers, Crowd, find_communities, mixture
from penchant.communities import taste as tastes
from penchant.communities.division import allocate, everybody_together, learn, settle, sweep
from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp import ItemHyper
from penchant.kernels import RBF, Independent, Inputs, RegularizedLaplacian, undirected
from penchant.likelihoods import Gaussian, Lapse, Logit, Outcomes, Probit, Ties
from penchant.metrics import adjusted_rand

N_ITEMS = 12
X = np.random.default_rng(7).standard_normal((N_ITEMS, 2))
KERNEL = RBF((2.0, 3.0), 1.5) + Independent(0.2)


def draw(n_tastes=4, n_users=160, n_votes=24, seed=0, scale=2.0):
    """Votes of users of a few tastes, and who has which."""
    rng = np.random.default_rng(seed)
    utilities = scale * rng.standard_normal((n_tastes, N_ITEMS))
    truth = np.arange(n_users) % n_tastes
    user = np.repeat(np.arange(n_users), n_votes)
    a = rng.integers(N_ITEMS, size=len(user))
    b = (a + rng.integers(1, N_ITEMS, size=len(user))) % N_ITEMS
    f = utilities[truth[user]]
    rows = np.arange(len(user))
    wins = f[rows, a] - f[rows, b] + rng.standard_normal(len(user)) > 0
    return user, np.where(wins, a, b), np.where(wins, b, a), truth


def crowd_of(user, winner, loser, likelihood=None, kernel=None, **options):
    data = Comparisons.from_pairs(
        winner, loser, user=user, items=range(N_ITEMS), users=range(user.max() + 1)
    )
    hyper = ItemHyper(kernel or Independent(2.0), likelihood or Probit())
    return Crowd(Answers.of(data), Inputs(X, index=np.arange(N_ITEMS)), hyper, **options)


def with_outcomes(crowd, likelihood):
    """The crowd with ties and margins where the likelihood needs them."""
    rng = np.random.default_rng(1)
    m = crowd.answers.n_answers
    outcomes = Outcomes()
    if likelihood.n_answers == 3:
        outcomes = Outcomes(tie=rng.random(m) < 0.2)
    if isinstance(likelihood, Gaussian):
        outcomes = Outcomes(margin=1.0 + rng.standard_normal(m))
    hyper = crowd.hyper._replace(likelihood=likelihood)
    return replace(crowd, answers=replace(crowd.answers, outcomes=outcomes), hyper=hyper)


LIKELIHOODS = [
    Probit(),
    Logit(),
    Gaussian(0.7),
    Ties(0.4),
    Ties(0.4, "logit"),
    Lapse(Probit(), 0.05),
    Lapse(Ties(), 0.05),
]


@pytest.fixture
def exact(monkeypatch):
    """Newton's method to the end."""
    monkeypatch.setattr(tastes, "TOLERANCE", 1e-18)


def test_log_z_is_a_dense_laplace_approximation(exact):
    user, winner, loser, _ = draw(n_users=8)
    crowd = crowd_of(user, winner, loser, kernel=KERNEL)
    w = np.random.default_rng(0).random(crowd.answers.n_answers)
    taste = crowd.model(crowd.hyper.theta).fit(w)
    K = KERNEL(crowd.items)
    D = np.eye(N_ITEMS)[crowd.answers.winner] - np.eye(N_ITEMS)[crowd.answers.loser]
    inverse = np.linalg.inv(K)

    def negative(f):
        local = Probit().log_prob(D @ f)
        return 0.5 * f @ inverse @ f - w @ local.value, inverse @ f - D.T @ (w * local.d1)

    f = minimize(negative, np.zeros(N_ITEMS), jac=True, tol=1e-12).x
    A = D.T @ np.diag(-w * Probit().log_prob(D @ f).d2) @ D
    expected = -negative(f)[0] - 0.5 * np.linalg.slogdet(np.eye(N_ITEMS) + K @ A)[1]
    assert taste.log_z == pytest.approx(expected, abs=1e-6)
    posterior = crowd.model(crowd.hyper.theta).posterior(taste)
    np.testing.assert_allclose(posterior.mean, f, atol=1e-4)
    np.testing.assert_allclose(posterior.covariance(), np.linalg.inv(inverse + A), atol=1e-4)


@pytest.mark.parametrize("likelihood", LIKELIHOODS[:5], ids=repr)
@pytest.mark.parametrize("max_rank", [None, 5])
def test_slopes_are_those_of_log_z(exact, likelihood, max_rank):
    user, winner, loser, _ = draw(n_users=8)
    crowd = with_outcomes(crowd_of(user, winner, loser, kernel=KERNEL), likelihood)
    crowd = replace(crowd, max_rank=max_rank)
    w = np.random.default_rng(0).random((2, crowd.answers.n_answers))

    def value(theta, weights):
        model = crowd.model(theta)
        return sum(model.fit(each).log_z for each in weights)

    theta = crowd.hyper.theta
    model = crowd.model(theta)
    fitted = tuple(model.fit(each) for each in w)
    steps = 1e-4 * np.eye(len(theta))
    numeric = [(value(theta + s, w) - value(theta - s, w)) / 2e-4 for s in steps]
    np.testing.assert_allclose(model.gradient(fitted), numeric, atol=1e-4, rtol=1e-4)
    for answer in (0, 5):
        step = np.zeros_like(w)
        step[0, answer] = 1e-4
        numeric = (value(theta, w + step) - value(theta, w - step)) / 2e-4
        assert model.slope(fitted[0])[answer] == pytest.approx(numeric, abs=1e-5)


def test_fewer_answers_than_items(exact):
    """Then the algebra is among comparisons, and the slope is carried back to the items."""
    answered = np.array([0, 0, 1]), np.array([0, 1, 2]), np.array([5, 6, 7])
    crowd = crowd_of(*answered, kernel=KERNEL)
    theta, w = crowd.hyper.theta, np.ones(3)
    model = crowd.model(theta)
    steps = 1e-4 * np.eye(len(theta))
    numeric = [
        (crowd.model(theta + s).fit(w).log_z - crowd.model(theta - s).fit(w).log_z) / 2e-4
        for s in steps
    ]
    np.testing.assert_allclose(model.gradient((model.fit(w),)), numeric, atol=1e-6)
    assert find_communities(crowd).n_communities == 1


def test_sweeps_and_learning_never_lower_the_objective():
    user, winner, loser, _ = draw()
    crowd = crowd_of(user, winner, loser, kernel=KERNEL)
    rng = np.random.default_rng(3)
    start = rng.dirichlet(np.ones(4), crowd.answers.n_users)
    allocation = allocate(crowd.model(crowd.hyper.theta), start)
    values = [allocation.objective]
    for _ in range(12):
        allocation = sweep(allocation)
        values.append(allocation.objective)
    assert np.diff(values).min() > -1e-2  # the tolerance of Newton's method
    learned, _ = learn(allocation)
    assert learned.objective >= allocation.objective
    assert settle(allocation, 5, 0.0).objective >= allocation.objective


def test_the_search_climbs():
    user, winner, loser, _ = draw()
    trace = find_communities(crowd_of(user, winner, loser)).trace
    assert np.diff([step.objective for step in trace]).min() > -1e-6


def test_four_communities_are_found_and_predict():
    user, winner, loser, truth = draw()
    found = find_communities(crowd_of(user, winner, loser))
    assert found.n_communities == 4
    assert adjusted_rand(truth, found.labels) > 0.95
    np.testing.assert_allclose(found.membership.sum(axis=1), 1.0)
    prob = found.prob(found.membership[user], winner, loser)
    flipped = found.prob(found.membership[user], loser, winner)
    np.testing.assert_allclose(prob + flipped, 1.0)
    assert prob.mean() > 0.75
    sizes = found.membership.sum(axis=0)
    assert (np.diff(sizes) <= 1e-9).all()


@pytest.mark.parametrize("k", [None, 4])
def test_very_many_users_are_settled_by_what_some_of_them_showed(k, monkeypatch):
    user, winner, loser, _ = draw()
    crowd = crowd_of(user, winner, loser)
    whole = find_communities(crowd, n_communities=k)
    monkeypatch.setattr(mixture, "MANY_USERS", 100)
    found = find_communities(crowd, n_communities=k)
    assert found.report.steps[0] == "start among 100 users"
    assert "everybody" in found.report.steps
    assert found.n_communities == whole.n_communities
    assert adjusted_rand(whole.labels, found.labels) > 0.95
    assert found.objective == pytest.approx(whole.objective, abs=1.0)


def test_shuffled_users_are_one_community():
    user, winner, loser, _ = draw()
    shuffled = np.random.default_rng(0).permutation(user)
    assert find_communities(crowd_of(shuffled, winner, loser)).n_communities == 1


def test_the_same_votes_give_the_same_bits():
    user, winner, loser, _ = draw()
    first, second = (find_communities(crowd_of(user, winner, loser)) for _ in range(2))
    np.testing.assert_array_equal(first.membership, second.membership)
    assert first.trace == second.trace


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_every_likelihood_runs(likelihood):
    user, winner, loser, _ = draw(n_tastes=2, n_users=40, scale=3.0)
    crowd = with_outcomes(crowd_of(user, winner, loser), likelihood)
    found = find_communities(crowd)
    assert np.isfinite(found.objective)
    assert np.isfinite(found.membership).all()
    assert all(np.isfinite(posterior.mean).all() for posterior in found.posteriors)


def test_relations_and_a_bounded_rank():
    user, winner, loser, truth = draw(n_tastes=2)
    ring = np.roll(np.eye(N_ITEMS), 1, axis=1)
    items = Inputs(
        X,
        relations={"ring": undirected(ring + ring.T)},
        index=np.arange(N_ITEMS),
    )
    crowd = crowd_of(user, winner, loser, kernel=RBF((2.0, 2.0)) + RegularizedLaplacian("ring"))
    found = find_communities(replace(crowd, items=items, max_rank=8))
    assert adjusted_rand(truth, found.labels) > 0.9


@pytest.mark.parametrize("k", [1, 2, 3, 4, 6])
def test_the_number_may_be_fixed(k):
    user, winner, loser, truth = draw()
    found = find_communities(crowd_of(user, winner, loser), n_communities=k)
    assert found.n_communities == k
    assert found.membership.shape == (160, k)
    if k == 4:
        assert adjusted_rand(truth, found.labels) > 0.95


@pytest.mark.parametrize("k", [0, 161])
def test_a_number_that_cannot_be(k):
    user, winner, loser, _ = draw()
    with pytest.raises(DataError, match="n_communities"):
        find_communities(crowd_of(user, winner, loser), n_communities=k)


def test_users_without_answers_belong_anywhere():
    user, winner, loser, _ = draw(n_tastes=2, n_users=40)
    crowd = crowd_of(2 * user, winner, loser)  # every second user is silent
    found = find_communities(crowd)
    sizes = found.membership[::2].sum(axis=0)
    np.testing.assert_allclose(found.membership[1], sizes / sizes.sum(), atol=1e-12)
    assert len(found.membership) == crowd.answers.n_users


def test_newcomers_are_placed_by_their_answers():
    user, winner, loser, truth = draw()
    found = find_communities(crowd_of(user, winner, loser))
    again = found.place(found.allocation.crowd.answers)
    assert adjusted_rand(truth, again.argmax(axis=1)) > 0.95
    silent = Comparisons.from_pairs([0], [1], user=[1], items=range(N_ITEMS), users=range(2))
    sizes = found.allocation.sizes
    np.testing.assert_allclose(found.place(Answers.of(silent))[0], sizes / sizes.sum())


def test_a_start_is_taken_up():
    user, winner, loser, truth = draw()
    crowd = crowd_of(user, winner, loser)
    found = find_communities(crowd, start=np.eye(4)[truth])
    assert found.trace[0].n_communities == 4
    assert found.n_communities == 4


def test_one_community_is_the_preference_model_of_all_votes():
    user, winner, loser, _ = draw(n_tastes=1)
    crowd = crowd_of(user, winner, loser)
    together = everybody_together(crowd, crowd.hyper.theta)
    counts = np.asarray(crowd.answers.counts.sum(axis=0)).ravel()
    np.testing.assert_allclose(together.tastes[0].weights, counts)
    # λ = 1: the partition of everybody together has probability Γ(U) / Γ(U + 1)
    users = crowd.answers.n_users
    assert together.objective == pytest.approx(together.tastes[0].log_z - np.log(users))
