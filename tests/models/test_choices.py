"""Rankings and choices through the models: telling, taking back, saving, scoring, asking."""

from itertools import combinations

import numpy as np
import pytest

import penchant as pc
from penchant.models import choice_log_predictive

N = 9


def orders(rng, m, k, f):
    sets = [rng.choice(N, k, replace=False) for _ in range(m)]
    return [s[np.argsort(-(1.7 * f[s] + rng.gumbel(size=k)))].tolist() for s in sets]


def choices(rng, m, f, user=None):
    ranked = orders(rng, m, 4, f)
    who = None if user is None else [user] * m
    return pc.Comparisons.from_choices([r[0] for r in ranked], ranked, user=who, items=range(N))


@pytest.fixture
def world():
    rng = np.random.default_rng(0)
    return rng, rng.normal(size=N)


@pytest.fixture
def answers(world):
    rng, f = world
    ranked = pc.Comparisons.from_rankings(orders(rng, 20, 4, f), items=range(N))
    pairs = pc.Comparisons.from_pairs([0, 1], [2, 3], items=range(N))
    return ranked + choices(rng, 10, f) + pairs


@pytest.fixture
def theirs(world):
    rng, f = world
    users = [f"u{k % 5}" for k in range(20)]
    ranked = pc.Comparisons.from_rankings(orders(rng, 20, 4, f), items=range(N), users=users)
    return ranked + pc.Comparisons.from_pairs([0, 1], [2, 3], user=["u0", "u1"], items=range(N))


def fitted(model, data):
    return model(optimize=None, random_state=0).fit(None, data)


@pytest.mark.parametrize("reconverge", [None, False, True])
def test_telling_choices_is_a_refit(world, answers, reconverge):
    rng, f = world
    more = choices(rng, 3, f)
    told = fitted(pc.PreferenceGP, answers).tell(more, reconverge=reconverge)
    again = fitted(pc.PreferenceGP, answers + more)
    assert told.comparisons_ == again.comparisons_
    np.testing.assert_allclose(told.predict(), again.predict(), atol=1e-6)
    assert told.log_evidence_ == pytest.approx(again.log_evidence_, abs=1e-6)


def test_pairs_told_beside_choices_keep_the_choices(answers):
    gp = fitted(pc.PreferenceGP, answers).tell([(4, 5)], reconverge=False)
    assert gp.n_pending_sites_ == 1
    gp.tell([(5, 6)], reconverge=True)
    more = pc.Comparisons.from_pairs([4, 5], [5, 6], items=range(N))
    again = fitted(pc.PreferenceGP, answers + more)
    np.testing.assert_allclose(gp.predict(), again.predict(), atol=1e-6)


def test_many_users_tell_withdraw_and_fold_in(world, theirs):
    rng, f = world
    more = choices(rng, 2, f, user="u3")
    told = fitted(pc.MultiUserGP, theirs).tell(more)
    again = fitted(pc.MultiUserGP, theirs + more)
    users = list(theirs.users)
    np.testing.assert_allclose(told.predict(users=users), again.predict(users=users), atol=1e-6)
    told.withdraw(more)
    back = fitted(pc.MultiUserGP, theirs)
    np.testing.assert_allclose(told.predict(users=users), back.predict(users=users), atol=1e-6)
    late = choices(rng, 4, f, user="new")
    folded = back.fold_in(late + pc.Comparisons.from_pairs([1], [0], user=["new"], items=range(N)))
    votes = folded.state_.learned.problem.edges
    sites = folded.posterior_.sites
    assert (sites.user == votes.user).all()
    assert (sites.winner == votes.winner).all()
    whole = fitted(pc.MultiUserGP, folded.comparisons_)
    mine, exact = (m.predict(users=["new"])[0] for m in (folded, whole))
    assert np.corrcoef(mine, exact)[0, 1] > 0.95


def test_a_ranking_scores_as_its_choices(answers):
    gp = fitted(pc.PreferenceGP, answers)
    ranked = pc.Comparisons.from_rankings([[0, 1, 2]], items=range(N))
    stage = pc.Comparisons.from_choices([0], [[0, 1, 2]], items=range(N))
    both = 0.5 * gp.score(stage) + 0.5 * np.log(gp.predict_proba([(1, 2)])[0])
    assert gp.score(ranked) == pytest.approx(both, abs=1e-9)


def test_foreseen_choices_are_the_softmax_averaged_over_the_posterior(world, answers):
    rng, f = world
    gp = pc.PreferenceGP(likelihood="logit", optimize=None).fit(None, answers)
    new = choices(rng, 150, f)
    draws = gp.posterior_.sample(4000, np.random.default_rng(1))
    expected, total = 0.0, 0
    for places, _, count in new.named_rankings(tied=False):
        names = [i for place in places for i in place]
        odds = np.exp(draws[:, names])
        expected += count * np.log((odds[:, 0] / odds.sum(axis=1)).mean())
        total += count
    assert gp.score(new) == pytest.approx(expected / total, abs=0.02)


def test_probabilities_of_all_choices_add_up_to_one(answers):
    gp = fitted(pc.PreferenceGP, answers)

    def foresee(pairs, who):
        win = gp.predict_proba(pairs)
        return win, 1.0 - win

    for taken in (1, 2, 3):
        total = 0.0
        for chosen in combinations(range(4), taken):
            data = pc.Comparisons.from_choices([chosen], [range(4)], items=range(N))
            total += np.exp(choice_log_predictive(data.rankings, foresee)[0][0])
        assert total == pytest.approx(1.0, abs=1e-12)


def test_likelihoods_that_know_pairs_alone_refuse_choices(answers):
    lapse = pc.likelihoods.Lapse(pc.likelihoods.Probit())
    with pytest.raises(pc.DataError, match="as_pairs"):
        pc.PreferenceGP(likelihood=lapse).fit(None, answers)
    gp = pc.PreferenceGP(likelihood=lapse, optimize=None).fit(None, answers.as_pairs())
    with pytest.raises(pc.DataError, match="as_pairs"):
        gp.tell(answers)
    with pytest.raises(pc.DataError, match="pairs alone"):
        gp.ask(k_items=3)


def test_learning_from_rankings_recovers_the_order(world):
    rng, f = world
    data = pc.Comparisons.from_rankings(orders(rng, 120, 5, f), items=range(N))
    gp = pc.PreferenceGP(random_state=0).fit(None, data)
    assert np.corrcoef(gp.predict(), f)[0, 1] > 0.95
    assert gp.report_.converged


@pytest.mark.parametrize("size", [2, 3, 5])
def test_sets_are_asked_and_their_answers_told(answers, size):
    gp = fitted(pc.PreferenceGP, answers)
    sets = gp.ask(3, "information_gain", k_items=size, random_state=0)
    assert [len(set(items)) for items in sets] == [size] * 3
    assert sets == gp.ask(3, "information_gain", k_items=size, random_state=0)
    before = gp.posterior_.contrast_var.mean()
    told = pc.Comparisons.from_choices([items[0] for items in sets], sets, items=range(N))
    assert gp.tell(told).posterior_.contrast_var.mean() < before


@pytest.mark.parametrize(
    "damage",
    [
        *(("item", wrong) for wrong in ([0, 1, 99], [0, 1, 1], [2, 1, 0])),
        *(("place", wrong) for wrong in ([0, 0, 0], [1, 2, 3], [0, 2, 3])),
        *(("start", wrong) for wrong in ([0, 2], [1, 3])),
        *((name, [wrong]) for name, wrong in (("count", 0), ("tied", 1), ("user", 0))),
    ],
    ids=str,
)
def test_damaged_rankings_in_a_file_are_refused(damage, tmp_path):
    data = pc.Comparisons.from_rankings([[0, 1, 2]], items=range(3))
    model = pc.PreferenceGP(optimize=None).fit(None, data)
    name, wrong = damage
    object.__setattr__(model.state_.learned.data.rankings, name, np.array(wrong))
    model.save(tmp_path / "model")
    with pytest.raises(pc.DataError, match="not sound"):
        pc.load(tmp_path / "model")
