"""The choice follows the data, and comes with a model that suits them."""

import numpy as np
import pytest

import penchant as pc
from penchant.errors import DataError
from penchant.workflow import KINDS, Material, as_model, trial_sample
from tests.simulation import duel_data


def crowd(n_users, n_answers, n_items=6, **more):
    rng = np.random.default_rng(0)
    first = rng.integers(n_items, size=n_users * n_answers)
    second = (first + 1 + rng.integers(n_items - 1, size=len(first))) % n_items
    user = np.repeat(np.arange(n_users), n_answers)
    return pc.Comparisons.from_pairs(first, second, user=user, items=range(n_items), **more)


@pytest.mark.parametrize(
    ("data", "about", "name", "why"),
    [
        (pc.Comparisons.from_pairs(["a"], ["b"]), {}, "gp", "nothing says who"),
        (crowd(1, 5), {}, "gp", "there is one person"),
        (crowd(20, 2), {}, "gp", "too few to tell them apart"),
        (crowd(20, 2), {"user_features": np.ones((20, 1))}, "multi-user", "described by features"),
        (crowd(20, 2), {"user_relations": {"r": np.eye(20)}}, "multi-user", "between people"),
    ],
)
def test_by_the_data(data, about, name, why):
    choice = pc.choose_model(data, **about, random_state=3)
    assert choice.name == name
    assert why in choice.why
    assert str(choice) == f"{name}: {choice.why}"
    assert type(choice.model).__name__ == KINDS[name]
    assert choice.model.random_state == 3


def tastes(kind, n_users=30, n_answers=20, n_items=12):
    """Answers of people with the same taste, one of two opposite tastes, or one of their own."""
    rng = np.random.default_rng(3)
    utilities = {
        "common": np.tile(1.5 * rng.standard_normal(n_items), (n_users, 1)),
        "camps": 1.5 * rng.standard_normal((3, n_items))[np.arange(n_users) % 3],
        "own": 2.0 * rng.standard_normal((n_users, n_items)),
    }[kind]
    user = np.repeat(np.arange(n_users), n_answers)
    return duel_data(rng, utilities, user=user)


@pytest.mark.parametrize(
    ("kind", "names"),
    # with twenty people a camp, a taste of everybody's own foresees as much as camps do
    [("common", {"gp"}), ("camps", {"multi-user", "community"}), ("own", {"multi-user"})],
)
def test_a_trial_finds_the_model_that_foresees_best(kind, names):
    choice = pc.choose_model(tastes(kind), random_state=0)
    assert choice.name in names
    reason = "no other model foresees clearly more" if names == {"gp"} else "it foresees more than"
    assert reason in choice.why


def test_relations_between_items_are_part_of_the_trial():
    data = tastes("own", n_users=9, n_answers=40)
    links = np.abs(np.subtract.outer(np.arange(12), np.arange(12))) == 1
    sample = trial_sample(Material(data, None, {"near": links}))
    assert sample.relations["near"].shape == (12, 12)
    assert (sample.relations["near"].toarray() == links).all()
    assert pc.choose_model(data, relations={"near": links}).name == "multi-user"


def test_few_people_are_not_tried_as_communities():
    assert "community" not in pc.choose_model(tastes("own", n_users=5)).why


def test_a_trial_takes_some_people_and_the_most_compared_items():
    data = tastes("own", n_items=30)
    X = np.arange(30.0)[:, None]
    sample = trial_sample(Material(data, X), 7, 5)
    assert (sample.data.n_users, sample.data.n_items) == (7, 5)
    asked = np.isin(data.user, sample.data.users)
    sides = data.winner[asked], data.loser[asked]
    met = sum(np.bincount(side, data.count[asked], 30) for side in sides)
    (kept,) = sample.X.astype(int).T
    assert sample.data.items == tuple(kept)
    assert np.union1d(sample.data.winner, sample.data.loser).tolist() == [0, 1, 2, 3, 4]
    assert met[kept].mean() > np.sort(met)[-10:].mean()  # most of them among the most compared


@pytest.fixture
def scored(monkeypatch):
    """Let models score what they are told to, without a fit."""

    def tell(**scores):
        for name, score in scores.items():
            monkeypatch.setattr(getattr(pc, name), "fit", lambda self, *_, **__: self)
            score = score if callable(score) else lambda score=score: score
            monkeypatch.setattr(getattr(pc, name), "score", lambda self, _, score=score: score())

    return tell


def test_ties_get_a_likelihood_that_has_them(scored):
    scored(PreferenceGP=-0.6, MultiUserGP=-0.7, CommunityGP=-0.5)
    tie = np.arange(100) % 5 == 0
    choice = pc.choose_model(crowd(20, 5, tie=tie))
    assert choice.model.likelihood == "ties"
    assert "(log loss: gp 0.600, multi-user 0.700, community 0.500)" in choice.why


def rankings(kind, seed, n_users=12, n_items=6):
    """Rankings of four by people of one taste, or of their own."""
    rng = np.random.default_rng(seed)
    taste = 1.5 * rng.standard_normal(n_items)
    taste = taste + (1.5 * rng.standard_normal((n_users, n_items)) if kind == "own" else 0.0)
    utility = np.broadcast_to(taste, (n_users, n_items))
    orders, users = [], []
    for user in np.repeat(np.arange(n_users), 4):
        shown = rng.choice(n_items, 4, replace=False)
        noisy = utility[user, shown] + rng.gumbel(size=4)
        orders.append([f"item {i}" for i in shown[np.argsort(-noisy)]])
        users.append(f"user {user}")
    return pc.Comparisons.from_rankings(orders, users=users)


@pytest.mark.parametrize(("kind", "name"), [("one", "gp"), ("own", "multi-user")])
def test_rankings_are_never_cut_by_a_trial(kind, name):
    assert pc.choose_model(rankings(kind, 0)).name == name


def test_a_margin_of_uncertainty_keeps_the_simpler_model(scored):
    gains = iter([0.3, -0.2, 0.1, -0.1, 0.05])  # on average more, but not surely
    scored(PreferenceGP=0.0, MultiUserGP=lambda: next(gains), CommunityGP=-1.0)
    assert pc.choose_model(crowd(20, 5)).name == "gp"
    gains = iter([0.3, 0.2, 0.1, 0.1, 0.05])
    assert pc.choose_model(crowd(20, 5)).name == "multi-user"


def told_fully(order, code):
    """The same answers in another order of rows, and with other names of items and people."""
    rng = np.random.default_rng(4)
    n, n_items, n_users = 400, 9, 12
    a = rng.integers(n_items, size=n)
    b = (a + 1 + rng.integers(n_items - 1, size=n)) % n_items
    columns = {
        "user": rng.integers(n_users, size=n),
        "tie": rng.random(n) < 0.1,
        "first": rng.choice([-1, 1], n),
        "time": np.round(rng.random(n), 3),
    }
    covariates = {"length": np.round(rng.standard_normal(n), 3)}
    a, b = code(a), code(b)
    columns["user"] = code(columns["user"])
    return pc.Comparisons.from_pairs(
        a[order],
        b[order],
        **{name: values[order] for name, values in columns.items()},
        covariates={name: values[order] for name, values in covariates.items()},
    )


def test_names_and_order_decide_nothing():
    plain = told_fully(np.arange(400), lambda index: index)
    other = told_fully(np.random.default_rng(0).permutation(400), lambda index: 99 - 7 * index)
    one, two = (trial_sample(Material(data), 8, 6).data for data in (plain, other))
    assert sorted(99 - 7 * name for name in one.items) == list(two.items)
    assert sorted(99 - 7 * name for name in one.users) == list(two.users)
    for left, right in zip(one.folds(3), two.folds(3), strict=True):
        for here, there in zip(left, right, strict=True):
            assert _said(here, lambda name: 99 - 7 * name) == _said(there, lambda name: name)


def _said(data, rename):
    """All that comparisons say, as sorted rows; a tie as seen from either side."""
    frame = data.to_frame()
    rows = []
    for row in frame.to_dict("records"):
        sides = [
            (rename(row["winner"]), row["first"], row["length"]),
            (rename(row["loser"]), -row["first"], -row["length"]),
        ]
        sides = sorted(sides) if row["tie"] else sides
        rows.append((rename(row["user"]), row["tie"], row["time"], row["count"], *sides))
    return sorted(rows)


def test_a_trial_keeps_all_that_is_told_of_an_answer():
    data = told_fully(np.arange(400), lambda index: index)
    sample = trial_sample(Material(data)).data
    assert sample == data
    ranked = rankings("own", 0)
    assert trial_sample(Material(ranked)).data == ranked


def test_a_setting_that_the_model_lacks_is_an_error():
    with pytest.raises(DataError, match="n_sweeps: a gp model has no such setting; it has"):
        pc.choose_model(pc.Comparisons.from_pairs(["a"], ["b"]), n_sweeps=3)


def test_a_scorer_ranks_and_says_what_it_cannot(study, tmp_path):
    data = study.comparisons
    scorer = as_model(pc.RankRLS()).fit(study.item_features, data)
    direct = pc.RankRLS().fit(study.item_features, data).predict(study.item_features)
    direct = direct - direct.mean()
    ranking = scorer.rank()
    assert ranking["utility"].tolist() == sorted(direct, reverse=True)
    assert np.isnan(ranking["low"]).all()
    assert sum(ranking["comparisons"]) == 2 * data.n_comparisons
    new, sd = scorer.predict(study.item_features[:2], return_std=True)
    assert new == pytest.approx(direct[:2])
    assert np.isnan(sd).all()
    with pytest.raises(DataError, match="no probabilities"):
        scorer.predict_proba([(0, 1)])
    with pytest.raises(DataError, match="how sure it is"):
        scorer.ask()


def test_people_of_few_answers_are_more_people() -> None:
    """800 people of 5 answers each: 60 of them decide nothing, and fits are quick."""
    rng = np.random.default_rng(0)
    first, second = rng.permuted(np.tile(np.arange(12), (4_000, 1)), axis=1)[:, :2].T
    data = pc.Comparisons.from_pairs(first, second, user=np.repeat(np.arange(800), 5))
    assert trial_sample(Material(data)).data.n_users == 600
    assert trial_sample(Material(data), n_answers=100).data.n_users == 60
