"""Simulated users of a few tastes, mixtures of their answers, states and partitions of chains."""

from dataclasses import replace

import numpy as np

from penchant import communities
from penchant.data import Comparisons
from penchant.gp import ItemHyper
from penchant.kernels import Independent, Inputs
from penchant.likelihoods import Gaussian, Outcomes, Probit


def tastes(k, n_items, scale=1.5, seed=5):
    return scale * np.random.default_rng(seed).standard_normal((k, n_items))


def people(utilities, n_users, spread=0.0, seed=0):
    """(U, n) utilities of users with one of the tastes (K, n) each, in turn, who deviate."""
    own = spread * np.random.default_rng(seed).standard_normal((n_users, utilities.shape[1]))
    return utilities[np.arange(n_users) % len(utilities)] + own


def votes(utilities, n_votes, seed=0, noise=1.0):
    """So many answers of each user with these utilities (U, n), about random pairs.

    seed: a number, or a generator.
    """
    rng, (n_users, n_items) = np.random.default_rng(seed), utilities.shape
    user = np.repeat(np.arange(n_users), n_votes)
    a = rng.integers(n_items, size=len(user))
    b = (a + rng.integers(1, n_items, size=len(user))) % n_items
    wins = utilities[user, a] - utilities[user, b] + noise * rng.standard_normal(len(user)) > 0
    winner, loser = np.where(wins, a, b), np.where(wins, b, a)
    return Comparisons.from_pairs(
        winner, loser, user=user, items=range(n_items), users=range(n_users)
    )


def choices_as_pairs(utilities, n_choices, size, seed=0):
    """So many choices out of `size` random items of each user, as pairs that do not say so."""
    rng, (n_users, n_items) = np.random.default_rng(seed), utilities.shape
    user = np.repeat(np.arange(n_users), n_choices)
    sets = rng.permuted(np.tile(np.arange(n_items), (len(user), 1)), axis=1)[:, :size]
    said = Probit().choice_scale * utilities[user[:, None], sets] + rng.gumbel(size=sets.shape)
    best = np.argmax(said, axis=1)
    is_left = np.arange(size) != best[:, None]
    winner = np.repeat(sets[np.arange(len(user)), best], size - 1)
    named = {"items": range(n_items), "users": range(n_users)}
    return Comparisons.from_pairs(winner, sets[is_left], user=np.repeat(user, size - 1), **named)


def mixture_of(data, kernel=None, likelihood=None, X=None, **options):
    """The mixture of the answers in some comparisons."""
    hyper = ItemHyper(kernel or Independent(), likelihood or Probit())
    items = Inputs(X, index=np.arange(data.n_items))
    return communities.MixtureData(communities.Answers.of(data), items, hyper, **options)


def with_outcomes(mixture, likelihood):
    """The mixture with another likelihood, and with ties and margins where that needs them."""
    rng, m, outcomes = np.random.default_rng(1), mixture.answers.n_answers, Outcomes()
    if likelihood.n_answers == 3:
        outcomes = Outcomes(tie=rng.random(m) < 0.2)
    if isinstance(likelihood, Gaussian):
        outcomes = Outcomes(margin=1.0 + rng.standard_normal(m))
    hyper = mixture.hyper._replace(likelihood=likelihood)
    return replace(mixture, answers=replace(mixture.answers, outcomes=outcomes), hyper=hyper)


def blank_state(assignment, utilities, n_answers=1, concentration=1.0, theta=(), seed=(0,)):
    """A chain with users in these communities, before its first sweep."""
    blank, theta = np.zeros((len(utilities), n_answers)), np.asarray(theta, dtype=float)
    return communities.ChainState(
        assignment=np.asarray(assignment, dtype=np.int32),
        utilities=utilities,
        tau=blank,
        nu=blank,
        thetas=np.tile(theta, (len(blank), 1)),
        theta=theta,
        log_evidence=np.zeros(len(blank)),
        concentration=concentration,
        log_joint=-np.inf,
        seed=seed,
        sweep=0,
    )


def partitions(n_users, prefix=()):
    """All partitions, each as the labels in order of first appearance."""
    if len(prefix) == n_users:
        yield prefix
        return
    for label in range(max(prefix, default=-1) + 2):
        yield from partitions(n_users, (*prefix, label))


def canonical(assignment):
    """A partition as labels in order of first appearance."""
    names = {}
    return tuple(names.setdefault(label, len(names)) for label in assignment.tolist())


def exact_posterior(mixture):
    """Probability of every partition, by enumeration."""
    log_joint = {}
    for partition in partitions(mixture.answers.n_users):
        labels = np.array(partition, dtype=np.int32)
        counts = communities.count_pairs(mixture.answers.counts, labels, labels.max() + 1)
        evidence = sum(
            communities.fit_community(mixture, c, mixture.hyper.theta).log_evidence for c in counts
        )
        log_joint[partition] = evidence + communities.log_prior_of_sizes(np.bincount(labels), 1.0)
    top = max(log_joint.values())
    total = sum(np.exp(value - top) for value in log_joint.values())
    return {key: np.exp(value - top) / total for key, value in log_joint.items()}
