"""One sweep of the engine against the BLAS time of its own flop count."""

import numpy as np
from scipy.linalg import blas, lapack
from tasks import best_time, gp_task

import penchant as pc
from penchant.gp import Rows, factor_prior
from penchant.kernels import RBF, Inputs
from penchant.likelihoods import Probit

REPEATS = 5


def blas_time(n):
    """The four dense operations of a sweep at full rank: n³ (1 + ⅓ + 1 + 1) flops."""
    rng = np.random.default_rng(0)
    A = np.asfortranarray(rng.standard_normal((n, n)))
    S = np.asfortranarray(A @ A.T + n * np.eye(n))
    return (
        best_time(REPEATS, lambda: blas.dtrmm(1.0, A, S, lower=1))
        + best_time(REPEATS, lambda: lapack.dpotrf(S, lower=1))
        + best_time(REPEATS, lambda: blas.dtrsm(1.0, S, A, lower=1))
        + best_time(REPEATS, lambda: blas.dsyrk(1.0, A, trans=1, lower=1))
    )


def sweep_time(n, m):
    """One sweep over m comparisons of n items with features."""
    task = gp_task(n, m, 0)
    data = pc.Comparisons.from_pairs(task["winner"], task["loser"], items=range(n))
    edges = Rows.pooled(data)
    prior = factor_prior(RBF((0.5,) * 5, 2.0), Inputs(task["X"], index=np.arange(n)), edges)
    tau, nu = np.full(len(edges), 0.3), np.full(len(edges), 0.4)

    def sweep():
        state = prior.refresh(edges.count * tau, edges.count * nu)
        Probit().tilted(state.mean, state.var)

    return best_time(REPEATS, sweep)


def run(quick):
    lines = [
        "## A sweep against its own flops",
        "",
        "One EP sweep at full rank (Laplacian, B, Cholesky, marginals, moments) and the dense BLAS "
        "and LAPACK calls of the same sizes alone.",
        "",
        "| n / m | sweep, ms | BLAS alone, ms | ratio |",
        "|---|---|---|---|",
    ]
    for n, m in ((500, 5_000),) if quick else ((500, 5_000), (1_000, 20_000), (2_000, 50_000)):
        ours, theirs = sweep_time(n, m), blas_time(n)
        lines.append(
            f"| {n:,} / {m:,} | {1e3 * ours:.0f} | {1e3 * theirs:.0f} | {ours / theirs:.2f} |"
        )
    return lines
