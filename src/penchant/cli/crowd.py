"""What communities together say: about everybody, or about one person among them."""

from typing import Any

import numpy as np

import penchant as pc
from penchant.cli.features import FloatArray

N_DRAWS = 4000


def belief_about(model: Any, user: int | None) -> Any:
    """The utilities of one person, or of somebody picked at random, as one joint Gaussian.

    Whose utilities they are is uncertain too: by the law of total covariance, communities that
    differ add the covariance of their means.
    """
    weights = _weights(model, user)
    means = np.stack([posterior.mean for posterior in model.posteriors_])
    mean = weights @ means
    apart = means - mean
    within = sum(w * p.covariance() for w, p in zip(weights, model.posteriors_, strict=True))
    return pc.ask.Joint(mean, within + apart.T @ (weights[:, None] * apart), model.likelihood_)


def rank_communities(
    model: Any, items: tuple[Any, ...], level: float, user: int | None
) -> list[dict[str, Any]]:
    """Rows from best to worst.

    For everybody, utilities are averaged over people: the communities' by their shares. One
    person is in one community, only in which is uncertain: each draw picks one by membership.
    """
    rng = np.random.default_rng(0)
    weights = _weights(model, user)
    draws = np.stack([posterior.sample(N_DRAWS, rng) for posterior in model.posteriors_])
    if user is None:
        return rank_draws(np.tensordot(weights, draws, axes=1), items, level)
    picked = rng.choice(len(draws), size=N_DRAWS, p=weights)
    return rank_draws(draws[picked, np.arange(N_DRAWS)], items, level)


def _weights(model: Any, user: int | None) -> FloatArray:
    """(n_communities,) how much each counts: a person's membership, or the shares of all."""
    membership = model.membership_.mean(axis=0) if user is None else model.membership_[user]
    weights: FloatArray = membership / membership.sum()
    return weights


def rank_draws(draws: FloatArray, items: tuple[Any, ...], level: float) -> list[dict[str, Any]]:
    """Summarise joint draws (n_draws, n_items) of utilities.

    As in `Ranking`, intervals leave out how high all utilities lie together: nobody compared that.
    """
    centred = draws - draws.mean(axis=1, keepdims=True) + draws.mean()
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
