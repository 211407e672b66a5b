"""Relations between fits: every model, every kind of answer, with as little chosen as possible.

A few dozen quick cases here; `make soak` draws from all.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import penchant as pc

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from metamorphic.relations import CHANGES, RELATIONS, unchanged
from metamorphic.worlds import Case

pytestmark = [
    pytest.mark.filterwarnings("ignore::penchant.errors.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::penchant.errors.DataWarning"),
]


def case(model, *kinds, people=0, features=False, graph=False, seed=0, **settings):
    return Case(model, kinds, people, features, graph, tuple(settings.items()), seed)


CASES = [
    case("PreferenceGP"),
    case("PreferenceGP", people=8, seed=1),
    case("PreferenceGP", people=8, features=True, seed=2),
    case("PreferenceGP", features=True, graph=True, seed=3),
    case("PreferenceGP", "ties", "counts", likelihood="ties", people=6, seed=4),
    case("PreferenceGP", "sides", "lengths", people=6, seed=5),
    case("PreferenceGP", "rankings", "choices", features=True, people=6, seed=11),
    case("PreferenceGP", "margins", likelihood="gaussian", seed=8),
    case("PreferenceGP", "times", "ties", drift="ou", likelihood="ties", seed=9),
    case("PreferenceGP", "times", "sides", "lengths", people=6, drift="ou", seed=10),
    case("PreferenceGP", "times", "counts", people=7, half_life=20.0, seed=11),
    case("PreferenceGP", "sides", people=7, raters="lapse", seed=12),
    case("PreferenceGP", "ties", people=7, raters="noise", likelihood="ties", seed=13),
    case("PreferenceGP", "lengths", inference="laplace", likelihood="logit", seed=14),
    case("PreferenceGP", features=True, optimize="em", seed=15),
    case("MultiUserGP", people=8, seed=0),
    case("MultiUserGP", people=8, kernel="free", seed=16),
    case("MultiUserGP", "ties", "sides", "lengths", people=5, likelihood="ties", seed=17),
    case("MultiUserGP", "counts", people=4, graph=True, raters="noise", seed=19),
    case("MultiUserGP", "margins", people=5, likelihood="gaussian", seed=20),
    case("CommunityGP", people=9, seed=21),
    case("CommunityGP", "ties", "counts", people=6, features=True, likelihood="ties", seed=22),
    case("CommunityGP", "rankings", "choices", people=7, graph=True, seed=23),
    case("CommunityGP", "sides", "lengths", people=8, personal=False, seed=24),
    case("CommunityGP", people=6, personal=True, seed=25),
    case("CommunityGP", "margins", people=5, likelihood="gaussian", n_communities=2, seed=26),
]

SLOW_CASES = [
    case("PreferenceGP", "ties", "rankings", likelihood="ties", seed=7),
    case("MultiUserGP", "rankings", people=5, features=True, seed=18),
]

KNOWN_FAULTS: dict[tuple[str, str], str] = {}
"""Why a relation does not hold in a case."""


@cache
def fitted(case):
    world = case.world()
    return world, world.fit(case.estimator())


def of_every_case(names):
    """Each case with each of the relations that apply; those of data once for a kind of data."""
    seen = set()
    for case in (*CASES, *SLOW_CASES):
        for name in names:
            data = (name, case.kinds, bool(case.people))
            if not RELATIONS[name].applies(case) or data in seen:
                continue
            seen |= {data} if RELATIONS[name].of_data else set()
            why = KNOWN_FAULTS.get((str(case), name))
            mark = [] if why is None else [pytest.mark.xfail(strict=True, reason=why)]
            mark += [pytest.mark.slow] if case in SLOW_CASES else []
            yield pytest.param(case, name, id=f"{case}: {name}", marks=mark)


def failures(case, names):
    """{relation: what is wrong} of one case; empty if all hold."""
    wrong, (world, model) = {}, fitted.__wrapped__(case)
    for name in names:
        if RELATIONS[name].applies(case):
            try:
                RELATIONS[name].check(case, world, model)
            except AssertionError as error:
                wrong[name] = str(error)
    return wrong


@pytest.mark.parametrize(
    ("case", "name"), list(of_every_case([name for name in RELATIONS if name not in CHANGES]))
)
def test_relations_hold(case, name):
    RELATIONS[name].check(case, *fitted(case))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_telling_the_same_differently_changes_nothing(case):
    """All changes by one fit; if it predicts something else, each alone, to find which."""
    names = [name for name in CHANGES if RELATIONS[name].applies(case)]
    try:
        unchanged(case, *fitted(case), names)
    except AssertionError as error:
        raise AssertionError(failures(case, names)) from error


@pytest.mark.slow
@pytest.mark.parametrize(("case", "name"), list(of_every_case(CHANGES)))
def test_each_change_alone_changes_nothing(case, name):
    RELATIONS[name].check(case, *fitted(case))


def test_every_relation_has_a_case():
    idle = [name for name, each in RELATIONS.items() if not any(map(each.applies, CASES))]
    assert not idle


@pytest.mark.parametrize(
    ("method", "wrong", "relation"),
    [
        ("score", lambda right: right - 0.01, "score_is_log_probability"),
        ("predict_proba", lambda right: 0.99 * right, "pairs_turned"),
        ("tell", lambda right: right.undo(), "split_and_told"),
        (
            "withdraw",
            lambda right: right.tell([right.comparisons_.items[:2]]),
            "withdrawn_is_refitted",
        ),
        ("predict", lambda right: right + np.arange(len(right)), "views_agree"),
    ],
)
def test_a_broken_model_is_found(method, wrong, relation, monkeypatch):
    right = getattr(pc.PreferenceGP, method)

    def broken(self, *args, **how):
        return wrong(right(self, *args, **how))

    monkeypatch.setattr(pc.PreferenceGP, method, broken)
    assert relation in failures(CASES[0], [relation])


def test_names_that_decide_are_found(monkeypatch):
    right = pc.PreferenceGP.predict_proba

    def by_name(self, pairs, *args, **how):
        first = np.array([str(a) < str(b) for a, b in pairs])
        return right(self, pairs, *args, **{**how, "ties": True}) + 0.01 * first[:, None]

    monkeypatch.setattr(pc.PreferenceGP, "predict_proba", by_name)
    with pytest.raises(AssertionError, match="items_renamed"):
        test_telling_the_same_differently_changes_nothing(CASES[0])
