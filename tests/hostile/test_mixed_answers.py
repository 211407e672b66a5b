"""Answers of several kinds at once: rankings beside ties, raters, effects, people who agree."""

import re

import numpy as np
import pytest

import penchant as pc
from penchant.data import ChoiceStages
from penchant.errors import DataError
from penchant.gp import Rows, edges_of_stages
from penchant.models import share_of_ties

MODELS = (pc.PreferenceGP, pc.MultiUserGP, pc.CommunityGP)


def drinks(**people):
    """Two rankings, a win and a tie."""
    rankings = [["tea", "milk", "water"], ["tea", ["milk", "juice"], "water"]]
    users = ["ann", "bob"] if people else None
    pairs = pc.Comparisons.from_pairs(
        ["tea", "milk"],
        ["milk", "juice"],
        tie=[False, True],
        user=["ann", "bob"] if people else None,
    )
    return pairs + pc.Comparisons.from_rankings(rankings, users=users)


def fitted(estimator, data, **settings):
    quiet = {} if estimator is pc.PreferenceGP else {"progress": False}
    return estimator(random_state=0, **quiet, **settings).fit(None, data)


@pytest.mark.parametrize("estimator", MODELS)
def test_ties_of_pairs_stand_beside_rankings(estimator):
    """A tie's place among the pairs is none among the edges of choices, which follow them."""
    model = fitted(estimator, drinks(people=True), likelihood="ties")
    assert model.rank()[0].item == "tea"
    assert model.tell(drinks(people=True)).rank()[0].item == "tea"


def test_a_share_of_ties_is_one_of_pairs():
    model = fitted(pc.PreferenceGP, drinks(), likelihood="ties")
    assert share_of_ties(model.state_.learned.problem) == 0.5


@pytest.mark.parametrize("estimator", [pc.PreferenceGP, pc.MultiUserGP])
@pytest.mark.parametrize("raters", ["lapse", "noise"])
def test_raters_are_not_judged_by_rankings(estimator, raters):
    with pytest.raises(DataError, match=r"explains pairs alone.*no raters=.*as_pairs"):
        fitted(estimator, drinks(people=True), likelihood="ties", raters=raters)
    pairs = drinks(people=True).as_pairs()
    assert fitted(estimator, pairs, likelihood="ties", raters=raters).rank()[0].item == "tea"


def random_rankings(rng, n_users=30, n_items=6):
    utility = np.array([2.0, 1.0, 0.5, 0.0, -1.0, -2.0])
    noise = rng.gumbel(size=(n_users, n_items))
    return np.argsort(-(utility + noise), axis=1)


def test_choices_as_pairs_are_the_pairs_that_they_decide(rng):
    orders = random_rankings(rng).tolist()
    orders[0] = [orders[0][:2], *orders[0][2:]]
    data = pc.Comparisons.from_rankings(orders, users=range(len(orders)))
    broken, votes = data.as_pairs(), Rows.by_user(data).as_pairs()
    said = zip(votes.user, votes.winner, votes.loser, strict=True)
    decided = ~broken.tie  # a place that two share says nothing of these two
    columns = (broken.user, broken.winner, broken.loser)
    each = sum((k - 1) * 2 / k for k in range(2, 7))  # a pair of a choice of k counts 2/k times
    assert votes.count[votes.user == 1].sum() == pytest.approx(each)
    assert sorted(said) == sorted(zip(*(column[decided] for column in columns), strict=True))
    assert votes.outcomes.cliques is None


def left_out(data):
    word = fitted(pc.MultiUserGP, data).report_.optimizer
    return [float(score) for score in re.findall(r"-\d\.\d+", word.split(";")[0])]


def test_the_covariance_of_items_does_not_depend_on_their_order(rng):
    """Edges of choices run from the earlier item to the later, which is no victory of either."""
    orders = random_rankings(rng)
    users = range(len(orders))
    scores = left_out(pc.Comparisons.from_rankings(orders.tolist(), users=users, items=range(6)))
    other = pc.Comparisons.from_rankings((5 - orders).tolist(), users=users, items=range(6))
    assert len(scores) > 1
    assert max(scores) > np.log(0.5)
    np.testing.assert_allclose(left_out(other), scores, atol=2e-3)


def test_personal_taste_keeps_its_file_whatever_else_the_answers_tell(tmp_path):
    """What was shown is nothing that personal taste learned from, so its file knows of none."""
    told = {"covariates": {"length": [0.5, -0.3, 0.1, 0.9]}}
    data = pc.Comparisons.from_pairs([0, 0, 1, 0], [1, 2, 2, 1], user=[0, 1, 0, 0], **told)
    model = fitted(pc.CommunityGP, data, personal=True).tell(data)
    model.save(tmp_path / "model")
    again = pc.load(tmp_path / "model")
    assert again.predict().tobytes() == model.predict().tobytes()
    more = [(2, 1)]
    after = [each.tell(more, user=0).predict_proba([(0, 1)], users=[0]) for each in (again, model)]
    np.testing.assert_allclose(*after)


@pytest.mark.parametrize("n_users", [1, 12])
def test_people_who_agree_in_everything(n_users):
    users = np.repeat(np.arange(n_users), 3)
    data = pc.Comparisons.from_pairs([0, 0, 1] * n_users, [1, 2, 2] * n_users, user=users)
    model = fitted(pc.CommunityGP, data)
    assert model.verdict_ in ("too few", "personal")
    assert [row.item for row in model.rank()] == [0, 1, 2]


def test_rankings_too_long_for_memory_are_refused_before_it_is_taken():
    item = np.broadcast_to(np.arange(1001), (101, 1001))  # 50.6 million pairs in a few bytes
    stage = ChoiceStages(item, item == 0, np.ones(101, dtype=int), None)
    with pytest.raises(DataError, match=r"of up to 1001 items hold 50,550,500 .*as_pairs\(\)"):
        edges_of_stages([stage], 1001)
    n = 670  # a ranking holds (n + 1) n (n − 1) / 6 pairs within its choices
    with pytest.raises(DataError, match="of up to 670 items hold"):
        fitted(pc.PreferenceGP, pc.Comparisons.from_rankings([range(n)]))


def test_a_model_is_chosen_where_nobody_compares_what_others_do():
    users = np.repeat(np.arange(300), 3)
    data = pc.Comparisons.from_pairs(4 * users, 4 * users + np.tile([1, 2, 3], 300), user=users)
    # every answer follows from the others of the same person
    assert "log loss: gp" in pc.choose_model(data).why


def test_a_model_is_chosen_where_only_ties_could_be_foreseen():
    tie = [False, False, True]
    data = pc.Comparisons.from_pairs([0, 0, 1], [1, 2, 2], user=[0] * 3, tie=tie, users=[0, 1])
    assert pc.choose_model(data).name == "gp"
    users = np.repeat([0, 1, 2], 3)
    data = pc.Comparisons.from_pairs([0, 0, 1] * 3, [1, 2, 2] * 3, user=users, tie=[True] * 9)
    assert "too few of them decided" in pc.choose_model(data).why
