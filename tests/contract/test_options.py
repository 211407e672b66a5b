"""Every option of the public estimators matters somewhere, and says no where it cannot.

`PARAMETERS` has a row for each constructor parameter, `KEYWORDS` one for each keyword of a public
method; a test walks the signatures and fails where a row is missing.
"""

import copy
import inspect
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import penchant as pc
from penchant.ask import Budget, Rules, SmallGain, StudyDesign, TopSettled, plan
from penchant.kernels import RBF, Independent

pytestmark = [
    pytest.mark.filterwarnings("ignore::penchant.errors.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::penchant.errors.DataWarning"),
]

UTILITIES = ("PreferenceGP", "MultiUserGP", "CommunityGP")
RANKERS = ("RankRLS", "KPCRank", "RankSVM")
ESTIMATORS = (*UTILITIES, *RANKERS, "PreferencePerceptron")

ITEMS, USERS = tuple("abcde"), tuple(f"user {k}" for k in range(8))
X = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 0.0], [3.0, 0.3], [4.0, 0.9]])
GRAPH = {"near": np.eye(5, k=1) + np.eye(5, k=-1)}
OTHER_GRAPH = {"near": np.ones((5, 5)) - np.eye(5)}
WIDER = {"near": np.eye(6, k=1) + np.eye(6, k=-1)}
TASTES = np.repeat([[0.0], [1.0]], 4, axis=0)
PAIRS = [(a, b) for a in ITEMS for b in ITEMS if a != b]


def answers(n=160, seed=0):
    """Two halves of opposite taste; the first shown and the longer are liked a little more."""
    rng = np.random.default_rng(seed)
    who = rng.integers(8, size=n)
    a = rng.integers(5, size=n)
    b = (a + rng.integers(1, 5, size=n)) % 5
    first, length = rng.choice([-1, 1], size=n), rng.standard_normal(n)
    gap = np.where(who < 4, 1.0, -1.0) * (a - b) + 0.5 * first + 0.5 * length
    lost = gap + rng.standard_normal(n) < 0
    sign = np.where(lost, -1, 1)
    return pc.Comparisons.from_pairs(
        [ITEMS[k] for k in np.where(lost, b, a)],
        [ITEMS[k] for k in np.where(lost, a, b)],
        user=[USERS[k] for k in who],
        first=first * sign,
        covariates={"length": length * sign},
        time=rng.integers(90, size=n).astype(float),
        items=ITEMS,
        users=USERS,
    )


DATA = answers()
PLAIN = DATA.bare()
MORE = answers(30, 1)
SINGLE = pc.Comparisons.from_pairs(["a"], ["e"], user=["user 5"], items=ITEMS, users=USERS)
NEW = pc.Comparisons.from_pairs(["a", "b"], ["e", "d"], user=["eva", "eva"], items=ITEMS)
BASE = {
    "PreferenceGP": {"optimize": None},
    "MultiUserGP": {"optimize": None, "progress": False},
    "CommunityGP": {"optimize": None, "progress": False, "personal": False},
}
MANY = np.random.default_rng(2).standard_normal((30, 3))
MANY_QUERIES = np.repeat(np.arange(5), 6)
MANY_GRADES = np.round(MANY @ [1.0, -0.5, 0.2] + np.sin(2 * MANY[:, 0]), 1)


# What an estimator says


def utilities(model):
    told = [model.predict_proba(PAIRS), *model.predict(return_std=True)]
    if model.comparisons_.users:
        told += [model.predict(users=USERS)]
    return told


def widths(model):
    return [row.high - row.low for row in model.rank()]


def best(model):
    return sorted((row.item, row.prob_best) for row in model.rank(n_samples=200))


def effort(model):
    return model.report_.optimizer, model.report_.n_evaluations


def communities(model):
    return [model.membership_, *utilities(model)]


def scores(model):
    return model.predict(MANY)


def weights(model):
    return model.coef_


def same(one, other):
    """Whether two answers are the same, whatever they consist of."""
    if isinstance(one, np.ndarray) != isinstance(other, np.ndarray):
        return False
    if isinstance(one, np.ndarray | float | int) and isinstance(other, np.ndarray | float | int):
        one, other = np.asarray(one), np.asarray(other)
        return one.shape == other.shape and np.allclose(one, other, rtol=1e-9, atol=1e-12)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


# The table of constructor parameters


@dataclass(frozen=True)
class Parameter:
    """value: one that changes what `look` sees, beside `base`. wrong: refused. idle: settings in
    which it cannot matter, refused. only_how: where it changes the work and not the answer."""

    value: object = None
    look: object = None
    base: dict = field(default_factory=dict)
    wrong: tuple = ()
    idle: tuple = ()
    only_how: bool = False
    timed: bool = False


NUMBER = ("x", None, -1, 0, float("nan"), True)
WHOLE = ("x", None, -1, 2.5, True)
WORD = ("nonsense", 3, True, [], {})
SEED = Parameter(1, best, wrong=("x", -1, 2.5, []))
KERNEL = Parameter(Independent(9.0), utilities, wrong=("rbf", 3, True, RBF))
LIKELIHOOD = Parameter("logit", utilities, wrong=(*WORD, None))
INFERENCE = Parameter("laplace", utilities, wrong=(*WORD, None))
OPTIMIZE = Parameter("evidence", utilities, wrong=WORD)
RATERS = Parameter("noise", utilities, wrong=WORD)
RESTARTS = Parameter(
    2,
    effort,
    {"optimize": "evidence"},
    wrong=WHOLE,
    idle=({"n_restarts": 2, "optimize": None}, {"n_restarts": 2, "optimize": "em"}),
)
PROGRESS = Parameter(True, only_how=True, wrong=("yes", None, 1))
ENGINE = Parameter(wrong=WORD, idle=({"engine": "ray"},), only_how=True)
ADDRESS = Parameter(wrong=(3, True), idle=({"address": "ray://here"},), only_how=True)
DEVICE = Parameter("cpu", only_how=True, wrong=("gpu", 3, True))
CHAINS = {"inference": "mcmc", "n_sweeps": 6, "n_chains": 1}
DURATION = Parameter(10.0, utilities, wrong=("x", -1, 0, True, 10**400), timed=True)
POSITIVE = ("x", 0, 2.5, True, None)
RANKER_PARAMETERS = {
    "kernel": Parameter("linear", scores, wrong=("x", 3, True)),
    "n_landmarks": Parameter(
        4, scores, wrong=POSITIVE[:4], idle=({"n_landmarks": 4, "kernel": "linear"},)
    ),
    "random_state": Parameter(1, scores, {"n_landmarks": 4}, wrong=("x", -1, 2.5)),
}

PARAMETERS = {
    "PreferenceGP": {
        "kernel": KERNEL,
        "likelihood": LIKELIHOOD,
        "inference": INFERENCE,
        "optimize": OPTIMIZE,
        "max_rank": Parameter(2, utilities, wrong=(0, *WHOLE[:1], *WHOLE[2:])),
        "clustered": Parameter(False, widths, wrong=("yes", None, 1)),
        "raters": RATERS,
        "drift": Parameter("ou", utilities, wrong=WORD, timed=True),
        "period": replace(
            DURATION,
            value=45.0,
            base={"drift": "ou"},
            idle=({"period": 5.0}, {"period": 5.0, "half_life": 3.0}),
        ),
        "half_life": replace(DURATION, idle=({"half_life": 5.0, "drift": "ou"},)),
        "device": DEVICE,
        "n_restarts": RESTARTS,
        "random_state": SEED,
    },
    "MultiUserGP": {
        "kernel": KERNEL,
        "user_kernel": Parameter(Independent(4.0), utilities, wrong=("rbf", 3, True)),
        "sharing": Parameter(0.9, utilities, wrong=(*NUMBER, 1.01)),
        "likelihood": LIKELIHOOD,
        "inference": INFERENCE,
        "optimize": OPTIMIZE,
        "sparse": Parameter((2, 3), utilities, wrong=(3, "ab", ("a", "b"), (1, 2, 3), (0, 2))),
        "sparse_rule": Parameter(
            "printed", utilities, {"sparse": (2, 3)}, WORD, ({"sparse_rule": "printed"},)
        ),
        "raters": RATERS,
        "max_user_rank": Parameter(
            1, utilities, {"user_features": TASTES}, POSITIVE[:4], ({"max_user_rank": 3},)
        ),
        "n_restarts": RESTARTS,
        "engine": ENGINE,
        "address": ADDRESS,
        "device": DEVICE,
        "progress": PROGRESS,
        "random_state": SEED,
    },
    "CommunityGP": {
        "concentration": Parameter(
            50.0, communities, CHAINS, wrong=("x", None, -1, 0, (1,), (1, 0), (1, 2, 3), True)
        ),
        "kernel": KERNEL,
        "likelihood": LIKELIHOOD,
        "inference": Parameter("mcmc", communities, {"n_sweeps": 6, "n_chains": 1}, wrong=WORD),
        "n_communities": Parameter(
            3, communities, wrong=POSITIVE[:4], idle=({**CHAINS, "n_communities": 2},)
        ),
        "sampler": Parameter("blocked", communities, CHAINS, wrong=(*WORD, None)),
        "personal": Parameter(True, utilities, wrong=("x", None, 3)),
        "n_sweeps": Parameter(
            10, communities, CHAINS, wrong=(1, "x", None, 2.5, True), idle=({"n_sweeps": 6},)
        ),
        "n_chains": Parameter(
            2, communities, CHAINS, wrong=(0, "x", None, 2.5, True), idle=({"n_chains": 1},)
        ),
        "hyperparameters": Parameter(
            "community", utilities, {**CHAINS, "optimize": "evidence"}, wrong=(*WORD, None)
        ),
        "optimize": Parameter("evidence", utilities, wrong=(*WORD, "em")),
        "max_rank": Parameter(
            2, utilities, wrong=POSITIVE[:4], idle=({"max_rank": 2, "personal": True},)
        ),
        "engine": ENGINE,
        "address": ADDRESS,
        "progress": PROGRESS,
        "random_state": SEED,
    },
    "RankRLS": {**RANKER_PARAMETERS, "alpha": Parameter(100.0, scores, wrong=NUMBER)},
    "KPCRank": {
        **RANKER_PARAMETERS,
        "n_components": Parameter(1, scores, wrong=POSITIVE),
        "max_components": Parameter(1, scores, wrong=POSITIVE),
        "selection": Parameter("truncate", scores, {"n_components": 2}, wrong=(*WORD, None)),
        "n_landmarks": replace(RANKER_PARAMETERS["n_landmarks"], idle=()),
    },
    "RankSVM": {
        **RANKER_PARAMETERS,
        "C": Parameter(100.0, scores, wrong=NUMBER),
        "max_pairs": Parameter(20, scores, wrong=POSITIVE),
        "tol": Parameter(0.5, scores, wrong=NUMBER),
        "max_iter": Parameter(1, scores, wrong=POSITIVE),
    },
    "PreferencePerceptron": {
        "k": Parameter(1, weights, wrong=POSITIVE),
        "feature_map": Parameter(
            lambda docs, order: np.sum(np.asarray(docs)[order], axis=0),
            weights,
            {"k": 2},
            wrong=("x", 3),
        ),
        "loss": Parameter("logistic", weights, wrong=(*WORD, None)),
        "update": Parameter("adaptive", weights, wrong=(*WORD, None)),
        "rate": Parameter(0.5, weights, wrong=NUMBER),
        "average": Parameter(True, scores, wrong=("yes", None, 1)),
        "exploration": Parameter(
            0.5, lambda model: model.present(MANY), wrong=("x", None, -1, 2, float("nan"), True)
        ),
        "dtype": Parameter("float32", lambda model: model.coef_.dtype, wrong=(*WORD, None)),
        "random_state": Parameter(
            1, lambda model: model.present(MANY), {"exploration": 0.5}, wrong=("x", -1, 2.5)
        ),
    },
}


def made(name, **settings):
    """A fitted estimator."""
    if name in UTILITIES:
        data, more = settings.pop("data", PLAIN), {}
        if "user_features" in settings:
            more["user_features"] = settings.pop("user_features")
        how = {"random_state": 0, **BASE[name], **settings}
        return getattr(pc, name)(**how).fit(X, data, **more)
    settings.pop("data", None)
    how = {"random_state": 0, **settings}
    if name == "PreferencePerceptron":
        return pc.PreferencePerceptron(**how).partial_fit(MANY, MANY_GRADES > 0, MANY_QUERIES)
    return getattr(pc, name)(**how).fit(MANY, MANY_GRADES, MANY_QUERIES)


fitted = cache(made)


EVERY = [(name, option) for name, options in PARAMETERS.items() for option in options]


def every_of(column):
    return [
        pytest.param(name, option, value, id=f"{name} {option} {value!r}")
        for name, option in EVERY
        for value in getattr(PARAMETERS[name][option], column)
    ]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_constructor_parameter_has_a_row(name):
    signature = inspect.signature(getattr(pc, name))
    assert set(signature.parameters) == set(PARAMETERS[name])
    for option, row in PARAMETERS[name].items():
        assert row.wrong, f"{option}: nothing is refused"
        assert row.only_how or row.look is not None, f"{option}: it never matters"


@pytest.mark.parametrize(("name", "option"), EVERY)
def test_every_parameter_matters(name, option):
    row = PARAMETERS[name][option]
    if row.look is None:
        if row.value is not None:  # the work is done elsewhere or shown, and comes out the same
            changed = made(name, **{option: row.value})
            assert same(utilities(changed), utilities(fitted(name)))
        return
    data = DATA if row.timed else PLAIN
    before, after = (
        row.look(made(name, data=data, **{**row.base, **more}))
        for more in ({}, {option: row.value})
    )
    assert not same(after, before)


@pytest.mark.parametrize(("name", "option", "value"), every_of("wrong"))
def test_wrong_values_are_refused(name, option, value):
    row = PARAMETERS[name][option]
    with pytest.raises(pc.DataError) as caught:
        made(name, data=DATA if row.timed else PLAIN, **{**row.base, option: value})
    assert option in str(caught.value), caught.value
    assert "must be" in str(caught.value), caught.value


@pytest.mark.parametrize(("name", "option", "settings"), every_of("idle"))
def test_parameters_that_cannot_matter_are_refused_or_warned_about(name, option, settings):
    caught = pytest.raises(pc.DataError, match=option)
    if option in ("n_sweeps", "n_chains"):  # one script may try both ways to infer
        caught = pytest.warns(pc.DataWarning, match=f"{option}=.* without effect")
    with caught:
        made(name, data=DATA if PARAMETERS[name][option].timed else PLAIN, **settings)


# The table of keywords


@dataclass(frozen=True)
class Keyword:
    """one, other: values that are answered differently, beside `base`. wrong: refused.

    needs: settings of the model that is asked.
    """

    one: object = None
    other: object = None
    wrong: tuple = ()
    base: dict = field(default_factory=dict)
    needs: tuple = ()


NO_FEATURES = ("x", 3, True, X[:3], [[np.nan, 1.0]] * 5)
NO_DATA = (None, 3, "x", [], PAIRS)
NO_GRAPHS = (3, ["near"], {"near": np.ones((2, 2))}, {"near": -np.ones((5, 5))}, {"near": 1})
NO_USER = ("nobody", ["user 5", "user 6"], [], 99, True)
NO_PAIRS = (None, 3, "ab", [("a",)], [("a", "b", "c")], [("a", "zz")], ["ab"])
DRIFT = (("drift", "ou"),)
LEARNED = (("optimize", "evidence"),)
LINKED = (("linked", True),)
ABOUT = (("about", True),)
BARE = (("bare", True),)


def given_by(user):
    """The pairs that a user decided."""
    mine = PLAIN.for_user(user)
    return [(ITEMS[w], ITEMS[k]) for w, k in zip(mine.winner, mine.loser, strict=True)]


GIVEN = given_by("user 1")
SHARED = next(pair for pair in GIVEN if pair in given_by("user 6"))

ASK = {
    "k": Keyword(1, 3, ("x", None, 0, 2.5, True, 99)),
    "criterion": Keyword("information_gain", "random", ("typo", None, 3, []), {"k": 3}),
    "k_items": Keyword(2, 3, ("x", None, 1, 2.5, True, 99)),
    "user": Keyword("user 1", "user 6", NO_USER, {"criterion": "expected_best", "k": 4}),
    "rules": Keyword(None, Rules(items=["d", "e"]), ("x", 3, {"items": ["a", "b"]})),
    "pending": Keyword((), lambda model: model.ask(), (*NO_PAIRS, [("a", "a")])),
    "random_state": Keyword(1, 4, ("x", -1, 2.5), {"criterion": "random", "k": 3}),
}
RANK = {
    "user": Keyword("user 1", "user 6", NO_USER),
    "level": Keyword(0.95, 0.5, ("x", None, 0, 1, 95, True, float("nan"))),
    "n_samples": Keyword(200, 400, ("x", None, 0, 2.5, True, 10**30)),
}
NO_TOLD = (*NO_PAIRS, [("a", "a")])
TELL = {
    "more": Keyword([("a", "e")], [("e", "a")], NO_TOLD, {"user": "user 1"}, BARE),
    "user": Keyword("user 1", "user 6", ([], ["user 1", "user 2"]), {"more": [("a", "e")]}, BARE),
    "reconverge": Keyword(True, False, ("x", 1, 0), {"more": SINGLE}, BARE),
    "relearn": Keyword(None, 0.0, ("x", -1, float("nan"), True), {"more": MORE}, LEARNED),
}
WITHDRAW = {
    "answers": Keyword([GIVEN[0]], [GIVEN[1]], (*NO_PAIRS, [("a", "a")]), {"user": "user 1"}, BARE),
    "user": Keyword("user 1", "user 6", NO_USER, {"answers": [SHARED]}, BARE),
}
OF_USERS = Keyword([[0.0]], [[1.0]], ("x", [[0.0, 1.0]], [[np.nan]]), needs=ABOUT)
PREDICT = {
    "X": Keyword(None, X[:2] + 0.1, ("x", 3, X[:, :1], [[np.nan, 1.0]])),
    "users": Keyword(None, ["user 1", "user 6"], ("nobody", [99], True)),
    "return_std": Keyword(False, True, ("x", None, 1)),
}
PREDICT_PROBA = {
    "pairs": Keyword([("a", "b")], [("a", "e")], NO_PAIRS),
    "users": Keyword("user 1", "user 6", (*NO_USER[:1], 99, True), {"pairs": [("a", "e")]}),
    "X": Keyword(X, X + 0.5 * X[:, ::-1], ("x", 3, True, X[:, :1]), {"pairs": [(0, 4)]}),
    "ties": Keyword(False, True, ("x", None, 1), {"pairs": [("a", "b")]}),
    "first": Keyword(1, -1, (7, "x", [1, 1], float("nan"), True, 0.5, {}), {"pairs": [("a", "b")]}),
    "covariates": Keyword(
        None,
        {"length": 1.0},
        (3, "x", ["length"], {"size": 1.0}, {"length": "x"}, {"length": [1.0, 2.0]}),
        {"pairs": [("a", "b")]},
    ),
}
FIT = {
    "X": Keyword(X, X[:, :1], NO_FEATURES, {"data": PLAIN}),
    "data": Keyword(PLAIN, PLAIN + SINGLE, NO_DATA, {"X": X}),
    "relations": Keyword(GRAPH, OTHER_GRAPH, NO_GRAPHS, {"X": X, "data": PLAIN}),
}
ABOUT_USERS = Keyword(None, TASTES, ("x", 3, TASTES[:3], [[np.nan]] * 8), {"X": X, "data": PLAIN})
SCORE = {"data": Keyword(DATA, MORE, NO_DATA)}
SAVE = {"path": Keyword("one", "other", (None, 3.5, [], True))}
FEW = Keyword(1, 2, ("x", None, -1, 2.5, True))
UNSCANNED = Keyword(wrong=("user 1", "folder"))

RANKED = {"X": MANY, "y": MANY_GRADES}
FIT_RANKER = {
    "X": Keyword(MANY, MANY[:, :2], ("x", None, MANY[:3], np.nan * MANY), {"y": MANY_GRADES}),
    "y": Keyword(MANY_GRADES, -MANY_GRADES, ("x", None, MANY_GRADES[:3]), {"X": MANY}),
    "qid": Keyword(None, MANY_QUERIES, (3, "x", [1, 2]), RANKED),
}
PREDICT_RANKER = {"X": Keyword(MANY, MANY + 1.0, ("x", None, MANY[:, :2], np.nan * MANY))}
SCORE_RANKER = {
    "X": Keyword(MANY, MANY[::-1], ("x", None, MANY[:3]), {"y": MANY_GRADES}),
    "y": Keyword(MANY_GRADES, -MANY_GRADES, ("x", None, MANY_GRADES[:3]), {"X": MANY}),
    "qid": Keyword(None, np.arange(30) % 2, (3, "x", [1, 2]), {"X": MANY, "y": MANY[:, 0]}),
}
RANKER = {"fit": FIT_RANKER, "predict": PREDICT_RANKER, "score": SCORE_RANKER, "save": SAVE}

AT = Keyword(1.0, 80.0, ("x", True, float("nan"), []), needs=DRIFT)
TURNED, NO_ORDER = [3, 0, 1, 2], ("x", None, 3, [9, 1, 2, 3], [0, 0, 1, 2])
POOLED_USER = Keyword(wrong=("user 1", "nobody", []))

KEYWORDS = {
    "PreferenceGP": {
        "ask": {**ASK, "user": POOLED_USER},
        "belief": {"user": POOLED_USER},
        "fit": FIT,
        "paths": {"times": Keyword([1.0], [80.0], (None, [], "x", [True], ["x"]), needs=DRIFT)},
        "predict": {
            **PREDICT,
            "users": Keyword(None, ["user 1", "user 6"]),
            "relations": Keyword(
                WIDER,
                {"near": np.ones((6, 6)) - np.eye(6)},
                (3, ["near"], {"near": 1}, {"near": np.ones((2, 2))}),
                {"X": X[:1] + 0.1},
                LINKED,
            ),
            "at": AT,
            "source": Keyword("features", "near", ("nothing", 3, True, ["near"]), needs=LINKED),
        },
        "predict_proba": {
            **PREDICT_PROBA,
            "users": Keyword(wrong=(["user 1", "user 2"],), base={"pairs": PAIRS}),
            "at": replace(AT, base={"pairs": PAIRS}),
        },
        "rank": {**RANK, "user": POOLED_USER, "at": AT},
        "save": SAVE,
        "score": SCORE,
        "tell": {**TELL, "user": Keyword("user 1", "user 6", ([],), {"more": [("a", "e")]}, BARE)},
        "withdraw": WITHDRAW,
    },
    "MultiUserGP": {
        "ask": ASK,
        "belief": {"user": RANK["user"]},
        "fit": {
            **FIT,
            "user_features": ABOUT_USERS,
            "user_relations": Keyword(
                None,
                {"knows": np.kron(np.eye(2), np.ones((4, 4))) - np.eye(8)},
                (3, ["knows"], {"knows": np.ones((2, 2))}, {"knows": 1}),
                {"X": X, "data": PLAIN},
            ),
        },
        "fold_in": {
            "data": Keyword(NEW, NEW + NEW, (None, 3, "x", PLAIN), needs=BARE),
            "user_features": replace(
                OF_USERS, wrong=("x", 3, [[0.0], [1.0]], [[np.nan]]), base={"data": NEW}
            ),
        },
        "knowing": {"users": UNSCANNED},
        "predict": {**PREDICT, "user_features": OF_USERS},
        "predict_proba": {
            **PREDICT_PROBA,
            "user_features": replace(OF_USERS, base={"pairs": [("a", "e")]}),
        },
        "rank": RANK,
        "save": SAVE,
        "score": SCORE,
        "tell": TELL,
        "withdraw": WITHDRAW,
        "write_predictions": {"folder": UNSCANNED},
    },
    "CommunityGP": {
        "ask": ASK,
        "belief": {"user": RANK["user"]},
        "consensus": {"k": FEW},
        "disagreement": {"k": replace(FEW, needs=(("personal", True),))},
        "divisive": {"k": FEW},
        "fit": {**FIT, "user_features": ABOUT_USERS},
        "fold_in": {"data": Keyword(NEW, NEW + NEW, (None, 3, "x", PLAIN), needs=BARE)},
        "predict": PREDICT,
        "predict_proba": PREDICT_PROBA,
        "rank": RANK,
        "resume": {"n_sweeps": replace(FEW, one=2, other=6, needs=tuple(CHAINS.items()))},
        "save": SAVE,
        "score": SCORE,
        "tell": TELL,
        "withdraw": WITHDRAW,
        "write_memberships": {"folder": UNSCANNED},
    },
    "RankRLS": RANKER,
    "KPCRank": RANKER,
    "RankSVM": RANKER,
    "PreferencePerceptron": {
        "fit": {**FIT_RANKER, "y": Keyword(MANY_GRADES, -MANY_GRADES, ("x", None), {"X": MANY})},
        "partial_fit": {**FIT_RANKER, "X": replace(FIT_RANKER["X"], other=-MANY)},
        "learn": {
            "docs": Keyword(
                MANY[:4], MANY[4:8], NO_ORDER[:3], {"presented": range(4), "feedback": TURNED}
            ),
            "presented": Keyword(
                [0, 1, 2, 3], [1, 0, 2, 3], NO_ORDER, {"docs": MANY[:4], "feedback": TURNED}
            ),
            "feedback": Keyword(
                [0, 1, 3, 2], [1, 0, 2, 3], NO_ORDER, {"docs": MANY[:4], "presented": TURNED}
            ),
        },
        "learn_pairs": {
            "X": Keyword(MANY, -MANY, ("x", None, 3), {"winner": [0], "loser": [1]}),
            "winner": Keyword([0], [2], ("x", None, [99], [0, 2]), {"X": MANY, "loser": [1]}),
            "loser": Keyword([0], [2], ("x", None, [99], [0, 2]), {"X": MANY, "winner": [1]}),
        },
        "predict": PREDICT_RANKER,
        "present": {"docs": Keyword(MANY[:4], MANY[4:9], ("x", None, 3))},
        "save": SAVE,
    },
}


@cache
def asked(name, needs):
    """The model that a keyword is tried on; not to be changed."""
    settings = dict(needs)
    if name not in UTILITIES:
        return made(name)
    if "linked" in settings:
        return pc.PreferenceGP(optimize=None, random_state=0).fit(X, PLAIN, relations=GRAPH)
    if "about" in settings:
        return made(name, user_features=TASTES)
    if "bare" in settings:
        return made(name)
    return made(name, data=DATA, **settings)


def outcome(name, method, row, given, folder):
    """What a call comes to: its result, or what a changed model says."""
    model = copy.deepcopy(asked(name, row.needs))
    given = {
        key: value(model) if inspect.isfunction(value) else value for key, value in given.items()
    }
    if method == "save" and isinstance(given["path"], str):
        given["path"] = folder / given["path"]
    result = getattr(model, method)(**given)
    if method == "save":
        return sorted(path.name for path in folder.iterdir())
    if not hasattr(result, "get_params"):
        return [result.mean, result.var] if hasattr(result, "covariance") else plainly(result)
    if name == "PreferencePerceptron":
        return weights(result)
    if name not in UTILITIES:
        return result.predict(MANY[:, : result.n_features_in_])
    known = result.comparisons_.users
    told = [result.predict(), result.predict_proba(PAIRS), result.comparisons_.n_comparisons]
    told += [result.predict(users=known), known] if known else []
    return [*told, str(result.communities_) if name == "CommunityGP" else widths(result)]


def plainly(result):
    """Tables and lists of rows as tuples."""
    if isinstance(result, tuple | np.ndarray | float):
        return result
    return [tuple(row) for row in result]


def methods(name):
    """The public methods of an estimator that are the package's own, and their keywords."""
    for method, function in inspect.getmembers(getattr(pc, name), inspect.isfunction):
        is_ours = not method.startswith(("_", "set_")) and not hasattr(BaseEstimator, method)
        keywords = list(inspect.signature(function).parameters)[1:]
        if is_ours and keywords:
            yield method, keywords


CALLS = [
    (name, method, keyword)
    for name, every in KEYWORDS.items()
    for method, keywords in every.items()
    for keyword in keywords
]


def wrong_calls():
    for name, method, keyword in CALLS:
        row = KEYWORDS[name][method][keyword]
        for value in row.wrong:
            label = f"{name}.{method}({keyword}={value!r:.40})"
            yield pytest.param(name, method, keyword, value, id=label)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_keyword_has_a_row(name):
    rows = {(method, keyword) for every, method, keyword in CALLS if every == name}
    assert rows == {(method, word) for method, words in methods(name) for word in words}


@pytest.mark.parametrize(("name", "method", "keyword"), CALLS)
def test_every_keyword_matters(name, method, keyword, tmp_path):
    row = KEYWORDS[name][method][keyword]
    if row.one is None and row.other is None:  # it cannot, and is refused
        assert row.wrong
        return
    one, other = (
        outcome(name, method, row, {**row.base, keyword: value}, tmp_path)
        for value in (row.one, row.other)
    )
    assert not same(one, other)


@pytest.mark.parametrize(("name", "method", "keyword", "value"), list(wrong_calls()))
def test_wrong_keywords_are_refused(name, method, keyword, value, tmp_path):
    row = KEYWORDS[name][method][keyword]
    kind = pc.DataError if name in UTILITIES else (pc.DataError, ValueError)
    with pytest.raises(kind) as caught:
        outcome(name, method, row, {**row.base, keyword: value}, tmp_path)
    assert len(str(caught.value)) > 20, caught.value


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda value: Rules(items=value), ("ab", 3, True)),
        (lambda value: Rules(avoid=value), ("ab", 3, True)),
        (lambda value: Rules(exposure=value), ("x", -1, 2.5, True, None)),
        (lambda value: Rules(random_share=value), ("x", -1, 2, True, None, float("nan"))),
        (Budget, ("x", 0, 2.5, True, None)),
        (SmallGain, ("x", 0, True, None, float("nan"))),
        (lambda value: TopSettled(k=value), ("x", 0, 2.5, True, None)),
        (lambda value: TopSettled(level=value), ("x", 0, 1, 95, True, None)),
        (StudyDesign, ("x", 2, 5.5, True, None)),
        (lambda value: StudyDesign(5, value), ("x", 0, 2.5, True, None)),
        (lambda value: StudyDesign(5, spread=value), ("x", 0, -1, True, None)),
        (lambda value: StudyDesign(5, disagreement=value), ("x", -1, True, None)),
        (lambda value: plan(StudyDesign(5), value), ("x", 0, 1, True, None)),
        (lambda value: plan(StudyDesign(5), criterion=value), ("typo", 3, None, [])),
        (lambda value: plan(StudyDesign(5), n_simulations=value), ("x", 0, 2.5, True, None)),
        (lambda value: plan(StudyDesign(5), longest=value), ("x", 0, 2.5, True)),
    ],
)
def test_what_asking_is_told_is_checked(make, wrong):
    for value in wrong:
        with pytest.raises(pc.DataError, match="must"):
            make(value)
