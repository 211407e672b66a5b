import numpy as np
import pytest
from scipy.stats import norm

import penchant as pc
from penchant.errors import DataError, UntoldError
from penchant.likelihoods import Gaussian, Outcomes


@pytest.mark.parametrize("noise", [1e-4, 0.01, 1.0, 50.0])
def test_a_power_is_a_larger_noise(noise):
    mean, var, power = (
        grid.ravel()
        for grid in np.meshgrid([-4.0, 0.0, 1.69, 1.7], [0.0, 1e-6, 0.01, 1.0, 30.0], [0.02, 0.7])
    )
    y = np.full(mean.size, 1.7)
    log_z, d1, d2 = Gaussian(noise).tilted_power(power, mean, var, Outcomes(margin=y))
    np.testing.assert_allclose(d1, (y - mean) / (noise + power * var), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(d2, 1.0 / (noise + power * var), rtol=1e-6)
    scale = 0.5 * np.log(2 * np.pi * noise / power) - 0.5 * power * np.log(2 * np.pi * noise)
    exact = norm.logpdf(y, mean, np.sqrt(noise / power + var)) + scale
    np.testing.assert_allclose(power * log_z, exact, rtol=1e-9, atol=1e-8)


def test_margins_are_required_and_must_be_finite():
    with pytest.raises(DataError, match=r"without margins.*likelihood='probit'"):
        Gaussian().check(Outcomes())
    with pytest.raises(DataError, match=r"margin of comparison 1 is nan"):
        Gaussian().check(Outcomes(margin=np.array([0.5, np.nan])))
    with pytest.raises(DataError, match="margins"):
        Gaussian().log_prob(np.zeros(2))


MODELS = {
    "utilities": lambda **how: pc.PreferenceGP(likelihood="gaussian", **how),
    "exact": lambda **how: pc.PreferenceGP(likelihood="gaussian", inference="exact", **how),
    "half-life": lambda **how: pc.PreferenceGP(likelihood="gaussian", half_life=2.0, **how),
    "drift": lambda **how: pc.PreferenceGP(likelihood="gaussian", drift="ou", **how),
    "users": lambda **how: pc.MultiUserGP(likelihood="gaussian", progress=False, **how),
    "communities": lambda **how: pc.CommunityGP(likelihood="gaussian", progress=False, **how),
}


@pytest.mark.filterwarnings("ignore::penchant.errors.ConvergenceWarning")
@pytest.mark.parametrize("optimize", ["evidence", None])
@pytest.mark.parametrize("name", MODELS)
def test_nothing_but_the_unit_depends_on_what_margins_are_measured_in(name, optimize):
    rng = np.random.default_rng(0)
    n, m = 6, 90
    f, a = rng.standard_normal(n), rng.integers(n, size=m)
    b = (a + rng.integers(1, n, size=m)) % n
    g = f[a] - f[b] + 0.8 * rng.standard_normal(m)
    winner, loser = np.where(g > 0, a, b), np.where(g > 0, b, a)
    user, time = rng.integers(5, size=m), rng.integers(4, size=m)
    found = []
    for factor in (0.001, 1.0, 1e4):
        data = pc.Comparisons.from_pairs(
            winner, loser, margin=factor * np.abs(g), user=user, time=time, items=range(n)
        )
        model = MODELS[name](optimize=optimize, random_state=0).fit(None, data)
        proba = model.predict_proba([(0, 1), (2, 3), (4, 5)], users=[0, 1, 2])
        found.append([*proba, *model.predict(), model.score(data)])
        assert model.likelihood_.unit == pytest.approx(factor * np.sqrt(np.mean(g**2)))
    for other in found:
        np.testing.assert_allclose(other, found[1], atol=1e-5)


def test_a_noise_that_is_given_is_in_the_units_of_the_margins():
    data = pc.Comparisons.from_scores([3.0, 1.0, 9.0])
    model = pc.PreferenceGP(likelihood=Gaussian(0.5), optimize=None).fit(None, data)
    assert model.likelihood_ == Gaussian(0.5, unit=1.0)
    level = pc.Comparisons.from_scores([2.0, 2.0])
    assert pc.PreferenceGP(likelihood="gaussian").fit(None, level).likelihood_.unit == 1.0


def test_units_stay_through_telling_and_files(tmp_path):
    data = pc.Comparisons.from_scores([300.0, 100.0, 900.0, 250.0])
    model = pc.PreferenceGP(likelihood="gaussian", optimize=None).fit(None, data)
    model.save(tmp_path / "model")
    again = pc.load(tmp_path / "model")
    assert again.likelihood_ == model.likelihood_
    more = pc.Comparisons.from_pairs([3], [1], margin=[4000.0])
    refit = pc.PreferenceGP(likelihood=model.likelihood_, optimize=None).fit(None, data + more)
    np.testing.assert_allclose(again.tell(more).predict(), refit.predict(), atol=1e-5)


def test_margins_do_not_tell_how_often_somebody_is_right():
    data = pc.Comparisons.from_pairs([0, 1, 2], [1, 2, 0], margin=[2.0, 1.0, 0.5], user=[0, 0, 1])
    model = pc.PreferenceGP(likelihood="gaussian").fit(None, data)
    with pytest.raises(UntoldError, match="right or wrong"):
        _ = model.raters_
