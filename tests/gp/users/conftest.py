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


def design(votes, n_items, n_users):
    """(m, U n) the rows' differences of all users' utilities."""
    rows, A = np.arange(len(votes.winner)), np.zeros((len(votes.winner), n_users * n_items))
    A[rows, votes.user * n_items + votes.winner] = 1.0
    A[rows, votes.user * n_items + votes.loser] = -1.0
    return A


def condition(K, A, weight, shift):
    """Mean and covariance of utilities of prior covariance K given sites on A, and log|I + KL|."""
    B = np.eye(len(K)) + K @ A.T @ (weight[:, None] * A)
    cov = np.linalg.solve(B, K)
    return cov @ A.T @ shift, cov, float(np.linalg.slogdet(B)[1])


def infer_dense(K, votes, n_items, likelihood, settings):
    """The same inference on the full users·items covariance, by solving with it directly."""
    A = design(votes, n_items, len(K) // n_items)

    def refresh(weight, shift):
        mean, cov, log_det = condition(K, A, weight, shift)
        return SimpleNamespace(
            mean=A @ mean,
            var=np.einsum("ij,jk,ik->i", A, cov, A),
            log_det=log_det,
            quadratic=float(shift @ A @ mean),
            jitter=0.0,
            rows=A,
            utilities=mean.reshape(-1, n_items),
            covariance=cov.reshape(-1, n_items, len(K) // n_items, n_items),
        )

    return infer(refresh, likelihood, Outcomes(), votes.count, settings)


@pytest.fixture(scope="session")
def dense():
    """Plain matrices over users × items."""
    return SimpleNamespace(design=design, condition=condition, infer=infer_dense)
