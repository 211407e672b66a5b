"""Every hot loop against the machine: its flops or bytes, and the same work by a library alone.

The reference does the arithmetic of the formula and nothing else: BLAS and LAPACK calls, one sparse
product, or a reader that only parses. What is beyond `FAR` times the reference has a reason, found
with a profile.
"""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from contest import table
from reading import write_battles
from scipy import sparse
from scipy.linalg import lapack
from sweep import blas_time, sweep_time
from tasks import best_time, win_table

import penchant as pc
from penchant.communities import Answers, MixtureData, allocate, soft_counts, sweep
from penchant.gp import (
    ItemHyper,
    ItemPrior,
    Rows,
    Settings,
    Sites,
    UserHyper,
    UserProblem,
)
from penchant.io import read_comparisons
from penchant.kernels import Constant, FreeCovariance, Independent, Inputs
from penchant.likelihoods import Probit

REPEATS = 5
FAR = 3.0
HEAD = ("loop", "work", "seconds", "reference", "its seconds", "ratio", "why beyond 3")


class Gap(NamedTuple):
    """A loop, its work by a formula, its seconds, and those of the reference.

    reason: why it takes longer, shown where it takes more than `FAR` times as long.
    """

    loop: str
    work: str
    seconds: float
    reference: str
    least: float
    reason: str

    def cells(self):
        ratio = self.seconds / self.least
        return [
            self.loop,
            self.work,
            f"{self.seconds:.3g}",
            self.reference,
            f"{self.least:.3g}",
            f"{ratio:.2f}",
            self.reason if ratio > FAR else "",
        ]


def run(quick):
    gaps = [
        items(*((200, 2_000) if quick else (2_000, 50_000))),
        people(*((30, 20, 40) if quick else (300, 60, 100))),
        communities(*((200, 20, 20, 3) if quick else (2_000, 50, 20, 8))),
        wins(*((20, 10_000) if quick else (100, 1_000_000))),
        *reading(10_000 if quick else 1_000_000),
    ]
    return [
        "## The gap to the machine",
        "",
        "The work of each hot loop by a formula, its seconds, and the seconds of a library for the "
        f"same work on this machine in the same run; each the best of {REPEATS}.",
        "",
        *table(HEAD, [gap.cells() for gap in gaps]),
    ]


def items(n, m):
    """B = I + Φᵀ L Φ, its Cholesky factor, L⁻¹ Φᵀ and the variances: n³ (1 + ⅓ + 1 + 1) flops."""
    return Gap(
        f"sweep of items, {n:,} items, {m:,} comparisons",
        f"10/3 n³ = {10 / 3 * n**3:.2g} flops",
        sweep_time(n, m),
        "dtrmm, dpotrf, dtrsm, dsyrk of n × n",
        blas_time(n),
        "the moments of every comparison and the sparse Laplacian, which the formula leaves out",
    )


def people(n_users, n_items, votes):
    """26/3 products of p × p matrices a user, 2 p³ flops each, p items that they compared.

    Fᵀ L F and its Cholesky factor 4⅓, F-solve 1, R = L − L C L 4, C 2, J = I − C L 2, J S Jᵀ 4.
    """
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(n_users), votes)
    winner = rng.integers(n_items, size=len(user))
    loser = (winner + rng.integers(1, n_items, size=len(user))) % n_items
    data = pc.Comparisons.from_pairs(
        winner, loser, user=user, items=range(n_items), users=range(n_users)
    )
    points = Inputs(index=np.arange(n_items)), Inputs(index=np.arange(n_users))
    problem = UserProblem.of(*points, Rows.by_user(data), Settings())
    kernel = FreeCovariance.of(np.eye(n_items) + 1.0)
    prior = problem.prior(UserHyper(kernel, Constant(1.0), 0.5, Probit()))
    sites = Sites(*rng.uniform(0.1, 0.5, (2, len(problem.edges))))

    def one_sweep():
        state = prior.refresh(sites.tau, sites.nu)
        Probit().tilted(state.mean, state.var)

    shapes = [block.shape for block in prior.blocks]
    flops = 52 / 3 * sum(k * p**3 for k, p in shapes)
    stacks = [rng.standard_normal((k, p, p)) for k, p in shapes]
    products = best_time(REPEATS, lambda: [stack @ stack for stack in stacks])
    return Gap(
        f"sweep of people, {n_users} people × {n_items} items, {votes} votes each",
        f"52/3 Σ p³ = {flops:.2g} flops",
        best_time(REPEATS, one_sweep),
        "26/3 stacked products of p × p",
        26 / 3 * products,
        "calls from Python on small stacks, and log Φ of every answer",
    )


def communities(n_users, n_items, votes, k):
    """P S and Pᵀ R of users × answers, 2 nnz K flops each, and for every Newton step of a community
    a Cholesky factor and an inverse, n³ flops."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(n_users), votes)
    a = rng.integers(n_items, size=len(user))
    b = (a + rng.integers(1, n_items, size=len(user))) % n_items
    tastes = rng.standard_normal((k, n_items))[user % k]
    row = np.arange(len(user))
    first = tastes[row, a] - tastes[row, b] + rng.standard_normal(len(user)) > 0
    winner, loser = np.where(first, a, b), np.where(first, b, a)
    data = pc.Comparisons.from_pairs(
        winner, loser, user=user, items=range(n_items), users=range(n_users)
    )
    answers, hyper = Answers.of(data), ItemHyper(Independent(), Probit())
    mixture = MixtureData(answers, Inputs(index=np.arange(n_items)), hyper)
    near = np.eye(k)[np.arange(n_users) % k] + 0.2 * rng.random((n_users, k))
    state = allocate(mixture.model(hyper.theta), near / near.sum(axis=1, keepdims=True))
    seconds = best_time(REPEATS, lambda: sweep(replace(state)))
    steps = refreshes(lambda: sweep(replace(state)))
    nnz, table32 = answers.counts.nnz, rng.random((len(answers), k), dtype=np.float32)
    products = best_time(REPEATS, lambda: answers.counts @ table32)
    products += best_time(REPEATS, lambda: soft_counts(answers, state.responsibilities))
    flops = 4 * nnz * k + steps * n_items**3
    return Gap(
        f"sweep of the communities' search, {n_users:,} users × {n_items} items, "
        f"{votes} votes each, {k} communities",
        f"4 nnz K + {steps} n³ = {flops:.2g} flops",
        seconds,
        "two sparse products, dpotrf and dpotri of n × n",
        products + steps * cholesky_time(n_items),
        "at every Newton step log Φ with its derivatives and sparse sums over all distinct "
        "answers; the rest are calls from Python on matrices of n × n",
    )


def wins(n, m):
    """One pass over the votes, 24 m bytes, and for every refresh of the posterior a Cholesky factor
    and an inverse, n³ flops."""
    task = win_table(n, m, seed=0)

    def fit():
        data = pc.Comparisons.from_pairs(task["winner"], task["loser"], items=range(n))
        pc.PreferenceGP().fit(None, data)

    steps, seconds = refreshes(fit), best_time(REPEATS, fit)
    ones, ends = np.ones(m), (task["winner"], task["loser"])
    counting = best_time(REPEATS, lambda: sparse.coo_array((ones, ends), shape=(n, n)).tocsr())
    return Gap(
        f"win table: PreferenceGP on {m:,} votes over {n} items",
        f"24 m = {24 * m:.2g} bytes, {steps} n³ = {steps * n**3:.2g} flops",
        seconds,
        "one sparse matrix of counts, dpotrf and dpotri of n × n",
        counting + steps * cholesky_time(n),
        "log Φ of every distinct pair at every sweep, and calls from Python",
    )


def refreshes(work: Callable[[], object]) -> int:
    """How often a posterior over items is factored in some work."""
    refresh, calls = ItemPrior.refresh, []

    def counted(*given):
        calls.append(1)
        return refresh(*given)

    with patch.object(ItemPrior, "refresh", counted):
        work()
    return len(calls)


def cholesky_time(n):
    """A Cholesky factor, ⅓ n³ flops, and the inverse, ⅔ n³."""
    A = np.random.default_rng(0).standard_normal((n, n))
    S = np.asfortranarray(A @ A.T + n * np.eye(n))
    return best_time(REPEATS, lambda: lapack.dpotri(lapack.dpotrf(S, lower=1)[0], lower=1))


def reading(n):
    """Parse every byte of the file once."""
    import duckdb
    import pandas as pd

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "battles.csv")
        write_battles(path, n)
        size = path.stat().st_size
        ours = best_time(REPEATS, lambda: read_comparisons(path))
        with duckdb.connect() as con:
            command = f"CREATE OR REPLACE TABLE battles AS FROM read_csv('{path}')"
            duck = best_time(REPEATS, lambda: con.execute(command))
        pandas = best_time(REPEATS, lambda: pd.read_csv(path))
    loop, work = f"reading a CSV of {n:,} rows", f"{size / 1e6:.0f} MB"
    reason = "DuckDB parses, then every row is checked, names get codes and equal rows are merged"
    return [
        Gap(loop, work, ours, "pandas.read_csv", pandas, reason),
        Gap(loop, work, ours, "DuckDB's read_csv into a table", duck, reason),
    ]


if __name__ == "__main__":
    print("\n".join(run(quick=False)))
