"""Answers of wrong kinds, in wrong orders, from several threads: refused or counted, never lost."""

from threading import Barrier, Thread

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from threadpoolctl import threadpool_info, threadpool_limits

import penchant as pc
from penchant.kernels import Independent

NAMES = ["tea", "milk", "water", "ab"]
DATA = pc.Comparisons.from_pairs(
    ["tea", "milk", "water", "tea"],
    ["milk", "water", "ab", "water"],
    user=["ann", "bob", "ann", "bob"],
    items=NAMES,
)


def pooled():
    return pc.PreferenceGP(Independent(2.0), optimize=None).fit(None, DATA)


def people():
    return pc.MultiUserGP(Independent(2.0), optimize=None, progress=False).fit(None, DATA)


def groups():
    return pc.CommunityGP(optimize=None, progress=False, random_state=0).fit(None, DATA)


WRONG = [
    *(None, 5, 2.5, True, "ab", b"ab", object(), ["ab"], [None], [5], [], iter([]), [("tea",)]),
    *([("tea", other)] for other in (None, float("nan"), "coffee", "tea", ["milk"])),
    *([(0, other)] for other in (1.5, -1, 99)),
    *([("tea", "milk", "water")], [[("tea", "milk")]]),
    *({"tea": "milk"}, {"winner": ["tea"], "loser": ["milk"]}),
    *(np.zeros((2, 3)), np.array(3), np.array([["tea", "coffee"]]), np.array([[0.5, 1.0]])),
]


@pytest.mark.parametrize("make", [pooled, people, groups])
@pytest.mark.parametrize("verb", ["tell", "withdraw"])
def test_what_is_no_answer_is_refused_and_changes_nothing(make, verb):
    model = make()
    before, data = model.predict().tobytes(), model.comparisons_
    user = {} if make is pooled else {"user": "ann"}
    step = getattr(model, verb)
    for wrong in WRONG:
        with pytest.raises(pc.DataError) as refused:
            step(wrong, **user)
        assert len(str(refused.value)) > 20
        assert model.comparisons_ is data
    assert model.predict().tobytes() == before


@pytest.mark.parametrize("pairs", [None, 5, "ab", ["ab"], [None], object(), [("tea",)]])
def test_what_is_no_pair_is_refused_in_predictions_too(pairs):
    with pytest.raises(pc.DataError, match="pairs must be"):
        pooled().predict_proba(pairs)


def test_a_name_of_two_letters_is_a_name():
    assert pooled().tell([("ab", "tea")]).comparisons_.n_comparisons == 5


@pytest.mark.parametrize("make", [pooled, people])
def test_threads_that_tell_one_model_lose_nothing(make):
    """Also in the middle of predictions; BLAS has as many threads afterwards as before."""
    model, start, errors = make(), Barrier(5), []
    user = {} if make is pooled else {"user": "ann"}

    def tell(number):
        try:
            start.wait()
            for k in range(4):
                a, b = divmod(3 * number + k, 4)
                model.tell([(NAMES[a % 4], NAMES[b if b != a % 4 else (b + 1) % 4])], **user)
        except Exception as error:
            errors.append(error)

    def look():
        start.wait()
        for _ in range(10):
            odds = model.predict_proba([("tea", "milk")], ties=True)
            if not abs(odds.sum() - 1.0) < 1e-9:
                errors.append(odds)

    with threadpool_limits(2):
        limits = [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()]
        threads = [Thread(target=tell, args=(number,)) for number in range(4)]
        threads.append(Thread(target=look))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()] == limits
    assert not errors
    assert model.comparisons_.n_comparisons == 4 + 4 * 4
    refit = make().fit(None, model.comparisons_)
    assert model.predict() == pytest.approx(refit.predict(), abs=1e-5)


@pytest.mark.parametrize("make", [pooled, people])
@pytest.mark.parametrize("verb", ["fit", "tell", "withdraw"])
def test_an_interrupt_leaves_the_model_as_it_was(make, verb, monkeypatch):
    from penchant.gp import loop

    model = make()
    before, data = model.predict().tobytes(), model.comparisons_
    n_left = [2]
    real = loop.scaled_moves

    def interrupted(*args):
        n_left[0] -= 1
        if n_left[0] < 0:
            raise KeyboardInterrupt
        return real(*args)

    user = {} if make is pooled else {"user": "ann"}
    other = pc.Comparisons.from_pairs(["x", "y", "x"], ["y", "z", "y"], user=["p", "q", "q"])
    steps = {
        "fit": lambda: model.fit(None, other),
        "tell": lambda: model.tell([("ab", "tea"), ("ab", "milk"), ("ab", "water")], **user),
        "withdraw": lambda: model.withdraw([("tea", "milk")], **user),
    }
    with monkeypatch.context() as patched:
        patched.setattr(loop, "scaled_moves", interrupted)
        if verb != "fit":
            n_left[0] = 0
        with pytest.raises(KeyboardInterrupt):
            steps[verb]()
    assert model.comparisons_ is data
    assert model.predict().tobytes() == before
    steps[verb]()


class AnyOrder(RuleBasedStateMachine):
    """tell, withdraw and undo in any order are a refit on what is left."""

    make = staticmethod(pooled)
    users = (None,)

    @initialize()
    def begin(self):
        self.model = self.make()
        self.data, self.before = self.model.comparisons_, []

    def _answers(self, pair, user, count):
        names = {} if user is None else {"user": [user]}
        return pc.Comparisons.from_pairs(pair[:1], pair[1:2], count=[count], items=NAMES, **names)

    @rule(
        pair=st.permutations(NAMES),
        who=st.integers(0, 2),
        count=st.integers(1, 3),
        reconverge=st.sampled_from([None, True]),
    )
    def tell(self, pair, who, count, reconverge):
        answers = self._answers(pair, self.users[who % len(self.users)], count)
        self.before.append(self.model.comparisons_)
        self.model.tell(answers, reconverge=reconverge)

    @precondition(lambda self: self.model.comparisons_.n_comparisons > 2)
    @rule(row=st.integers(0, 10**6), all_of_it=st.booleans())
    def withdraw(self, row, all_of_it):
        data = self.model.comparisons_
        row %= len(data)
        count = int(data.count[row]) if all_of_it else 1
        if count == data.n_comparisons:
            return
        user = None if data.user is None else data.users[data.user[row]]
        pair = [data.items[data.winner[row]], data.items[data.loser[row]]]
        self.before.append(data)
        self.model.withdraw(self._answers(pair, user, count))

    @precondition(lambda self: self.before)
    @rule()
    def undo(self):
        self.model.undo()
        assert self.model.comparisons_ == self.before.pop()

    @invariant()
    def equals_a_refit(self):
        if not hasattr(self, "model"):
            return
        data = self.model.comparisons_
        refit = self.make().fit(None, data)
        assert self.model.predict() == pytest.approx(refit.predict(), abs=2e-6)
        for user in data.users if self.users[0] else (None,):
            seen, known = self.model.belief(user), refit.belief(user)
            assert seen.mean == pytest.approx(known.mean, abs=2e-6)
            np.testing.assert_allclose(seen.covariance(), known.covariance(), atol=2e-6)
        assert self.model.score(DATA) == pytest.approx(refit.score(DATA), abs=2e-6)


class AnyOrderOfPeople(AnyOrder):
    make = staticmethod(people)
    users = ("ann", "bob", "zoe")


SMALL = settings(max_examples=10, stateful_step_count=6, deadline=None, derandomize=True)
AnyOrder.TestCase.settings = SMALL
AnyOrderOfPeople.TestCase.settings = settings(SMALL, max_examples=5)
TestAnyOrder, TestAnyOrderOfPeople = AnyOrder.TestCase, AnyOrderOfPeople.TestCase
