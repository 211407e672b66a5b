"""CommunityGP: the estimator; people at large; effects of the order shown and of covariates."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.communities import cars_trial, draw_synthetic, draw_votes, score, sushi_trial
from experiments.defaults_twins import sushi_people
from penchant.data import Comparisons
from penchant.datasets import load_sushi_b
from penchant.errors import ConvergenceWarning, DataError
from penchant.kernels import Independent
from penchant.metrics import adjusted_rand
from penchant.models import CommunityGP, MultiUserGP, PreferenceGP, load
from tests.communities.simulation import choices_as_pairs, people, tastes, votes
from tests.simulation import DRINKS, duel_data, opposite_votes

QUICK = {"inference": "mcmc", "n_sweeps": 12, "n_chains": 1, "progress": False, "random_state": 0}

pytestmark = pytest.mark.filterwarnings("ignore::penchant.errors.ConvergenceWarning")


def make_data(n_users=16):
    return opposite_votes([f"user {u:02d}" for u in range(n_users)], 10)


TRUTH = np.arange(16) % 2


def everybodys(model):
    """(n_users, n_items) utilities of all users."""
    return model.predict(users=model.comparisons_.users)


@pytest.fixture(scope="module")
def fitted():
    features = np.column_stack([TRUTH, np.arange(16)]).astype(float)
    model = CommunityGP(**{**QUICK, "n_sweeps": 20, "n_chains": 2})
    return model.fit(np.arange(5.0)[:, None], make_data(), user_features=features)


def search(data, **how):
    return CommunityGP(progress=False, random_state=0, **how).fit(None, data)


def test_two_communities_are_found_and_described(fitted):
    assert fitted.n_communities_ == 2
    assert fitted.has_communities_
    assert adjusted_rand(TRUTH, fitted.membership_.argmax(axis=1)) == 1.0
    np.testing.assert_allclose(fitted.membership_.sum(axis=1), 1.0, rtol=1e-5)
    assert sum(fitted.community_counts_.values()) == pytest.approx(1.0)
    assert max(fitted.supported_counts_, key=fitted.supported_counts_.get) == 2
    assert max(fitted.community_counts_) >= max(fitted.supported_counts_)
    assert fitted.report_.agreement == 1.0
    first, second = fitted.communities_
    assert first.size + second.size == pytest.approx(16)
    tea = first if first.ranking[0].item == "tea" else second
    wine = second if tea is first else first
    assert tea.representative[0] in ("tea", "milk")
    assert wine.ranking[0].item == "wine"
    assert tea.attributes[0].strength < 0 < wine.attributes[0].strength  # X counts from tea to wine
    assert tea.user_features[0].name == "user feature 0"
    assert fitted.consensus(1)[0].item == "water"
    assert {view.item for view in fitted.divisive(2)} == {"tea", "wine"}


def test_predicts_by_membership(fitted):
    prob = fitted.predict_proba([("tea", "wine"), ("tea", "wine")], ["user 00", "user 01"])
    assert prob[0] > 0.9
    assert prob[1] < 0.1
    back = fitted.predict_proba([("wine", "tea"), (4, 0)], [0, 1])
    np.testing.assert_allclose(prob + back, 1.0, atol=1e-6)
    utilities = everybodys(fitted)
    np.testing.assert_allclose(fitted.predict(users=["user 03", 5]), utilities[[3, 5]])
    assert utilities[0].argmax() == 0


def camps():
    """Answers of sixty people of six tastes."""
    rng = np.random.default_rng(0)
    tastes, user = 0.8 * rng.standard_normal((6, 8)), np.repeat(np.arange(60), 15)
    return duel_data(rng, tastes[rng.integers(6, size=60)], user=user, items=None)


@pytest.mark.parametrize("personal", [False, "auto"])
def test_the_search_finds_as_many_communities_as_the_concentration_expects(personal):
    data = camps()
    few, some, many = (
        search(data, concentration=concentration, personal=personal)
        for concentration in (1e-8, 1.0, 1e8)
    )
    assert 1 == few.n_communities_ < some.n_communities_ < many.n_communities_


def test_personal_taste_is_not_looked_for_beside_a_bound_on_the_rank():
    data = camps()
    auto, plain = search(data, max_rank=3), search(data, max_rank=3, personal=False)
    assert auto.personal_ is None
    np.testing.assert_array_equal(auto.predict(), plain.predict())


def test_concentration_can_be_learned():
    model = CommunityGP((1.0, 1.0), **QUICK).fit(None, make_data(8))
    assert model.chains_[0].state.concentration != 1.0


def test_blocked_sampler_and_own_hyperparameters():
    model = CommunityGP(sampler="blocked", hyperparameters="community", **QUICK)
    model.fit(None, make_data())
    assert adjusted_rand(TRUTH, model.membership_.argmax(axis=1)) > 0.7


def test_votes_need_users():
    with pytest.raises(DataError, match="do not say who"):
        CommunityGP(**QUICK).fit(None, Comparisons.from_pairs(["a"], ["b"]))


def test_one_taste_is_said_to_be_one():
    rng = np.random.default_rng(3)
    rankings = [rng.permutation(DRINKS).tolist() if u % 8 == 7 else list(DRINKS) for u in range(24)]
    data = Comparisons.from_rankings(rankings, users=range(24))
    model = CommunityGP(**{**QUICK, "n_sweeps": 30}).fit(None, data)
    assert model.n_communities_ == 1
    assert not model.has_communities_
    assert "no evidence of communities" in model.describe()
    assert len(model.communities_) == 1


def test_users_without_votes_belong_anywhere():
    data = make_data(8)
    model = CommunityGP(**QUICK).fit(None, replace(data, users=(*data.users, "silent")))
    silent = model.membership_[-1]
    assert silent.sum() == pytest.approx(1.0)
    assert silent.max() < 0.95
    assert model.predict(users="silent").shape == (1, 5)


def test_newcomers_are_folded_in(fitted):
    new = Comparisons.from_pairs(
        ["wine", "wine", "juice", "tea"],
        ["tea", "milk", "tea", "wine"],
        user=["eva", "eva", "eva", "sam"],
    )
    model = fitted.fold_in(new)
    assert model.membership_.shape == (18, 2)
    np.testing.assert_array_equal(model.membership_[:16], fitted.membership_)
    eva, sam = model.predict_proba([("wine", "tea")] * 2, ["eva", "sam"])
    assert eva > 0.8 > 0.5 > sam
    with pytest.raises(DataError, match="fitted already"):
        model.fold_in(new)
    with pytest.raises(DataError, match="unknown item"):
        fitted.fold_in(Comparisons.from_pairs(["beer"], ["tea"], user=["max"]))


def test_folding_in_a_fitted_user_again_gives_the_same_membership(fitted):
    data = make_data()
    mine = data.user == 3
    pairs = (np.take(data.items, side[mine]) for side in (data.winner, data.loser))
    names = {"count": data.count[mine], "user": ["twin"] * int(mine.sum())}
    again = Comparisons.from_pairs(*pairs, **names)
    twin = fitted.fold_in(again).membership_[-1]
    np.testing.assert_allclose(twin, fitted.membership_[3], atol=1e-5)


def test_personal_deviations():
    model = CommunityGP(personal=True, **QUICK).fit(None, make_data())
    assert 0.0 <= model.communal_share_ < 1.0
    prob = model.predict_proba([("tea", "wine")] * 2, [0, 1])
    assert prob[0] > 0.8
    assert prob[1] < 0.2
    assert everybodys(model).shape == (16, 5)
    new = Comparisons.from_pairs(["wine", "juice"], ["tea", "milk"], user=["eva", "eva"])
    folded = model.fold_in(new)
    assert folded.predict_proba([("wine", "tea")], "eva")[0] > 0.5
    np.testing.assert_allclose(folded.predict(users=range(16)), everybodys(model), atol=1e-8)


def test_one_community_with_personal_taste_is_the_multi_user_model():
    X, data = np.arange(5.0)[:, None], make_data()
    one = CommunityGP(personal=True, n_communities=1, progress=False).fit(X, data)
    many = MultiUserGP(progress=False).fit(X, data)
    users, pairs = data.users, [("tea", "wine"), ("milk", "water")]
    np.testing.assert_array_equal(one.predict(users=users), many.predict(users=users))
    np.testing.assert_array_equal(one.predict(), many.predict())
    np.testing.assert_array_equal(one.predict_proba(pairs, users[0]), many.predict_proba(pairs, 0))
    np.testing.assert_array_equal(one.belief(users[3]).mean, many.belief(users[3]).mean)
    assert one.score(data) == many.score(data)
    assert one.membership_.shape == (16, 1)


def held_out_likelihood(model, data):
    pairs = np.column_stack([data.winner, data.loser])
    return float(np.log(model.predict_proba(pairs, data.user)).mean())


@pytest.mark.parametrize("k", [1, 3])
def test_what_is_everybodys_own_predicts_where_evidence_does_not_see_it(k):
    """Deviations of single items: no direction of disagreement holds them."""
    own = people(tastes(k, 30, 1.0), 80, 0.8)
    data, new = votes(own, 30, seed=1), votes(own, 20, seed=2)
    model = search(data)
    assert model.personal_ is not None
    assert held_out_likelihood(model, new) > held_out_likelihood(search(data, personal=False), new)


def test_communities_alone_predict_where_nobody_deviates():
    data = votes(people(tastes(3, 20, 1.0), 120), 30)
    model = search(data)
    assert model.n_communities_ == 3
    assert model.personal_ is None


def test_pairs_of_choices_leave_one_taste_where_there_is_one():
    """Broken out of choices, they are evidence of communities and of personal taste alike."""
    alike = people(tastes(1, 12, 1.0), 150)
    data, new = choices_as_pairs(alike, 5, 5), votes(alike, 10)
    one = search(data, personal=False, n_communities=1)
    assert search(data, personal=False).n_communities_ > 1
    assert held_out_likelihood(search(data), new) > held_out_likelihood(one, new) - 0.005


def test_the_verdict_is_asked_for_once(monkeypatch):
    from penchant.communities import mixture as finding

    asked = []
    judge = finding.judge
    monkeypatch.setattr(finding, "judge", lambda *given: asked.append(1) or judge(*given))
    model = CommunityGP(random_state=0).fit(None, make_data())
    assert not asked
    assert model.describe().startswith(model.support_.sentence)
    assert "community 0" in model.describe()
    assert model.verdict_ == model.support_.verdict
    assert asked == [1]
    model.tell([("tea", "wine")], user="user 00")
    assert model.support_.n_communities == model.n_communities_
    assert asked == [1, 1]


def test_without_groups_disagreements_are_told():
    rng = np.random.default_rng(0)
    utilities = rng.standard_normal((60, 5)) * [2.0, 2.0, 0.1, 0.1, 0.1]
    data = duel_data(rng, utilities, user=np.repeat(np.arange(60), 20))
    model = search(data)
    assert model.n_communities_ == 1
    assert model.personal_ is not None
    assert model.report_.steps[-1] == "personal taste"
    first, second = model.disagreement(2)
    ends = (first.toward[0], first.away[0]), (first.toward[0], second.toward[0])
    assert {0, 1} in map(set, ends)
    assert first.share + second.share > 0.8
    assert "of the differences" in model.describe()
    many = MultiUserGP(progress=False).fit(None, data)
    np.testing.assert_array_equal(model.predict(users=[1, 2]), many.predict(users=[1, 2]))
    assert "a person prefers the better item 84 times of 100" in model.scale_


def test_chains_resume_exactly():
    data = make_data(8)
    shorter, longer = (CommunityGP(**QUICK).fit(None, data) for _ in range(2))
    shorter.resume(5)
    longer.resume(3).resume(2)
    for a, b in zip(shorter.chains_, longer.chains_, strict=True):
        np.testing.assert_array_equal(a.state.assignment, b.state.assignment)
        np.testing.assert_array_equal(a.state.utilities, b.state.utilities)
        assert a.state.log_joint == b.state.log_joint
    assert len(shorter.report_.log_joint[0]) == 18


def test_a_saved_model_predicts_and_resumes_alike(tmp_path):
    model = CommunityGP(personal=True, **QUICK).fit(np.arange(5.0)[:, None], make_data(8))
    model.save(tmp_path / "model.penchant")
    loaded = load(tmp_path / "model.penchant")
    np.testing.assert_array_equal(everybodys(loaded), everybodys(model))
    np.testing.assert_array_equal(loaded.membership_, model.membership_)
    np.testing.assert_array_equal(
        loaded.resume(3).chains_[0].state.utilities, model.resume(3).chains_[0].state.utilities
    )


def test_an_interrupt_leaves_a_usable_model(monkeypatch):
    from penchant.communities import chains as community

    sweep = community.sweep_chain

    def interrupted(mixture, plan, state):
        if state.sweep == 9:
            raise KeyboardInterrupt
        return sweep(mixture, plan, state)

    monkeypatch.setattr(community, "sweep_chain", interrupted)
    model = CommunityGP(**{**QUICK, "n_chains": 3})
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(None, make_data())
    assert [chain.state.sweep for chain in model.chains_] == [9, 6, 6]
    assert model.predict_proba([("tea", "wine")], 0)[0] > 0.5
    monkeypatch.setattr(community, "sweep_chain", sweep)
    assert model.resume(3).report_.completed


def test_communities_are_listed_largest_first():
    """Tastes that shade into each other: draws differ in their communities, and in their sizes."""
    rng = np.random.default_rng(1)
    rankings = np.argsort(rng.standard_normal((40, 2)) @ rng.standard_normal((2, 6)), axis=1)
    data = Comparisons.from_rankings(rankings.tolist(), users=range(40), items=range(6))
    model = CommunityGP(**{**QUICK, "n_sweeps": 16, "n_chains": 2}).fit(None, data)
    sizes = model.membership_.sum(axis=0)
    assert len(sizes) > 3
    assert (np.diff(sizes) <= 0).all()
    assert [community.size for community in model.communities_] == pytest.approx(sizes)
    np.testing.assert_allclose(
        model.draws_.membership(model.state_.learned.answers), model.membership_
    )


TASTES = np.array([[1.5, 0.5, 0.0, -0.5, -1.5], [0.5, -1.5, 0.0, 1.5, -0.5]])
PLAIN, PERSONAL = {"personal": False}, {"personal": True, "n_communities": 2}


def two_tastes(n_users):
    """Fifteen answers each of people of two tastes, half of them of either."""
    user, rng = np.repeat(np.arange(n_users), 15), np.random.default_rng(0)
    return duel_data(rng, TASTES[np.arange(n_users) % 2], user=user)


def in_order(ranking):
    return sorted(ranking, key=lambda row: row.item)


@pytest.mark.parametrize("how", [PLAIN, PERSONAL], ids=str)
def test_intervals_narrow_with_people_and_their_spread_stays(how):
    few, many = (search(two_tastes(n), **how).rank() for n in (60, 600))
    widths = [np.mean(table["high"] - table["low"]) for table in (few, many)]
    assert 2.6 < widths[0] / widths[1] < 3.8  # about √10
    spread, utility = np.transpose([(row.spread, row.utility) for row in in_order(many)])
    np.testing.assert_allclose(spread, TASTES.std(axis=0), atol=0.35)
    np.testing.assert_allclose(utility - utility.mean(), TASTES.mean(axis=0), atol=0.2)
    assert many["prob_best"].max() > 0.99


@pytest.mark.parametrize("how", [PLAIN, PERSONAL, {"n_communities": 1}], ids=str)
def test_all_that_is_said_of_people_at_large_is_one_belief(how):
    model = search(two_tastes(60), **how)
    belief, ranking = model.belief(), in_order(model.rank(n_samples=20_000))
    half = np.array([row.high - row.low for row in ranking]) / 2.0
    np.testing.assert_allclose(half, 1.959964 * np.sqrt(belief.contrast_var), rtol=1e-6)
    off = model.predict() - belief.mean
    np.testing.assert_allclose(off, off.mean(), atol=1e-12)
    draws = belief.sample(20_000, np.random.default_rng(1))
    best = np.bincount(draws.argmax(axis=1), minlength=5) / len(draws)
    np.testing.assert_allclose([row.prob_best for row in ranking], best, atol=0.02)
    np.testing.assert_allclose(np.cov(draws.T), belief.covariance(), atol=0.02)


def test_spread_is_a_column_where_people_are_told_apart():
    data = two_tastes(40)
    pooled = PreferenceGP().fit(None, data).rank()
    assert [row.spread for row in pooled] == [None] * 5
    assert "spread" not in str(pooled)
    model = search(data, **PLAIN)
    table = model.rank()
    assert "spread" in str(table).splitlines()[0]
    assert [row.spread for row in model.rank(0)] == [None] * 5
    one = search(data, personal=True, n_communities=1).rank()
    people = MultiUserGP(progress=False, random_state=0).fit(None, data).rank()
    np.testing.assert_allclose(one["spread"], people["spread"], rtol=1e-6)
    np.testing.assert_allclose(table.to_elo()["spread"], table.per_unit * table["spread"])


def test_items_have_an_effect_of_their_own_beside_features():
    X, data = np.random.default_rng(0).standard_normal((5, 2)), two_tastes(20)
    model, bounded = (
        CommunityGP(personal=False, max_rank=rank, progress=False).fit(X, data)
        for rank in (None, 3)
    )
    assert any(isinstance(part, Independent) for part in model.kernel_.parts)
    assert not any(isinstance(part, Independent) for part in bounded.kernel_.parts)
    mean, std = model.predict(X, return_std=True)
    assert len(mean) == 5
    assert (std > 0.0).all()


SLOPE = 0.5


@pytest.fixture(scope="module")
def by_length():
    """Two opposite camps, three items; the longer item has a lead, and the first is longer."""
    rng, user = np.random.default_rng(0), np.repeat(np.arange(60), 12)
    f = np.where(user % 2 == 0, 1.0, -1.0)[:, None] * np.array([1.0, 0.0, -1.0])
    a = rng.integers(3, size=len(user))
    b = (a + 1 + rng.integers(2, size=len(user))) % 3
    longer, rows = rng.normal(1.0 * (a == 0) - 1.0 * (b == 0)).round(1), np.arange(len(user))
    won = f[rows, a] - f[rows, b] + SLOPE * longer + rng.standard_normal(len(user)) > 0
    pair = np.where(won, a, b), np.where(won, b, a)
    shown = {"length": np.where(won, longer, -longer)}
    return Comparisons.from_pairs(*pair, user=user, covariates=shown, items=range(3))


@pytest.mark.parametrize("how", [PLAIN, PERSONAL], ids=str)
def test_the_effect_of_a_covariate_is_recovered(how, by_length):
    model = search(by_length, **how)
    assert model.n_communities_ == 2
    (length,) = model.effects_
    assert length.low < SLOPE < length.high
    assert length.high - length.low < 0.4
    assert model.score(by_length) > model.score(by_length.bare()) + 0.02
    # at equal lengths the camps are mirror images of each other, whatever was longer
    both = sum(model.predict(users=camp).mean(axis=0) for camp in ([0, 2, 4], [1, 3, 5]))
    assert abs(both[0] - both[2]) < 0.7


def test_one_community_beside_effects_is_the_model_of_many_users(by_length):
    one = search(by_length, personal=True, n_communities=1)
    people = MultiUserGP(progress=False, random_state=0).fit(None, by_length)
    shown = {"users": range(3), "covariates": {"length": [1.0, -2.0, 0.0]}}
    pairs = [(0, 1), (1, 2), (0, 2)]
    np.testing.assert_allclose(
        one.predict_proba(pairs, **shown), people.predict_proba(pairs, **shown), rtol=1e-6
    )
    np.testing.assert_allclose(one.effects_["estimate"], people.effects_["estimate"], rtol=1e-6)


def test_newcomers_and_more_answers_are_seen_as_they_were_shown(by_length, tmp_path):
    model = search(by_length, **PERSONAL)
    more, level = (
        Comparisons.from_pairs([0], [1], user=["eva"], covariates={"length": [length]})
        for length in (2.0, 0.0)
    )
    # somebody who took the much longer one told less about the items
    longer, same = (model.fold_in(new).predict(users="eva")[0, 0] for new in (more, level))
    assert longer < same
    model.save(tmp_path / "model.penchant")
    again = load(tmp_path / "model.penchant")
    assert again.effects_ == model.effects_
    assert again.tell(more).effects_ == model.tell(more).effects_


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "personal", "accuracy"),
    [
        (lambda: draw_synthetic(0), False, 1.0),
        (lambda: draw_votes(10, seed=0), False, 0.745),
        (lambda: draw_votes(30, seed=0), False, 0.775),
        (lambda: sushi_trial(0), False, 0.79),
        (lambda: sushi_trial(0), True, 0.875),
        (lambda: sushi_trial(0, n_pairs=5), True, 0.735),
        (lambda: cars_trial(0), False, 0.68),
        (lambda: cars_trial(0), True, 0.84),
    ],
)
def test_held_out_answers_are_predicted(data_folder, draw, personal, accuracy):
    trial = draw()
    how = {"inference": "mcmc", "personal": personal, "random_state": 0, "progress": False}
    model = CommunityGP(**how).fit(getattr(trial, "X", None), trial.train)
    assert score(model, trial).accuracy >= accuracy


def test_personal_taste_predicts_where_camps_do_not_differ_inside(data_folder):
    """Of few answers nobody differs from their camp by more than noise, and yet held-out answers
    are likelier by people's own taste."""
    trial = sushi_people(load_sushi_b(), 0, False)
    model = CommunityGP(random_state=0, progress=False).fit(trial.X, trial.train)
    assert model.verdict_ == "personal"
    assert model.report_.steps[-1] == "personal taste"
    assert model.score(trial.test) > -0.5
