"""A session: what was asked and told can be played again, to the same bits, with every model."""

import json

import numpy as np
import pytest

import penchant as pc
from penchant.ask import Budget, Rules, Session, Setup, SmallGain, TopSettled
from penchant.errors import DataError, DataWarning
from penchant.kernels import RBF
from penchant.likelihoods import Ties

pytestmark = pytest.mark.filterwarnings("ignore::penchant.errors.ConvergenceWarning")
NAMES = ["tea", "milk", "water", "juice", "wine", "beer"]


def votes(n_users=6, n_each=8, seed=0):
    rng = np.random.default_rng(seed)
    f = rng.standard_normal((n_users, 6)) + 2.0 * rng.standard_normal(6)
    user = np.repeat(np.arange(n_users), n_each)
    a = rng.integers(6, size=len(user))
    b = (a + rng.integers(1, 6, size=len(user))) % 6
    first = f[user, a] - f[user, b] + rng.standard_normal(len(user)) > 0
    winner, loser = np.where(first, a, b), np.where(first, b, a)
    return pc.Comparisons.from_pairs(
        [NAMES[i] for i in winner],
        [NAMES[i] for i in loser],
        user=[f"user {u}" for u in user],
        items=NAMES,
    )


def preference_gp():
    X = np.random.default_rng(1).standard_normal((6, 2))
    return pc.PreferenceGP(RBF(1.0, 2.0), optimize=None, random_state=0).fit(X, votes())


def multi_user_gp():
    return pc.MultiUserGP(optimize=None, progress=False, random_state=0).fit(None, votes())


def community_gp(**how):
    how = {"progress": False, "random_state": 0, **how}
    return pc.CommunityGP(**how).fit(None, votes())


MODELS = {
    "PreferenceGP": (preference_gp, None),
    "MultiUserGP": (multi_user_gp, "user 2"),
    "CommunityGP": (community_gp, "user 2"),
    "CommunityGP with personal taste": (lambda: community_gp(personal=True), "user 2"),
}
every_model = pytest.mark.parametrize(("make", "user"), MODELS.values(), ids=MODELS)


def play(session, n_rounds=5, seed=0):
    """Somebody answers, sometimes wrongly, takes one answer back, and goes on."""
    rng = np.random.default_rng(seed)
    for number in range(n_rounds):
        pairs = session.ask(1 + number % 2)
        session.tell([pair if rng.random() < 0.7 else pair[::-1] for pair in pairs])
        if number == 2:
            session.undo()
    return session


def bits(session):
    belief = session.model.belief(session.setup.user)
    return belief.mean.tobytes(), belief.covariance().tobytes()


@every_model
@pytest.mark.parametrize("criterion", ["variance_ratio", "thompson"])
def test_a_replay_gives_the_same_bits(make, user, criterion, tmp_path):
    setup = Setup(criterion, Rules(random_share=0.3, exposure=1), (Budget(9),), user, seed=7)
    session = play(Session(make(), setup, tmp_path / "log"))
    from_memory = Session.replay(json.loads(json.dumps(session.events)), make())
    from_file = Session.replay(tmp_path / "log", make())
    assert bits(session) == bits(from_memory) == bits(from_file)
    assert session.n_answers == from_file.n_answers
    assert from_file.setup == setup
    session.close()
    assert from_file.ask() == from_memory.ask()
    from_file.close()
    with pytest.raises(DataError, match="somebody else has written"):
        session.ask()


@every_model
def test_a_replay_on_a_reloaded_model_gives_the_same_bits(make, user, tmp_path):
    model = make()
    model.save(tmp_path / "model")
    session = play(Session(model, Setup(user=user)))
    again = Session.replay(session.events, pc.load(tmp_path / "model"))
    assert bits(session) == bits(again)


@every_model
def test_undoing_everything_is_where_it_began(make, user):
    session = Session(make(), Setup(user=user))
    before = bits(session)
    for _ in range(3):
        session.tell(session.ask())
    assert bits(session) != before
    session.undo().undo().undo()
    assert bits(session) == before
    assert session.n_answers == 0
    with pytest.raises(DataError, match="nothing to undo"):
        session.undo()


def test_the_log_goes_on_after_a_replay(tmp_path):
    play(Session(preference_gp(), log=tmp_path / "log"))
    before = (tmp_path / "log").read_text()
    session = Session.replay(tmp_path / "log", preference_gp())
    assert (tmp_path / "log").read_text() == before
    session.ask()
    after = (tmp_path / "log").read_text()
    assert after.startswith(before)
    assert len(after.splitlines()) == len(before.splitlines()) + 1 == len(session.events)


def test_ties_margins_counts_and_new_users_survive_the_log(tmp_path):
    data = pc.Comparisons.from_pairs(
        ["tea", "milk"], ["milk", "water"], tie=[False, True], user=["ann", "bob"], items=NAMES
    )

    def model():
        return pc.MultiUserGP(likelihood=Ties(0.5), optimize=None, progress=False).fit(None, data)

    session = Session(model(), log=tmp_path / "log")
    more = pc.Comparisons.from_pairs(
        ["wine", "tea"], ["beer", "beer"], tie=[True, False], count=[2, 3], user=["zoe", "cem"]
    )
    session.tell(more)
    again = Session.replay(tmp_path / "log", model())
    assert again.model.comparisons_ == session.model.comparisons_
    assert again.model.comparisons_.users == ("ann", "bob", "cem", "zoe")
    assert session.n_answers == 5
    scores = pc.Comparisons.from_pairs(["tea"], ["milk"], margin=[0.1 + 0.2], items=NAMES)
    gaussian = pc.PreferenceGP(likelihood="gaussian", optimize=None).fit(None, scores)
    told = Session(gaussian).tell(scores)
    column = json.loads(json.dumps(told.events[-1]))["margin"]
    assert column == [0.1 + 0.2]


def test_hyperparameters_are_learned_again_on_the_schedule_of_the_setup():
    X = np.random.default_rng(1).standard_normal((6, 2))

    def model():
        return pc.PreferenceGP(RBF(), random_state=0).fit(X, votes())

    session = Session(model(), Setup(relearn=0.1))
    start, n_learned = session.model.kernel_, session.model.state_.n_learned
    while session.model.comparisons_.n_comparisons < 1.1 * n_learned:
        assert session.model.kernel_ is start
        session.tell(session.ask())
    assert session.model.state_.n_learned == session.model.comparisons_.n_comparisons
    assert not np.array_equal(session.model.kernel_.theta, start.theta)
    assert bits(Session.replay(session.events, model())) == bits(session)
    session.undo()
    assert session.model.kernel_ is start


def test_nobody_is_asked_the_same_thing_twice_in_a_row_but_after_an_undo():
    session = Session(preference_gp())
    (first,) = session.ask()
    (second,) = session.ask()
    assert set(first) != set(second)
    session.tell([second])
    (third,) = session.ask()
    assert set(third) != set(second)
    session.undo()
    assert session.ask() == [first]  # as if nothing had been asked


def test_answers_are_those_of_the_user_of_the_setup():
    model = multi_user_gp()
    before = model.comparisons_.for_user("user 2").n_comparisons
    Session(model, Setup(user="user 2")).tell([("tea", "milk")])
    assert model.comparisons_.for_user("user 2").n_comparisons == before + 1
    with pytest.raises(DataError, match="do not say who"):
        Session(multi_user_gp()).tell([("tea", "milk")])
    with pytest.raises(DataError, match="takes everybody together"):
        Session(preference_gp(), Setup(user="user 2")).ask()


def test_floors_count_what_the_user_has_seen():
    model = multi_user_gp()
    newcomer = pc.Comparisons.from_pairs(["tea"], ["milk"], user=["eva"])
    model.tell(newcomer)
    session = Session(model, Setup(user="eva", rules=Rules(exposure=1)))
    asked = set()
    for _ in range(4):
        asked |= set(session.ask()[0])
        session.tell([session.events[-1]["pairs"][0]])
    assert {"water", "juice", "wine", "beer"} <= asked


def test_stop_rules_are_checked_and_the_end_is_the_end(tmp_path):
    rules = (Budget(1), TopSettled(k=3, level=0.9999), SmallGain(10.0))
    session = Session(preference_gp(), Setup(stop=rules), tmp_path / "log")
    assert [verdict.stop for verdict in session.verdicts()] == [False, False, True]
    session.tell(session.ask())
    assert session.verdicts()[0].stop
    session.stop("budget spent")
    assert session.is_stopped
    for step in (session.ask, session.undo, session.stop, lambda: session.tell([("tea", "milk")])):
        with pytest.raises(DataError, match="budget spent"):
            step()
    assert Session.replay(tmp_path / "log", preference_gp()).is_stopped


def test_how_many_answers_are_left():
    session = Session(preference_gp(), Setup(stop=(Budget(5),)))
    assert session.answers_left() == (5, 5, 5)
    session.tell(session.ask(2))
    assert session.answers_left() == (3, 3, 3)
    left = session.answers_left(TopSettled(k=1, level=0.8))
    assert left.low is None or left.low >= 0
    with pytest.raises(DataError, match="no stop rule"):
        Session(preference_gp()).answers_left()


def test_a_log_must_be_one_and_fit_the_model(tmp_path):
    log = tmp_path / "log"
    session = play(Session(preference_gp(), log=log))
    with pytest.raises(DataError, match="holds a session already"):
        Session(preference_gp(), log=log)
    with pytest.raises(DataError, match="other comparisons"):
        Session.replay(log, session.model)
    with pytest.raises(DataError, match="no file"):
        Session.replay(tmp_path / "nothing", preference_gp())
    session.close()
    log.write_text(log.read_text()[:-20])
    with pytest.warns(DataWarning, match="was cut off and is left out"):
        again = Session.replay(log, preference_gp())
    assert again.events == session.events[:-1]
    with pytest.raises(DataError, match="does not begin with a session"):
        Session.replay([{"kind": "ask", "pairs": []}], preference_gp())


def test_a_replay_on_another_model_of_the_same_data_is_found_out():
    session = play(Session(preference_gp()))
    other = pc.PreferenceGP(RBF(0.3, 9.0), optimize=None).fit(
        np.random.default_rng(5).standard_normal((6, 2)), votes()
    )
    with pytest.raises(DataError, match="not the one that the session began with"):
        Session.replay(session.events, other)


def test_names_must_survive_the_log():
    data = pc.Comparisons.from_pairs([("a", 1)], [("b", 2)])
    with pytest.raises(DataError, match="text or numbers"):
        Session(pc.PreferenceGP(optimize=None).fit(None, data))
