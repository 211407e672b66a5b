"""What communities together say: a ranking for everybody, or for one person among them."""

from typing import Any

import numpy as np

from penchant.cli.features import FloatArray

N_DRAWS = 4000


def rank_communities(
    model: Any, items: tuple[Any, ...], level: float, user: int | None
) -> list[dict[str, Any]]:
    """Rows from best to worst.

    For everybody, utilities are averaged over people: the communities' by their shares. One
    person is in one community, only in which is uncertain: each draw picks one by membership.
    """
    rng = np.random.default_rng(0)
    draws = np.stack([posterior.sample(N_DRAWS, rng) for posterior in model.posteriors_])
    if user is None:
        utilities = np.tensordot(model.membership_.mean(axis=0), draws, axes=1)
    else:
        weights = model.membership_[user] / model.membership_[user].sum()
        picked = rng.choice(len(draws), size=N_DRAWS, p=weights)
        utilities = draws[picked, np.arange(N_DRAWS)]
    return rank_draws(utilities, items, level)


def rank_draws(draws: FloatArray, items: tuple[Any, ...], level: float) -> list[dict[str, Any]]:
    """Summarise joint draws (n_draws, n_items) of utilities, relative to the average item."""
    centred = draws - draws.mean(axis=1, keepdims=True)
    tail = 0.5 * (1.0 - level)
    low, high = np.quantile(centred, [tail, 1.0 - tail], axis=0)
    places = 1 + np.argsort(np.argsort(-centred, axis=1), axis=1)
    first, last = np.quantile(places, [tail, 1.0 - tail], axis=0, method="nearest")
    best = (places == 1).mean(axis=0)
    utility = centred.mean(axis=0)
    return [
        {
            "rank": rank,
            "item": items[i],
            "utility": float(utility[i]),
            "low": float(low[i]),
            "high": float(high[i]),
            "prob_best": float(best[i]),
            "rank_low": int(first[i]),
            "rank_high": int(last[i]),
        }
        for rank, i in enumerate(np.argsort(-utility, kind="stable"), start=1)
    ]
