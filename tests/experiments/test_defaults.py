"""Defaults against baselines and fixed choices: twins, scores, and pairs made of ratings."""

from time import sleep

import numpy as np
import pytest
from scipy.special import expit, logit

from experiments import defaults
from experiments import defaults_tasks as tasks
from experiments import defaults_twins as twins
from experiments.defaults import film_trials
from experiments.defaults_tasks import (
    BOTH,
    BT,
    BT_FEATURES,
    BT_USERS,
    CHOSEN,
    COMMUNITIES,
    DEFAULTS,
    DRIFTING,
    FREE,
    INDEPENDENT,
    LINKS,
    POOLED,
)
from experiments.page import Page
from penchant.data import Comparisons
from penchant.datasets import MovieLens
from penchant.errors import DataError
from penchant.metrics import calibration


def test_chance_makes_of_right_statements_what_it_is_said_to():
    rng = np.random.default_rng(0)
    stated = rng.random(400)
    drawn = [
        calibration(np.where(rng.random(400) < stated, stated, 1.0 - stated)).error
        for _ in range(100)
    ]
    error = np.std(drawn) * np.sqrt(1 / 100 + 1 / 50)
    assert tasks.by_chance(stated) == pytest.approx(np.mean(drawn), abs=4.0 * error)
    assert tasks.by_chance(np.ones(10)) == 0.0


def scores_of(probs, log_likelihoods, errors=None):
    """Scores as `score` makes them; errors are of no interest where they are not given."""
    errors = errors or dict.fromkeys(probs, np.array([0.1]))
    seconds = dict.fromkeys(probs, 1.0)
    return tasks.ContestScores(errors, log_likelihoods, probs, dict.fromkeys(probs, ""), seconds)


def test_regret_ratio_and_confidence():
    p = {DEFAULTS: [np.full(20, 0.9), np.full(10, 0.2)], LINKS: [np.full(3, 0.6)], BT: [[0.5]]}
    scores = scores_of(
        p,
        {
            DEFAULTS: np.array([-0.5, -0.7]),
            LINKS: np.array([-0.7, -0.6]),
            BT: np.array([-0.1, -0.1]),
        },
        {DEFAULTS: np.array([0.2, 0.4]), LINKS: np.array([0.1, 0.3]), BT: np.array([0.0, 0.0])},
    )
    assert scores.regret == pytest.approx(0.0)  # a baseline is no fixed choice
    assert scores.ratio == pytest.approx(1.5)
    assert scores.overconfidence(DEFAULTS) == pytest.approx((0.9 + 0.9 + 0.8) / 3 - 2 / 3)
    assert scores.difference(DEFAULTS, BT) == "-0.500 ± 0.100"


def test_a_model_of_everybody_is_compared_with_baselines_of_everybody():
    models = {
        POOLED: -0.6,
        DEFAULTS: -0.4,
        COMMUNITIES: -0.5,
        CHOSEN: -0.45,
        BT: -0.7,
        BT_USERS: -0.3,
    }
    probs = {name: [np.array([0.7, 0.7])] for name in models}
    scores = scores_of(probs, {name: np.array([mean]) for name, mean in models.items()})
    assert scores.best_baseline(DEFAULTS) == BT_USERS
    assert scores.best_baseline(POOLED) == BT
    assert scores.choice_regret == pytest.approx(0.05)
    assert not scores.has_fixed
    assert scores.called(DEFAULTS) == "MultiUserGP"


@pytest.mark.parametrize("slope", [0.5, 1.0, 2.0])
def test_the_slope_says_how_timid_statements_are(slope):
    """Answers that follow `slope` times the logits; both orientations of a pair are the same."""
    rng = np.random.default_rng(0)
    stated = expit(rng.standard_normal(20_000))
    came = rng.random(len(stated)) < expit(slope * logit(stated))
    of_what_happened = np.where(came, stated, 1.0 - stated)
    assert tasks.recalibration_slope(of_what_happened) == pytest.approx(slope, abs=0.1)


def people_with_features(n_users=12, n_items=6, n_votes=40):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_items, 2))
    utility = 2.0 * (X @ [1.0, -1.0]) + 1.5 * rng.standard_normal((n_users, n_items))
    user = np.repeat(np.arange(n_users), n_votes)
    a = rng.integers(n_items, size=len(user))
    b = (a + 1 + rng.integers(n_items - 1, size=len(user))) % n_items
    won = utility[user, a] - utility[user, b] + rng.logistic(size=len(user)) > 0
    return tasks.split_people(X, user, np.where(won, a, b), np.where(won, b, a), rng)


def test_baselines_are_ridge_logistic_regressions():
    """The coefficients solve the penalised equations, of the ridge that was chosen."""
    problem = people_with_features()
    for name, fit in problem.baselines().items():
        model = fit()
        A = model.design(tasks.Asked.of(problem.train)).toarray()
        pull = A.T @ expit(-A @ model.coef)  # of the likelihood, against the penalty coef / C
        ridge = (pull @ model.coef) / (model.coef @ model.coef)
        np.testing.assert_allclose(pull, ridge * model.coef, atol=2e-2 * np.abs(pull).max())
        assert ridge > 0
        asked = tasks.Asked.of(problem.test)
        p = model.predict_proba(asked.pairs, asked.users)
        turned = model.predict_proba(asked.pairs[:, ::-1], asked.users)
        np.testing.assert_allclose(p + turned, 1.0)
        assert np.log(p).mean() > np.log(0.5), name
    assert list(problem.baselines()) == [BT, BT_USERS, BT_FEATURES]


def test_baselines_take_covariates_and_the_order_shown():
    rng = np.random.default_rng(1)
    length = rng.standard_normal(400)
    data = Comparisons.from_pairs(
        np.zeros(400, dtype=int),
        np.ones(400, dtype=int),
        first=np.where(rng.random(400) < 0.9, 1, -1),
        covariates={"length": np.where(rng.random(400) < 0.8, 1, -1) * np.abs(length)},
    )
    model = tasks.Problem(data, data).baselines()[BT]()
    shown = {"covariates": {"length": np.zeros(2)}, "first": np.array([1, -1])}
    p = model.predict_proba(np.array([[0, 1], [0, 1]]), **shown)
    assert p[0] > p[1]
    shown = {"covariates": {"length": np.array([1.0, -1.0])}, "first": np.zeros(2)}
    p = model.predict_proba(np.array([[0, 1], [0, 1]]), **shown)
    assert p[0] > p[1]


def test_people_meet_all_models_and_baselines():
    problem = people_with_features()
    scores = tasks.score([problem], fixed=False)
    models = {DEFAULTS, COMMUNITIES, POOLED, CHOSEN, BT, BT_USERS, BT_FEATURES}
    assert set(scores.log_likelihoods) == models
    assert scores.choice_regret >= 0.0
    (row,) = (row for row in scores.rows() if row[0] == BT_USERS)
    less = scores.log_likelihoods[DEFAULTS] - scores.log_likelihoods[BT_USERS]
    assert row[3] == f"{less[0]:+.3f} ± 0.000"


def test_a_fit_that_takes_too_long_is_given_up():
    with pytest.raises(TimeoutError, match="not finished"), tasks.at_most(0.01):
        sleep(10.0)


def test_drift_that_was_given_up_is_said_to_be(monkeypatch, capsys):
    """It is not tried again in the next round, and has no scores."""
    monkeypatch.setattr(tasks, "SLOW", 1e-3)
    rounds = (twins.players(seed, True) for seed in range(2))
    monkeypatch.setattr(defaults, "TASKS", {"players": lambda page: rounds})
    (scores,) = defaults.table(["players"], quick=True).values()
    assert len(scores.probs[DRIFTING]) == 1
    assert len(scores.probs[DEFAULTS]) == 2
    assert DRIFTING not in [row[0] for row in scores.rows()]
    assert f"| players | {DRIFTING} | not finished |" in capsys.readouterr().out


@pytest.mark.parametrize("name", twins.TWINS)
def test_twins_are_drawn_anew_by_seed_and_small_for_quick_runs(name):
    draw = twins.TWINS[name]
    one, same, other = draw(0, True), draw(0, True), draw(1, True)
    assert one.train.winner.tolist() == same.train.winner.tolist()
    assert one.train.winner.tolist() != other.train.winner.tolist()
    assert one.train.items == one.test.items
    assert one.X is None or len(one.X) == one.train.n_items
    assert one.train.n_comparisons < 1_000
    assert one.train.users == one.test.users


def test_whole_choices_and_their_pairs_hold_out_the_same_choices():
    whole, pairs = (twins.choices(each)(0, True) for each in (True, False))
    assert whole.train.rankings is not None
    assert pairs.train.rankings is None
    for column in ("winner", "loser", "user", "count"):
        for part in ("train", "test"):
            one, two = (getattr(getattr(each, part), column) for each in (whole, pairs))
            np.testing.assert_array_equal(one, two)


def test_verdicts_are_counted_of_choices_and_their_pairs(monkeypatch):
    small = {"no groups, small": twins.Crowd(30, 10, 5, 1.0)}
    monkeypatch.setattr(twins, "CROWDS", small)
    rows = twins.verdicts(2)
    assert [row[:3] for row in rows] == [
        ["no groups, small", "whole choices", 2],
        ["no groups, small", "as pairs", 2],
    ]
    for row in rows:
        assert len(row) == len(twins.VERDICT_HEAD)
        assert sum(row[3:6]) == 2


def test_groups_of_a_crowd_have_one_taste():
    """Nearly without noise, people of one group choose alike from the same four."""
    data = twins.Crowd(30, 3, 4, 50.0, groups=3).choices(0)
    for group in range(3):
        favourites = {
            tuple(np.flatnonzero(np.bincount(data.for_user(user).winner, minlength=4)))
            for user in range(group, 30, 3)
        }
        assert len(favourites) == 1


def test_opinions_never_contradict_themselves():
    """Of one person, statements stand in at most three levels: pairs make no circle."""
    problem = twins.opinions(0, True)
    data = problem.train + problem.test
    for user in range(data.n_users):
        own = data.for_user(user)
        above = np.zeros((data.n_items, data.n_items), dtype=bool)
        above[own.winner, own.loser] = True
        path = above.astype(int)
        assert not (path @ path @ path).any()  # no chain of four levels


def test_a_set_is_found_by_how_its_name_begins():
    assert defaults.sets_called(["twin: op", "twin: opinions"]) == ["twin: opinions"]
    assert len(defaults.sets_called(["twin:"])) == len(twins.TWINS)
    with pytest.raises(DataError, match="no set begins"):
        defaults.sets_called(["nobody"])


def test_a_table_of_one_set_for_quick_use(capsys):
    found = defaults.table(["twin: linear utility, 50"], n_rounds=1, quick=True)
    (name,) = found
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[-1].startswith(f"| {name} | PreferenceGP | ")
    problem = defaults.problem(name, 0, quick=True)
    assert problem.train.winner.tolist() == twins.TWINS[name](0, True).train.winner.tolist()


def test_the_goals_lines_are_claims():
    """One set of people: the default loses .1 to a baseline, is timid, and is not chosen."""
    models = {
        POOLED: -0.6,
        DEFAULTS: -0.4,
        COMMUNITIES: -0.3,
        CHOSEN: -0.4,
        BT: -0.7,
        BT_USERS: -0.3,
    }
    probs = {name: [np.repeat([0.6, 0.4], [9, 1])] for name in models}
    scores = scores_of(probs, {name: np.array([mean]) for name, mean in models.items()})
    page = Page("Apples", "", quick=False, out=None)
    defaults.claim_baselines(page, {"apples": scores})
    loss, slope, choice = page.claims
    assert [each.verdict for each in page.claims] == ["not confirmed"] * 3
    assert "at most 0.100 (apples: MultiUserGP); beyond on 2 of 4" in loss.found
    assert slope.needs[1].value == pytest.approx(logit(0.9) / logit(0.6), rel=1e-3)
    assert choice.needs[0].value == pytest.approx(0.1)


def test_stand_ins_do_not_carry_the_name_of_a_public_set(tmp_path, monkeypatch):
    monkeypatch.setenv("PENCHANT_DATA", str(tmp_path))
    p = {name: [np.array([0.9])] for name in (DEFAULTS, FREE, BT)}
    scores = scores_of(p, {name: np.array([-0.1]) for name in p})
    monkeypatch.setattr(defaults, "score", lambda rounds, fixed: scores)
    monkeypatch.setattr(
        defaults, "verdicts", lambda *_: [["no groups, twelve items", "as pairs", 1, 0, 1, 0, 1.0]]
    )
    text = defaults.run(quick=True)
    headings = [line for line in text.splitlines() if line.startswith("##")]
    assert "## simulated papers, true links, 10 pairs" in headings
    assert "## simulated rankings, each person" in headings
    for name in ("Cora", "OHSUMED", "sushi", "cars 1"):
        assert f"## {name}," not in text
        assert f"| {name}" not in text
    assert "| not confirmed |" not in text
    assert "| confirmed |" not in text


def test_items_with_links_meet_every_choice():
    """Also what a model learned is told: here that links and features are both there."""
    X, ring = np.arange(12.0)[:, None], np.roll(np.eye(12), 1, axis=1)
    known, asked = (
        Comparisons.from_pairs(first, second, items=range(12))
        for first, second in ((np.arange(11), np.arange(1, 12)), ([0, 2], [5, 9]))
    )
    told = tasks.score([tasks.Problem(known, asked, X, relations={"ring": ring + ring.T})])
    models = {DEFAULTS, tasks.OLD_FEATURES, tasks.FEATURES, BOTH, LINKS, BT, BT_FEATURES}
    assert set(told.errors) == models
    assert told.errors[DEFAULTS][0] == 0.0
    assert told.learned[DEFAULTS].startswith("features 0.")
    assert ", ring 0." in told.learned[DEFAULTS]
    assert np.array_equal(told.before, told.all_probs(BOTH))


def test_people_are_predicted_by_every_covariance():
    drawn = tasks.simulated_people("alike")(np.random.default_rng(0))
    assert list(drawn.fixed()) == [INDEPENDENT, FREE]
    asked = tasks.Asked.of(drawn.test)
    assert len(asked.pairs) == len(asked.users) == drawn.test.n_comparisons
    p = drawn.fixed()[INDEPENDENT]().predict_proba(asked.pairs, asked.users)
    assert np.mean(p < 0.5) < 0.3


N_USERS, N_FILMS = 12, tasks.MOVIELENS_FILMS + 5


@pytest.fixture(scope="module")
def films():
    """Everybody rated all films but the last few, which hardly anybody has seen."""
    rng = np.random.default_rng(3)
    user, item = map(np.ravel, np.indices((N_USERS, N_FILMS)))
    seen = (item < tasks.MOVIELENS_FILMS) | (user < 2)
    user, item = user[seen], item[seen]
    return MovieLens(
        user=user,
        item=item,
        rating=rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], len(user), p=[0.1, 0.1, 0.2, 0.35, 0.25]),
        titles=tuple(f"film {i}" for i in range(N_FILMS)),
        genres=rng.integers(2, size=(N_FILMS, 3)).astype(float),
        genre_names=("a", "b", "c"),
        user_features=np.zeros((N_USERS, 1)),
        user_feature_names=("none",),
    )


def test_ratings_are_chained_within_a_person_the_better_one_first(films):
    rated = tasks.FilmRatings.of(films)
    assert len(rated.user) == N_USERS * tasks.MOVIELENS_FILMS
    best, worst = rated.pairs(np.random.default_rng(0))
    assert len(best) == N_USERS * (tasks.MOVIELENS_FILMS - 1)
    assert np.array_equal(rated.user[best], rated.user[worst])
    assert (rated.rating[best] >= rated.rating[worst]).all()
    assert np.bincount(np.concatenate([best, worst])).max() == 2
    drawn = tasks.people_of_movielens(films)(np.random.default_rng(0))
    n_different = int(np.sum(rated.rating[best] != rated.rating[worst]))
    assert drawn.train.n_comparisons + drawn.test.n_comparisons == n_different


def test_simulated_ratings_have_the_steps_of_the_real_ones(films):
    whole, rounded, _, real, kept = film_trials(films)
    assert kept.keeps_ties
    assert not real.keeps_ties
    assert len(np.unique(whole.rated.rating)) == len(whole.rated.rating)
    steps, real_steps = (np.unique_counts(each.rated.rating).counts for each in (rounded, real))
    assert np.abs(steps - real_steps).max() <= 1
    order = np.argsort(whole.rated.rating)
    assert (np.diff(rounded.rated.rating[order]) >= 0.0).all()


@pytest.mark.slow
def test_a_trial_tells_of_pairs_that_differ(films):
    """Ties are learned from, but only pairs that differ are predicted."""
    *_, real, kept = film_trials(films)
    rows = [trial.row() for trial in (real, kept)]
    assert [row[:2] for row in rows] == [["MovieLens", "left out"], ["MovieLens", "kept"]]
    assert int(rows[0][2]) < int(rows[1][2]) == N_USERS * (tasks.MOVIELENS_FILMS - 1)
    # these tastes are pure chance, but who was low once has more room above
    assert all(0.1 < float(row[3]) < 0.45 for row in rows)
