"""Split and merge moves: what lets a chain that grew from one community find the others.

Gibbs steps move one user at a time, and a community that should be two stays one for a long
time. Here a whole community is split, or two are merged, and the change is accepted by
Metropolis and Hastings' rule with the utilities integrated out (Jain and Neal, 2004). Two users
are picked: in one community it is to be split with them on different sides, otherwise their two
communities are to be merged. The proposal is a *launch*: starting from all users concerned,
blind to how they are now divided, it finds a division in two, and then every user takes a side
independently with known probability.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import gammaln, log_softmax

from penchant.numerics.types import FloatArray, IntArray
from penchant.people.assignment import LabelArray, count_pairs, log_likelihoods
from penchant.people.community_utility import Fit, Mixture, fit_community

LAUNCH_SCANS = 5
"""Rounds of fitting both sides and reassigning users, before sides are drawn."""
DIRECTION_USERS = 5_000
"""Users from whom the direction of a launch is learned."""
EDGE_SHARE = 0.1
"""A launch starts with at least this share of the users on each side."""


@dataclass(frozen=True, eq=False)
class Partition:
    """Users in K communities, each with what it knows of itself.

    assignment: (U,); pair_counts: (K, m) answers of each community; tau, nu: (K, m) sites to
    start from; thetas: (K, p) hyperparameters.
    """

    assignment: LabelArray
    pair_counts: FloatArray
    tau: FloatArray
    nu: FloatArray
    thetas: FloatArray

    @property
    def sizes(self) -> IntArray:
        """(K,) users of each community."""
        return np.bincount(self.assignment, minlength=len(self.pair_counts))

    def occupied(self) -> "Partition":
        """Without the communities that nobody belongs to."""
        kept = np.flatnonzero(self.sizes)
        position = np.full(len(self.pair_counts), -1, dtype=np.int32)
        position[kept] = np.arange(len(kept), dtype=np.int32)
        return Partition(
            position[self.assignment],
            self.pair_counts[kept],
            self.tau[kept],
            self.nu[kept],
            self.thetas[kept],
        )


class Target(NamedTuple):
    """What the moves leave invariant: evidence under `theta`, and λ."""

    mixture: Mixture
    theta: FloatArray
    concentration: float

    def fit(self, pair_counts: FloatArray, start: Fit | None = None) -> Fit:
        """Utilities of a group of users."""
        sites = None if start is None else (start.tau, start.nu)
        return fit_community(self.mixture, pair_counts, self.theta, sites)


class Move(NamedTuple):
    """What a move did: the partition after it, whether it was a split, whether it was made."""

    partition: Partition
    is_split: bool
    accepted: bool


def log_prior_of_sizes(sizes: IntArray, concentration: float) -> float:
    """log probability of a partition with these sizes under the Dirichlet process."""
    n_users = int(sizes.sum())
    return float(
        len(sizes) * np.log(concentration)
        + gammaln(sizes).sum()
        + gammaln(concentration)
        - gammaln(concentration + n_users)
    )
