"""A small study with users, and the dense answer that the arrow must agree with."""

from types import SimpleNamespace

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.gp import Rows, infer
from penchant.kernels import Inputs
from penchant.likelihoods import Outcomes

N_USERS, N_ITEMS = 7, 6


@pytest.fixture
def study(rng):
    """Seven users of whom one is silent and one compared a single pair; rows have counts."""
    user = rng.choice([0, 1, 3, 4, 6], size=60)
    a = rng.integers(N_ITEMS, size=60)
    b = (a + 1 + rng.integers(N_ITEMS - 1, size=60)) % N_ITEMS
    user[:3], a[:3], b[:3] = 5, 0, 4
    data = Comparisons.from_pairs(
        a, b, user=user, count=rng.integers(1, 3, size=60), items=range(N_ITEMS), users=range(7)
    )
    return SimpleNamespace(
        data=data,
        votes=Rows.by_user(data),
        items=Inputs(rng.standard_normal((N_ITEMS, 2)), index=np.arange(N_ITEMS)),
        users=Inputs(rng.standard_normal((N_USERS, 2)), index=np.arange(N_USERS)),
    )


@pytest.fixture
def dense_infer():
    """The same inference on the full users·items covariance, by solving with it directly."""

    def run(K, votes, n_items, likelihood, settings):
        rows = np.arange(len(votes))
        A = np.zeros((len(votes), len(K)))
        A[rows, votes.user * n_items + votes.winner] = 1.0
        A[rows, votes.user * n_items + votes.loser] = -1.0

        def refresh(weight, shift):
            L, b = A.T @ (weight[:, None] * A), A.T @ shift
            B = np.eye(len(K)) + K @ L
            covariance = np.linalg.solve(B, K)
            mean = covariance @ b
            return SimpleNamespace(
                mean=A @ mean,
                var=np.einsum("ij,jk,ik->i", A, covariance, A),
                log_det=float(np.linalg.slogdet(B)[1]),
                quadratic=float(b @ mean),
                jitter=0.0,
                utilities=mean.reshape(-1, n_items),
                covariance=covariance.reshape(-1, n_items, len(K) // n_items, n_items),
            )

        return infer(refresh, likelihood, Outcomes(), votes.count, settings)

    return run
