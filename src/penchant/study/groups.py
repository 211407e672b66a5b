"""Whether the people of a study fall into groups of taste, for the owner's page."""

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import penchant as pc
from penchant.study.events import Answer
from penchant.study.learner import comparisons

FEWEST_PEOPLE = 12
FEWEST_ANSWERS = 5
"""So many people with so many answers each are needed before the question makes sense."""
SHOWN = 3


def groups(answers: Sequence[Answer], items: Sequence[str]) -> dict[str, Any] | None:
    """One sentence that says whether there are groups, and what each likes; None: too early.

    Nobody is named: a group is its size and its items, by id.
    """
    given = Counter(answer.participant for answer in answers if answer.participant is not None)
    if sum(n >= FEWEST_ANSWERS for n in given.values()) < FEWEST_PEOPLE:
        return None
    data = comparisons(answers, items)
    likelihood = "ties" if data.tie.any() else "probit"
    with warnings.catch_warnings():
        # every study begins with items that no comparison connects yet
        warnings.simplefilter("ignore", pc.DataWarning)
        model = pc.CommunityGP(likelihood=likelihood, random_state=0).fit(None, data)
        support = model.support_
    real = model.communities_ if support.verdict == "supported" else []
    return {
        "verdict": support.verdict,
        "sentence": support.sentence,
        "groups": [
            {
                "people": round(group.size),
                "best": [row.item for row in group.ranking[:SHOWN]],
                "own": list(group.representative[:SHOWN]),
            }
            for group in real
        ],
        "divisive": [view.item for view in model.divisive(SHOWN)] if real else [],
    }
