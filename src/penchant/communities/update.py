"""More answers for communities that were found already, without sampling again.

A draw holds communities and not users, so whoever answers more, or for the first time, is placed
among the communities of the draws that there are. Which communities there are is not asked again;
for that the chains go on from where they are, with everything that was answered since.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from penchant.communities.assignment import Answers, LabelArray, log_likelihoods
from penchant.communities.chains import Chain
from penchant.communities.draws import Draws
from penchant.communities.utility import Mixture, fit_community
from penchant.gp import Hyperparameters, Posterior, Settings
from penchant.gp.update import place_among
from penchant.gp.users.model import posteriors_of
from penchant.gp.users.posterior import UserPosteriors
from penchant.gp.users.update import More, absorb, settle
from penchant.kernels import Inputs
from penchant.numerics.types import FloatArray, IntArray

LEARNING_SWEEPS = 2
"""Sweeps before the end of the warm-up from which a chain goes on: one that learns, one more."""


def update_membership(
    draws: Draws, membership: FloatArray, answers: Answers, told: IntArray
) -> FloatArray:
    """(U, C) memberships after the users `told` answered more; the others' stay as they are."""
    updated = np.zeros((answers.n_users, membership.shape[1]))
    updated[: len(membership)] = membership
    updated[told] = draws.membership(_compact(answers.take(told)))
    return updated


def _compact(answers: Answers) -> Answers:
    """Without the answers that none of the users gave: a draw's table is then as small."""
    given = np.unique(answers.counts.indices)
    return Answers(
        answers.counts[:, given],
        answers.winner[given],
        answers.loser[given],
        answers.outcomes.part(given),
    )


def update_posteriors(
    posteriors: Sequence[Posterior], mixture: Mixture, pair_counts: FloatArray
) -> tuple[Posterior, ...]:
    """Utilities of the communities given answers (C, m), each with the parameters it has."""
    return tuple(
        fit_community(
            mixture, counts, Hyperparameters(known.kernel, known.likelihood).theta
        ).posterior
        for known, counts in zip(posteriors, pair_counts, strict=True)
    )


def update_personal(personal: UserPosteriors, more: More, settled: bool) -> UserPosteriors:
    """Everybody's own utilities, memberships being the features of `more.users`.

    Unless settled, known users keep the memberships that they were fitted with.
    """
    memberships, X = more.users.features(), personal.users.features()
    if not settled:
        kept = np.concatenate([X, memberships[len(X) :]])
        users = Inputs(kept, index=np.arange(len(kept)))
        if (absorbed := absorb(personal, replace(more, users=users), Settings())) is not None:
            return absorbed
    return posteriors_of(*settle(personal, more, Settings()))


def active(answers: Answers) -> IntArray:
    """Positions of the users who answered anything."""
    return np.flatnonzero(np.diff(answers.counts.indptr))


def carry_over(
    chain: Chain, before: Answers, now: Answers, mixture: Mixture, n_warmup: int
) -> Chain:
    """The chain on more data: its next sweep learns hyperparameters again, draws are forgotten.

    before, now: all users' answers when it ran, and those of the mixture. Whoever is new starts
    in the community that suits them best.
    """
    state, m = chain.state, mixture.answers.n_answers
    place = place_among(_columns(before), _columns(now))
    old = place >= 0
    tau, nu = np.zeros((2, len(state.tau), m))
    tau[:, old], nu[:, old] = state.tau[:, place[old]], state.nu[:, place[old]]
    table = mixture.table(state.utilities, state.thetas)
    fitting = log_likelihoods(mixture.answers.counts, table) + np.log(state.sizes)[:, None]
    assignment: LabelArray = fitting.argmax(axis=0).astype(np.int32)
    assignment[np.searchsorted(active(now), active(before))] = state.assignment
    sweep = min(state.sweep, max(n_warmup - LEARNING_SWEEPS, 0))
    *seed, number = state.seed
    carried = replace(
        state,
        assignment=assignment,
        tau=tau,
        nu=nu,
        seed=(*seed, int(now.counts.sum()), number),
        sweep=sweep,
    )
    return Chain(carried, chain.n_communities[: sweep + 1], chain.log_joint[: sweep + 1], ())


def _columns(answers: Answers) -> FloatArray:
    """(4, m) what tells answers apart."""
    zeros = np.zeros(answers.n_answers)
    outcomes = [zeros if column is None else column for column in answers.outcomes]
    return np.stack([answers.winner, answers.loser, *outcomes])
