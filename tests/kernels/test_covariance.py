"""Learned covariances, free and of low rank: parameters, derivatives, priors."""

import numpy as np
import pytest

from penchant.errors import DataError
from penchant.kernels import FreeCovariance, Inputs, LowRankCovariance

N = 5
ITEMS = Inputs(index=np.arange(N))
LOW_RANK = LowRankCovariance(np.random.default_rng(0).standard_normal((5, 2)), 0.6)


@pytest.fixture(params=["plain", "framed"])
def kernel(rng, request):
    A = rng.standard_normal((N, N))
    found = FreeCovariance.of(A @ A.T + 0.5 * np.eye(N))
    other = FreeCovariance.of(A.T @ A + np.eye(N))
    return found.around(other) if request.param == "framed" else found


def slopes(function, theta, step=1e-6):
    return [
        (function(theta + step * e) - function(theta - step * e)) / (2 * step)
        for e in np.eye(len(theta))
    ]


def test_is_centred_and_differences_have_the_covariance_given(kernel):
    C, K = kernel.factor @ kernel.factor.T, kernel(ITEMS)
    D = np.eye(N)[1:] - np.eye(N)[0]
    np.testing.assert_allclose(D @ K @ D.T, D @ C @ D.T, atol=1e-12)
    np.testing.assert_allclose(K.sum(axis=0), 0.0, atol=1e-13)


START = FreeCovariance.of(2.0 * np.eye(N))


@pytest.mark.parametrize(
    "value_and_slope",
    [
        lambda k: k.wishart_prior(),
        lambda k: k.log_prior(START),
    ],
    ids=["wishart", "prior"],
)
def test_slopes_are_derivatives(kernel, value_and_slope):
    expected = slopes(lambda t: value_and_slope(kernel.with_theta(t))[0], kernel.theta)
    np.testing.assert_allclose(value_and_slope(kernel)[1], expected, rtol=1e-6, atol=1e-7)


def test_slope_of_the_low_rank_prior_is_its_derivative():
    start = LowRankCovariance.begin(np.arange(5), 2, 1.3)
    expected = slopes(lambda t: LOW_RANK.with_theta(t).log_prior(start)[0], LOW_RANK.theta)
    np.testing.assert_allclose(LOW_RANK.log_prior(start)[1], expected, rtol=1e-6, atol=1e-6)


def test_another_frame_is_the_same_covariance_told_otherwise(kernel):
    np.testing.assert_allclose(kernel.around(kernel).theta, 0.0, atol=1e-12)
    double = kernel.scaled(4.0).around(kernel)
    np.testing.assert_allclose(double(ITEMS), 4.0 * kernel(ITEMS))
    diagonal = np.equal(*np.tril_indices(N))
    np.testing.assert_allclose(double.theta, np.where(diagonal, np.log(2.0), 0.0), atol=1e-12)


def test_theta_round_trip(kernel):
    theta = kernel.theta
    assert len(kernel.names) == len(theta) == len(kernel.bounds) == N * (N + 1) // 2
    np.testing.assert_allclose(kernel.with_theta(theta)(ITEMS), kernel(ITEMS))
    np.testing.assert_allclose(kernel.with_theta(theta + 0.1).theta, theta + 0.1)


def test_prior_likes_its_centre_and_holds_back_either_way(kernel):
    assert START.log_prior(START)[0] == pytest.approx(0.0, abs=1e-12)
    large, small = START.scaled(3.0), START.scaled(1.0 / 3.0)
    assert large.log_prior(START)[0] == pytest.approx(small.log_prior(START)[0])
    assert kernel.scaled(2.0 / kernel.typical_variance).log_prior(START)[0] < 0.0


def test_one_eigenvalue_may_go_further_than_all():
    """Tastes along one direction cost less than the same distance spread over all directions."""
    away = np.sqrt(N) * np.log(5.0)
    one = FreeCovariance.of(2.0 * np.diag(np.exp([away, 0.0, 0.0, 0.0, 0.0])))
    every = START.scaled(5.0)
    assert one.log_prior(START)[0] > 0.6 * every.log_prior(START)[0]


def test_the_prior_of_em_is_blind_to_scale_and_likes_the_identity(kernel):
    assert kernel.scaled(7.0).wishart_prior()[0] == pytest.approx(kernel.wishart_prior()[0])
    assert FreeCovariance.of(3.0 * np.eye(N)).wishart_prior()[0] == pytest.approx(0.0, abs=1e-12)


def test_em_step_on_draws_is_their_second_moment(kernel, rng):
    """With draws seen exactly, ½ Σ (K⁻¹ f fᵀ K⁻¹ − K⁻¹) is the evidence's derivative."""
    draws = rng.standard_normal((400, N))
    inverse = np.linalg.inv(kernel.factor @ kernel.factor.T)
    G = 0.5 * (inverse @ draws.T @ draws @ inverse - len(draws) * inverse)
    new = kernel.updated(G, len(draws))
    prior = kernel.pseudo_users * kernel.typical_variance * np.eye(N)
    expected = (draws.T @ draws + prior) / (len(draws) + kernel.pseudo_users)
    np.testing.assert_allclose(new.factor @ new.factor.T, expected, rtol=1e-9)
    twice = FreeCovariance.of(draws.T @ draws / len(draws) / 2.0)
    assert kernel.fitted_scale(twice, G, len(draws)) == pytest.approx(2.0)


def test_new_items_have_no_place(kernel):
    for learned in (kernel, LOW_RANK):
        with pytest.raises(DataError, match="features"):
            learned(np.zeros((2, 1)))
        with pytest.raises(DataError, match="knows its 5 items only"):
            learned(Inputs(index=np.array([N])))


def test_the_scale_of_a_free_covariance_is_held_near_its_start():
    """Going away from the start's scale costs more and more, in either direction, without end."""
    up, down = (
        [START.scaled(np.exp(sign * way)).log_prior(START)[0] for way in (0, 2, 4, 8, 16)]
        for sign in (1, -1)
    )
    assert up == pytest.approx(down)
    drops = -np.diff(up)
    assert (drops > 0.0).all()
    assert drops[-1] > 1.5 * drops[-2]
