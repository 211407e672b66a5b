import numpy as np
import pytest

from penchant.errors import DataError
from penchant.likelihoods import Gaussian, Lapse, Outcomes, Probit, Ties


def test_probability_never_leaves_the_lapse_band():
    model, far = Lapse(Probit(), 0.1), np.array([-50.0, 50.0])
    np.testing.assert_allclose(model.prob(far, np.ones(2)), [0.05, 0.95])


def test_three_answers_share_the_lapse_in_thirds():
    model, g = Lapse(Ties(0.5), 0.3), np.array([40.0])
    np.testing.assert_allclose(model.prob(g, np.zeros(1)), 0.8)
    np.testing.assert_allclose(model.prob_tie(g, np.zeros(1)), 0.1)
    np.testing.assert_allclose(model.prob(-g, np.zeros(1)), 0.1)


def test_a_surprising_answer_is_discounted():
    """Against a confident prior the plain probit moves without bound, the lapse barely."""
    mean, var = np.array([-20.0]), np.array([1.0])
    assert Probit().tilted(mean, var).d1[0] > 9.0
    assert abs(Lapse(Probit(), 0.02).tilted(mean, var).d1[0]) < 1e-12


def test_far_answers_do_not_overflow():
    far = np.array([-1e120, -1e5, 1e120])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        terms = Lapse(Probit(), 0.02).log_prob(far)
    assert np.isfinite(terms).all()


def test_rate_joins_the_parameters_only_when_learned():
    learned, fixed = Lapse(Ties(0.5), 0.1), Lapse(Ties(0.5), 0.1, learn=False)
    assert learned.names == ("threshold", "rate")
    assert fixed.names == ("threshold",)
    assert fixed.with_theta(np.log([0.7])) == Lapse(Ties(np.exp(np.log(0.7))), 0.1, learn=False)


def test_evidence_gradient_finds_the_rate():
    """With known utilities, the gradient in the rate vanishes at its maximum-likelihood value."""
    rng = np.random.default_rng(11)
    g = rng.normal(size=20_000) * 3
    answer = Lapse(Probit(), 0.2).draw(g, rng)
    mean, var = g * answer, np.full(g.size, 1e-12)

    def slope(rate):
        return Lapse(Probit(), rate).tilted_gradient(mean, var).sum()

    assert slope(0.16) > 0 > slope(0.24)


def test_check_is_the_base_check():
    ties = Outcomes(tie=np.array([True]))
    Lapse(Ties()).check(ties)
    with pytest.raises(DataError, match="ties"):
        Lapse(Probit()).check(ties)


def test_bad_parameters():
    with pytest.raises(DataError, match="base of Lapse is Gaussian"):
        Lapse(Gaussian())
    with pytest.raises(DataError, match="base of Lapse is 'probit'"):
        Lapse("probit")
    for rate in (0.0, 1.0, -0.1, np.nan):
        with pytest.raises(DataError, match="rate of Lapse"):
            Lapse(Probit(), rate)
