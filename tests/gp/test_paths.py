"""Drifting utilities: dense references, evidence, forecasts, and the estimator."""

import datetime
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import block_diag

import penchant as pc
from penchant.errors import NumericalError
from penchant.gp import PathHyper, PathProblem, Settings, TimeGrid, solve, timed_rows
from penchant.kernels import RBF, Independent, Inputs
from penchant.likelihoods import Probit, Ties
from tests.gp.problems import assert_posterior, assert_state, dense_posterior, dense_rows
from tests.simulation import duel_data, duels

N, DAYS = 4, np.array([0.0, 7.0, 14.0, 35.0, 42.0])
CAREERS = np.array([[0, 1], [0, 4], [1, 4], [3, 4], [2, 2], [0, 3], [4, 4]])
"""First and last of DAYS of seven players, who share slots of the state."""
SMOOTH, APART = RBF(0.7, 0.6) + Independent(0.4), Independent(0.8)


def league(seed=0, m=60, tie_rate=0.0):
    rng = np.random.default_rng(seed)
    return pc.Comparisons.from_pairs(
        *duels(rng, np.zeros(N), m),
        time=rng.choice(DAYS, m),
        first=rng.choice([-1, 1], m),
        covariates=rng.standard_normal((m, 1)),
        tie=rng.random(m) < tie_rate if tie_rate else None,
        items=range(N),
    )


def tour(seed=0, m=40):
    """Players come and go, and some pause."""
    rng = np.random.default_rng(seed)
    t = np.append(np.arange(5), rng.integers(0, 5, m - 5))
    there = [np.flatnonzero((CAREERS[:, 0] <= day) & (day <= CAREERS[:, 1])) for day in t]
    pairs = np.array([rng.choice(players, 2, replace=False) for players in there])
    first = rng.choice([-1, 1], m)
    return pc.Comparisons.from_pairs(*pairs.T, time=DAYS[t], first=first, items=range(7))


def problem_of(data, **how):
    calendar, n = TimeGrid.of(data.time, None), data.n_items
    items = Inputs(np.arange(n)[:, None] / n, index=np.arange(n))
    return PathProblem(items, timed_rows(data, calendar), calendar, Settings(**how))


HYPER = PathHyper(SMOOTH, 0.5, 10.0, Probit())
CASES = [(league(), SMOOTH), (tour(), SMOOTH), (tour(), APART)]
NAMES = ["everybody always", "come and go", "come and go, independent"]


def dense(problem, solution):
    """A over paths + constants by period, and effects; and their prior covariance."""
    edges, constants = problem.edges, solution.prior.constants
    days, place = np.unique(edges.period, return_inverse=True)
    T, n, days = len(days), len(constants), problem.calendar.length * days
    drift = HYPER.variance * np.exp(-np.abs(days[:, None] - days) / HYPER.timescale)
    K = np.kron(drift, np.eye(n)) + np.kron(np.ones((T, T)), constants)
    A = dense_rows(place * n + edges.winner, place * n + edges.loser, T * n)
    return np.hstack([A, edges.shown.z.T]), block_diag(K, np.diag(edges.shown.sd**2))


@pytest.mark.parametrize(("data", "kernel"), CASES, ids=NAMES)
def test_a_sweep_is_that_of_dense_algebra(data, kernel):
    problem = problem_of(data)
    solution = solve(problem, HYPER._replace(kernel=kernel))
    A, K = dense(problem, solution)
    assert_state(problem, solution, A, K)
    mean, S = dense_posterior(problem, solution, A, K)
    n, q = data.n_items, len(problem.edges.shown.sd)
    posterior, last = problem.posterior(solution), slice(4 * n, 5 * n)
    assert_posterior(posterior, mean[last], S[last, last], 1e-7)
    np.testing.assert_allclose(posterior.effects.mean, mean[-q:], atol=1e-9)
    effects = posterior.effects.covariance(posterior.lower)
    np.testing.assert_allclose(effects, S[-q:, -q:], atol=1e-9)
    z, row = np.array([[1.0], [-0.7]])[:q], np.zeros(len(K))
    row[[4 * n + 1, 4 * n + 3]], row[-q:] = (1.0, -1.0), z[:, 0]
    few = problem.universe.take(np.array([3, 1]))
    for asked in (posterior, replace(posterior, days=DAYS[-1:])):
        for target, one, other in ((None, [1], [3]), (few, [1], [0])):
            shown = asked.at(target).difference(np.array(one), np.array(other), z)
            np.testing.assert_allclose(shown, [[row @ mean], [row @ S @ row]], atol=1e-7)


@pytest.mark.parametrize(("rule", "likelihood"), [("ep", Ties(0.5)), ("variational", Probit())])
def test_the_gradient_is_that_of_the_evidence(check_gradient, rule, likelihood):
    ties = 0.2 if isinstance(likelihood, Ties) else 0.0
    problem = problem_of(league(tie_rate=ties), rule=rule, tolerance=1e-11, max_sweeps=500)
    check_gradient(problem, HYPER._replace(likelihood=likelihood), 1e-4, 0.0, 1e-5)


@pytest.mark.parametrize("kernel", [SMOOTH, APART], ids=NAMES[1:])
def test_the_gradient_where_players_come_and_go(check_gradient, kernel):
    problem = problem_of(tour(), tolerance=1e-11, max_sweeps=500)
    check_gradient(problem, HYPER._replace(kernel=kernel), 1e-4, 0.0, 1e-5)


@pytest.mark.parametrize("kernel", [SMOOTH, APART], ids=NAMES[1:])
def test_sites_of_negative_precision(kernel):
    """They count as they are, until the posterior is none."""
    problem = problem_of(tour())
    solution = solve(problem, HYPER._replace(kernel=kernel))
    A, K = dense(problem, solution)
    weight = np.where(np.arange(len(A)) % 7, 0.6, -0.1)
    state = solution.prior.refresh(weight, np.ones(len(A)))
    cov = np.linalg.inv(np.linalg.inv(K) + (A.T * weight) @ A)
    np.testing.assert_allclose(state.mean, A @ cov @ A.sum(axis=0), atol=1e-8)
    np.testing.assert_allclose(state.var, np.diag(A @ cov @ A.T), atol=1e-8)
    with pytest.raises(NumericalError, match="positive definite"):
        solution.prior.refresh(np.where(np.arange(len(A)) == 20, -50.0, 0.6), np.ones(len(A)))


def test_a_period_of_fewer_comparisons_than_items_costs_its_comparisons():
    """A season of one game a team takes half the work of one point a team."""
    sides = np.arange(0, 6, 2), np.arange(1, 6, 2)
    data = pc.Comparisons.from_pairs(*(np.tile(side, 9) for side in sides), time=np.arange(27) // 3)
    prior = problem_of(data).prior(HYPER._replace(kernel=APART))
    assert prior.rank == 9 * 6
    assert prior.flops == 4.0 * (9 * 3) * prior.layout.size**2


@pytest.mark.parametrize("kernel", [SMOOTH, APART], ids=["correlated", "independent"])
def test_single_precision_while_many_items_are_learned(kernel):
    """The evidence and its slope to a hundredth of what a climb stops at."""
    rng = np.random.default_rng(0)
    sides = duels(rng, rng.standard_normal(150), 900)
    data = pc.Comparisons.from_pairs(*sides, time=rng.choice(DAYS, 900), items=range(150))
    exact, hyper = problem_of(data), HYPER._replace(kernel=kernel)
    rough = exact.while_learning()
    assert [some.prior(hyper).dtype for some in (exact, rough)] == [np.float64, np.float32]
    assert problem_of(tour()).while_learning().prior(hyper).dtype is np.float64
    sites = solve(exact, hyper).inference.sites
    both = [solve(some, hyper, sites) for some in (exact, rough)]
    values = [solution.log_evidence for solution in both]
    slopes = [some.pullback(of, None) for some, of in zip((exact, rough), both, strict=True)]
    assert values[0] == pytest.approx(values[1], abs=1e-4)
    np.testing.assert_allclose(slopes[1], slopes[0], atol=1e-3)
    assert values[0] != values[1]


def test_only_players_between_their_first_and_last_game_cost_time():
    """Twice the generations are twice the work, not eight times."""

    def work(n_generations):
        sides = [
            np.concatenate([6 * g + np.tile(side, 9) for g in range(n_generations)])
            for side in ([0, 2, 4], [1, 3, 5])
        ]
        data = pc.Comparisons.from_pairs(*sides, time=np.repeat(np.arange(9 * n_generations), 3))
        prior = problem_of(data).prior(HYPER._replace(kernel=APART))
        return prior.rank, prior.flops

    (points, flops), (twice, twice_flops) = work(3), work(6)
    assert points == 3 * 9 * 6
    assert twice == 2 * points
    assert twice_flops == 2.0 * flops


@pytest.mark.parametrize(("data", "kernel"), CASES, ids=NAMES)
def test_any_time_follows_exactly(data, kernel):
    """Between periods and beyond the last: kriging with the dense posterior."""
    problem, n = problem_of(data), data.n_items
    solution = solve(problem, HYPER._replace(kernel=kernel))
    A, K = dense(problem, solution)
    mean, S = dense_posterior(problem, solution, A, K)
    days, constant = (-3.0, 14.0, 21.0, 70.0), solution.prior.constants
    several = problem.posterior(solution).when(days)
    for day, then in zip(days, several, strict=True):
        drift = HYPER.variance * np.exp(-np.abs(np.floor(day / 7.0) * 7.0 - DAYS) / HYPER.timescale)
        cross = np.kron(drift, np.eye(n)) + np.kron(np.ones(5), constant)
        cross = np.hstack([cross, np.zeros((n, len(K) - 5 * n))])
        own = HYPER.variance * np.eye(n) + constant
        weights = np.linalg.solve(K, cross.T).T
        cov = own - weights @ cross.T + weights @ S @ weights.T
        assert_posterior(then, weights @ mean, cov, 1e-7)


def over_time(rng, paths, per_period, days=7.0):
    """So many answers a period of so many days; paths: (periods, items) utilities."""
    t = np.repeat(np.arange(len(paths)), per_period)
    return duel_data(rng, paths, user=t, time=days * t).pooled()


def drifting(seed, n_items=8, n_periods=40, per_period=12, sd=1.0, timescale=15.0):
    rng = np.random.default_rng(seed)
    keep = np.exp(-1.0 / timescale)
    paths = np.empty((n_periods, n_items))
    paths[0] = sd * rng.standard_normal(n_items)
    for t in range(1, n_periods):
        paths[t] = keep * paths[t - 1] + sd * np.sqrt(1 - keep**2) * rng.standard_normal(n_items)
    return paths, over_time(rng, paths, per_period)


@pytest.fixture(scope="module")
def model():
    return pc.PreferenceGP(drift="ou", random_state=0).fit(None, drifting(0)[1])


def test_drift_is_found_and_utilities_followed(model):
    paths, data = drifting(0)
    hyper = model.state_.learned.hyper
    assert 0.2 < hyper.variance < 4.0
    assert 20.0 < hyper.timescale < 600.0
    truth = paths - paths.mean(axis=1, keepdims=True)
    mean, std = model.paths(7.0 * np.arange(40))
    assert np.mean(np.abs(mean - truth) < 1.96 * std) > 0.88
    still = pc.PreferenceGP(random_state=0).fit(None, data).predict()
    assert ((mean - truth) ** 2).mean() < 0.7 * ((still - still.mean() - truth) ** 2).mean()
    assert model.log_evidence_ > pc.PreferenceGP().fit(None, data).log_evidence_ + 5.0


def test_where_nothing_drifts_little_is_found():
    rng = np.random.default_rng(3)
    data = over_time(rng, np.tile(rng.standard_normal(6), (30, 1)), 20, days=1.0)
    gp = pc.PreferenceGP(drift="ou").fit(None, data)
    mean, _ = gp.paths([0.0, 29.0])
    assert np.abs(mean[0] - mean[1]).max() < 0.6
    np.testing.assert_allclose(
        gp.predict() - gp.predict().mean(), pc.PreferenceGP().fit(None, data).predict(), atol=0.3
    )


def test_dates_and_forecasts(model):
    early, late = model.rank(at=0.0), model.rank()
    assert [row.item for row in early] != [row.item for row in late]
    assert [row.item for row in late] == [row.item for row in model.rank(at=7.0 * 39)]
    _, now = model.predict(return_std=True)
    _, later = model.predict(at=7.0 * 80, return_std=True)
    assert (later > now).all()
    p_now, p_later = (model.predict_proba([(0, 1)], at=day)[0] for day in (7.0 * 39, 1e5))
    assert abs(p_later - 0.5) < abs(p_now - 0.5) or abs(p_now - 0.5) < 0.2
    assert model.predict(at=datetime.date(1970, 1, 8)) == pytest.approx(
        model.predict(at="1970-01-08")
    )
    with pytest.raises(pc.DataError, match="it must be a date"):
        model.rank(at="yesterday-ish")
    with pytest.raises(pc.DataError, match="drift='ou'"):
        pc.PreferenceGP(optimize=None).fit(None, drifting(0)[1]).rank(at=0.0)


def test_telling_withdrawing_and_files_keep_the_paths(tmp_path):
    data = drifting(1, n_periods=12)[1]
    how = {"kernel": Independent(0.5), "optimize": None, "drift": "ou", "period": 7.0}
    train, more = data.split(0.3, random_state=0)
    whole, part = (pc.PreferenceGP(**how).fit(None, some) for some in (data, train))
    told = part.tell(more, reconverge=False)
    np.testing.assert_allclose(told.predict(at=35.0), whole.predict(at=35.0), atol=2e-2)
    whole.save(tmp_path / "model")
    again = pc.load(tmp_path / "model")
    np.testing.assert_allclose(again.predict(at=20.0), whole.predict(at=20.0), atol=1e-12)
    np.testing.assert_allclose(again.tell(more).predict(), whole.tell(more).predict(), atol=1e-9)


def test_half_lives_count_old_answers_less():
    data = pc.Comparisons.from_pairs(
        ["a"] * 4 + ["b"] * 4, ["b"] * 4 + ["a"] * 4, time=[0] * 4 + [100] * 4
    )
    gp = pc.PreferenceGP(half_life=10.0).fit(None, data)
    assert gp.rank()[0].item == "b"
    assert abs(np.diff(pc.PreferenceGP().fit(None, data).predict())[0]) < 1e-6
    (a, b) = gp.state_.learned.problem.edges.count
    assert (a, b) == pytest.approx((4.0 * 2.0**-10, 4.0))


def test_what_does_not_go_together_is_refused():
    timeless, data = pc.Comparisons.from_pairs([0], [1]), drifting(0)[1]
    for why, given, how in (
        ("when they were made", timeless, {"drift": "ou"}),
        ("when they were made", timeless, {"half_life": 5.0}),
        ("half_life", data, {"drift": "ou", "half_life": 5.0}),
        ("laplace", data, {"drift": "ou", "inference": "laplace"}),
        ("'em'", data, {"drift": "ou", "optimize": "em"}),
    ):
        with pytest.raises(pc.DataError, match=why):
            pc.PreferenceGP(**how).fit(None, given)
    X = np.arange(8.0)[:, None]
    featured = pc.PreferenceGP(drift="ou", optimize=None).fit(X, data)
    assert featured.report_.converged
    then, now = featured.predict(X[:2] + 0.5, at=3.0), featured.predict(X[:2] + 0.5)
    np.testing.assert_allclose(np.diff(then), np.diff(now))  # no path is known of new items


def test_new_items_are_as_items_that_were_never_compared():
    data, X = drifting(0)[1], np.arange(10.0)[:, None] / 4.0
    data = replace(data, first=np.where(data.winner > data.loser, 1, -1))
    same = {name: getattr(data, name) for name in ("time", "count", "first")}
    more = pc.Comparisons.from_pairs(data.winner, data.loser, **same, items=range(10))
    how = {"kernel": RBF(1.0, 1.0) + Independent(0.3), "optimize": None, "drift": "ou"}
    some = pc.PreferenceGP(**how, period=7.0).fit(X[:8], data)
    every = pc.PreferenceGP(**how, period=7.0).fit(X, more)
    for at in (None, 20.0, 1e4):
        p = every.predict_proba([(8, 9)], at=at)
        np.testing.assert_allclose(some.predict_proba([(0, 1)], X=X[8:], at=at), p, atol=1e-5)
        p = every.predict_proba([(8, 9)], at=at, first=[1])
        shown = some.predict_proba([(0, 1)], X=X[8:], at=at, first=[1])
        np.testing.assert_allclose(shown, p, atol=1e-5)
        mean, std = some.predict(X[8:], at=at, return_std=True)
        all_of = every.predict(at=at)
        np.testing.assert_allclose(mean, all_of[8:] - all_of[:8].mean(), atol=1e-4)
        # the two universes differ in the average item alone
        belief = every._as_of(at).belief()
        less = np.vstack([np.full((8, 2), -1.0 / 8.0), np.eye(2)])
        dense = np.sqrt(np.diagonal(less.T @ belief.covariance() @ less))
        np.testing.assert_allclose(std, dense, atol=1e-4)


def test_new_items_of_a_relation_are_asked_about_at_any_time():
    data = drifting(0)[1]
    ring = np.roll(np.eye(10), 1, axis=0) + np.roll(np.eye(10), -1, axis=0)
    links = {"ring": ring[:8, :8]}
    gp = pc.PreferenceGP(drift="ou", optimize=None, period=70.0).fit(None, data, links)
    now, then, later = (
        gp.predict(relations={"ring": ring}, at=at, return_std=True)[1] for at in (None, 0.0, 1e5)
    )
    assert now.shape == (2,)
    assert np.isfinite(then).all()
    assert (later >= now - 1e-9).all()
    plain = pc.PreferenceGP(optimize=None).fit(None, data, links)
    with pytest.raises(pc.DataError, match="drift='ou'"):
        plain.predict(relations={"ring": ring}, at=1.0)


NO_TIME = [True, np.True_, "soon", "", np.datetime64("NaT"), float("nan"), 1j, {}, [[1.0]]]


@pytest.mark.parametrize("at", NO_TIME, ids=repr)
def test_what_is_no_time_is_refused(model, at):
    for ask in (
        lambda: model.predict(at=at),
        lambda: model.rank(at=at),
        lambda: model.predict_proba([(0, 1)], at=at),
        lambda: model.predict_proba([(0, 1)], at=[at]),
    ):
        with pytest.raises(pc.DataError, match="at"):
            ask()


def test_each_pair_is_asked_about_at_its_own_time(model):
    pairs, at = [(0, 1), (2, 3), (1, 0)], [0.0, "1970-04-11", datetime.date(1971, 1, 1)]
    apart = [model.predict_proba([pair], at=day)[0] for pair, day in zip(pairs, at, strict=True)]
    np.testing.assert_allclose(model.predict_proba(pairs, at=at), apart, atol=1e-12)
    dates = np.array([0, 100, 365], dtype="datetime64[D]").astype("datetime64[ns]")
    np.testing.assert_allclose(model.predict_proba(pairs, at=dates), apart, atol=1e-12)
    assert np.isfinite(model.predict_proba(pairs, at=[-1e300, 1e300, 5])).all()
    X = np.arange(8.0)[:, None]
    featured = pc.PreferenceGP(drift="ou", optimize=None).fit(X, drifting(0)[1])
    one, each = (featured.predict_proba([(0, 1)], X=X[:2] + 0.5, at=at) for at in (3.0, [3.0]))
    np.testing.assert_allclose(each, one)
    with pytest.raises(pc.DataError, match="1 pairs"):
        featured.predict_proba([(0, 1)], X=X[:2] + 0.5, at=[0.0, 1.0])
    for wrong, why in (([0.0, 1.0], "3 pairs"), ([], "empty")):
        with pytest.raises(pc.DataError, match=why):
            model.predict_proba(pairs, at=wrong)
    for ask in (model.predict, model.rank):
        with pytest.raises(pc.DataError, match="must be one"):
            ask(at=[0.0, 1.0])
