"""One taste from which people deviate personally: what communities must beat.

The covariance of deviations is free along the main directions of disagreement, so that this is the
multi-user model where it matters, at the price of a search.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from penchant.communities.assignment import Answers
from penchant.communities.division import Division, everybody_together, learn
from penchant.communities.mixture import Grouping
from penchant.communities.moves import disagreement
from penchant.communities.variation import Cloud, Modes, PersonalVotes, fit_modes, fit_one
from penchant.numerics.types import FloatArray

MAX_DIRECTIONS = 8
NOTABLE = 0.9
"""Share of the noise edge from which on a direction of disagreement is taken along."""
FIRST_SPREAD = 0.1
"""Variance of personal deviations of a difference, a priori."""

HARDLY_GIVEN = 1e-3
"""Votes that an answer counts for which nobody gave: directions are of all answers."""
CLEAR_EVIDENCE = 10.0
"""Nats by which communities must beat one taste with personal deviations, and those one taste."""


class OneTaste(NamedTuple):
    """Everybody around one taste: votes along the directions, the fitted cloud, its evidence.

    loading: (m, q) how the distinct answers depend on the directions.
    """

    one: Division
    loading: FloatArray
    ballots: PersonalVotes
    cloud: Cloud
    modes: Modes
    evidence: float

    @property
    def personal(self) -> float:
        """Nats for personal deviations, against one taste for all."""
        return self.evidence - self.one.objective

    @property
    def price(self) -> float:
        """Nats that the directions cost, which were learned from the same votes.

        q directions among d that the votes settle have q (d − q) degrees of freedom. Direction k
        is a taste g ~ N(0, c K) that people have more or less of; s is what a person's votes tell
        of how much, as signal to noise, and s / (1 + s) the share of everybody's votes that tells
        of g. With the best c its price is ½ (d + log |I + c s / (1 + s) K A|); a direction that
        brings less than it costs, U/2 (s − log(1 + s)), might have been left out.
        """
        taste, n_users = self.one.tastes[0], self.ballots.n_users
        state, design = taste.state, self.one.model.prior.design
        d = state.n_settled
        variance, axes = np.linalg.eigh(self.modes.spread)
        directions = self.loading @ axes * np.sqrt(variance)
        curvature = taste.local.curvature(taste.weights)
        s = curvature @ directions**2 / n_users
        z = np.stack([state.solve(design.adjoint(curvature * g)) for g in directions.T])
        told = s / (1.0 + s) * np.sum(z**2, axis=1) / d  # c s / (1 + s)
        known = np.maximum(d + state.log_det + d * np.log(told), 0.0)
        cost = 0.5 * max(1.0 - len(s) / d, 0.0) * known
        return float(np.minimum(cost, 0.5 * n_users * (s - np.log1p(s))).sum())

    def modes_of(self, grouping: Grouping) -> tuple[Modes, float]:
        """Communities with personal deviations of their members, and nats for them."""
        best = fit_modes(self.cloud, self.modes, grouping.allocation.responsibilities)
        # one community may have stopped short of its best spread: all of theirs is another start
        total = best.spread + np.cov(best.means.T, aweights=best.membership.sum(axis=0), bias=True)
        start = replace(self.modes, spread=total)
        single = max(self.modes.objective, self.cloud.fit(start).objective)
        return best, best.objective - single


def one_taste(grouping: Grouping, hope: float = -np.inf) -> OneTaste:
    """Fit one taste with personal deviations along the main directions of disagreement.

    hope: an evidence that makes it worth while; the fit stays coarse where it is out of reach.
    """
    crowd = grouping.allocation.crowd
    one, _ = learn(everybody_together(crowd, crowd.hyper.theta))
    taste, loading = one.tastes[0], _directions(one, grouping)
    ballots = ballots_of(one, loading, crowd.answers)
    # the votes are in both; what the common taste itself costs is not in the cloud
    beside = one.objective - taste.log_z - taste.price
    cloud, modes = fit_one(ballots, FIRST_SPREAD, crowd.concentration, hope - beside)
    evidence = modes.objective + beside
    return OneTaste(one, loading, ballots, cloud, modes, evidence)


def ballots_of(one: Division, loading: FloatArray, answers: Answers) -> PersonalVotes:
    """Answers as votes along the directions, about the common taste."""
    counts = answers.counts
    return PersonalVotes(
        counts.indptr.astype(np.intp),
        counts.data.astype(np.float64),
        one.tastes[0].state.mean[counts.indices],
        loading[counts.indices],
        answers.outcomes.part(counts.indices),
        one.model.hyper.likelihood,
    )


def _directions(one: Division, grouping: Grouping) -> FloatArray:
    """(m, q) loadings of the answers: main disagreements, and the communities' differences.

    They are orthogonal and of unit size over the votes.
    """
    prior = one.model.prior
    weight = np.sqrt(np.maximum(one.tastes[0].weights, HARDLY_GIVEN))
    everybody = np.arange(one.crowd.answers.n_users)
    spectrum = disagreement(one, 0, everybody, MAX_DIRECTIONS)
    n_notable = max(1, int(np.count_nonzero(spectrum.strength > NOTABLE)))
    main = prior.design.forward(prior.points(spectrum.weights[:, :n_notable]))
    means = np.column_stack([taste.state.mean for taste in grouping.allocation.tastes])
    contrasts = (means - one.tastes[0].state.mean[:, None]) * np.sqrt(grouping.allocation.sizes)
    if grouping.n_communities == 1:
        contrasts = contrasts[:, :0]
    basis = np.zeros((len(weight), 0))
    for part in (main, contrasts):
        whole = weight[:, None] * part
        left, size, _ = np.linalg.svd(whole - basis @ (basis.T @ whole), full_matrices=False)
        rounding = 1e-6 * np.linalg.norm(whole)
        kept = np.flatnonzero(size > max(0.1 * size.max(initial=0.0), rounding))[:MAX_DIRECTIONS]
        if not len(kept) and not basis.size:  # nobody disagrees: any direction says so
            kept = np.arange(1)
        basis = np.column_stack([basis, left[:, kept]])
    loading: FloatArray = basis / weight[:, None] * np.sqrt(np.sum(weight**2))
    return loading
