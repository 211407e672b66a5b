"""What every device must do like SciPy's BLAS: plain functions of a device's name.

pytest runs them in test_devices, and run_contract on a machine that has nothing but torch, NumPy,
SciPy and scikit-learn.
"""

import copy
import pickle
import tempfile
from pathlib import Path

import numpy as np
from sklearn.base import clone

import penchant as pc
from penchant.errors import DataError, NumericalError
from penchant.gp import Differences, ItemHyper, ItemProblem, Rows, Settings, gradient, solve
from penchant.kernels import (
    RBF,
    Constant,
    Diffusion,
    FreeCovariance,
    Independent,
    Inputs,
    Linear,
    LowRankCovariance,
    Matern,
    RegularizedLaplacian,
    undirected,
)
from penchant.likelihoods import Logit, Probit
from penchant.numerics import dispatch, linalg

N = 40
PROBIT = Probit()
RING = np.roll(np.eye(N), 1, axis=0) + np.roll(np.eye(N), -1, axis=0)
KERNELS = (
    Constant(1.5),
    RBF((0.6, 1.2, 3.0), 0.4),
    RBF(0.8),
    Matern(0.5, (0.6, 1.2, 3.0), 1.7),
    Matern(1.5, 0.8),
    Matern(2.5, (0.6, 1.2, 3.0)),
    Linear(0.7),
    Independent(0.3),
    RegularizedLaplacian("ring", 0.7, 1.6),
    Diffusion("ring", 0.6, 1.4),
    RBF(1.0) + Linear(0.2) + Independent(0.1),
    RBF(1.0) * Matern(1.5) * Diffusion("ring"),
    FreeCovariance.of(np.eye(N) + 0.3),
    LowRankCovariance(np.random.default_rng(4).standard_normal((N, 2)), 0.6),
)


def items(device, width=3, n=N):
    X = np.random.default_rng(7).standard_normal((n, width))
    relations = {"ring": undirected(RING)} if n == N else {}
    return Inputs(X, relations, np.arange(n)).on(dispatch.device_called(device))


def answers(n=N, m=300, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(n, size=m)
    b = (a + 1 + rng.integers(n - 1, size=m)) % n
    return pc.Comparisons.from_pairs(a, b, items=range(n))


def close(found, wanted, tolerance=1e-8):
    """Arrays, or tuples of arrays, agree to this share of the largest number."""
    if isinstance(wanted, tuple):
        for ours, theirs in zip(found, wanted, strict=True):
            close(ours, theirs, tolerance)
        return
    if hasattr(found, "cpu"):
        found = linalg.to_numpy(found)
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    scale = np.abs(wanted).max(initial=1e-300)
    error = np.abs(found - wanted).max(initial=0.0) / scale
    assert error <= tolerance, f"apart by {error:.1e}, more than {tolerance:.0e}"


def raised(kind, call, *args):
    """The words of the error that a call must raise."""
    try:
        call(*args)
    except kind as error:
        return str(error)
    raise AssertionError(f"{call} raised no {kind.__name__}")


def check_kernels(device):
    """Matrices, diagonals, pairs and pullbacks are those of the host."""
    here, there = items(None), items(device)
    some, pairs = np.array([3, 1, 7, 7]), (np.arange(9), np.arange(9, 18))
    rng = np.random.default_rng(1)
    G, block = rng.standard_normal((N, N)), rng.standard_normal((4, N))
    G += G.T
    matrix = dispatch.device_called(device).matrix
    for kernel in KERNELS:
        close(kernel(there), kernel(here), 1e-12)
        close(kernel(there.take(some), there), kernel(here.take(some), here), 1e-12)
        close(kernel.diag(there), kernel.diag(here), 1e-12)
        first, second = (there.take(p) for p in pairs)
        close(kernel.paired(first, second), np.diagonal(kernel(here)[:9, 9:18]), 1e-12)
        close(kernel.pullback(there, matrix(G)), kernel.pullback(here, G), 1e-10)
        found = kernel.pullback(there.take(some), matrix(block), there)
        close(found, kernel.pullback(here.take(some), block, here), 1e-10)
    wide = RBF(3.0)
    close(wide(items(device, 30)), wide(items(None, 30)), 1e-12)
    twins = np.repeat(np.random.default_rng(2).standard_normal((5, 30)), 2, axis=0)
    K = linalg.to_numpy(wide(Inputs(twins).on(dispatch.device_called(device))))
    assert (K[::2] == K[1::2]).all()


def check_factor(device):
    """A pivoted factor: what it leaves out is bounded, in every kind of matrix."""
    matrix = dispatch.device_called(device).matrix
    rng = np.random.default_rng(0)
    line = np.sort(rng.random(700))[:, None]
    cases = {
        "full": Matern(0.5)(rng.standard_normal((600, 3))),
        "low rank": RBF(0.3)(line),
        "duplicates": RBF(1.0)(np.repeat(rng.standard_normal((20, 3)), 30, axis=0)),
        "scales": np.diag(10.0 ** np.linspace(-6, 6, 300)),
        "one": np.ones((5, 5)),
    }
    for K in cases.values():
        for most in (None, 7):
            rows, order, residual = linalg.pivoted_cholesky(matrix(K), max_rank=most)
            ours, rank = linalg.to_numpy(rows), rows.shape[1]
            wanted = linalg.pivoted_cholesky(K, max_rank=most)
            assert rank <= (7 if most else 1.2 * wanted.rows.shape[1] + 5)
            assert (np.sort(order) == np.arange(len(K))).all()
            assert not np.triu(ours[:rank], 1).any()
            left = np.diagonal(K)[order] - np.einsum("ij,ij->i", ours, ours)
            assert abs(left[rank:].max(initial=0.0) - residual) <= 1e-12 * K.max()
            if most is None:
                assert np.abs(ours @ ours.T - K[np.ix_(order, order)]).max() <= 1e-9 * K.max()
    for broken in (np.zeros((3, 3)), np.full((3, 3), np.nan)):
        raised(NumericalError, linalg.pivoted_cholesky, matrix(broken))


def check_algebra(device):
    """Every function of the seam, on shapes with more and with fewer rows than columns."""
    matrix, rng = dispatch.device_called(device).matrix, np.random.default_rng(3)
    for n, r in ((1200, 700), (50, 50), (30, 4)):
        rows = rng.standard_normal((n, r))
        rows[:r] = np.tril(rows[:r])
        there, half = matrix(rows), matrix(np.asfortranarray(rows.T))
        close(linalg.gram(half), rows @ rows.T, 1e-12)
        close(np.tril(linalg.to_numpy(linalg.lower_gram(half))), np.tril(rows @ rows.T), 1e-12)
        edges = Rows.pooled(answers(n, 8 * n))
        laplacian = Differences(edges.winner, edges.loser, n).laplacian(np.ones(len(edges)))
        for L in (laplacian, np.diag(np.arange(1.0, n + 1.0))):
            other = linalg.multiply_symmetric(L, there)
            close(other, L @ rows, 1e-12)
            B = np.tril(linalg.to_numpy(linalg.trapezoid_product(there, other)))
            close(B, np.tril(rows.T @ (L @ rows)), 1e-11)
        for w, b in (
            (edges.winner, edges.loser),
            (edges.winner[:1], edges.loser[:1]),
            (np.append(edges.winner, edges.winner), np.append(edges.loser, edges.loser)),
        ):
            graph, weight = Differences(w, b, n), rng.uniform(0.1, 0.5, len(w))
            expected = graph.laplacian(weight) @ rows
            close(graph.laplacian_times(weight, there), expected, 1e-12)
        for w, b in ((edges.winner, edges.loser), (edges.winner[:1], edges.loser[:1])):
            ends, expected = linalg.EdgeIndex(w, b), ((rows[w] - rows[b]) ** 2).sum(1)
            for _ in range(2):  # the second time from what the first worked out
                close(linalg.edge_variances(half, ends), expected, 1e-12)
        A = rows[:r] @ rows[:r].T + np.eye(r)
        lower, jitter = linalg.cholesky(matrix(A))
        assert jitter == 0.0
        close(lower @ lower.T, A, 1e-12)
        for transposed in (False, True):
            x = linalg.solve_lower(lower, rows[0], transposed=transposed)
            T = linalg.to_numpy(lower).T if transposed else linalg.to_numpy(lower)
            close(T @ x, rows[0], 1e-9)
            X = linalg.to_numpy(linalg.solve_lower(lower, there.T, transposed=transposed))
            close(T @ X, rows.T, 1e-9)
        close(there, rows, 0.0)
        close(linalg.multiply(there, rows[0]), rows @ rows[0], 1e-12)
        close(linalg.row_squares(there), (rows**2).sum(1), 1e-12)
        close(linalg.column_squares(there), (rows**2).sum(0), 1e-12)
    raised(NumericalError, linalg.cholesky, matrix(-np.eye(3)))


def problems(device):
    """Item space, comparison space, a bounded rank, other rules and likelihoods."""
    full = RBF((0.6, 1.2, 3.0), 1.4) + 0.3 * Independent()
    smooth = RBF(3.0, 2.0)
    dense, few = Rows.pooled(answers()), Rows.pooled(answers(m=20))
    for kernel, edges, rule, likelihood, rank in (
        (full, dense, "ep", PROBIT, None),
        (smooth, dense, "ep", PROBIT, None),
        (full, few, "ep", PROBIT, None),
        (full, dense, "laplace", Logit(), None),
        (full, few, "laplace", PROBIT, None),
        (full, dense, "variational", PROBIT, None),
        (smooth, dense, "ep", PROBIT, 8),
        (RegularizedLaplacian("ring"), dense, "ep", PROBIT, None),
    ):
        settings = Settings(rule, tolerance=1e-11)
        made = [ItemProblem(items(where), edges, settings, rank) for where in (None, device)]
        yield (*made, ItemHyper(kernel, likelihood))


def check_inference(device):
    """Evidence, gradient and every prediction are those of the host."""
    for here, there, hyper in problems(device):
        wanted, found = solve(here, hyper), solve(there, hyper)
        close(found.log_evidence, wanted.log_evidence)
        close(found.inference.state.mean, wanted.inference.state.mean)
        close(found.inference.state.var, wanted.inference.state.var)
        if here.max_rank is None:
            close(gradient(there, found), gradient(here, wanted), 1e-7)
        ours, theirs = there.posterior(found), here.posterior(wanted)
        close(ours.mean, theirs.mean)
        close(ours.var, theirs.var)
        close(ours.contrast_var, theirs.contrast_var)
        close(ours.covariance(), theirs.covariance())
        first, second = np.arange(10), np.arange(10, 20)
        close(ours.difference(first, second).var, theirs.difference(first, second).var)
        if not here.universe.relations or isinstance(hyper.kernel, type(RBF() + Linear())):
            new = Inputs(np.random.default_rng(9).standard_normal((6, 3)))
            close(ours.at(new).mean, theirs.at(new).mean)
            close(ours.at(new).covariance(), theirs.at(new).covariance())


def check_gradients(device):
    """The slope of the evidence against differences of the evidence, on the device itself."""
    for _, there, hyper in problems(device):
        # a bounded factor may choose other pivots, which the slope does not see
        slack = 1e-3 if there.max_rank is None else 5e-2
        check_slopes(there, hyper, len(hyper.kernel.theta), slack)


def check_slopes(problem, hyper, n_slopes, slack=1e-3):
    """The first slopes of the evidence are its central differences."""
    for i, slope in enumerate(gradient(problem, solve(problem, hyper))[:n_slopes]):
        step = 1e-4 * (np.arange(len(hyper.theta)) == i)
        at = (hyper.theta + step, hyper.theta - step)
        up, down = (solve(problem, hyper.at(theta)).log_evidence for theta in at)
        difference = (up - down) / 2e-4
        assert abs(slope - difference) <= slack * max(1.0, abs(difference))


def check_draws(device):
    """Draws have the posterior's moments."""
    _, there, hyper = next(problems(device))
    posterior = there.posterior(solve(there, hyper))
    draws = posterior.sample(4_000, np.random.default_rng(0))
    error = (draws.mean(axis=0) - posterior.mean) / np.sqrt(posterior.var / len(draws))
    assert np.abs(error).max() < 5.0
    ratio = draws.var(axis=0) / posterior.var
    assert np.abs(ratio - 1.0).max() < 5.0 * np.sqrt(2.0 / len(draws))
    there, here = posterior.draws(50, np.random.default_rng(0)), draws[:50].T
    moved = dispatch.device_called(device).matrix(np.ascontiguousarray(here))
    close(linalg.ranks_in_columns(moved), linalg.ranks_in_columns(here))
    for where in (there, here):
        parts = [linalg.ranks_in_columns(part) for part in (where[:, :20], where[:, 20:])]
        first, ends = linalg.rank_statistics(parts, np.array([2, 47]))
        ranks = 1 + np.argsort(np.argsort(-linalg.to_numpy(where), axis=0), axis=0)
        close((first, ends), ((ranks == 1).sum(axis=1), np.sort(ranks, axis=1)[:, [2, 47]].T))


def check_estimator(device):
    """Fit, learn, tell, undo, ask, rank, files and copies."""
    X, data = np.random.default_rng(7).standard_normal((N, 3)), answers()
    kernel = RBF((1.0, 1.0, 1.0), 1.0) + 0.1 * Independent()
    for how in ({}, {"optimize": "em"}, {"max_rank": 10}, {"optimize": None}):
        there = pc.PreferenceGP(kernel, random_state=0, device=device, **how).fit(X, data)
        # a climb's last steps follow rounding: the host stands where the card has come to
        fixed = {"kernel": there.kernel_, "optimize": None, "max_rank": how.get("max_rank")}
        standing = pc.PreferenceGP(random_state=0, **fixed).fit(X, data)
        close(there.log_evidence_, standing.log_evidence_)
        # the climb's sites settled from those of the step before, to the sites' own tolerance
        close(
            there.predict(), standing.predict(), 1e-8 if how.get("optimize", "") is None else 1e-6
        )
        here = pc.PreferenceGP(kernel, random_state=0, **how).fit(X, data)
        close(there.log_evidence_, here.log_evidence_, 1e-6)
    more = [(1, 2), (3, 4), (1, 5)]
    for reconverge in (True, False):
        told = there.fit(X, data).tell(more, reconverge=reconverge).predict(return_std=True)
        wanted = here.fit(X, data).tell(more, reconverge=reconverge).predict(return_std=True)
        close(told, wanted)
        before = there.predict()
        there.undo()
        close(there.tell(more, reconverge=reconverge).predict(), before, 1e-12)
    assert there.ask(3) == here.ask(3)
    assert len(there.rank()) == N
    _check_copies(there)


def _check_copies(model):
    """A file and a copy hold NumPy's arrays, and predict the same."""
    wanted = model.predict()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.penchant"
        model.save(file)
        loaded = pc.load(file)
    for other in (loaded, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        close(other.predict(), wanted)
        posterior = other.posterior_
        assert isinstance(posterior.lower, np.ndarray)
        assert isinstance(posterior.basis.lower, np.ndarray)
        assert posterior.universe.device.name == "cpu"
        other.tell([(2, 1)])
    assert clone(model).device == model.device


def check_errors(device):
    """Room is checked beforehand, and a card's own words become Python's."""
    where = dispatch.device_called(device)
    words = raised(DataError, dispatch.check_room, where, 10 * where.most_items)
    assert "max_rank=" in words
    assert "GB" in words
    import torch

    def run_out():
        with dispatch.memory_errors():
            raise torch.OutOfMemoryError("tried to allocate 9 GiB\nmore")

    assert raised(MemoryError, run_out) == "tried to allocate 9 GiB"


CHECKS = {
    check.__name__: check
    for check in (
        check_kernels,
        check_factor,
        check_algebra,
        check_inference,
        check_gradients,
        check_draws,
        check_estimator,
        check_errors,
    )
}
