"""What is kept of the chains: draws of the communities, and what they say about users and pairs.

A draw holds communities, not users: a user is known by their answers, so memberships of the users
that were fitted and of newcomers are computed alike, as the user's posterior over the
communities of each draw, averaged over draws (paper 004 Eq. 21 has the prior p(c|λ) there).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from penchant.communities.assignment import Answers, SingleArray, responsibilities, some_of
from penchant.likelihoods import Likelihood
from penchant.metrics import adjusted_rand
from penchant.numerics.types import BoolArray, FloatArray, IntArray

ALIGNMENT_USERS = 5_000
"""Users by whom the communities of different draws are recognised."""
REFERENCE_CANDIDATES = 25
"""Draws among which the most typical is looked for."""


@dataclass(frozen=True, eq=False)
class Draw:
    """The communities at one sweep of one chain.

    sizes: (K,) users of each; utilities: (K, n); likelihood_thetas: (K, q) parameters of its
    likelihood; is_supported: (K,) whether its answers speak for it; labels: (K,) which of the
    reported communities each one counts towards.
    """

    sizes: IntArray
    utilities: FloatArray
    likelihood_thetas: FloatArray
    is_supported: BoolArray
    chain: int
    labels: IntArray

    @property
    def n_communities(self) -> int:
        """How many communities there is support for."""
        return int(np.count_nonzero(self.is_supported))


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws from all chains, and the likelihood whose parameters they hold.

    n_communities: how many communities are reported, C.
    """

    kept: tuple[Draw, ...]
    likelihood: Likelihood
    n_communities: int

    def shares(self, answers: Answers) -> Iterator[tuple[Draw, SingleArray]]:
        """Each draw with (K, U): the probabilities of its communities for each user."""
        for draw in self.kept:
            table = answers.table(draw.utilities, self._likelihoods(draw))
            log_weight = np.log(draw.sizes).astype(np.float32)
            share = np.empty((len(draw.sizes), answers.n_users), dtype=np.float32)
            for part, shard in answers.shards():
                weight = responsibilities(shard, table, log_weight)
                share[:, part] = weight / weight.sum(axis=0)
            yield draw, share

    def _likelihoods(self, draw: Draw) -> list[Likelihood]:
        return [self.likelihood.with_theta(theta) for theta in draw.likelihood_thetas]

    def membership(self, answers: Answers) -> FloatArray:
        """(U, C) soft membership of users in the reported communities; rows sum to one."""
        total = np.zeros((self.n_communities, answers.n_users))
        for draw, share in self.shares(answers):
            for label, its_share in zip(draw.labels, share, strict=True):
                total[label] += its_share
        return np.ascontiguousarray(total.T) / len(self.kept)

    def in_order(self, order: IntArray) -> "Draws":
        """The reported communities in another order: `order[i]` becomes the i-th."""
        place = np.empty(self.n_communities, dtype=np.intp)
        place[order] = np.arange(self.n_communities)
        return replace(
            self, kept=tuple(replace(draw, labels=place[draw.labels]) for draw in self.kept)
        )

    def utilities(self, answers: Answers) -> FloatArray:
        """(U, n) expected utilities of users."""
        total = np.zeros((answers.n_users, self.kept[0].utilities.shape[1]))
        for draw, share in self.shares(answers):
            total += share.T @ draw.utilities
        return total / len(self.kept)

    def prob(
        self, answers: Answers, owner: IntArray, first: IntArray, second: IntArray
    ) -> FloatArray:
        """(k,) P(first preferred to second) for the user `owner`, one for each pair."""
        total = np.zeros(len(first))
        certain = np.zeros(len(first))
        for draw, share in self.shares(answers):
            for f, likelihood, its_share in zip(
                draw.utilities, self._likelihoods(draw), share, strict=True
            ):
                total += its_share[owner] * likelihood.prob(f[first] - f[second], certain)
        return np.minimum(total / len(self.kept), 1.0)  # shares are rounded to single precision

    def counts(self) -> dict[int, float]:
        """Posterior over the number of communities."""
        numbers, times = np.unique([d.n_communities for d in self.kept], return_counts=True)
        return {int(k): float(t) / len(self.kept) for k, t in zip(numbers, times, strict=True)}

    def of_chain(self, chain: int) -> "Draws":
        """The draws of one chain."""
        return replace(self, kept=tuple(draw for draw in self.kept if draw.chain == chain))


def align(draws: Draws, answers: Answers) -> Draws:
    """Recognise the same communities in all draws.

    The reference is the draw that agrees best with others among those with the likeliest number
    of communities; theirs are the reported ones, largest first there. Those of every other draw
    are matched with them one to one by their common users; what is left over goes to where most
    of its users are.
    """
    some = some_of(answers, ALIGNMENT_USERS)
    shares = [share for _, share in draws.shares(answers.take(some))]
    counts = draws.counts()
    n_communities = max(counts, key=lambda k: counts[k])
    reference = _most_typical(draws, shares, n_communities)
    chosen = draws.kept[reference]
    reported = np.flatnonzero(chosen.is_supported)
    reported = reported[np.argsort(-chosen.sizes[reported], kind="stable")]
    known = shares[reference][reported]
    aligned = tuple(
        replace(draw, labels=_match(known @ share.T))
        for draw, share in zip(draws.kept, shares, strict=True)
    )
    return replace(draws, kept=aligned, n_communities=n_communities)


def _most_typical(draws: Draws, shares: list[SingleArray], n_communities: int) -> int:
    """The draw with n_communities whose partition agrees most with the others', on average."""
    fitting = [i for i, draw in enumerate(draws.kept) if draw.n_communities == n_communities]
    spread = np.unique(np.linspace(0, len(fitting) - 1, REFERENCE_CANDIDATES).astype(np.intp))
    candidates = [fitting[i] for i in spread]
    partitions = [shares[i].argmax(axis=0) for i in candidates]
    agreement = [sum(adjusted_rand(a, b) for b in partitions) for a in partitions]
    return int(candidates[int(np.argmax(agreement))])


def _match(overlap: SingleArray) -> IntArray:
    """(K,) a reported community for each of a draw's, given the (C, K) users in common."""
    labels: IntArray = overlap.argmax(axis=0)
    reported, matched = linear_sum_assignment(overlap, maximize=True)
    labels[matched] = reported
    return labels
