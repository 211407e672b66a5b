"""Effects of the order shown and of covariates, as models give them."""

import copy

import numpy as np
import pytest
from scipy.special import ndtr

import penchant as pc
from penchant.errors import NumericalError
from penchant.models import Effect, Effects

ITEMS = tuple("abcdef")


def battles(
    m=1200, seed=0, order=0.25, slope=0.0, users=None, ties=False, always_first=None, spread=1.0
):
    """Battles of six items whose true utilities fall by half each; the first has `order` more.

    always_first: share of its battles in which the item "a" stands first.
    """
    rng = np.random.default_rng(seed)
    f = spread * np.linspace(1.25, -1.25, len(ITEMS))
    a = rng.integers(len(ITEMS), size=m)
    b = (a + 1 + rng.integers(len(ITEMS) - 1, size=m)) % len(ITEMS)
    if always_first is not None:
        swap = ((b == 0) & (rng.random(m) < always_first)) | (
            (a == 0) & (rng.random(m) > always_first)
        )
        a, b = np.where(swap, b, a), np.where(swap, a, b)
    x = 100.0 * rng.standard_normal(m)
    g = f[a] - f[b] + order + slope * x + rng.standard_normal(m)
    won = g > 0
    return pc.Comparisons.from_pairs(
        [ITEMS[i] for i in np.where(won, a, b)],
        [ITEMS[i] for i in np.where(won, b, a)],
        first=np.where(won, 1, -1),
        tie=np.abs(g) < 0.3 if ties else None,
        covariates={"length": np.where(won, x, -x)} if slope else None,
        user=None if users is None else [f"u{k}" for k in rng.integers(users, size=m)],
        items=ITEMS,
    )


def test_a_model_that_is_shown_first_is_not_the_best_for_it():
    """True utilities are all zero; "a" stands first in nine of ten battles, with a shift of .25."""
    data = battles(6000, 1, spread=0.0, always_first=0.9)
    ignoring = pc.PreferenceGP(random_state=0).fit(None, data.bare())
    knowing = pc.PreferenceGP(random_state=0).fit(None, data)
    assert ignoring.rank()[0].item == "a"
    assert ignoring.rank()[0].prob_best > 0.99
    (best,) = (row for row in knowing.rank() if row.item == "a")
    assert best.prob_best < 0.7
    (order,) = knowing.effects_
    assert order.name == "shown first"
    assert order.low < 0.25 < order.high
    assert order.high - order.low < 0.2
    assert order.prob_first == pytest.approx(ndtr(order.estimate), abs=2e-3)


@pytest.mark.parametrize("likelihood", ["probit", "ties"])
def test_effects_are_found_and_cover_the_truth(likelihood):
    data = battles(4000, 2, slope=0.004, ties=likelihood == "ties")
    gp = pc.PreferenceGP(likelihood=likelihood, random_state=0).fit(None, data)
    order, length = gp.effects_
    assert (order.name, length.name) == ("shown first", "length")
    for effect, truth in ((order, 0.25), (length, 0.004)):
        sd = (effect.high - effect.low) / 3.92
        assert abs(effect.estimate - truth) < 4 * sd
        assert sd < 0.2 * truth
    assert length.prob_first is None


def test_predictions_are_at_equal_sides_unless_told():
    gp = pc.PreferenceGP(random_state=0).fit(None, battles(slope=0.004))
    forth, back = gp.predict_proba([("a", "b"), ("b", "a")])
    assert forth + back == pytest.approx(1.0, abs=1e-12)
    first, second = (gp.predict_proba([("a", "b")], first=side)[0] for side in (1, -1))
    assert second < forth < first
    longer = gp.predict_proba([("a", "b")], covariates={"length": [150.0]})[0]
    assert longer > forth
    with pytest.raises(pc.DataError, match="'width' is none of the effects"):
        gp.predict_proba([("a", "b")], covariates={"width": 1.0})
    with pytest.raises(pc.DataError, match="one number for all 1 pairs"):
        gp.predict_proba([("a", "b")], first=[1, 1])


def test_score_is_of_what_was_shown():
    train, test = battles(3000, 3, order=0.8).split(0.3, random_state=0)
    gp = pc.PreferenceGP(random_state=0).fit(None, train)
    assert gp.score(test) > gp.score(test.bare()) + 0.05
    found = pc.evaluate(pc.PreferenceGP(random_state=0), test, folds=2)
    blind = pc.evaluate(pc.PreferenceGP(random_state=0), test.bare(), folds=2)
    assert found.rows[-1].log_loss < blind.rows[-1].log_loss - 0.02


def test_order_that_always_is_the_winner_says_how_little_is_known():
    """Winners always stand first: the effect explains all, and its interval is wide."""
    data = pc.Comparisons.from_pairs(["a", "b", "c"] * 4, ["b", "c", "a"] * 4, first=[1] * 12)
    gp = pc.PreferenceGP(random_state=0).fit(None, data)
    (order,) = gp.effects_
    assert order.estimate > 0.5
    assert order.high - order.low > 1.0
    np.testing.assert_allclose(gp.predict(), gp.predict()[0], atol=1e-6)


def test_absorbing_is_near_settling():
    data, more = battles(300, 6, slope=0.004), battles(3, 7, slope=0.004)
    settled = pc.PreferenceGP(random_state=0).fit(None, data)
    absorbed = copy.deepcopy(settled).tell(more, reconverge=False)
    settled.tell(more, reconverge=True)
    np.testing.assert_allclose(absorbed.predict(), settled.predict(), atol=5e-3)
    for one, two in zip(absorbed.effects_, settled.effects_, strict=True):
        assert one.estimate == pytest.approx(two.estimate, abs=2e-3)


def test_pairs_that_are_told_are_at_equal_covariates():
    gp = pc.PreferenceGP(random_state=0).fit(None, battles(60, slope=0.004))
    gp.tell([("f", "a")])
    assert gp.comparisons_.n_comparisons == 61


def test_the_first_order_that_is_told_makes_an_effect():
    gp = pc.PreferenceGP(random_state=0).fit(None, battles(60).bare())
    assert len(gp.effects_) == 0
    assert "no order shown" in str(gp.effects_)
    gp.tell(battles(40, 8))
    assert [row.name for row in gp.effects_] == ["shown first"]


def test_everybodys_effects_beside_their_own_tastes():
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(30), 60)
    f = rng.standard_normal((30, 6)) + np.linspace(1, -1, 6)
    a = rng.integers(6, size=len(user))
    b = (a + 1 + rng.integers(5, size=len(user))) % 6
    won = f[user, a] - f[user, b] + 0.4 + rng.standard_normal(len(user)) > 0
    data = pc.Comparisons.from_pairs(
        np.where(won, a, b), np.where(won, b, a), first=np.where(won, 1, -1), user=user
    )
    gp = pc.MultiUserGP(random_state=0).fit(None, data)
    (order,) = gp.effects_
    assert order.low < 0.4 < order.high
    assert order.high - order.low < 0.25
    blind = pc.MultiUserGP(random_state=0).fit(None, data.bare())
    assert gp.score(data) > blind.score(data.bare()) + 0.02
    newcomers = pc.Comparisons.from_pairs([0, 1], [1, 2], first=[1, 1], user=["x", "x"])
    turned = pc.Comparisons.from_pairs([0, 1], [1, 2], first=[-1, -1], user=["x", "x"])
    liked, disliked = (gp.fold_in(d).predict(users="x")[0] for d in (newcomers, turned))
    assert liked[0] - liked[2] < disliked[0] - disliked[2]  # winning from the second place is more


def test_table_of_effects():
    table = Effects(
        (Effect("shown first", 0.25, 0.2, 0.3, 0.6), Effect("x", 1e-5, 0, 2e-5, np.nan)), 0.9
    )
    assert table[0].name == "shown first"
    assert len(table[1:]) == 1
    assert table.to_pandas()["estimate"].tolist() == [0.25, 1e-5]
    assert "<td>shown first</td>" in table._repr_html_()
    assert "+0.000010" in str(table)


@pytest.mark.parametrize(
    ("estimate", "estimate_said", "interval_said"),
    [
        (1e-3, "+0.00100", "[+0.00012, +0.00188]"),
        (9e-4, "+0.00090", "[+0.00012, +0.00188]"),
        (-2.0, "-2.000", "[+0.000, +0.002]"),
    ],
)
def test_small_effects_keep_their_digits(estimate, estimate_said, interval_said):
    said = Effects((Effect("length", estimate, 0.000123, 0.00188, None),), 0.95).cells()
    assert said[1] == ["length", estimate_said, interval_said, ""]


def test_more_answers_leave_the_scale_of_an_effect_as_it_was_learned():
    """Else one odd length would change what all the others say."""
    data = battles(m=300, slope=0.005, users=30)
    camps = pc.CommunityGP(random_state=0, progress=False, personal=False).fit(None, data)
    before = camps.posteriors_[0].effects.sd
    odd = pc.Comparisons.from_pairs(
        ["a"], ["b"], user=["u1"], first=[1], covariates={"length": [1e6]}
    )
    np.testing.assert_array_equal(camps.tell(odd).posteriors_[0].effects.sd, before)


def test_answers_at_random_are_told_from_a_long_tail(rng):
    """Lapses move the effect of a covariate with large values far, unless they are allowed for."""
    n, f = 20, rng.standard_normal(20)
    first, second = rng.integers(n, size=1_500), rng.integers(n - 1, size=1_500)
    second += second >= first
    z = rng.standard_t(1.5, size=1_500)
    won = rng.random(1_500) < ndtr(f[first] - f[second] + z)
    won ^= (rng.random(1_500) < 0.1) & (rng.random(1_500) < 0.5)
    winner, loser = np.where(won, first, second), np.where(won, second, first)
    data = pc.Comparisons.from_pairs(
        winner, loser, covariates={"z": np.where(won, z, -z)}, items=range(n)
    )
    gp = pc.PreferenceGP().fit(None, data)
    plain = pc.PreferenceGP(likelihood=pc.likelihoods.Probit()).fit(None, data)
    assert isinstance(gp.likelihood_, pc.likelihoods.Lapse)
    assert "at random" in gp.report_.optimizer
    assert abs(gp.effects_[0].estimate - 1.0) < abs(plain.effects_[0].estimate - 1.0)


def test_lapses_that_have_no_approximation_are_left_out(monkeypatch):
    def fails(*_):
        raise NumericalError("a matrix is not positive definite")

    data = battles()
    plain = pc.PreferenceGP(likelihood=pc.likelihoods.Probit()).fit(None, data)
    monkeypatch.setattr(pc.likelihoods.Lapse, "tilted", fails)
    gp = pc.PreferenceGP().fit(None, data)
    assert gp.predict() == pytest.approx(plain.predict())
