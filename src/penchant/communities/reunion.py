"""Uniting communities that are alike, and the reverse: dividing one at random.

A taste that two communities share is a trap: users pass between the two one by one, thousands of
sweeps long, and a launch (see `mixing`) does not find their division again, so a merge is
refused. Here the division is proposed by tossing a coin of unknown bias for every user, which
is how such users are divided. Alike communities are picked by what their members answered.
"""

import numpy as np
from scipy.special import gammaln, log_softmax

from penchant.communities.assignment import count_pairs
from penchant.communities.mixing import Move, Partition, Target
from penchant.numerics.types import FloatArray, IntArray

SHARPNESS = 10.0
"""How strongly alike communities are preferred: e^10 between the same answers and unrelated."""


def reunite(target: Target, partition: Partition, rng: np.random.Generator) -> Move:
    """Try to unite two communities that are alike or, as often, to divide one at random."""
    if rng.random() < 0.5:
        return _divide(target, partition, rng)
    return _unite(target, partition, rng)


def _unite(target: Target, partition: Partition, rng: np.random.Generator) -> Move:
    n_communities = len(partition.pair_counts)
    if n_communities == 1:
        return Move(partition, False, False)
    log_chosen = _log_likeness(target, partition)
    number = rng.choice(len(log_chosen), p=np.exp(log_chosen))
    pair = np.stack(np.triu_indices(n_communities, 1))[:, number]
    counts, sizes = partition.pair_counts[pair], partition.sizes[pair]
    sites = zip(partition.tau[pair], partition.nu[pair], strict=True)
    parts = [target.fit(*given) for given in zip(counts, sites, strict=True)]
    total = counts.sum(axis=0, keepdims=True)
    whole = target.fit(total[0], (parts[0].tau, parts[0].nu))
    log_back = _log_division(sizes) - np.log(n_communities - 1)
    log_ratio = log_back - log_chosen[number] - target.log_gain(whole, parts, sizes)
    if np.log(rng.random()) >= log_ratio:
        return Move(partition, False, False)
    kept, dropped = pair
    assignment = partition.assignment.copy()
    assignment[assignment == dropped] = kept
    united = partition.put(assignment, pair[:1], total, [whole], target.theta)
    return Move(united.occupied(), False, True)


def _divide(target: Target, partition: Partition, rng: np.random.Generator) -> Move:
    n_communities = len(partition.pair_counts)
    c = int(rng.integers(n_communities))
    members = np.flatnonzero(partition.assignment == c)
    side = (rng.random(len(members)) < rng.random()).astype(np.int32)
    sizes = np.bincount(side, minlength=2)
    if not sizes.all():
        return Move(partition, True, False)
    whole = target.fit(partition.pair_counts[c], (partition.tau[c], partition.nu[c]))
    counts = count_pairs(target.mixture.answers.counts[members], side, 2)
    parts = [target.fit(its_counts, (whole.tau, whole.nu)) for its_counts in counts]
    labels = np.array([c, n_communities])
    assignment = partition.assignment.copy()
    assignment[members] = labels[side]
    divided = partition.put(assignment, labels, counts, parts, target.theta)
    number = _place_of_pair(c, n_communities, n_communities + 1)
    log_back = _log_likeness(target, divided)[number]
    log_forth = _log_division(sizes) - np.log(n_communities)
    log_ratio = target.log_gain(whole, parts, sizes) + log_back - log_forth
    if np.log(rng.random()) >= log_ratio:
        return Move(partition, True, False)
    return Move(divided, True, True)


def _log_likeness(target: Target, partition: Partition) -> FloatArray:
    """(K (K − 1) / 2,) log probability of picking each pair of communities, above the diagonal.

    Alike are communities whose members' wins less losses, item by item, point the same way.
    """
    answers, n_items = target.mixture.answers, len(target.mixture.items)
    net_wins = partition.pair_counts @ answers.differences(n_items).matrix()
    length = np.linalg.norm(net_wins, axis=1, keepdims=True)
    direction = net_wins / np.where(length > 0.0, length, 1.0)
    likeness = (direction @ direction.T)[np.triu_indices(len(direction), 1)]
    log_chosen: FloatArray = log_softmax(SHARPNESS * likeness)
    return log_chosen


def _place_of_pair(first: int, second: int, n: int) -> int:
    """Where the pair stands among those above the diagonal.

    >>> [_place_of_pair(i, j, 3) for i, j in [(0, 1), (0, 2), (1, 2)]]
    [0, 1, 2]
    """
    return first * n - first * (first + 1) // 2 + second - first - 1


def _log_division(sizes: IntArray) -> float:
    """Log probability of a division, whichever side is called the first.

    One coin of uniform bias for all users: ∫ p^a (1 − p)^b dp = a! b! / (a + b + 1)!.

    >>> round(float(np.exp(_log_division(np.array([1, 1])))), 3)  # apart: 1/3, else together
    0.333
    """
    return float(np.log(2.0) + gammaln(sizes + 1.0).sum() - gammaln(sizes.sum() + 2.0))
