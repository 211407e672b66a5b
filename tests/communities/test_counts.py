"""The posterior over the number of communities: that of all partitions, on a tiny problem."""

from collections import Counter

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.kernels import Independent
from penchant.likelihoods import Gaussian, Probit
from penchant.models import CommunityGP
from tests.communities.simulation import exact_posterior, mixture_of, people, votes

N_USERS, N_CHAINS = 5, 8
TASTES = np.outer([1.0, -1.0], [1.0, 0.3, -0.3, -1.0])


def answers(likelihood):
    """Four answers of each of five users, about four items."""
    data = votes(people(TASTES, N_USERS), 4, seed=1)
    if isinstance(likelihood, Probit):
        return data
    rng, f = np.random.default_rng(2), people(TASTES, N_USERS)
    g = f[data.user, data.winner] - f[data.user, data.loser] + rng.standard_normal(len(data))
    pair = np.where(g > 0, [data.winner, data.loser], [data.loser, data.winner])
    return Comparisons.from_pairs(*pair, user=data.user, margin=np.abs(g), items=range(4))


@pytest.mark.usefixtures("remembered_fits")
@pytest.mark.filterwarnings("ignore::penchant.errors.ConvergenceWarning")
@pytest.mark.parametrize("sampler", ["collapsed", "blocked"])
@pytest.mark.parametrize("likelihood", [Probit(), Gaussian(1.0)], ids=["probit", "gaussian"])
def test_community_counts_are_those_of_all_partitions(likelihood, sampler):
    data, kernel = answers(likelihood), Independent(2.0)
    exact = Counter()
    for partition, p in exact_posterior(mixture_of(data, kernel, likelihood)).items():
        exact[max(partition) + 1] += p
    model = CommunityGP(
        kernel=kernel,
        likelihood=likelihood,
        inference="mcmc",
        sampler=sampler,
        personal=False,
        optimize=None,
        n_sweeps=300,
        n_chains=N_CHAINS,
        progress=False,
        random_state=0,
    ).fit(None, data)
    chains = [model.draws_.of_chain(number).counts() for number in range(N_CHAINS)]
    for k in range(1, N_USERS + 1):
        each = np.array([counts.get(k, 0.0) for counts in chains])
        # of a rare number the chains' own spread is known badly: at least that of independent draws
        independent = np.sqrt(exact[k] * (1.0 - exact[k]) / len(model.draws_.kept))
        error = max(each.std(ddof=1) / np.sqrt(N_CHAINS), independent)
        assert model.community_counts_.get(k, 0.0) == pytest.approx(each.mean())
        assert abs(each.mean() - exact[k]) < 4.0 * error
    # a community of a single user is one, but its answers never support it
    assert sum(p for k, p in model.community_counts_.items() if k > 2) > 0.15
    assert max(model.supported_counts_) <= 2
