"""Inference at the edges: each test fails on one small change that once went unnoticed."""

from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit, ndtr

import penchant as pc
from penchant.gp import (
    ItemHyper,
    ItemProblem,
    PairBlock,
    RaterAnswers,
    Rows,
    Settings,
    SharedPrior,
    SharedSize,
    StartingPoint,
    TimeGrid,
    UserProblem,
    as_weights,
    factor_users,
    gradient,
    maximize_evidence,
    rater_levels,
    solve,
)
from penchant.kernels import RBF, Independent, Inputs
from penchant.likelihoods import Outcomes, Probit, Raters
from tests.gp.problems import item_problem


def sparse_problem(**how):
    """Sixty comparisons of forty independent items."""
    winner = np.random.default_rng(0).integers(0, 40, 60)
    data = pc.Comparisons.from_pairs(winner, (winner + 1 + winner % 7) % 40, items=range(40))
    return item_problem(data, **{"tolerance": 1e-7, **how})


HYPER = ItemHyper(Independent(4.0), Probit())


@pytest.mark.parametrize("max_sweeps", [6, 9, 15])
def test_sweeps_after_frozen_steps_that_failed_count_towards_the_most(max_sweeps):
    """Steps that lead nowhere hand over to plain sweeps, which have only what is left."""
    problem = sparse_problem(tolerance=0.0, max_sweeps=max_sweeps)
    n_refreshed, n_steps = [], []

    class Astray(type(problem.prior(HYPER))):
        flops = 1e12  # so that frozen steps are worth their while

        def refresh(self, weight, shift):
            n_refreshed.append(len(n_steps))
            known = super().refresh(weight, shift)
            names = ("mean", "var", "log_det", "quadratic", "jitter")
            state = SimpleNamespace(**{name: getattr(known, name) for name in names})
            state.covariance_times = lambda y: n_steps.append(1) or 1e3 * y
            return state

    prior = problem.prior(HYPER)
    astray = Astray(**{part.name: getattr(prior, part.name) for part in fields(prior)})
    given = SimpleNamespace(edges=problem.edges, settings=problem.settings, prior=lambda _: astray)
    report = solve(given, HYPER).inference.report
    assert 0 < len(n_steps) <= 10
    assert len([n for n in np.diff(n_refreshed) if n]) == 1  # in one go
    assert report.n_sweeps == max_sweeps
    assert not report.converged


@pytest.mark.parametrize("n_restarts", [None, 0, 1, 4])
def test_every_restart_begins_somewhere_else(n_restarts, rng):
    """Without a generator there is one start alone."""
    thetas, starts = [], []

    class Watched(ItemProblem):
        def prior(self, hyper):
            thetas.append(hyper.theta)
            return super().prior(hyper)

    problem, how = Watched(*vars(sparse_problem()).values()), (n_restarts, rng)

    def note(n_evaluations, _):
        if n_evaluations == 1:
            starts.append(thetas[-1])

    maximize_evidence(problem, HYPER, *((3, None) if n_restarts is None else how), callback=note)
    assert len(np.unique(np.stack(starts), axis=0)) == len(starts) == (n_restarts or 0) + 1
    np.testing.assert_array_equal(starts[0], HYPER.theta)
    low, high = HYPER.bounds.T
    assert ((low <= starts) & (starts <= high)).all()


@pytest.mark.parametrize("tolerance", [0.0, 1e-8])
def test_users_who_are_alike_are_one_pivot(tolerance):
    """What is left of the second is nothing, by which nothing may be divided."""
    users = Inputs(np.array([[1.0], [1.0], [1.0]]), index=np.arange(3))
    factor = factor_users(RBF(1.0), users, SharedSize(3), np.ones((1, 1)), tolerance)
    np.testing.assert_array_equal(factor.pivots, [0])
    np.testing.assert_allclose(factor.rows, np.ones((3, 1)))


@pytest.mark.parametrize(("share", "is_near"), [(0.9, True), (1.1, False)])
def test_one_step_is_enough_where_little_is_left_to_gain(share, is_near):
    """A Newton step along a slope s gains s² / 2c and leaves a tenth of it: enough where that is
    below a millionth of the value."""
    problem = sparse_problem()
    rough = problem.while_learning()
    first = solve(rough, HYPER, tolerance=1e-2)
    slope = gradient(rough, first) + HYPER.log_prior(HYPER)[1]
    value = first.log_evidence + HYPER.log_prior(HYPER)[0]
    curvature = 0.1 * 0.5 * slope @ slope / (share * 1e-6 * abs(value))
    begin = StartingPoint(HYPER.theta, None, curvature)
    best = maximize_evidence(problem, HYPER, begin=begin)
    assert (best.inference.report.n_evaluations == 1) == is_near
    there = HYPER.theta + slope / curvature
    assert np.allclose(best.hyper.theta, there, rtol=0.0, atol=1e-12) == is_near


def test_very_many_items_are_learned_from_by_those_compared_most(rng, monkeypatch):
    """Votes between them stay, all of them, under new positions."""
    monkeypatch.setattr("penchant.gp.users.problem.LARGEST_LEARNED", 9)
    monkeypatch.setattr("penchant.gp.users.problem.LEARNING_ITEMS", 4)
    ring = [(i, (i + 1) % 10) for i in range(10)]
    often = [(0, 3), (3, 7), (0, 9), (9, 7)] * 5
    winner, loser = np.array(ring + often).T
    data = pc.Comparisons.from_pairs(
        winner, loser, user=rng.integers(3, size=len(winner)), items=range(10), users=range(3)
    )
    items, users = (Inputs(index=np.arange(n)) for n in (10, 3))
    problem = UserProblem.of(items, users, Rows.by_user(data), Settings())
    few = problem.few_items()
    np.testing.assert_array_equal(few.items.index, [0, 3, 7, 9])
    kept = few.items.index
    found = zip(kept[few.edges.winner], kept[few.edges.loser], few.edges.user, strict=True)
    votes = zip(data.winner, data.loser, data.user, strict=True)
    assert sorted(found) == sorted(vote for vote in votes if set(vote[:2]) <= {0, 3, 7, 9})
    assert few.few_items() is few
    assert few.edges.count.sum() == 21.0  # 9 → 0 is in the ring


@pytest.mark.parametrize(("rank", "columns"), [(1, 7), (2, 3), (3, 3)])
def test_what_users_share_is_added_up_where_it_is_smaller(rank, columns, rng):
    shared = SharedPrior.of(rng.standard_normal((7, 3)), rank, None)
    assert shared.over_items == (columns == 7)
    common, _, others = shared.nothing()
    assert (common if shared.over_items else others).shape[1:] == (columns, columns)


def test_differences_far_surer_than_an_answer_are_not_made_unsure():
    ends = PairBlock.of(np.arange(1), np.array([[0]]), np.array([0]), np.array([1]), 2)
    variance = np.full((1, 1, 1), 1e-14)
    _, var = ends.moments(np.zeros((1, 1)), variance, np.zeros((1, 1, 1)), np.zeros((1, 1)))
    assert var[0] == 1e-14


@pytest.mark.parametrize("clustered", [True, False])
def test_what_was_worked_out_of_a_posterior_is_kept_only_where_it_still_holds(clustered):
    """A wider covariance, for answers of one person that go together, has no such half."""
    sides = [0, 0, 1] * 4, [1, 2, 2] * 4
    data = pc.Comparisons.from_pairs(*sides, user=np.repeat(range(4), 3), count=[9] * 12)
    data += pc.Comparisons.from_pairs(*sides[::-1], user=np.repeat(range(4, 8), 3), count=[9] * 12)
    model = pc.PreferenceGP(Independent(1.0), clustered=clustered, optimize=None)
    posterior = model.fit(None, data).state_.learned.posterior
    assert (posterior.widening is None) is not clustered
    assert posterior.half is not None
    assert (as_weights(posterior).half is None) is clustered


def test_the_first_edge_of_a_choice_is_part_of_it():
    data = pc.Comparisons.from_rankings([["a", "b", "c"], ["a", "d"]])
    edges = Rows.pooled(data)
    n = len(edges) - edges.outcomes.cliques.n_edges
    assert n == 1
    every = edges.outcomes.part_of(np.arange(len(edges)), len(edges))
    assert every.cliques.n_choices == edges.outcomes.cliques.n_choices


def test_periods_cover_the_whole_span():
    calendar = TimeGrid.of(np.array([0.0, 1.0, 3000.0]), None)
    assert calendar.length == pytest.approx(3000.0 / 300)


def test_how_much_raters_differ_is_learned(rng):
    n_raters, n_answers, spread = 150, 80, 1.0
    share = expit(rng.normal(-1.5, spread, n_raters))
    rater = np.repeat(np.arange(n_raters), n_answers)
    g = np.abs(rng.normal(0.0, 3.0, len(rater)))
    is_random = rng.random(len(rater)) < share[rater]
    right = np.where(is_random, rng.random(len(rater)) < 0.5, rng.random(len(rater)) < ndtr(g))
    known = np.full(len(rater), 1e-9)
    answered = RaterAnswers(rater, np.where(right, g, -g), known, Outcomes(), 1.0 + 0 * g, n_raters)
    found = rater_levels(answered, Raters(Probit()))
    assert found.centre == pytest.approx(-1.5, abs=0.4)
    assert found.spread == pytest.approx(spread, abs=0.35)
