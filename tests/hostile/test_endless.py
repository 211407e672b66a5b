"""Nothing may go on for ever: hard cases of loops and of the routines that they call."""

import faulthandler
import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import entr

import penchant as pc
from penchant.ask import CRITERIA, Joint, all_pairs
from penchant.errors import ConvergenceWarning, NumericalError
from penchant.likelihoods import Gaussian, Lapse, Logit, Probit, Ties
from penchant.numerics import quadrature

NOISES = [1e-40, 1e-20, 1e-12, 1e-6, 1e-5, 1e-4, 1e-2, 1.0, 1e4, 1e8]
EXTREME = [*map(Gaussian, NOISES), Ties(1e-9), Ties(1e3), Ties(1e9), Lapse(Probit(), 1e-9)]


@pytest.fixture(autouse=True)
def watchdog():
    """A routine that never returns cannot be interrupted: end the run and show where it was."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.parametrize("scores", [[3.0, 1.0, 2.0, 5.0, 4.0], [0.0, 1e-9, 1.0], [1e6, 0.0, -1e6]])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_asking_after_scores_without_noise_returns(scores, criterion):
    data = pc.Comparisons.from_scores(np.array(scores))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model = pc.PreferenceGP(likelihood="gaussian").fit(None, data)
        except NumericalError as error:
            refusal = str(error)
            assert "noise" in refusal
            return
    ((first, second),) = model.ask(1, criterion)
    assert {first, second} <= set(range(len(scores)))


@pytest.mark.parametrize("likelihood", EXTREME, ids=repr)
def test_every_criterion_is_finite_under_extreme_likelihoods(likelihood):
    belief = Joint(np.array([0.0, 1.0, 3.0]), np.diag([1.0, 2.0, 0.5]), likelihood)
    for name, criterion in CRITERIA.items():
        scores = criterion.score(belief, all_pairs(3), np.random.default_rng(0))
        assert np.isfinite(scores).all(), name


@pytest.mark.parametrize("noise", NOISES[2:])
def test_information_gain_is_right_whatever_the_noise(noise):
    """I(answer; g) = H[Φ(0)] − E H[Φ(g/√noise)] for g ~ N(0, 1)."""
    belief = Joint(np.zeros(2), np.diag([0.5, 0.5]), Gaussian(noise))
    (gain,) = CRITERIA["information_gain"].score(belief, all_pairs(2), np.random.default_rng(0))

    def lost(g):
        win = float(Gaussian(noise).prob(np.array([g]), np.zeros(1))[0])
        return (entr(win) + entr(1.0 - win)) * np.exp(-0.5 * g * g) / np.sqrt(2 * np.pi)

    sd = np.sqrt(noise)
    near = min(9.0, 9.0 * sd)
    expected = 2 * (quad(lost, 0, near, epsabs=1e-13)[0] + quad(lost, near, 9.0, epsabs=1e-13)[0])
    assert gain == pytest.approx(np.log(2) - expected, abs=2e-5)


@pytest.mark.parametrize("curvature", [1.0, 1e8, 1e100, 1e300, np.inf])
def test_a_window_around_any_spike_is_found(curvature):
    def log_prob(g):
        """A spike at zero as sharp as floating point allows."""
        with np.errstate(all="ignore"):
            value = np.where(g == 0.0, 0.0, -0.5 * curvature * g * g)
        return value, -np.minimum(curvature, 1e300) * g, np.full_like(g, -curvature)

    with np.errstate(all="ignore"):
        moments = quadrature.tilted_moments(log_prob, np.zeros(3), np.array([1e-6, 1.0, 1e6]), True)
    assert len(moments) == 3


@pytest.mark.parametrize("likelihood", [Logit(), Ties(0.5, "logit"), Lapse(Logit(), 0.1)], ids=repr)
@pytest.mark.parametrize("mean", [0.0, 40.0, -1e3, 1e8])
@pytest.mark.parametrize("var", [1e-12, 1.0, 1e6, 1e12])
def test_quadrature_ends_at_every_place(likelihood, mean, var):
    with np.errstate(all="ignore"):
        log_z = likelihood.tilted(np.array([mean]), np.array([var])).log_z
    assert not np.isnan(log_z).any()
    assert (log_z < 1e-6).all()
