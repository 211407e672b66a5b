"""What a difference of utilities means, in words."""

from typing import Any

import numpy as np


def told_by_example(model: Any) -> str:
    """What utilities mean, by an example that the model itself computes.

    A fixed sentence would be wrong for most: ties, lapses, other links and differences between
    people all change how often the better item wins.
    """
    items, utility = model.comparisons_.items, model.predict()
    best = int(np.argmax(utility))
    above = utility[best] - utility
    distance = np.abs(above - 1.0)
    distance[best] = np.inf
    other = int(np.argmin(distance))
    win, tie, loss = model.predict_proba([(items[best], items[other])], ties=True)[0]
    said = (
        "Utilities say how much more an item is liked than the average item. For example, "
        f"“{items[best]}” lies {above[other]:.2f} above “{items[other]}”: it is expected to win "
        f"{100 * win / (win + loss):.0f} of 100 "
    )
    if tie > 0.0:
        said += f"comparisons that are decided, and {100 * tie:.0f} of 100 end in a tie."
    else:
        said += "comparisons between the two."
    return said


def told_of_a_person(model: Any) -> str:
    """What a difference means within one person's own utilities."""
    likelihood, one, sure = model.likelihood_, np.ones(1), np.zeros(1)
    win, loss = (float(likelihood.prob(g, sure)[0]) for g in (one, -one))
    return (
        "That is of people at large, whose tastes differ: at a difference of 1 in their own "
        f"utilities a person prefers the better item {100 * win / (win + loss):.0f} times of 100."
    )
