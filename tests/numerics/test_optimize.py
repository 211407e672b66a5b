"""Descent inside a box: the right place, and never a leap on the way there."""

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from penchant.numerics import optimize


class Watched:
    """An objective that remembers where it was asked for."""

    def __init__(self, value, slope):
        self.value, self.slope, self.seen = value, slope, []

    def __call__(self, x):
        self.seen.append(x.copy())
        return float(self.value(x)), self.slope(x)


@pytest.mark.parametrize("upper", [2.0, 0.5], ids=["inside", "at the bound"])
@pytest.mark.parametrize("p", [2, 7])
def test_finds_what_scipy_finds(p, upper):
    bounds = np.tile([-2.0, upper], (p, 1))
    start = np.full(p, -1.0)
    found = optimize.minimize_in_box(Watched(rosen, rosen_der), start, bounds, 500)
    options = {"ftol": 1e-14, "gtol": 1e-10}
    expected = minimize(
        rosen, start, jac=rosen_der, method="L-BFGS-B", bounds=bounds, options=options
    )
    assert found.message.startswith("converged")
    assert found.value == pytest.approx(expected.fun, abs=1e-3)
    assert (found.x >= -2.0).all()
    assert (found.x <= upper).all()


def test_takes_few_steps_on_a_quadratic():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((12, 12))
    A = half.T @ half + np.eye(12)
    target = rng.standard_normal(12)
    objective = Watched(lambda x: 0.5 * (x - target) @ A @ (x - target), lambda x: A @ (x - target))
    found = optimize.minimize_in_box(objective, np.zeros(12), np.tile([-9.0, 9.0], (12, 1)), 100)
    np.testing.assert_allclose(found.x, target, atol=1e-2)
    assert len(objective.seen) < 40


@pytest.mark.parametrize("steepness", [1.0, 1e4])
def test_no_trial_leaps(steepness):
    """A plain, then a cliff: an unlimited line search would ask beyond it."""
    objective = Watched(
        lambda x: steepness * np.logaddexp(0.0, 3.0 * (x - 8.0)).sum() - 0.01 * x.sum(),
        lambda x: steepness * 3.0 / (1.0 + np.exp(-3.0 * (x - 8.0))) - 0.01,
    )
    optimize.minimize_in_box(objective, np.zeros(3), np.tile([-100.0, 100.0], (3, 1)), 60)
    best = np.minimum.accumulate([objective.value(x) for x in objective.seen])
    for trial in range(1, len(objective.seen)):
        leader = next(x for x in objective.seen if objective.value(x) == best[trial - 1])
        assert np.abs(objective.seen[trial] - leader).max() <= optimize.LONGEST + 1e-12


def test_backs_away_from_a_wall():
    """Where the objective cannot be had it is huge and flat."""
    objective = Watched(
        lambda x: 1e25 if x[0] > 1.0 else -x[0], lambda x: np.where(x > 1.0, 0.0, -1.0)
    )
    found = optimize.minimize_in_box(objective, np.array([0.0]), np.array([[-5.0, 5.0]]), 100)
    assert 0.9 < found.x[0] <= 1.0


def test_says_when_steps_ran_out():
    found = optimize.minimize_in_box(
        Watched(rosen, rosen_der), np.full(2, -1.0), np.tile([-2, 2], (2, 1)), 3
    )
    assert found.message == "stopped after 3 steps, the most allowed"


STEEP = np.array([2.0, 8.0, 40.0])
BOX = np.tile([-9.0, 9.0], (3, 1))


def valley():
    """A quadratic, steeper in some directions than in others."""
    return Watched(lambda x: 0.5 * x @ (STEEP * x), lambda x: STEEP * x)


def test_what_promises_too_little_is_not_tried():
    start, far, near = np.array([3.0, 2.0, -1.0]), valley(), valley()
    exact = optimize.minimize_in_box(far, start, BOX, 100)
    rough = optimize.minimize_in_box(near, start, BOX, 100, least_gain=0.5)
    assert exact.value < 1e-6
    assert exact.value < rough.value < 1.0
    assert len(near.seen) < len(far.seen)


def test_an_earlier_descent_tells_how_the_value_bends():
    first = optimize.minimize_in_box(valley(), np.array([3.0, 2.0, -1.0]), BOX, 100)
    start, alone, told = np.array([-1.0, 0.7, 0.3]), valley(), valley()
    optimize.minimize_in_box(alone, start, BOX, 100)
    again = optimize.minimize_in_box(told, start, BOX, 100, first.moves)
    assert again.value < 1e-6
    assert len(told.seen) < len(alone.seen)


def test_a_start_outside_is_moved_into_the_box():
    objective = Watched(lambda x: x @ x, lambda x: 2.0 * x)
    found = optimize.minimize_in_box(objective, np.array([9.0]), np.array([[1.0, 2.0]]), 10)
    assert objective.seen[0] == 2.0
    assert found.x == 1.0


def test_a_step_out_of_bounds_is_not_tried():
    falls = Watched(lambda x: -x[0], lambda x: np.array([-1.0]))
    optimize.minimize_in_box(falls, np.array([1.0]), np.array([[0.0, 1.0]]), 5, 1e-3)
    assert falls.seen == [1.0]
