"""Extreme but valid numbers: the right answer, or a word about it, never a wrong one quietly."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr

import penchant as pc
from penchant.errors import ConvergenceWarning, NumericalError
from penchant.gp import RULES, Settings
from penchant.kernels import RBF, Independent
from penchant.likelihoods import Gaussian, Lapse, Probit

ONE_SIDED = ([0], [1])
DISPUTED = ([0, 1, 0], [1, 0, 1])
WIDTHS = [1.0, 1e2, 1e4, 1e8, 1e10, 1e12, 1e13, 1e14, 1e15, 1e16, 1e20, 1e30]


def fitted(model, pairs, X=None, **columns):
    """The model and what it warned about; None where it refused."""
    data = pc.Comparisons.from_pairs(*pairs, items=range(2), **columns)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ConvergenceWarning)
        try:
            model.fit(X, data)
        except NumericalError as error:
            refusal = str(error)
            assert "variance" in refusal
            return None, []
    return model, said


def win_after(pairs, variance):
    """P(0 ≻ 1) by integration over g ~ N(0, 2 variance): no approximation, no linear algebra."""
    won, lost = (sum(w == side for w in pairs[0]) for side in (0, 1))
    sd = np.sqrt(2.0 * variance)

    def density(g):
        return np.exp(won * log_ndtr(g) + lost * log_ndtr(-g) - 0.5 * (g / sd) ** 2)

    far = 9.0 * sd
    cuts = [x for x in (-30.0, -3.0, 0.0, 3.0, 30.0) if abs(x) < far] or [0.0]
    ends = [-far, *cuts, far]
    parts = list(pairwise(ends))
    total = sum(quad(density, low, high, limit=200)[0] for low, high in parts)
    won_next = sum(quad(lambda g: density(g) * ndtr(g), *part, limit=200)[0] for part in parts)
    return won_next / total


@pytest.mark.parametrize("variance", WIDTHS)
def test_one_answer_under_a_wide_prior_is_exact(variance):
    """EP is exact for one probit edge up to moments: g | win has a closed form."""
    model, said = fitted(pc.PreferenceGP(Independent(variance), optimize=None), ONE_SIDED)
    assert not said
    v = 2.0 * variance
    # moments of Φ(g) N(g | 0, v): 000 Eq. 11
    d1 = np.sqrt(2.0 / np.pi) / np.sqrt(1.0 + v)
    d2 = d1 * d1
    mean, var = v * d1, v - v * v * d2
    assert model.predict_proba([[0, 1]]) == pytest.approx(ndtr(mean / np.sqrt(1.0 + var)), abs=1e-9)


@pytest.mark.parametrize("variance", WIDTHS)
@pytest.mark.parametrize("kernel", [Independent, lambda v: RBF(1.0, v / (1 - np.exp(-2.0)))])
def test_disputed_answers_under_a_wide_prior_are_right_or_refused(variance, kernel):
    """The likelihood alone decides: the posterior of g hardly depends on so wide a prior."""
    X = np.array([[0.0], [2.0]])
    model, said = fitted(pc.PreferenceGP(kernel(variance), optimize=None), DISPUTED, X)
    if model is None:
        assert variance >= 1e13
        return
    (prob,) = model.predict_proba([[0, 1]])
    expected = win_after(DISPUTED, variance)
    if said:
        assert variance >= 1e10
        assert prob == pytest.approx(expected, abs=5e-3)
    else:
        assert model.report_.converged
        assert model.report_.skipped == 0
        assert prob == pytest.approx(expected, abs=2e-3)  # EP's own error on three answers


@pytest.mark.parametrize("variance", WIDTHS)
def test_items_that_are_one_under_a_wide_prior_stay_even(variance):
    X = np.zeros((2, 1))
    model, _ = fitted(pc.PreferenceGP(RBF(1.0, variance), optimize=None), ONE_SIDED, X)
    if model is not None:
        assert model.predict_proba([[0, 1]]) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("variance", WIDTHS)
def test_a_user_under_a_wide_prior_is_who_the_pooled_model_says_or_refused(variance):
    model, said = fitted(
        pc.MultiUserGP(Independent(variance), optimize=None, progress=False),
        DISPUTED,
        user=["ann"] * 3,
    )
    if model is None:
        assert variance > 1e6
        return
    pooled, _ = fitted(pc.PreferenceGP(Independent(variance), optimize=None), DISPUTED)
    assert not said
    expected = pooled.predict_proba([[0, 1]])
    assert model.predict_proba([[0, 1]], users="ann") == pytest.approx(expected, abs=1e-4)


def test_wide_priors_of_many_items_are_the_pooled_models_too(rng):
    winner = rng.integers(0, 8, 60)
    loser = (winner + rng.integers(1, 8, 60)) % 8
    data = pc.Comparisons.from_pairs(winner, loser, user=["ann"] * 60, items=range(8))
    pairs = [(a, b) for a in range(8) for b in range(a)]
    for variance in (1.0, 1e2, 1e4):
        one = pc.PreferenceGP(Independent(variance), optimize=None).fit(None, data)
        many = pc.MultiUserGP(Independent(variance), optimize=None, progress=False).fit(None, data)
        expected = one.predict_proba(pairs)
        assert many.predict_proba(pairs, users="ann") == pytest.approx(expected, abs=1e-7)


def test_comparisons_that_were_held_back_are_told(monkeypatch):
    """A site without a cavity is no fixed point: it must not count as converged."""
    ep = RULES["ep"]

    def no_cavity(*args):
        proposal = ep.propose(*args)
        return proposal._replace(valid=np.zeros(len(proposal.tau), dtype=bool))

    monkeypatch.setitem(RULES, "ep", ep._replace(propose=no_cavity))
    with pytest.warns(ConvergenceWarning, match="1 comparisons could not be taken into account"):
        model = pc.PreferenceGP(Independent(1.0), optimize=None).fit(
            None, pc.Comparisons.from_pairs([0], [1])
        )
    assert model.report_.skipped == 1
    assert not model.report_.converged


def test_non_convergence_is_a_warning_with_advice(monkeypatch):
    monkeypatch.setattr(Settings.__init__, "__defaults__", ("ep", 1e-12, 1))
    data = pc.Comparisons.from_pairs([0, 1], [1, 2], items=range(3))
    with pytest.warns(ConvergenceWarning, match="stopped after 1 sweeps"):
        pc.PreferenceGP(optimize=None).fit(None, data)


@pytest.mark.parametrize("noise", [1.0, 1e-6, 1e-12, 1e-15])
@pytest.mark.parametrize("variance", [1e-6, 1.0, 1e6])
def test_scores_almost_without_noise_are_reproduced_or_refused(noise, variance):
    scores = np.array([3.0, 1.0, 2.0])
    data = pc.Comparisons.from_scores(scores)
    model = pc.PreferenceGP(Independent(variance), likelihood=Gaussian(noise), optimize=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # below 1e-12 it is told
        try:
            model.fit(None, data)
        except NumericalError as error:
            refusal = str(error)
            assert "noise" in refusal
            return
    # ridge regression on all three differences: f = (I/v + L/noise)⁻¹ L s / noise, L = 3I − 11ᵀ
    shrunk = 3.0 / (3.0 + noise / variance)
    expected = shrunk * (scores - scores.mean())
    utility = model.predict()
    assert utility - utility.mean() == pytest.approx(expected, abs=1e-3 * shrunk)


@pytest.mark.parametrize("likelihood", [Probit(), "logit", Lapse(Probit(), 0.05)])
def test_counts_beyond_all_measure(likelihood):
    data = pc.Comparisons.from_pairs([0, 1], [1, 0], count=[10**9, 10**9])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = pc.PreferenceGP(Independent(1.0), likelihood=likelihood, optimize=None)
        model.fit(None, data)
    assert model.predict_proba([[0, 1]]) == pytest.approx(0.5, abs=1e-6)


def test_intervals_of_many_items_seen_through_few_comparisons_are_the_covariances_own():
    """Fewer distinct comparisons than items: what the pivots leave unexplained is correlated."""
    X = np.linspace(0.0, 1.0, 40)[:, None]
    data = pc.Comparisons.from_pairs(range(20, 40), range(20), items=range(40))
    model = pc.PreferenceGP(RBF(0.3, 2.0), optimize=None).fit(X, data)
    belief = model.belief()
    centre = np.eye(40) - 1.0 / 40
    centred = centre @ belief.covariance() @ centre
    assert belief.contrast_var == pytest.approx(np.diagonal(centred), abs=1e-8)
    ranking = model.rank(level=0.95)
    utility, low, high = (
        np.array([getattr(row, name) for row in ranking]) for name in ("utility", "low", "high")
    )
    width = 2 * 1.959963984540054 * np.sqrt(np.diagonal(centred))
    items = [row.item for row in ranking]
    assert high - low == pytest.approx(width[items], abs=1e-7)
    assert (low < utility).all()
    assert (utility < high).all()
