"""A ranking from communities: for everybody, or for one person among them."""

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
    shares = model.membership_.mean(axis=0) if user is None else model.membership_[user]
    weights = shares / shares.sum()
    if user is None:
        parts = zip(weights, model.posteriors_, strict=True)
        draws = sum(share * posterior.sample(N_DRAWS, rng) for share, posterior in parts)
    elif model.personal_ is not None:
        draws = model.personal_.for_user(user).sample(N_DRAWS, rng)
    else:
        picks = zip(rng.multinomial(N_DRAWS, weights), model.posteriors_, strict=True)
        draws = np.concatenate([posterior.sample(int(n), rng) for n, posterior in picks])
    return rank_draws(draws, items, level)


def rank_draws(draws: FloatArray, items: tuple[Any, ...], level: float) -> list[dict[str, Any]]:
    """Summarise joint draws (n_draws, n_items) of utilities.

    How high all utilities lie together nobody compared: zero is the average item of each draw.
    """
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
