"""CommunityGP: newcomers with every kind of answer, after a search and after chains."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.models import CommunityGP
from tests.simulation import DRINKS

pytestmark = pytest.mark.filterwarnings("ignore::penchant.errors.ConvergenceWarning")

SEARCH, CHAINS = {"inference": "variational"}, {"inference": "mcmc", "n_sweeps": 6, "n_chains": 1}
INFERENCES = {
    "search": SEARCH,
    "collapsed": {**CHAINS, "sampler": "collapsed"},
    "blocked": {**CHAINS, "sampler": "blocked"},
}
ROUNDS = 3
"""How often everybody answers each question."""


def pairs(users, **columns):
    """Neighbours of everybody's own order: users of even place like the first drinks most."""
    orders = [DRINKS[::-1] if place % 2 else DRINKS for place in range(len(users))]
    rows = [
        (*pair, user)
        for user, order in zip(users, orders, strict=True)
        for pair in pairwise(order)
        for _ in range(ROUNDS)
    ]
    winner, loser, user = zip(*rows, strict=True)
    more = {name: column(np.arange(len(rows))) for name, column in columns.items()}
    return Comparisons.from_pairs(winner, loser, user=user, items=DRINKS, **more)


def rankings(users):
    orders = [DRINKS[::-1] if place % 2 else DRINKS for place in range(len(users))]
    return Comparisons.from_rankings(orders * ROUNDS, users=list(users) * ROUNDS, items=DRINKS)


def choices(users):
    """The best of the first three and of the last three drinks, and of all."""
    asked = [
        (place, users[place], list(some))
        for place in range(len(users))
        for some in (DRINKS[:3], DRINKS[2:], DRINKS) * ROUNDS
    ]
    chosen = [some[-1] if place % 2 else some[0] for place, _, some in asked]
    return Comparisons.from_choices(
        chosen, [some for *_, some in asked], user=[user for _, user, _ in asked], items=DRINKS
    )


KINDS = {
    "pairs": pairs,
    "ties": partial(pairs, tie=lambda row: row % 7 == 0),
    "counts": partial(pairs, count=lambda row: 1 + row % 3),
    "margins": partial(pairs, margin=lambda row: 1.0 + row % 2),
    "order": partial(pairs, first=lambda row: np.where(row % 2, 1, -1)),
    "covariates": partial(pairs, covariates=lambda row: {"length": row % 4 - 1.5}),
    "rankings": rankings,
    "choices": choices,
}


def community_gp(kind, **how):
    """A model for the kind of answer."""
    likelihood = {"ties": "ties", "margins": "gaussian"}.get(kind, "probit")
    return CommunityGP(likelihood=likelihood, progress=False, random_state=0, **how)


@pytest.mark.parametrize("personal", [False, True], ids=["plain", "personal"])
@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("kind", KINDS)
def test_newcomers_with_every_kind_of_answer_are_folded_in(kind, inference, personal):
    known, new = KINDS[kind]([f"user {u}" for u in range(10)]), KINDS[kind](["eva", "sam"])
    model = community_gp(kind, personal=personal, **INFERENCES[inference]).fit(None, known)
    after = model.fold_in(new)
    np.testing.assert_array_equal(after.membership_[:10], model.membership_)
    np.testing.assert_allclose(after.membership_[10:].sum(axis=1), 1.0, rtol=1e-5)
    # eva answers as users of even place do and sam as the others: they get their tastes
    ends = [(DRINKS[0], DRINKS[-1])] * 4
    users = ["eva", "user 0", "sam", "user 1"]
    eva, even, sam, odd = after.predict_proba(ends, users)
    assert eva - sam > 0.5 * (even - odd) > 0.04
    np.testing.assert_allclose(
        after.predict(users=model.comparisons_.users), model.predict(users=model.comparisons_.users)
    )
    again = after.fold_in(KINDS[kind](["max"]))
    assert again.comparisons_.n_users == 13
    told = model.tell(new)
    assert told.predict_proba(ends[:1], "eva")[0] > told.predict_proba(ends[:1], "sam")[0]


@pytest.mark.parametrize("kind", ["rankings", "choices"])
def test_what_a_fit_takes_is_the_fits_whatever_is_set_later(kind):
    users = [f"user {u}" for u in range(10)]
    chains = community_gp(kind, personal=False, **CHAINS).fit(None, KINDS[kind](users))
    expected = chains.fold_in(KINDS[kind](["eva", "sam"])).membership_
    later = chains.set_params(inference="variational").fold_in(KINDS[kind](["eva", "sam"]))
    np.testing.assert_array_equal(later.membership_, expected)


@pytest.mark.parametrize("inference", INFERENCES)
def test_newcomers_whose_ties_the_likelihood_does_not_explain_are_refused(inference):
    known = pairs([f"user {u}" for u in range(10)])
    model = community_gp("pairs", personal=False, **INFERENCES[inference]).fit(None, known)
    with pytest.raises(DataError, match="ties"):
        model.fold_in(KINDS["ties"](["eva"]))
