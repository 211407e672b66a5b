"""What every model of utilities keeps to: each one is fitted and put through all of it."""

import copy
import inspect
import pickle
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from functools import partial

import joblib
import numpy as np
import pytest
from sklearn.base import clone

import penchant as pc
from penchant.models import UtilityModel
from tests.simulation import DRINKS as ITEMS
from tests.simulation import opposite_votes

pytestmark = pytest.mark.filterwarnings("ignore::penchant.errors.ConvergenceWarning")

USERS = tuple(f"user {u:02d}" for u in range(12))
X = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 0.0], [3.0, 0.3], [4.0, 0.9]])
LINKS = {"near": np.eye(5, k=1) + np.eye(5, k=-1)}
PAIRS = [(a, b) for a in ITEMS for b in ITEMS if a < b]

QUIET = {"random_state": 0, "progress": False}
CHAINS = {"inference": "mcmc", "n_sweeps": 10, "n_chains": 1}
MODELS = {
    "PreferenceGP": partial(pc.PreferenceGP, random_state=0),
    "MultiUserGP": partial(pc.MultiUserGP, **QUIET),
    "CommunityGP": partial(pc.CommunityGP, **QUIET),
    "CommunityGP with personal taste": partial(pc.CommunityGP, personal=True, **QUIET),
    "CommunityGP by chains": partial(pc.CommunityGP, **CHAINS, **QUIET),
}


def votes(seed=0, n_each=10, users=USERS, tie_rate=0.0):
    return opposite_votes(users, n_each, seed, tie_rate)


@pytest.fixture(params=MODELS, scope="module")
def name(request):
    return request.param


@pytest.fixture(scope="module")
def shared(name):
    """One fit for the tests that change nothing."""
    return MODELS[name]().fit(X, votes())


@pytest.fixture
def model(shared):
    return copy.deepcopy(shared)


def test_no_model_is_left_out():
    from penchant.models import estimator_classes

    every = {n for n, cls in estimator_classes().items() if issubclass(cls, UtilityModel)}
    assert every == {type(make()).__name__ for make in MODELS.values()}


def rankings(seed=0):
    """Everybody's order of four items, and a choice of the best of three by the first user."""
    rng = np.random.default_rng(seed)
    orders = []
    for u in range(len(USERS)):
        order = sorted(rng.choice(5, 4, replace=False), reverse=bool(u % 2))
        orders.append([ITEMS[i] for i in order])
    ranked = pc.Comparisons.from_rankings(orders, users=USERS, items=ITEMS)
    return ranked + pc.Comparisons.from_choices(
        ["tea"], [["tea", "milk", "wine"]], user=[USERS[0]], items=ITEMS
    )


def test_rankings_and_choices_go_through_everything(name, tmp_path):
    data = rankings()
    model = MODELS[name]().fit(X, data)
    before = model.predict()
    assert np.isfinite(model.score(data))
    (best, *others), *_ = model.ask(k_items=3)
    told = pc.Comparisons.from_choices([best], [[best, *others]], user=[USERS[1]], items=ITEMS)
    after = model.tell(told).predict()
    assert not np.array_equal(after, before)
    model.save(tmp_path / "model")
    assert np.array_equal(pc.load(tmp_path / "model").predict(), after)
    assert np.array_equal(model.undo().predict(), before)
    taken = data if model.takes_choices else data.as_pairs()
    assert model.comparisons_ == (taken.pooled() if not model.comparisons_.users else taken)
    assert model.rank()[0].item in ITEMS


def test_signatures_are_those_of_the_contract(name):
    cls = type(MODELS[name]())
    for method in ("fit", "predict", "predict_proba", "rank", "score", "belief", "ask", "tell"):
        wanted = inspect.signature(getattr(UtilityModel, method)).parameters
        given = inspect.signature(getattr(cls, method)).parameters
        assert list(given)[: len(wanted)] == list(wanted) or set(wanted) <= set(given)
        for parameter in wanted:
            assert given[parameter].kind == wanted[parameter].kind, (method, parameter)


def test_predictions_have_one_shape(shared):
    mean, std = shared.predict(return_std=True)
    assert mean.shape == std.shape == (5,)
    assert (std > 0).all()
    each, spread = shared.predict(users=["user 03", 0], return_std=True)
    assert each.shape == spread.shape == (2, 5)
    assert shared.predict(users="user 03").shape == (1, 5)
    assert shared.predict(X[:2] + 0.1).shape == (2,)
    assert shared.predict(X[:2] + 0.1, users=USERS).shape == (12, 2)


def test_what_is_handed_out_can_not_change_the_model(shared):
    """Predictions are the caller's own; what the model keeps refuses to be changed."""
    before = copy.deepcopy(shared)
    for asked in ({}, {"users": USERS[:2]}, {"return_std": True}):
        for array in np.atleast_2d(shared.predict(**asked)):
            array -= 7.0
    shared.predict_proba(PAIRS)[:] = 0.0
    for name in ("mean", "var"):
        with suppress(ValueError):  # read-only
            getattr(shared.belief(), name)[:] = 7.0
    if hasattr(shared, "membership_"):
        with pytest.raises(ValueError, match="read-only"):
            shared.membership_[:] = 0.0
    for asked in ({}, {"users": USERS[:2]}, {"return_std": True}):
        np.testing.assert_array_equal(shared.predict(**asked), before.predict(**asked))
    np.testing.assert_array_equal(shared.predict_proba(PAIRS), before.predict_proba(PAIRS))


def test_probabilities_are_given_a_decision(shared):
    for users in (None, "user 01", list(USERS[:10])):
        p = shared.predict_proba(PAIRS, users)
        q = shared.predict_proba([(b, a) for a, b in PAIRS], users)
        assert p.shape == (10,)
        np.testing.assert_allclose(p + q, 1.0, atol=1e-12)
        odds = shared.predict_proba(PAIRS, users, ties=True)
        np.testing.assert_allclose(odds.sum(axis=1), 1.0, atol=1e-9)
    assert shared.predict_proba([(0, 1)], X=X[:2] + 0.1).shape == (1,)


def test_the_belief_is_what_predictions_say(shared):
    for user in (None, "user 03"):
        belief = shared.belief(user) if shared.comparisons_.users else shared.belief()
        users = None if user is None else [user]
        mean, std = shared.predict(users=users, return_std=True)
        np.testing.assert_allclose(belief.mean - belief.mean.mean(), np.ravel(mean), atol=1e-6)
        np.testing.assert_allclose(np.sqrt(belief.contrast_var), np.ravel(std), atol=1e-6)


def test_rank_is_one_table(shared):
    for user in (None, "user 03") if shared.comparisons_.users else (None,):
        table = shared.rank(user)
        assert sorted(table["item"]) == sorted(ITEMS)
        assert table["prob_best"].sum() == pytest.approx(1.0)
        assert (np.diff(table["utility"]) <= 0).all()
        assert (table["low"] < table["utility"]).all()
        assert table["comparisons"].sum() == 2 * (120 if user is None else 10)
        assert table["wins"].sum() == (120 if user is None else 10)
        assert table.to_elo()["utility"].mean() == pytest.approx(1000.0)
        assert len(table.to_pandas()) == 5
        assert "<table>" in table._repr_html_()


def test_intervals_are_those_of_the_belief_centred(shared):
    """Also where fewer comparisons than items leave much to the prior."""
    P = np.eye(5) - 0.2
    cov = P @ shared.belief().covariance() @ P
    table = shared.rank(level=0.95)
    reach = {row.item: row.high - row.low for row in table}
    expected = 2 * 1.959963984540054 * np.sqrt(np.diagonal(cov))
    np.testing.assert_allclose([reach[item] for item in ITEMS], expected, rtol=1e-6)


def test_strangers_are_scored_as_the_population(shared):
    """The score of people who are known is in test_circumstances.py."""
    assert np.log(0.5) < shared.score(votes(seed=5)) < 0 or not shared.comparisons_.users
    stranger = pc.Comparisons.from_pairs(["tea"], ["wine"], user=["nobody yet"])
    population = np.log(shared.predict_proba([("tea", "wine")]))[0]
    assert shared.score(stranger) == pytest.approx(population)


def test_telling_and_undoing_is_keeping_a_reference(model):
    before = model.state_
    model.tell([("wine", "tea")], user="user 00")
    assert model.comparisons_.n_comparisons == 121
    assert model.undo().state_ is before
    with pytest.raises(pc.DataError, match="no tell to undo"):
        model.undo()


def test_withdrawing_what_was_told_is_as_if_it_never_was(model):
    before, more = model.predict(users=USERS), votes(seed=3, n_each=2)
    model.tell(more, reconverge=True)
    moved = np.abs(model.predict(users=USERS) - before).max()
    model.withdraw(more)
    assert model.comparisons_ == copy.deepcopy(model.comparisons_)
    assert np.abs(model.predict(users=USERS) - before).max() < max(1e-5, 1e-3 * moved)


def test_only_what_is_there_can_be_withdrawn(model):
    before = model.state_
    with pytest.raises(pc.DataError, match=r"taken back|not among"):
        model.withdraw([("wine", "tea")] * 500, user="user 00")
    assert model.state_ is before


def test_questions_held_open_elsewhere_count_as_expected_answers(shared):
    user = "user 02" if shared.comparisons_.users else None
    first = shared.ask(3, "information_gain", user=user)
    then = shared.ask(1, "information_gain", user=user, pending=first[:2])
    assert [set(pair) for pair in then] == [set(first[2])]


def test_copies_and_files_predict_the_same(shared, tmp_path):
    shared.save(tmp_path / "model.penchant")
    joblib.dump(shared, tmp_path / "model.joblib")
    for again in (
        pc.load(tmp_path / "model.penchant"),
        joblib.load(tmp_path / "model.joblib"),
        pickle.loads(pickle.dumps(shared)),
        copy.deepcopy(shared),
    ):
        np.testing.assert_array_equal(again.predict(users=USERS), shared.predict(users=USERS))
        assert again.ask(2) == shared.ask(2)
        assert again.report_.converged == shared.report_.converged
    assert not hasattr(clone(shared), "state_")
    assert type(shared).__name__ in repr(shared)


def test_nothing_is_known_of_raters_without_names():
    model = pc.PreferenceGP().fit(None, votes().pooled())
    assert not hasattr(model, "raters_")
    with pytest.raises(pc.DataError, match="who gave each answer"):
        _ = model.raters_


def test_every_model_makes_a_page(shared, tmp_path):
    page = pc.report(shared, tmp_path / "r.html", X).read_text(encoding="utf-8")
    assert all(item in page for item in ITEMS)
    assert "expected to win" in " ".join(page.split())


def test_relations_between_items_serve_every_model(name):
    model = MODELS[name]()
    if name == "MultiUserGP":  # it would choose by answers left out, and here are few
        model.set_params(kernel=pc.kernels.RegularizedLaplacian("near"))
    model.fit(None, votes(), LINKS)
    assert "near" in repr(model.kernel_)
    assert np.isfinite(model.predict(users=USERS)).all()


def test_raters_are_judged_where_people_are_told_apart(shared, name):
    if "CommunityGP" in name:
        with pytest.raises(pc.DataError, match="MultiUserGP"):
            shared.raters_  # noqa: B018
        return
    table = shared.raters_
    assert sorted(table["user"]) == sorted(USERS)
    assert table["answers"].sum() == 120
    assert ((table["low"] <= table["reliability"]) & (table["reliability"] <= table["high"])).all()
    assert (np.diff(table["reliability"]) >= 0).all()


def test_the_same_seed_gives_the_same_bits(name, shared):
    again = MODELS[name]().fit(X, votes())
    np.testing.assert_array_equal(again.predict(users=USERS), shared.predict(users=USERS))


def test_an_interrupt_leaves_what_was_there(model, monkeypatch):
    """Names and posterior change together, or not at all."""
    before, data = model.state_, votes(users=tuple(f"other {u}" for u in range(12)))

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["penchant.gp.loop"], "converge", interrupted)
    for change in (
        lambda: model.fit(X[::-1], data),
        lambda: model.tell([("wine", "tea")], user="user 00", reconverge=True),
        lambda: model.withdraw(votes()._with_count(np.ones(len(votes()), dtype=int))),
    ):
        with pytest.raises(KeyboardInterrupt):
            change()
        assert model.state_ is before


def test_no_answer_is_lost_between_threads(model):
    def tell(user):
        for _ in range(5):
            model.tell([("tea", "wine")], user=user, reconverge=False)

    threads = [threading.Thread(target=tell, args=(user,)) for user in USERS[:4]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.comparisons_.n_comparisons == 140


def test_parameters_are_checked_in_one_shape(name):
    for parameter in MODELS[name]().get_params():
        if parameter == "concentration":
            continue
        kind = type(MODELS[name]()).__name__
        with pytest.raises(pc.DataError, match=f"^{kind}: {parameter}=.*: it must be"):
            MODELS[name]().set_params(**{parameter: object()}).fit(X, votes())


def test_features_of_users_in_the_place_of_relations_are_refused(name):
    with pytest.raises(pc.DataError, match="user_features="):
        MODELS[name]().fit(X, votes(), np.zeros((12, 2)))


def shown_votes(seed=0):
    """The same votes with an order, told of nine in ten."""
    data, rng = votes(seed), np.random.default_rng(seed)
    return replace(data, first=rng.choice([-1, 0, 1], size=len(data), p=[0.3, 0.1, 0.6]))


def test_effects_are_told_where_the_order_is(name, shared):
    assert len(shared.effects_) == 0
    model = MODELS[name]().fit(X, shown_votes())
    (order,) = model.effects_
    assert order.low < order.estimate < order.high
    assert 0.0 < order.prob_first < 1.0
    before = model.predict_proba(PAIRS)
    assert np.allclose(before + model.predict_proba([pair[::-1] for pair in PAIRS]), 1.0)
    assert (model.predict_proba(PAIRS, first=1) > model.predict_proba(PAIRS, first=-1)).all() == (
        order.estimate > 0
    )
    again = pickle.loads(pickle.dumps(model))
    again.tell(shown_votes(3)).undo()
    np.testing.assert_array_equal(again.predict_proba(PAIRS), before)


def test_ties_mean_one_thing(name):
    """P(first wins), given a decision; win, tie and loss on demand; and ties can be told."""
    model = MODELS[name](likelihood="ties").fit(X, votes(tie_rate=0.3))
    win, tie, loss = model.predict_proba(PAIRS, ties=True).T
    np.testing.assert_allclose(win + tie + loss, 1.0, atol=1e-9)
    assert (tie > 0.05).all()
    np.testing.assert_allclose(model.predict_proba(PAIRS), win / (win + loss), atol=1e-12)
    tied = pc.Comparisons.from_pairs(["tea"], ["wine"], user=[USERS[0]], tie=[True])
    total = model.comparisons_.count[model.comparisons_.tie].sum()
    model.tell(tied)
    assert model.comparisons_.count[model.comparisons_.tie].sum() == total + 1
