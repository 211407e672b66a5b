"""How reliable each rater is, and that taste of one's own is no unreliability."""

import pickle

import numpy as np
import pytest

import penchant as pc
from penchant.gp import Normal, RaterAnswers, at_typical_scale, rater_levels
from penchant.kernels import Independent
from penchant.likelihoods import Outcomes, Probit, Raters
from tests.simulation import duels


def camps(seed=0, n_each=30, n_items=8):
    """20 people, 10 who like the opposite, and 10 who click at random."""
    rng = np.random.default_rng(seed)
    taste, camp = (
        np.repeat(of_camp, [20, 10, 10])
        for of_camp in ([1.0, -1.0, 0.0], ["many", "few", "random"])
    )
    own = np.outer(taste, 2.0 * rng.standard_normal(n_items))
    user = np.repeat(np.arange(40), n_each)
    pairs, names = duels(rng, own, user=user), [f"{camp[u]} {u}" for u in user]
    return pc.Comparisons.from_pairs(*pairs, user=names, items=range(n_items))


@pytest.fixture(scope="module")
def judged():
    model = pc.MultiUserGP(raters="lapse", random_state=0, progress=False)
    return model.fit(None, camps())


def reliability(model, camp):
    return np.array([row.reliability for row in model.raters_ if row.user.startswith(camp)])


def test_two_camps_and_ten_random_clickers_are_told_apart(judged):
    clicking = reliability(judged, "random").max()
    assert clicking < reliability(judged, "few").min()
    assert clicking < reliability(judged, "many").min()
    assert np.median(reliability(judged, "few")) > 0.9


def test_a_model_that_was_not_told_about_raters_finds_them_too():
    model = pc.MultiUserGP(random_state=0, progress=False).fit(None, camps(1))
    unreliable = {row.user.split()[0] for row in model.raters_[:8]}
    assert unreliable == {"random"}


def test_random_answers_count_less_once_they_are_known(judged):
    plain = pc.MultiUserGP(random_state=0, progress=False).fit(None, camps())
    assert judged.log_evidence_ > plain.log_evidence_ + 5.0
    assert judged.likelihood_.typical == pytest.approx(np.mean(judged.likelihood_.levels))


def test_sharpness_instead_of_lapses():
    model = pc.MultiUserGP(raters="noise", random_state=0, progress=False).fit(None, camps())
    table = model.raters_
    assert table.kind == "noise"
    dull, sharp = (np.median(reliability(model, camp)) for camp in ("random", "few"))
    assert dull < 0.8 * sharp


def test_pooled_raters_are_held_against_everybody():
    """The share of random answers, with intervals that hold it, where there is one taste."""
    rng = np.random.default_rng(0)
    f, rate = 1.5 * rng.standard_normal(10), np.repeat([0.02, 0.3, 0.9], 15)
    user = np.repeat(np.arange(45), 60)
    pairs = np.array(duels(rng, f, len(user)))
    turned = rng.random(len(user)) < 0.5 * rate[user]  # half of the random answers
    data = pc.Comparisons.from_pairs(
        *np.where(turned, pairs[::-1], pairs), user=user, items=range(10)
    )
    model = pc.PreferenceGP(raters="lapse", random_state=0).fit(None, data)
    table = sorted(model.raters_)
    held = [row.low <= 1.0 - rate[row.user] <= row.high for row in table]
    assert np.mean(held) > 0.85
    found = np.array([row.reliability for row in table])
    assert np.corrcoef(found, 1.0 - rate)[0, 1] > 0.9
    plain = pc.PreferenceGP(random_state=0).fit(None, data)
    assert model.log_evidence_ > plain.log_evidence_ + 20.0
    assert np.corrcoef(model.predict(), f)[0, 1] > np.corrcoef(plain.predict(), f)[0, 1] - 0.01


def test_the_grid_is_the_posterior_of_one_rater():
    """One rater, differences known exactly: against a fine sum over the share of random answers."""
    rng = np.random.default_rng(1)
    g = rng.normal(1.0, 1.5, 40)
    answered = RaterAnswers(
        np.zeros(40, dtype=int), g, np.full(40, 1e-12), Outcomes(), np.ones(40), 1
    )
    found = rater_levels(answered, Probit())
    x = np.linspace(-6, 5, 2001)
    p = Probit().prob(g, np.zeros(40))
    e = 1 / (1 + np.exp(-x[:, None]))
    log_joint = np.log((1 - e) * p + e / 2).sum(axis=1)
    log_joint -= 0.5 * ((x - found.centre) / found.spread) ** 2
    weight = np.exp(log_joint - log_joint.max())
    weight /= weight.sum()
    assert found.mean[0] == pytest.approx(weight @ e[:, 0], abs=2e-3)
    assert found.quantile(0.975)[0] == pytest.approx(
        e[np.searchsorted(np.cumsum(weight), 0.975), 0], abs=0.02
    )
    assert found.level.shape == (34,)


def test_the_sharpest_rater_is_exact_at_any_weight():
    raters, g = Raters(Probit(), "noise", (7.0,)), np.linspace(-30.0, 30.0, 600_001)
    who, power = Outcomes(rater=np.array([0])), np.array([0.9])
    for mean, var in ((-0.3, 0.01), (0.5, 1.0), (0.5, 4.0)):
        _, d1, d2 = raters.tilted_power(power, np.array([mean]), np.array([var]), who)
        log_mass = 0.9 * raters.log_prob(g, Outcomes(rater=np.zeros(g.size, dtype=int))).value
        mass = np.exp(log_mass - 0.5 * (g - mean) ** 2 / var)
        centre = mass @ g / mass.sum()
        spread = mass @ (g - centre) ** 2 / mass.sum()
        assert mean + 0.9 * var * d1[0] == pytest.approx(centre, abs=1e-7)
        assert var - 0.9 * var**2 * d2[0] == pytest.approx(spread, abs=1e-6)


def test_flat_differences_are_scaled_up_and_others_left():
    rater = np.array([0, 0, 1, 1, 2, 2])
    seen = Normal(np.array([2.0, -2.0, 2.0, 2.0, 0.1, -0.1]), np.zeros(6))
    scaled = at_typical_scale(rater, seen, np.ones(6))
    np.testing.assert_allclose(scaled.mean, [2, -2, 2, 2, 2, -2])
    unsure = Normal(np.zeros(6), np.array([4.0, 4.0, 4.0, 4.0, 0.25, 0.25]))
    np.testing.assert_allclose(at_typical_scale(rater, unsure, np.ones(6)).var, np.full(6, 4.0))


def test_raters_survive_telling_withdrawing_files_and_copies(judged, tmp_path):
    judged.save(tmp_path / "model")
    again, users = pc.load(tmp_path / "model"), list(camps().users)
    assert again.raters_ == judged.raters_ == pickle.loads(pickle.dumps(judged)).raters_
    assert again.likelihood_ == judged.likelihood_
    newcomer = pc.Comparisons.from_pairs([0] * 3, [1] * 3, user=["somebody new"] * 3)
    again.tell(newcomer)
    assert {row.user: row.answers for row in again.raters_}["somebody new"] == 3
    again.withdraw(newcomer)
    np.testing.assert_allclose(again.predict(users=users), judged.predict(users=users), atol=1e-4)


def test_the_table_prints_and_converts(judged):
    table = judged.raters_
    assert "reliability" in str(table)
    assert "<table>" in table[:3]._repr_html_()
    columns = ["user", "answers", "reliability", "low", "high"]
    assert list(table.to_pandas().columns) == columns
    assert table["reliability"][0] == table[0].reliability


def test_what_cannot_be_judged_is_refused():
    nobody = pc.Comparisons.from_pairs([0, 1], [1, 2])
    pooled = pc.PreferenceGP(Independent(1.0), raters="lapse", optimize=None).fit(None, camps())
    pair = int(camps().winner[0]), int(camps().loser[0])
    for why, ask in (
        ("who gave each answer", lambda: pc.PreferenceGP(raters="lapse").fit(None, nobody)),
        ("who gave each answer", lambda: pc.PreferenceGP(optimize=None).fit(None, nobody).raters_),
        ("finitely many", lambda: Raters(pc.likelihoods.Gaussian())),
        ("strictly within", lambda: Raters(Probit(), "lapse", (1.0,))),
        ("'lapse' or 'noise'", lambda: Raters(Probit(), "speed")),
        ("give user=", lambda: pooled.withdraw([pair])),
    ):
        with pytest.raises(pc.DataError, match=why):
            ask()
