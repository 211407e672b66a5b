"""More answers, or fewer, for communities that were found already, without sampling again.

A draw holds communities and not users, so whoever answers more, or for the first time, is placed
among the communities of the draws that there are. Which communities there are is not asked again;
for that the chains go on from where they are, with everything that was answered since.
"""

from dataclasses import replace

import numpy as np

from penchant.communities.assignment import Answers, LabelArray, log_likelihoods
from penchant.communities.chains import Chain
from penchant.communities.utility import Mixture
from penchant.gp import columns, place_among

LEARNING_SWEEPS = 2
"""Sweeps before the end of the warm-up from which a chain goes on: one that learns, one more."""


def compact(answers: Answers) -> Answers:
    """Without the answers that none of the users gave: a draw's table is then as small."""
    given, n, cliques = np.unique(answers.counts.indices), answers.n_pairs, answers.outcomes.cliques
    pairs = given[given < n]
    edges, outcomes = pairs, answers.outcomes.part(pairs)
    if cliques is not None:
        edges = np.append(pairs, np.arange(n, len(answers.winner)))
        outcomes = outcomes._replace(cliques=cliques.chosen(given[given >= n] - n))
    return Answers(answers.counts[:, given], answers.winner[edges], answers.loser[edges], outcomes)


def carry_over(
    chain: Chain, before: Answers, now: Answers, mixture: Mixture, n_warmup: int
) -> Chain:
    """The chain on other data: its next sweep learns hyperparameters again, draws are forgotten.

    before, now: all users' answers when it ran, and those of the mixture. Whoever is new starts
    in the community that suits them best.
    """
    state, m = chain.state, mixture.answers.n_answers
    place = place_among(columns(before), columns(now))
    old = place >= 0
    tau, nu = np.zeros((2, len(state.tau), m))
    tau[:, old], nu[:, old] = state.tau[:, place[old]], state.nu[:, place[old]]
    table = mixture.table(state.utilities, state.thetas)
    fitting = log_likelihoods(mixture.answers.counts, table) + np.log(state.sizes)[:, None]
    assignment: LabelArray = fitting.argmax(axis=0).astype(np.int32)
    here, there = now.voters, before.voters
    stayed = np.isin(there, here)
    assignment[np.searchsorted(here, there[stayed])] = state.assignment[stayed]
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
