"""Many items: nearly what an exact fit says, at a cost that grows with the answers alone."""

import numpy as np
import pytest

import penchant as pc
import penchant.study as ps
from penchant.ask import Joint, TopSettled
from penchant.likelihoods import Probit, Ties
from penchant.study.store import studies

SETTINGS = {"likelihood": "probit", "optimize": None}


def simulated(n_items, n_answers, tie_below=0.0, seed=0):
    rng = np.random.default_rng(seed)
    worth = 1.3 * rng.standard_normal(n_items)
    first = rng.integers(n_items, size=n_answers)
    second = (first + rng.integers(1, n_items, size=n_answers)) % n_items
    apart = worth[first] - worth[second] + rng.standard_normal(n_answers)
    winner, loser = np.where(apart > 0.0, [first, second], [second, first])
    tie = np.abs(apart) < tie_below if tie_below else None
    return pc.Comparisons.from_pairs(winner, loser, tie=tie, items=range(n_items))


def shown(belief):
    return belief.mean - belief.mean.mean(), np.sqrt(belief.contrast_var)


@pytest.mark.parametrize("tie_below", [0.0, 0.4])
def test_beliefs_are_nearly_those_of_an_exact_fit(tie_below):
    data = simulated(400, 2400, tie_below)
    kept = {"likelihood": Ties(0.4) if tie_below else "probit", "optimize": None}
    kernel = pc.kernels.Independent(1.7)
    one = ps.fit_many(data, kept | {"kernel": kernel}).belief()
    other = pc.PreferenceGP(kernel, clustered=False, **kept).fit(None, data).belief()
    (mean, sd), (exact_mean, exact_sd) = shown(one), shown(other)
    assert np.abs(mean - exact_mean).max() < 0.02
    assert sd == pytest.approx(exact_sd, rel=0.02)
    some = np.random.default_rng(1).permutation(400)[:100]
    joint = Joint(one.mean[some], one.covariance(some), one.likelihood)
    pairs = some[:50], some[50:]
    exact = np.sqrt(other.difference(*pairs).var)
    local = joint.difference(np.arange(50), np.arange(50, 100))
    assert np.sqrt(one.difference(*pairs).var) == pytest.approx(exact, rel=0.04)
    assert np.sqrt(local.var) == pytest.approx(exact, rel=0.04)
    compared = data.winner[:50], data.loser[:50]
    assert np.sqrt(one.difference(*compared).var) == pytest.approx(
        np.sqrt(other.difference(*compared).var), rel=0.04
    )


def test_hyperparameters_are_nearly_those_of_an_exact_fit():
    data = simulated(200, 3000, 0.4)
    settings = {"likelihood": "ties", "optimize": "evidence"}
    model = ps.fit_many(data, settings)
    exact = pc.PreferenceGP(random_state=0, **settings).fit(None, data)
    assert model.kernel_.variance == pytest.approx(exact.kernel_.variance, rel=0.05)
    assert model.likelihood_.threshold == pytest.approx(exact.likelihood_.threshold, rel=0.05)


def test_an_item_that_nobody_compared_has_the_prior():
    data = pc.Comparisons.from_pairs(["a"], ["b"], items=["a", "b", "c"])
    belief = ps.fit_many(data, SETTINGS).belief()
    assert belief.mean[2] == 0.0
    assert belief.var.tolist()[2] == 1.0 > belief.var[0]
    assert belief.mean[0] > 0.0 > belief.mean[1]


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr("penchant.study.many.MANY_ITEMS", 20)
    monkeypatch.setattr("penchant.study.learner.MOST_ITEMS", 20)


@pytest.mark.parametrize(
    ("form", "size", "goal"), [("pair", 2, "best"), ("best", 4, "order"), ("rank", 3, "order")]
)
def test_a_study_of_many_items_learns_asks_and_replays(
    voting, few_are_many, same_ranking, form, size, goal
):
    names = [f"item {k}" for k in range(40)]
    study = voting(
        items=names, format=form, size=size, goal=goal, answers_per_person=None, repeat_share=0.0
    )
    worth = {row.id: k for k, row in enumerate(study.read(studies.items_of))}
    worker, folk = study.worker(), [study.join() for _ in range(3)]
    for n in (4, 16, 20):
        for person in folk:
            study.answer_by(person, n, worth.get, tie_every=7 if form == "pair" else 0)
            worker.step()
    study.undo(folk[0])
    worker.step()
    learner = worker.learner
    assert isinstance(learner.model, ps.ManyItemsModel)
    ranking = learner.ranking()
    assert np.corrcoef([worth[row["item"]] for row in ranking], np.arange(40))[0, 1] < -0.6
    same_ranking(ranking, ps.replayed(study.database, "drinks").ranking())
    study.saved(worker)
    restarted = study.worker().learner
    assert restarted.learned == learner.learned
    same_ranking(ranking, restarted.ranking())
    (question,) = study.turn(folk[0]).questions
    assert question.kind in ("normal", "random")
    assert question.model_version is not None


def test_of_many_items_those_that_may_be_best_are_asked_about(few_are_many):
    n = 200
    belief = Joint(np.linspace(0.0, 4.0, n), 0.2 * np.eye(n), Probit())
    items = [f"{k:03d}" for k in range(n)]
    asked = ps.best_questions(belief, items, ps.Config("Which?"), 3)
    assert min(map(min, asked)) > "150"
    everything = ps.best_questions(belief, items, ps.Config("Which?", goal="order"), 30)
    assert min(map(min, everything)) < "100"


def test_nothing_is_known_before_the_first_answer(voting, few_are_many):
    study = voting(items=[f"item {k}" for k in range(30)])
    worker, person = study.worker(), study.join()
    worker.step()
    assert len(study.turn(person, 2).questions) == 2
    assert not TopSettled(1).check(worker.learner.belief(), 0, np.random.default_rng(0)).stop
