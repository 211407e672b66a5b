"""The deterministic search for communities: its evidence, its slopes, what it finds."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from penchant.communities import (
    Answers,
    BethePrior,
    allocate,
    converge,
    find_communities,
    learn,
    main_directions,
    predict_membership,
    single_component,
    sweep,
)
from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp import Rows, factor_prior
from penchant.kernels import RBF, Independent, Inputs, RegularizedLaplacian, undirected
from penchant.likelihoods import Gaussian, Lapse, Logit, Outcomes, Probit, Ties
from penchant.metrics import adjusted_rand
from tests.communities.simulation import mixture_of, people, tastes, votes, with_outcomes

N_ITEMS = 12
X = np.random.default_rng(7).standard_normal((N_ITEMS, 2))
KERNEL = RBF((2.0, 3.0), 1.5) + Independent(0.2)
TRUTH = np.arange(160) % 4


def draw(k=4, n_users=160, n_votes=24, scale=2.0, kernel=None, **options):
    """A mixture of users of k tastes."""
    data = votes(people(tastes(k, N_ITEMS, scale), n_users), n_votes)
    return mixture_of(data, kernel or Independent(2.0), X=X, **options)


@pytest.fixture(scope="module")
def four():
    """A mixture of four tastes, and its communities."""
    mixture = draw()
    return mixture, find_communities(mixture)


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
    monkeypatch.setattr("penchant.communities.component.NEWTON_TOLERANCE", 1e-18)


def test_log_z_is_a_dense_laplace_approximation(exact):
    crowd = draw(n_users=8, kernel=KERNEL)
    w = np.random.default_rng(0).random(crowd.answers.n_answers)
    model = crowd.model(crowd.hyper.theta)
    taste, K = model.fit(w), KERNEL(crowd.items)
    D, inverse = crowd.answers.differences(N_ITEMS).matrix().toarray(), np.linalg.inv(K)

    def negative(f):
        local = Probit().log_prob(D @ f)
        return 0.5 * f @ inverse @ f - w @ local.value, inverse @ f - D.T @ (w * local.d1)

    f = minimize(negative, np.zeros(N_ITEMS), jac=True, tol=1e-12).x
    A = D.T @ np.diag(-w * Probit().log_prob(D @ f).d2) @ D
    expected = -negative(f)[0] - 0.5 * np.linalg.slogdet(np.eye(N_ITEMS) + K @ A)[1]
    assert taste.log_z == pytest.approx(expected, abs=1e-6)
    posterior = model.posterior(taste)
    np.testing.assert_allclose(posterior.mean, f, atol=1e-4)
    np.testing.assert_allclose(posterior.covariance(), np.linalg.inv(inverse + A), atol=1e-4)


@pytest.mark.parametrize("likelihood", LIKELIHOODS[:5], ids=repr)
@pytest.mark.parametrize(
    ("kernel", "max_rank", "many", "rtol"),
    [(KERNEL, None, 500, 1e-4), (KERNEL, 5, 500, 1e-4), (Independent(2.0), None, 2, 1e-3)],
    ids=["dense", "bounded rank", "many items"],
)
def test_slopes_are_those_of_log_z(exact, monkeypatch, likelihood, kernel, max_rank, many, rtol):
    monkeypatch.setattr("penchant.communities.component.MANY_ITEMS", many)
    crowd = with_outcomes(draw(n_users=8, kernel=kernel), likelihood)
    crowd = replace(crowd, max_rank=max_rank)
    w = np.random.default_rng(0).random((2, crowd.answers.n_answers))

    def value(theta, weights):
        model = crowd.model(theta)
        return sum(model.fit(each).log_z for each in weights)

    theta = crowd.hyper.theta
    model = crowd.model(theta)
    assert isinstance(model.prior, BethePrior) == (many == 2)
    fitted = tuple(model.fit(each) for each in w)
    steps = 1e-4 * np.eye(len(theta))
    numeric = [(value(theta + s, w) - value(theta - s, w)) / 2e-4 for s in steps]
    np.testing.assert_allclose(model.gradient(fitted), numeric, atol=1e-4, rtol=rtol)
    for answer in (0, 5):
        step = np.zeros_like(w)
        step[0, answer] = 1e-4
        numeric = (value(theta, w + step) - value(theta, w - step)) / 2e-4
        assert model.slope(fitted[0])[answer] == pytest.approx(numeric, rel=rtol / 10, abs=1e-5)


def test_fewer_answers_than_items(exact):
    """Then the algebra is among comparisons, and the slope is carried back to the items."""
    data = Comparisons.from_pairs([0, 1, 2], [5, 6, 7], user=[0, 0, 1], items=range(N_ITEMS))
    crowd = mixture_of(data, KERNEL, X=X)
    theta, w = crowd.hyper.theta, np.ones(3)
    model = crowd.model(theta)
    steps = 1e-4 * np.eye(len(theta))
    numeric = [
        (crowd.model(theta + s).fit(w).log_z - crowd.model(theta - s).fit(w).log_z) / 2e-4
        for s in steps
    ]
    np.testing.assert_allclose(model.gradient((model.fit(w),)), numeric, atol=1e-6)
    assert find_communities(crowd).n_communities == 1


def test_sweeps_and_learning_never_lower_the_objective(four):
    crowd = draw(kernel=KERNEL)
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
    assert converge(allocation, sweep, 5, 0.0).objective >= allocation.objective
    assert np.diff([step.objective for step in four[1].trace]).min() > -1e-6


def test_four_communities_are_found_and_predict(four):
    crowd, found = four
    assert found.n_communities == 4
    assert adjusted_rand(TRUTH, found.labels) > 0.95
    np.testing.assert_allclose(found.membership.sum(axis=1), 1.0)
    assert (np.diff(found.membership.sum(axis=0)) <= 1e-9).all()
    again = find_communities(crowd)
    np.testing.assert_array_equal(again.membership, found.membership)
    assert again.trace == found.trace


@pytest.mark.parametrize("k", [None, 4])
def test_very_many_users_are_settled_by_what_some_of_them_showed(four, k, monkeypatch):
    crowd, whole = four
    monkeypatch.setattr("penchant.communities.search.MANY_USERS", 100)
    found = find_communities(crowd, n_communities=k)
    assert found.report.steps[0] == "start among 100 users"
    assert "everybody" in found.report.steps
    assert found.n_communities == whole.n_communities
    assert adjusted_rand(whole.labels, found.labels) > 0.95
    assert found.objective == pytest.approx(whole.objective, abs=1.0)


def test_shuffled_users_are_one_community():
    data = votes(people(tastes(4, N_ITEMS, 2.0), 160), 24)
    winner, loser, user = (np.repeat(x, data.count) for x in (data.winner, data.loser, data.user))
    user = np.random.default_rng(0).permutation(user)
    data = Comparisons.from_pairs(winner, loser, user=user, items=range(N_ITEMS))
    assert find_communities(mixture_of(data, Independent(2.0))).n_communities == 1


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_every_likelihood_runs(likelihood):
    found = find_communities(with_outcomes(draw(k=2, n_users=40, scale=3.0), likelihood))
    assert np.isfinite(found.objective)
    assert np.isfinite(found.membership).all()
    assert all(np.isfinite(posterior.mean).all() for posterior in found.posteriors)


def test_relations_and_a_bounded_rank():
    ring = np.roll(np.eye(N_ITEMS), 1, axis=1)
    items = Inputs(X, relations={"ring": undirected(ring + ring.T)}, index=np.arange(N_ITEMS))
    crowd = draw(k=2, kernel=RBF((2.0, 2.0)) + RegularizedLaplacian("ring"))
    found = find_communities(replace(crowd, items=items, max_rank=8))
    assert adjusted_rand(TRUTH % 2, found.labels) > 0.9


def test_the_number_may_be_fixed(four):
    for k in (1, 2, 4, 6):
        found = find_communities(four[0], n_communities=k)
        assert found.n_communities == k
        assert found.membership.shape == (160, k)
        if k == 4:
            assert adjusted_rand(TRUTH, found.labels) > 0.95
    for k in (0, 161):
        with pytest.raises(DataError, match="n_communities"):
            find_communities(four[0], n_communities=k)


def test_users_without_answers_belong_anywhere():
    data = votes(people(tastes(2, N_ITEMS, 2.0), 40), 24)
    given = {"user": 2 * data.user, "users": range(80), "items": range(N_ITEMS)}
    data = Comparisons.from_pairs(data.winner, data.loser, count=data.count, **given)
    found = find_communities(mixture_of(data))
    sizes = found.membership[::2].sum(axis=0)
    np.testing.assert_allclose(found.membership[1], sizes / sizes.sum(), atol=1e-12)
    assert len(found.membership) == 80


def test_newcomers_are_placed_by_their_answers(four):
    crowd, found = four
    sizes = found.allocation.sizes
    again = predict_membership(found.posteriors, sizes, crowd.answers)
    assert adjusted_rand(TRUTH, again.argmax(axis=1)) > 0.95
    silent = Comparisons.from_pairs([0], [1], user=[1], items=range(N_ITEMS), users=range(2))
    placed = predict_membership(found.posteriors, sizes, Answers.of(silent))
    np.testing.assert_allclose(placed[0], sizes / sizes.sum())


def test_one_community_is_the_preference_model_of_all_votes():
    crowd = draw(k=1)
    together = single_component(crowd, crowd.hyper.theta)
    np.testing.assert_allclose(together.components[0].weights, crowd.answers.count)
    # λ = 1: the partition of everybody together has probability Γ(U) / Γ(U + 1)
    users = crowd.answers.n_users
    assert together.objective == pytest.approx(together.components[0].log_z - np.log(users))


def test_sites_of_a_component_lead_to_its_mode():
    """Conditioned on them, the prior has the mode for its mean: a start that is the end."""
    crowd = draw(k=1, n_users=4)
    taste = single_component(crowd, crowd.hyper.theta).components[0]
    sites = taste.sites
    state = taste.prior.refresh(taste.weights * sites.tau, taste.weights * sites.nu)
    np.testing.assert_allclose(state.mean, taste.state.mean, atol=0.05)
    assert np.abs(state.mean).max() > 0.3


VARIANCE = 1.7


def states(winner, loser):
    """Sparse and dense posteriors of the same items, given the same sites."""
    rng = np.random.default_rng(0)
    weight, shift = rng.gamma(1.0, size=len(winner)), rng.standard_normal(len(winner))
    edges = Rows.between(winner, loser, np.ones(len(winner)), Outcomes())
    items = Inputs(index=np.arange(len(edges.items)))
    dense = factor_prior(Independent(VARIANCE), items, edges)
    return BethePrior.of(VARIANCE, edges), dense, weight, shift


def random_graph(n=200, degree=30):
    winner = np.repeat(np.arange(n), degree // 2)
    return winner, (winner + np.random.default_rng(4).integers(1, n, len(winner))) % n


def test_on_a_tree_bethe_s_determinant_is_exact():
    child = np.arange(1, 40)
    parent = (np.random.default_rng(3).random(39) * child).astype(int)
    both_ways = np.append(child, parent), np.append(parent, child)
    sparse, dense, weight, shift = states(*both_ways)
    ours, theirs = sparse.refresh(100.0 * weight, shift), dense.refresh(100.0 * weight, shift)
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-6)
    assert ours.log_det == pytest.approx(theirs.log_det, abs=1e-6)
    np.testing.assert_allclose(ours.var, theirs.var, rtol=1e-4)
    assert ours.n_settled == pytest.approx(theirs.n_settled, abs=1e-3)


def test_on_a_random_graph_bethe_s_determinant_misses_little():
    sparse, dense, weight, shift = states(*random_graph())
    ours, theirs = sparse.refresh(weight, shift), dense.refresh(weight, shift)
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-6)
    assert ours.log_det == pytest.approx(theirs.log_det, abs=3.0)  # of some six hundred
    np.testing.assert_allclose(ours.var, theirs.var, rtol=0.06)
    points = np.random.default_rng(1).standard_normal(sparse.rank)
    np.testing.assert_allclose(ours.solve(points), theirs.solve(points), atol=1e-6)
    np.testing.assert_allclose(ours.pulled(points), theirs.pulled(points), atol=1e-9)
    rows = np.random.default_rng(2).standard_normal((30, sparse.rank))
    (values, moves), (expected, same) = (main_directions(rows, s, 2) for s in (ours, theirs))
    np.testing.assert_allclose(values, expected, rtol=1e-3)
    np.testing.assert_allclose(np.abs(moves.T @ same), np.abs(same.T @ same), atol=0.02)


def test_slopes_are_those_of_bethe_s_determinant():
    sparse, _, weight, shift = states(*random_graph(n=40, degree=8))
    state, step = sparse.refresh(weight, shift), 1e-4

    def slope(prior, move):
        up, down = (prior(side * step).refresh(weight + side * move, shift) for side in (1.0, -1.0))
        return (up.log_det - down.log_det) / (2.0 * step)

    for edge in (0, 17, 100):
        move = step * (np.arange(len(weight)) == edge)
        assert state.var[edge] == pytest.approx(slope(lambda _: sparse, move), rel=1e-3)
    wider = slope(lambda log: BethePrior(sparse.design, VARIANCE * np.exp(log)), 0.0)
    assert state.n_settled == pytest.approx(wider, rel=1e-3)


def test_the_same_communities_are_found_among_many_items(four, monkeypatch):
    crowd, dense = four
    monkeypatch.setattr("penchant.communities.component.MANY_ITEMS", 2)
    found = find_communities(crowd)
    assert adjusted_rand(TRUTH, found.labels) > 0.97
    assert found.n_communities == dense.n_communities == 4
    utilities = [np.stack([p.mean for p in g.posteriors]) for g in (found, dense)]
    np.testing.assert_allclose(*utilities, atol=0.05)
    assert found.posteriors[0].covariance().shape == (N_ITEMS, N_ITEMS)
