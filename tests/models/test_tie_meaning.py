"""Ties that mean close items are learned from; ties that mean nothing do no harm."""

import warnings

import numpy as np
import pytest

import penchant as pc
from penchant.errors import DataWarning
from penchant.likelihoods import Abstain, Probit, Ties


def tied(kind, rng, f, user):
    """Winners, losers and ties: of close items, or of any."""
    n, m = f.shape[1], len(user)
    a = rng.integers(n, size=m)
    b = (a + 1 + rng.integers(n - 1, size=m)) % n
    noisy = f[user, a] - f[user, b] + rng.standard_normal(m)
    tie = np.abs(noisy) < 0.6 if kind == "close" else rng.random(m) < 0.3
    return np.where(noisy > 0, a, b), np.where(noisy > 0, b, a), tie


def simulated(kind, seed, n=20, m=300):
    """Answers to 2 m pairs, half of them known; a third are ties."""
    rng = np.random.default_rng(seed)
    f = rng.standard_normal(n)
    winner, loser, tie = tied(kind, rng, f[None], np.zeros(2 * m, dtype=int))
    known = np.arange(2 * m) < m
    both = pc.Comparisons.from_pairs(winner[known], loser[known], tie=tie[known], items=range(n))
    kept = known & ~tie
    decided = pc.Comparisons.from_pairs(winner[kept], loser[kept], items=range(n))
    asked = np.column_stack([winner, loser])[~known & ~tie]
    return both, decided, asked


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "helps"), [("close", True), ("any", False)])
def test_learning_from_ties_is_never_worse_than_dropping_them(kind, helps):
    gains = []
    for seed in range(6):
        both, decided, asked = simulated(kind, seed)
        with_ties = pc.PreferenceGP(likelihood="ties").fit(None, both)
        without = pc.PreferenceGP().fit(None, decided)
        gains.append(
            np.mean(np.log(with_ties.predict_proba(asked)) - np.log(without.predict_proba(asked)))
        )
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    assert np.mean(gains) > (2.0 * error if helps else -0.002)


def test_it_is_said_why_ties_do_not_help():
    both, decided, _ = simulated("any", 0)
    with pytest.warns(DataWarning, match="ties come at any difference") as told:
        gp = pc.PreferenceGP(likelihood="ties").fit(None, both)
    assert told[0].filename == __file__
    assert isinstance(gp.likelihood_, Abstain)
    share = np.average(both.tie, weights=both.count)
    np.testing.assert_allclose(gp.predict_proba([(0, 1)], ties=True)[0, 1], share, atol=0.01)
    without = pc.PreferenceGP().fit(None, decided)
    np.testing.assert_allclose(gp.predict(), without.predict(), atol=1e-3)


def test_who_insists_on_closeness_gets_it():
    both, _, _ = simulated("any", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gp = pc.PreferenceGP(likelihood=Ties()).fit(None, both)
    assert isinstance(gp.likelihood_, Ties)


def test_abstentions_can_be_told_and_saved(tmp_path):
    both, _, _ = simulated("any", 0)
    gp = pc.PreferenceGP(likelihood=Abstain(Probit(), 0.3)).fit(None, both)
    gp.save(tmp_path / "model.penchant")
    again = pc.load(tmp_path / "model.penchant")
    assert again.likelihood_ == gp.likelihood_
    more = pc.Comparisons.from_pairs([0, 1], [1, 2], tie=[True, False], items=range(20))
    np.testing.assert_allclose(again.tell(more).predict(), gp.tell(more).predict())


@pytest.mark.parametrize(("base", "rate"), [(Ties(), 0.2), (Probit(), 0.0), (Probit(), 1.0)])
def test_what_cannot_abstain(base, rate):
    with pytest.raises(pc.errors.DataError, match="of Abstain"):
        Abstain(base, rate)


def people(kind):
    """40 people of similar taste answer 20 pairs of ten items each."""
    rng = np.random.default_rng(3)
    f = rng.standard_normal(10) + 0.4 * rng.standard_normal((40, 10))
    user = np.repeat(np.arange(40), 20)
    winner, loser, tie = tied(kind, rng, f, user)
    return pc.Comparisons.from_pairs(winner, loser, user=user, tie=tie, items=range(10))


def test_ties_of_many_people_are_understood_too():
    with pytest.warns(DataWarning, match="ties come at any difference") as told:
        gp = pc.MultiUserGP(likelihood="ties", progress=False).fit(None, people("any"))
    assert told[0].filename == __file__
    assert isinstance(gp.likelihood_, Abstain)
    assert gp.report_.optimizer.startswith("item covariance")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gp = pc.MultiUserGP(likelihood="ties", progress=False).fit(None, people("close"))
    assert isinstance(gp.likelihood_, Ties)
