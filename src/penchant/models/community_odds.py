"""What communities foresee: a user's utilities and answers, by the communities they belong to."""

import numpy as np

from penchant.ask import Belief, Joint
from penchant.communities import Found, beside_effects
from penchant.kernels import Inputs
from penchant.models.odds import Odds
from penchant.numerics.types import FloatArray, IntArray


def believed_of(found: Found, user: int | None) -> Belief:
    """The joint Gaussian over a user's utilities, or over the mean of people at large."""
    if user is None:
        people = found.population()
        if len(people.apart) == 1:
            return people.parts[0]
        return Joint(people.mean, people.covariance, people.parts[0].likelihood)
    if found.personal is not None:
        belief: Belief = found.personal.posterior.belief(user)
        return belief
    (weights,) = found.shares(np.array([user]))
    return Joint.mixture(found.posteriors, weights / weights.sum())


def odds_among(
    found: Found,
    pairs: IntArray,
    users: IntArray | None,
    target: Inputs | None,
    z: FloatArray | None,
) -> Odds:
    """Of answers to pairs (k, 2) of the target items; users: (k,), or None for people at large;
    z: (q, k) of the effects, or None."""
    first, second = pairs[:, 0], pairs[:, 1]
    if found.personal is not None:
        posterior = found.personal.posterior.at(target)
        own = posterior.known_differences(users, first, second)
        return Odds.of(posterior.likelihood, beside_effects(posterior, own, z))
    shares = np.broadcast_to(found.shares(users), (len(pairs), len(found.posteriors)))
    total = np.zeros((3, len(pairs)))
    for share, community in zip(shares.T, found.at(target), strict=True):
        difference = community.difference(first, second, z)
        total += share * np.stack(Odds.of(community.likelihood, difference))
    return Odds(*total)
