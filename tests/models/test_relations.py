"""Relations between items in every model, and between users: equal to dense computations."""

from types import SimpleNamespace

import numpy as np
import pytest

import penchant as pc
from penchant.gp import Settings, infer
from penchant.kernels import RBF, Diffusion, Inputs, RegularizedLaplacian, as_relations
from penchant.likelihoods import Outcomes, Probit
from tests.simulation import duel_data

pytestmark = pytest.mark.filterwarnings("ignore::penchant.errors.ConvergenceWarning")
N_ITEMS, N_USERS = 9, 12


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    monkeypatch.setattr(Settings.__init__, "__defaults__", ("ep", 1e-12, 500))


def ring(n):
    """Everybody knows two neighbours."""
    return np.roll(np.eye(n), 1, axis=0) + np.roll(np.eye(n), -1, axis=0)


def votes(rng, n_each=12):
    user = np.repeat(np.arange(N_USERS), n_each)
    a = rng.integers(N_ITEMS, size=len(user))
    b = (a + 1 + rng.integers(N_ITEMS - 1, size=len(user))) % N_ITEMS
    return pc.Comparisons.from_pairs(a, b, user=user, items=range(N_ITEMS), users=range(N_USERS))


def dense_means(K, data, rows):
    """EP with the full covariance of the points `rows` (m, 2) that comparisons are between."""
    A = np.zeros((len(rows), len(K)))
    A[np.arange(len(rows)), rows[:, 0]], A[np.arange(len(rows)), rows[:, 1]] = 1.0, -1.0

    def refresh(weight, shift):
        L, b = A.T @ (weight[:, None] * A), A.T @ shift
        covariance = np.linalg.solve(np.eye(len(K)) + K @ L, K)
        mean = covariance @ b
        log_det = float(np.linalg.slogdet(np.eye(len(K)) + K @ L)[1])
        var = np.einsum("ij,jk,ik->i", A, covariance, A)
        return SimpleNamespace(
            mean=A @ mean,
            var=var,
            log_det=log_det,
            quadratic=float(b @ mean),
            jitter=0.0,
            utilities=mean,
            covariance=covariance,
        )

    count = data.astype(float)
    return infer(refresh, Probit(), Outcomes(), count, Settings()).state


def test_users_and_items_that_are_linked(rng):
    data, X = votes(rng), rng.standard_normal((N_ITEMS, 2))
    items, users = {"near": ring(N_ITEMS)}, {"knows": ring(N_USERS)}
    kernel = RBF(1.2, 0.8) + RegularizedLaplacian("near", 0.7, 1.3)
    user_kernel = 0.5 + Diffusion("knows", 0.6)
    model = pc.MultiUserGP(kernel, user_kernel, sharing=0.6, optimize=None, progress=False)
    model.fit(X, data, items, user_relations=users)
    K_x = kernel(Inputs(X, as_relations(items, N_ITEMS), np.arange(N_ITEMS)))
    K_u = user_kernel(Inputs(None, as_relations(users, N_USERS), np.arange(N_USERS)))
    K = np.kron(0.6 * K_u + 0.4 * np.eye(N_USERS), K_x)
    rows = np.column_stack([data.user * N_ITEMS + data.winner, data.user * N_ITEMS + data.loser])
    dense = dense_means(K, data.count, rows)
    mean, std = model.predict(users=range(N_USERS), return_std=True)
    above = np.kron(np.eye(N_USERS), np.eye(N_ITEMS) - 1.0 / N_ITEMS)  # the average item
    np.testing.assert_allclose(mean.ravel(), above @ dense.utilities, atol=1e-8)
    expected = np.diagonal(above @ dense.covariance @ above)
    np.testing.assert_allclose(std.ravel() ** 2, expected, atol=1e-8)


def test_communities_of_linked_items(rng):
    data, items = votes(rng), {"near": ring(N_ITEMS)}
    kernel = RegularizedLaplacian("near", 0.7, 1.3)
    model = pc.CommunityGP(
        kernel=kernel,
        optimize=None,
        inference="mcmc",
        n_sweeps=6,
        n_chains=1,
        random_state=0,
        progress=False,
    ).fit(None, data, items)
    K = kernel(Inputs(None, as_relations(items, N_ITEMS), np.arange(N_ITEMS)))
    answers = model.state_.learned.answers
    rows = np.column_stack([answers.winner, answers.loser])
    for posterior, counts in zip(model.posteriors_, model.state_.learned.pair_counts, strict=True):
        given = counts > 0
        dense = dense_means(K, counts[given], rows[given])
        np.testing.assert_allclose(posterior.mean, dense.utilities, atol=1e-8)
        np.testing.assert_allclose(posterior.covariance(), dense.covariance, atol=1e-8)


def linked_study(seed, n_items=30, n_users=20, n_each=10):
    """Utilities that are smooth along a ring of items, tastes along a ring of users."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(n_items) / n_items
    phase = 2 * np.pi * np.arange(n_users) / n_users
    f = 2.0 * np.cos(angle[None, :] - 0.7 * np.sin(phase)[:, None])
    user = np.repeat(np.arange(n_users), n_each)
    data = duel_data(rng, f, user=user, users=range(n_users))
    return data, ring(n_items), ring(n_users)


@pytest.mark.parametrize("model", [pc.PreferenceGP(), pc.MultiUserGP(), pc.CommunityGP()], ids=str)
def test_relations_help_where_they_are_true(model, monkeypatch):
    monkeypatch.setattr(Settings.__init__, "__defaults__", ("ep", 1e-7, 200))
    if isinstance(model, pc.CommunityGP):
        model.set_params(progress=False, random_state=0)
    if isinstance(model, pc.MultiUserGP):
        model.set_params(kernel=RegularizedLaplacian("items"), progress=False)
    gains = []
    for seed in range(2):
        data, items, _ = linked_study(seed)
        train, test = data.split(0.3, random_state=seed)
        linked = model.fit(None, train, {"items": items}).score(test)
        plain = type(model)(**{**model.get_params(), "kernel": None}).fit(None, train).score(test)
        gains.append(linked - plain)
    assert np.mean(gains) > 0.02


def test_who_knows_whom_helps_where_friends_agree(monkeypatch):
    monkeypatch.setattr(Settings.__init__, "__defaults__", ("ep", 1e-7, 200))
    gains = []
    for seed in range(3):
        data, items, users = linked_study(seed, n_items=8, n_users=30, n_each=6)
        train, test = data.split(0.3, random_state=seed)
        model = pc.MultiUserGP(RegularizedLaplacian("items"), progress=False)
        knows = model.fit(None, train, {"items": items}, user_relations={"knows": users})
        with_links = knows.score(test)
        gains.append(with_links - model.fit(None, train, {"items": items}).score(test))
    assert np.mean(gains) > 0.0
