import numpy as np
import pytest
from scipy.special import ndtr

from penchant.errors import DataError
from penchant.likelihoods import Logit, Outcomes, Probit, Ties

TIE = Outcomes(tie=np.ones(1, dtype=bool))


def test_logit_link_is_rao_and_kupper():
    """P(i beats j) = π_i/(π_i + θπ_j), P(tie) = (θ² − 1)π_iπ_j/((π_i + θπ_j)(θπ_i + π_j))."""
    first, second, theta = 3.0, 1.2, 1.8
    model, g, known = Ties(np.log(theta), "logit"), np.log([first / second]), np.zeros(1)
    win = first / (first + theta * second)
    tie = (theta**2 - 1) * first * second / ((first + theta * second) * (theta * first + second))
    np.testing.assert_allclose(model.prob(g, known), win)
    np.testing.assert_allclose(model.prob_tie(g, known), tie)


def test_probit_link_is_ordered_probit():
    g, t = np.array([0.8]), 0.6
    expected = np.log(ndtr(t - g) - ndtr(-t - g))
    np.testing.assert_allclose(Ties(t).log_prob(g, TIE).value, expected)


@pytest.mark.parametrize(("link", "plain"), [("probit", Probit()), ("logit", Logit())])
def test_a_vanishing_threshold_leaves_the_plain_link(link, plain):
    mean, var = np.linspace(-4, 4, 9), np.full(9, 2.0)
    model = Ties(1e-9, link)
    np.testing.assert_allclose(model.tilted(mean, var).log_z, plain.tilted(mean, var).log_z)
    assert model.prob_tie(mean, var).max() < 1e-8


def test_a_tie_pulls_towards_zero_and_is_even_in_g():
    mean, var = np.array([-3.0, 0.0, 3.0]), np.ones(3)
    tilted = Ties(0.5).tilted(mean, var, Outcomes(tie=np.ones(3, dtype=bool)))
    assert tilted.d1[0] > 0 > tilted.d1[2]
    assert abs(tilted.d1[1]) < 1e-12
    np.testing.assert_allclose(tilted.log_z[0], tilted.log_z[2], rtol=1e-14)
    np.testing.assert_allclose(tilted.d1[0], -tilted.d1[2], rtol=1e-13)


@pytest.mark.parametrize("link", ["probit", "logit"])
def test_a_hopeless_tie_keeps_its_curvature(link):
    """Far from zero a tie looks like a loss of the leader: derivatives stay finite and right."""
    far = np.array([-1e8, -1e3, 1e3, 1e8])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        value, d1, d2, d3 = Ties(0.5, link).log_prob(far, Outcomes(tie=np.ones(4, dtype=bool)))
    assert np.isfinite([value, d1, d2, d3]).all()
    np.testing.assert_allclose(d2, -1.0 if link == "probit" else 0.0, atol=1e-5)


def test_mixed_outcomes_are_each_treated_as_their_own_kind():
    mean, var, tie = np.array([0.5, 0.5]), np.array([1.0, 1.0]), np.array([True, False])
    mixed = Ties(0.5).tilted(mean, var, Outcomes(tie=tie))
    apart = [Ties(0.5).tilted(mean[:1], var[:1], Outcomes(tie=tie[k : k + 1])) for k in (0, 1)]
    for column, parts in zip(mixed, zip(*apart, strict=True), strict=True):
        np.testing.assert_array_equal(column, np.concatenate(parts))


def test_bad_parameters():
    with pytest.raises(DataError, match="threshold of Ties is 0"):
        Ties(0)
    with pytest.raises(DataError, match=r"link of Ties is 'cloglog'.*'logit', 'probit'"):
        Ties(0.5, "cloglog")
