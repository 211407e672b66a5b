"""Asking and telling through the models of many users."""

import numpy as np
import pytest

import penchant as pc
from penchant.ask import CRITERIA
from penchant.communities import Answers, MixtureData
from penchant.gp import ItemHyper, Settings
from penchant.kernels import RBF, Independent
from tests.simulation import DRINKS as ITEMS
from tests.simulation import opposite_votes

pytestmark = pytest.mark.filterwarnings("ignore::penchant.errors.ConvergenceWarning")
USERS = [f"user {u:02d}" for u in range(12)]


def votes(n_each=8):
    return opposite_votes(USERS, n_each)


def multi_user(**how):
    return pc.MultiUserGP(**{"optimize": None, "progress": False, "random_state": 0, **how})


def community(**how):
    quick = {"inference": "mcmc", "n_sweeps": 12, "n_chains": 2, "progress": False}
    return pc.CommunityGP(**{**quick, "random_state": 0, **how})


MODELS = {
    "MultiUserGP": multi_user,
    "CommunityGP": community,
    "CommunityGP with personal taste": lambda: community(personal=True, n_chains=1),
}
TIGHT = Settings(tolerance=1e-9)
MORE = opposite_votes(["user 00", "user 05", "user 10"], 4, seed=9)
NEW = opposite_votes(["eva", "zoe"], 6, seed=8)


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS)
def fitted(request):
    return request.param().fit(None, votes())


def everybodys(model):
    """(n_users, n_items) utilities of all users."""
    return model.predict(users=model.comparisons_.users)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_asks_for_distinct_pairs_by_name(fitted, criterion):
    for user in (None, "user 03", 3):
        pairs = fitted.ask(4, criterion, user=user)
        assert len({frozenset(pair) for pair in pairs}) == 4
        assert {item for pair in pairs for item in pair} <= set(ITEMS)
    assert fitted.ask(4, criterion, user=3) == fitted.ask(4, criterion, user="user 03")


def test_the_question_is_the_best_about_that_user(fitted):
    pairs = np.array([(i, j) for i in range(5) for j in range(i + 1, 5)])
    for user in (0, 1):
        mean, var = fitted.belief(user).difference(pairs[:, 0], pairs[:, 1])
        best = pairs[np.argmax(var / (mean**2 + 1e-12 * fitted.belief(user).var.max()))]
        assert set(fitted.ask(user=user)[0]) == {ITEMS[i] for i in best}


def test_telling_moves_the_belief(fitted):
    favourite = fitted.predict(users="user 02").argmax()
    other = ITEMS[(favourite + 2) % 5]
    chance = fitted.predict_proba([(other, ITEMS[favourite])], "user 02")[0]
    fitted.tell([(other, ITEMS[favourite])] * 4, user="user 02")
    assert fitted.predict_proba([(other, ITEMS[favourite])], "user 02")[0] > chance
    fitted.undo()


def test_new_users_may_answer(fitted):
    fitted.tell(NEW)
    data = fitted.comparisons_
    assert data.users[-2:] == ("eva", "zoe")
    assert fitted.predict(users="eva").shape == (1, 5)
    assert fitted.predict(users="eva")[0].argmax() in (0, 1)  # she answers like the even users
    assert fitted.ask(2, user="zoe")
    fitted.tell([("tea", "wine")], user="eva")
    assert fitted.comparisons_.for_user("eva").n_comparisons == 7
    fitted.undo().undo()


def test_a_mistake_changes_nothing(fitted):
    before = fitted.state_
    tied = pc.Comparisons.from_pairs(["tea"], ["milk"], tie=[True], user=["user 00"])
    for wrong, why in (
        (lambda: fitted.ask(user="nobody"), "nobody"),
        (lambda: fitted.tell([("tea", "milk")]), "do not say who"),
        (lambda: fitted.tell(tied), "tie"),
        (fitted.undo, "no tell to undo"),
    ):
        with pytest.raises(pc.DataError, match=why):
            wrong()
    assert fitted.state_ is before


@pytest.mark.parametrize("more", [MORE, NEW, MORE + NEW], ids=["known", "new", "both"])
@pytest.mark.parametrize("how", [{}, {"sparse": (9, 5)}, {"inference": "laplace"}], ids=str)
def test_multi_user_telling_equals_a_refit(more, how):
    told = multi_user(**how).fit(None, votes()).tell(more, reconverge=True)
    refit = multi_user(**how).fit(None, votes() + more)
    ours, theirs = (m.predict(users=m.comparisons_.users, return_std=True) for m in (told, refit))
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    np.testing.assert_allclose(told.belief(3).covariance(), refit.belief(3).covariance(), atol=1e-6)
    assert told.log_evidence_ == pytest.approx(refit.log_evidence_, abs=1e-6)
    assert told.comparisons_ == refit.comparisons_


def test_multi_user_telling_with_learned_hyperparameters_keeps_them():
    model = multi_user(optimize="evidence", kernel=Independent()).fit(None, votes())
    kernel, sharing = model.kernel_, model.sharing_
    model.tell(MORE, reconverge=True)
    fixed = multi_user(kernel=kernel, sharing=sharing, user_kernel=model.user_kernel_)
    refit = fixed.fit(None, votes() + MORE)
    np.testing.assert_allclose(everybodys(model), everybodys(refit), rtol=1e-6, atol=1e-6)
    assert model.kernel_ is kernel


def test_multi_user_rank_one_updates_are_close_and_counted():
    model = multi_user().fit(None, votes())
    settled = everybodys(model.tell(MORE, reconverge=True))
    absorbed = everybodys(model.undo().tell(MORE, reconverge=False))
    assert model.n_pending_sites_ == MORE.n_comparisons
    before = everybodys(model.undo())
    assert np.abs(absorbed - settled).max() < 0.2 * np.abs(settled - before).max()
    model.tell(MORE, reconverge=False).tell(NEW, reconverge=True)
    assert model.n_pending_sites_ == 0
    refit = multi_user().fit(None, votes() + MORE + NEW)
    np.testing.assert_allclose(everybodys(model), everybodys(refit), atol=1e-6)


def test_multi_user_with_features_of_users_wants_those_of_new_ones():
    features = np.random.default_rng(0).standard_normal((12, 2))
    model = multi_user(user_kernel=RBF()).fit(None, votes(), user_features=features)
    refit = multi_user(user_kernel=RBF()).fit(None, votes() + MORE, user_features=features)
    np.testing.assert_allclose(everybodys(model.tell(MORE)), everybodys(refit), atol=1e-6)
    with pytest.raises(pc.DataError, match="fold_in"):
        model.tell(NEW)
    folded = model.undo().fold_in(NEW, np.zeros((2, 2)))
    assert folded.tell([("tea", "milk")], user="eva").predict(users="eva").shape == (1, 5)


def test_folding_in_keeps_the_rows_of_sites_and_data_together():
    """Whatever the order in which the newcomers' comparisons name the items."""
    model = multi_user().fit(None, votes())
    columns = ([NEW.items[i] for i in column] for column in (NEW.winner, NEW.loser))
    who = {"user": [NEW.users[i] for i in NEW.user], "count": NEW.count}
    turned = pc.Comparisons.from_pairs(*columns, items=ITEMS[::-1], **who)
    folded = model.fold_in(turned)
    np.testing.assert_allclose(everybodys(folded), everybodys(model.fold_in(NEW)), atol=1e-9)
    told = folded.tell(MORE, reconverge=True)
    refit = multi_user().fit(None, votes() + NEW + MORE)
    np.testing.assert_allclose(everybodys(told), everybodys(refit), atol=1e-6)


@pytest.mark.parametrize("personal", [False, True])
def test_communities_are_what_the_same_draws_say_of_all_answers(personal):
    model = community(personal=personal).fit(None, votes())
    draws, kernel = model.draws_, model.kernel_
    model.tell(MORE + NEW, reconverge=True)
    everything = votes() + MORE + NEW
    np.testing.assert_allclose(
        model.membership_, draws.membership(Answers.of(everything)), atol=1e-6
    )
    assert model.draws_ is draws
    assert model.kernel_ is kernel
    counts = np.ascontiguousarray((Answers.of(everything).counts.T @ model.membership_).T)
    hyper = ItemHyper(model.kernel_, model.likelihood_)
    universe = model.posteriors_[0].universe
    mixture = MixtureData(Answers.of(everything), universe, hyper)
    from penchant.communities.chains import fit_reported

    refit = fit_reported(mixture, counts, mixture.hyper.theta, own=False)
    for ours, theirs in zip(model.posteriors_, refit, strict=True):
        np.testing.assert_allclose(ours.mean, theirs.posterior.mean, atol=1e-6)
        np.testing.assert_allclose(ours.covariance(), theirs.posterior.covariance(), atol=1e-6)
    if personal:
        from penchant.communities.population import user_problem
        from penchant.gp import Rows, UserHyper, solve

        old = model.personal_
        problem = user_problem(old.items, model.membership_, Rows.by_user(everything), TIGHT)
        hyper = UserHyper(old.kernel, old.user_kernel, old.sharing, old.likelihood)
        again = problem.posterior(solve(problem, hyper)).utilities(np.arange(14))
        np.testing.assert_allclose(everybodys(model), again.mean, atol=1e-6)


def test_communities_that_do_not_reconverge_keep_their_utilities():
    model = community().fit(None, votes())
    posteriors, placed = model.posteriors_, model.tell(MORE).membership_
    model.undo().tell(MORE, reconverge=False)
    assert model.posteriors_ is posteriors
    np.testing.assert_array_equal(model.membership_, placed)


def test_who_changes_sides_is_seen_to():
    model = community().fit(None, votes())
    before = model.membership_[0].argmax()
    turned = [(ITEMS[j], ITEMS[i]) for i in range(5) for j in range(i + 1, 5)]
    model.tell(turned * 3, user="user 00")
    assert model.membership_[0].argmax() != before


@pytest.mark.parametrize(
    "model",
    [multi_user(optimize="evidence", kernel=Independent()), community(n_sweeps=6, n_chains=1)],
    ids=str,
)
def test_hyperparameters_are_learned_again_on_schedule(model):
    model.fit(None, votes())
    n_learned = model.state_.n_learned
    model.tell(MORE, relearn=0.2)
    assert model.state_.n_learned == n_learned  # 12.5 % more
    kernel = model.kernel_
    model.tell(NEW, relearn=0.2)
    assert model.state_.n_learned == model.comparisons_.n_comparisons
    learned = model.kernel_
    assert not np.array_equal(learned.theta, kernel.theta)
    model.undo()
    assert model.state_.n_learned == n_learned


def test_relearned_multi_user_hyperparameters_are_those_of_a_fit():
    how = {"optimize": "evidence", "kernel": Independent()}
    model = multi_user(**how).fit(None, votes()).tell(MORE, relearn=0.0)
    refit = multi_user(**how).fit(None, votes() + MORE)
    np.testing.assert_allclose(model.kernel_.theta, refit.kernel_.theta, atol=1e-6)
    np.testing.assert_allclose(everybodys(model), everybodys(refit), atol=1e-6)


def test_chains_go_on_with_what_was_told_and_folded_in():
    data = votes(n_each=20)
    silent = pc.Comparisons.from_table(data._table(), data.items, (*data.users, "mute"))
    model = community().fit(None, silent).fold_in(NEW)
    model.tell([("tea", "wine")] * 3, user="mute").resume(8)
    assert model.sampled_ == model.comparisons_
    assert all(len(chain.state.assignment) == 15 for chain in model.chains_)
    assert model.n_communities_ == 2
    sides = model.membership_.argmax(axis=1)
    assert (sides[0:12:2] == sides[0]).all()
    assert (sides[1:12:2] == sides[1]).all()
    assert sides[0] != sides[1]
    assert np.isfinite(model.report_.log_joint[0]).all()
    model.resume(4)  # and again, from there
    assert len(model.report_.log_joint[0]) > 8
