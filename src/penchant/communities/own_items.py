"""What a person thinks of an item beyond all common directions, again at every question about it.

Ratings turned into pairs are the plain case: whatever moved somebody to rate a film low moves all
pairs with it, in either half of the votes. Such a deviation e_ui ~ N(0, s²) falls into no groups,
yet it is there again in both halves. Two votes v, w of a person that share an item pull, at the
common taste, with

    E ±h_v h_w = k_v k_w (s² ± ℓ_vᵀ S ℓ_w),

S the spread along the common directions and the sign minus where the item won one of them alone:
summed over all that share, that gives s².
"""

import numpy as np

from penchant.communities.one_taste import OneTaste
from penchant.likelihoods import Gaussian, Likelihood, Probit
from penchant.numerics.types import FloatArray

MOST = 0.45
"""Share of an answer's noise that may be one item's: both items' together are less than all."""


def share_of_items(around: OneTaste) -> float:
    """Of the noise in an answer, what is one item's and the same in all answers about it: s²."""
    answers, ballots, local = around.one.crowd.answers, around.ballots, around.one.tastes[0].local
    counts, n_items = answers.counts, len(around.one.crowd.items)
    at, times = counts.indices, ballots.count
    h, k = times * local.pairs.d1[at], times * local.precision[at]
    user = np.repeat(np.arange(answers.n_users) * n_items, np.diff(counts.indptr))
    cells, place = np.unique(
        np.concatenate([user + answers.winner[at], user + answers.loser[at]]), return_inverse=True
    )

    def of_others(pulls: FloatArray, single: FloatArray, sign: float) -> float:
        """Σ over cells of products of different votes, from sums over all."""
        total = np.bincount(place.ravel(), np.concatenate([pulls, sign * pulls]), len(cells))
        return float(total @ total) - 2.0 * float(single @ single)

    root = np.sqrt(times)
    smooth = (ballots.loading * k[:, None]) @ _root(around.modes.spread)
    common = sum(of_others(column, column / root, -1.0) for column in smooth.T)
    shared = of_others(h, h / root, -1.0) - common
    most = of_others(k, k / root, 1.0)
    noise = noise_of(around.one.model.hyper.likelihood)
    return float(np.clip(shared / (most * noise), 0.0, MOST)) if most > 0.0 else 0.0


def noise_of(likelihood: Likelihood) -> float:
    """Variance of the noise in an answer, that of the probit being one."""
    if isinstance(likelihood, Gaussian):
        return likelihood.noise
    scale = likelihood.choice_scale
    return 1.0 if scale is None else (Probit().choice_scale / scale) ** 2


def with_own_items(around: OneTaste, g: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Differences (V,) that everybody's own view of items moves, the noise in all being as before.

    With a share ρ of items, e has the variance ρ / (1 − 2ρ) of the noise, and g is as much wider.
    """
    share = share_of_items(around)
    answers = around.one.crowd.answers
    at = answers.counts.indices
    own = rng.standard_normal((answers.n_users, len(around.one.crowd.items)))
    user = np.repeat(np.arange(answers.n_users), np.diff(answers.counts.indptr))
    apart = own[user, answers.winner[at]] - own[user, answers.loser[at]]
    noise = noise_of(around.one.model.hyper.likelihood)
    moved: FloatArray = (g + np.sqrt(share * noise) * apart) / np.sqrt(1.0 - 2.0 * share)
    return moved


def _root(S: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(S)
    root: FloatArray = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
