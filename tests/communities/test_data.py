"""Users × answers: the sparse table, the assignment step, choices that are taken whole."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import penchant as pc
from penchant.communities import (
    Answers,
    count_pairs,
    draw_labels,
    log_likelihoods,
    log_predictive,
    separate_pairs,
    soft_counts,
)
from penchant.data import Comparisons
from penchant.kernels import Independent
from penchant.likelihoods import Logit, Probit, Ties
from penchant.models import choice_log_predictive
from tests.communities import simulation
from tests.communities.simulation import choices_as_pairs, mixture_of, people, tastes

rows = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 3), st.booleans()).filter(
        lambda row: row[1] != row[2]
    ),
    min_size=1,
    max_size=40,
)


@given(rows)
@settings(max_examples=60, deadline=None)
def test_every_vote_is_counted_where_it_belongs(rows):
    user, winner, loser, tie = zip(*rows, strict=True)
    data = Comparisons.from_pairs(winner, loser, user=user, tie=tie, items=range(4), users=range(5))
    answers = Answers.of(data)
    dense = answers.counts.toarray()
    tie = np.zeros(answers.n_answers, bool)
    if answers.outcomes.tie is not None:
        tie = answers.outcomes.tie
    seen = {}
    for u, a in zip(*dense.nonzero(), strict=True):
        seen[(u, answers.winner[a], answers.loser[a], tie[a])] = dense[u, a]
    expected = {
        key[:4]: key[4]
        for key in zip(data.user, data.winner, data.loser, data.tie, data.count, strict=True)
    }
    assert seen == expected


def test_distinct_answers_are_the_same_sorted_or_not(monkeypatch, rng):
    winner, user = rng.integers(4, size=60), rng.integers(5, size=60)
    data = Comparisons.from_pairs(winner, (winner + 1) % 4, user=user, items=range(4))
    table = Answers.of(data)
    monkeypatch.setattr("penchant.communities.data.FEW_KEYS", 0)
    by_sorting = Answers.of(data)
    np.testing.assert_array_equal(table.counts.toarray(), by_sorting.counts.toarray())
    np.testing.assert_array_equal(table.keys, by_sorting.keys)


def test_counts_take_four_bytes_and_silent_users_have_empty_rows():
    data = Comparisons.from_pairs([0], [1], user=["b"], users=["a", "b", "c"])
    counts = Answers.of(data).counts
    assert counts.indices.dtype == counts.indptr.dtype == np.int32
    assert counts.data.dtype == np.float32
    assert np.diff(counts.indptr).tolist() == [0, 1, 0]


def test_margins_tell_answers_apart():
    data = Comparisons.from_pairs([0, 0], [1, 1], user=[0, 1], margin=[1.0, 2.0])
    assert Answers.of(data).n_answers == 2


def test_table_holds_log_probabilities_of_the_answers():
    data = Comparisons.from_pairs([0, 1], [1, 2], user=[0, 0], tie=[False, True])
    answers = Answers.of(data)
    f = np.array([[0.3, -0.2, 0.9]])
    likelihood = Ties()
    win = int(np.flatnonzero(~answers.outcomes.tie)[0])
    table = np.exp(answers.table(f, likelihood, likelihood.theta[None]))
    assert table[win, 0] == pytest.approx(likelihood.prob(np.array([0.5]), np.zeros(1))[0], 1e-6)
    assert table[1 - win, 0] == pytest.approx(
        likelihood.prob_tie(np.array([-1.1]), np.zeros(1))[0], 1e-6
    )


@pytest.fixture
def votes(rng):
    user, winner = rng.integers(50, size=400), rng.integers(6, size=400)
    loser = (winner + rng.integers(1, 6, size=400)) % 6
    return Answers.of(Comparisons.from_pairs(winner, loser, user=user, items=range(6)))


def test_log_likelihoods_are_sums_over_votes(votes, rng):
    f = rng.standard_normal((3, 6))
    table = votes.table(f, Probit(), np.zeros((3, 0)))
    found = log_likelihoods(votes.counts, table)
    dense = votes.counts.toarray().astype(float)
    for c in range(3):
        g = f[c][votes.winner] - f[c][votes.loser]
        np.testing.assert_allclose(found[:, c], dense @ Probit().log_prob(g).value, rtol=1e-5)


@pytest.mark.parametrize("size", [None, 7])
def test_counts_of_groups_are_a_one_hot_product(votes, rng, size, monkeypatch):
    """Added up by label, or by responsibility, of all users at once or of some at a time."""
    if size is not None:
        monkeypatch.setattr(Answers.shards, "__defaults__", (size,))
    assignment = rng.integers(3, size=votes.n_users).astype(np.int32)
    one_hot = np.eye(3)[assignment]
    expected = one_hot.T @ votes.counts.toarray()
    np.testing.assert_allclose(count_pairs(votes.counts, assignment, 3), expected)
    np.testing.assert_allclose(soft_counts(votes, one_hot), expected)


def test_users_are_drawn_with_the_right_probabilities(rng):
    weight, n = np.array([0.1, 0.1, 0.24]), 20_000
    drawn = np.bincount(draw_labels(np.tile(weight, (n, 1)), 1.0 - rng.random(n)), minlength=3)
    assert chisquare(drawn, n * weight / weight.sum()).pvalue > 1e-4


@pytest.mark.parametrize("uniform", [np.finfo(np.float32).tiny, 1.0])
def test_the_impossible_is_never_drawn(uniform):
    weights = np.array([[0.0, 1.0, 0.0]])
    assert draw_labels(weights, np.array([uniform])).tolist() == [1]


N = 7


def ranked(rng, f, n, k, users, **names):
    sets = [rng.choice(len(f), k, replace=False) for _ in range(n)]
    orders = [s[np.argsort(-(f[s] + rng.gumbel(size=k)))].tolist() for s in sets]
    return pc.Comparisons.from_rankings(orders, users=users, items=range(len(f)), **names)


@pytest.fixture
def mixed():
    """Rankings, best of 4, best and worst, ties inside, and single pairs, of some people."""
    rng = np.random.default_rng(5)
    f = rng.standard_normal(N)
    who = [f"u{k % 6}" for k in range(18)]
    data = ranked(rng, f, 18, 4, who)
    data += pc.Comparisons.from_choices(
        [0, 3, 2], [[0, 1, 2, 4], [1, 3, 5], [2, 6, 5]], user=["u0", "u1", "u1"]
    )
    data += pc.Comparisons.from_rankings([[[0, 1], 2, 5], [3, [4, 5], 6]], users=["u2", "u3"])
    return data + pc.Comparisons.from_pairs([0, 0, 2], [1, 3, 4], user=["u0", "u0", "u4"])


def crowd_of(data, likelihood):
    return mixture_of(data, Independent(1.3), likelihood)


def fit_to_the_end(model, weights):
    """A fit stops early: go on from where it is."""
    taste = None
    for _ in range(4):
        taste = model.fit(weights, taste)
    return taste


def test_one_community_is_the_laplace_fit_of_the_same_choices(mixed):
    for likelihood in (Logit(), Probit()):
        crowd = crowd_of(mixed, likelihood)
        model = crowd.model(crowd.hyper.theta)
        taste = fit_to_the_end(model, crowd.answers.count)
        how = {"inference": "laplace", "optimize": None, "clustered": False}
        whole = pc.PreferenceGP(Independent(1.3), likelihood=likelihood, **how)
        whole.fit(None, mixed.pooled())
        got, want = model.posterior(taste), whole.posterior_
        i, j = np.triu_indices(N, 1)
        np.testing.assert_allclose(got.difference(i, j), want.difference(i, j), atol=1e-6)
        assert taste.log_z == pytest.approx(whole.log_evidence_, abs=1e-6)


def test_slopes_in_answers_and_parameters_are_those_of_the_evidence(mixed):
    crowd = crowd_of(mixed, Probit())
    theta = crowd.hyper.theta
    model, weights = crowd.model(theta), crowd.answers.count

    def log_z(w, at=theta):
        return fit_to_the_end(crowd.model(at), w).log_z

    taste = fit_to_the_end(model, weights)
    slope, h = model.slope(taste), 1e-4
    for answer in range(0, len(weights), 4):
        shift = h * np.eye(len(weights))[answer]
        numeric = (log_z(weights + shift) - log_z(weights - shift)) / (2 * h)
        assert slope[answer] == pytest.approx(numeric, abs=1e-6)
    numeric = (log_z(weights, theta + h) - log_z(weights, theta - h)) / (2 * h)
    np.testing.assert_allclose(model.gradient((taste,)), [numeric], atol=1e-6)


def test_answers_hold_every_choice_of_everybody_once(mixed):
    answers = Answers.of(mixed)
    stages = mixed.rankings.stages()
    n_choices = sum(int(stage.count.sum()) for stage in stages)
    assert answers.counts[:, answers.n_pairs :].sum() == n_choices
    assert answers.counts[:, : answers.n_pairs].sum() == mixed.single_pairs().n_comparisons
    assert answers.outcomes.cliques.n_choices == n_choices


def test_a_choice_is_foreseen_as_models_score_it(mixed):
    answers = Answers.of(mixed)
    gp = pc.PreferenceGP(optimize=None, clustered=False).fit(None, mixed.pooled())
    table = log_predictive(gp.posterior_, answers)

    def odds(pairs, who):
        win, _, loss = np.transpose(gp.predict_proba(pairs, ties=True))
        return win, loss

    log_prob, count = choice_log_predictive(mixed.rankings, odds)
    n = answers.n_pairs
    assert answers.counts[:, n:] @ table[n:] @ np.ones(6) == pytest.approx(log_prob @ count)
    few = answers.take(np.array([1, 3])).compact()
    want = answers.counts[[1, 3]] @ table
    np.testing.assert_allclose(few.counts @ log_predictive(gp.posterior_, few), want, rtol=1e-6)
    assert few.n_answers < answers.n_answers


def two_camps(n_each):
    """Two camps of rankers of opposite taste, five rankings of four each; who is of the first."""
    rng = np.random.default_rng(0)
    f = 2.0 * rng.standard_normal(8)
    one, other = (
        ranked(rng, taste, 5 * n_each, 4, [f"{name}{k // 5}" for k in range(5 * n_each)])
        for name, taste in (("a", f), ("b", -f))
    )
    data = one + other
    return data, np.array([user[0] == "a" for user in data.users])


@pytest.fixture(scope="module")
def camps():
    return two_camps(15)


def test_two_camps_of_rankers_are_found():
    data, truth = two_camps(80)
    model = pc.CommunityGP(random_state=0).fit(None, data)
    assert model.comparisons_.rankings is not None
    assert model.n_communities_ == 2
    first = model.membership_.argmax(axis=1) == model.membership_[0].argmax()
    assert np.mean(first == truth) > 0.95
    pooled = pc.PreferenceGP(clustered=False).fit(None, data.pooled())
    assert model.score(data) > pooled.score(data.pooled()) + 0.1
    assert model.verdict_ == "supported"


def test_rankings_of_one_taste_are_no_sign_of_personal_taste():
    nats = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        data = ranked(rng, rng.standard_normal(8), 240, 6, [f"u{k // 4}" for k in range(240)])
        model = pc.CommunityGP(random_state=0).fit(None, data)
        assert model.n_communities_ == 1
        assert model.personal_ is None
        nats.append(model.support_.personal)
    assert np.mean(nats) < 0.0  # of one pair of every choice, which is a draw
    # their pairs, taken for separate answers, agree with themselves
    assert pc.CommunityGP(random_state=0).fit(None, data.as_pairs()).support_.personal > 20.0


def check_shares(pairs, f):
    """Every pair was won as often as utilities say, within four standard errors."""
    wins = np.zeros((4, 4))
    np.add.at(wins, (pairs.winner, pairs.loser), pairs.count)
    for i, j in combinations(range(4), 2):
        n = wins[i, j] + wins[j, i]
        p = 1.0 / (1.0 + np.exp(f[j] - f[i]))
        assert abs(wins[i, j] - n * p) < 4.0 * np.sqrt(n * p * (1.0 - p))


F = np.array([1.0, 0.0, -0.5, 0.3])


def test_a_pair_of_every_choice_is_a_pair_s_answer(rng):
    orders = np.argsort(-(F + rng.gumbel(size=(10_000, 4))), axis=1)
    users = np.arange(10_000) % 7
    data = pc.Comparisons.from_rankings(orders.tolist(), users=users, items=range(4))
    data += pc.Comparisons.from_pairs([3], [0], user=[0], items=range(4))
    pairs = separate_pairs(data)
    assert pairs.rankings is None
    assert pairs.n_comparisons == 3 * 10_000 + 1
    check_shares(pairs, F)


def test_a_pair_of_a_choice_of_several_at_once(rng):
    subsets = np.array([*combinations(range(4), 2)])
    weight = np.exp(F[subsets].sum(axis=1))
    chosen = subsets[rng.choice(6, 10_000, p=weight / weight.sum())].tolist()
    given = {"user": np.zeros(10_000, int), "items": range(4)}
    pairs = separate_pairs(pc.Comparisons.from_choices(chosen, [range(4)] * 10_000, **given))
    assert pairs.n_comparisons == 10_000
    check_shares(pairs, F)


def test_a_camp_believes_what_its_own_rankings_say(camps):
    data, _ = camps
    kernel, likelihood = Independent(1.3), Logit()
    settings = {"likelihood": likelihood, "optimize": None, "random_state": 0}
    model = pc.CommunityGP(kernel=kernel, personal=False, **settings).fit(None, data)
    camp = int(model.membership_[0].argmax())
    unsure = np.minimum(model.membership_, 1.0 - model.membership_).max()
    assert unsure < 1e-2
    mine = pc.Comparisons.from_rankings(
        [
            [place[0] for place in places]
            for places, who, count in data.named_rankings(tied=True)
            for _ in range(count)
            if who.startswith("a")
        ],
        items=data.items,
    )
    alone = pc.PreferenceGP(kernel, **settings).fit(None, mine).posterior_
    i, j = np.triu_indices(8, 1)
    got = model.posteriors_[camp].difference(i, j)
    np.testing.assert_allclose(got, alone.difference(i, j), atol=20 * unsure)


def test_more_rankings_and_fewer_are_placed_as_in_a_refit(camps):
    data, _ = camps
    settings = {"random_state": 0, "personal": False}
    model = pc.CommunityGP(**settings).fit(None, data)
    places = [names[0] for names in data.named_rankings(tied=True)[0][0]]
    more = pc.Comparisons.from_rankings([places], users=["new"], items=data.items)
    told = pc.CommunityGP(**settings).fit(None, data).tell(more)
    assert told.membership_.shape == (31, 2)
    assert told.comparisons_ == data.extend(more)
    told.withdraw(more)
    i, j = np.triu_indices(8, 1)
    pairs = np.column_stack([i, j])
    np.testing.assert_allclose(
        told.predict_proba(pairs, users="a1"), model.predict_proba(pairs, users="a1"), atol=1e-9
    )


def test_pairs_broken_out_of_choices_are_recognised():
    own = people(tastes(2, 6, 1.0), 60, 0.5)
    rankings = Comparisons.from_rankings(np.argsort(own, axis=1).tolist(), users=range(60))
    pairs = rankings.as_pairs()
    ranked = Comparisons.from_pairs(pairs.winner, pairs.loser, user=pairs.user)
    broken = [ranked, choices_as_pairs(own, 1, 6), choices_as_pairs(own, 5, 3)]
    single = [simulation.votes(own, n) for n in (2, 10, 40)]
    single.append(simulation.votes(own[:, :2], 20))
    assert all(Answers.of(data).are_broken_choices for data in broken)
    assert not any(Answers.of(data).are_broken_choices for data in single)
