"""Models on a card, with BoTorch's PairwiseGP and the card's own BLAS beside it.

    python benchmarks/gpu.py [parts …] [--out file] [--device cuda] [--cap seconds] [--quick]

Needs torch, NumPy, SciPy and scikit-learn, and BoTorch for its part. Tables are Markdown; each is
printed, and appended to the file, as soon as it is there, and what fails costs its own row alone.
"""

import argparse
import json
import platform
import signal
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from penchant.communities import Answers, log_likelihoods
from penchant.data import Comparisons
from penchant.gp import (
    RULES,
    ItemHyper,
    ItemProblem,
    Rows,
    Settings,
    Sites,
    UserHyper,
    UserProblem,
    gradient,
    maximize_evidence,
    solve,
)
from penchant.kernels import RBF, Constant, FreeCovariance, Independent, Inputs
from penchant.likelihoods import Outcomes, Probit
from penchant.numerics.dispatch import device_called

SIZES = ((100, 1_000), (2_000, 50_000), (5_000, 200_000), (10_000, 500_000))
LARGE = ((20_000, 1_000_000), (40_000, 2_000_000))
LEARNED = ((2_000, 50_000), (5_000, 200_000), (20_000, 1_000_000))
AGAINST_BLAS = ((5_000, 200_000), (20_000, 1_000_000))
PEOPLE = ((5_000, 27, 10), (5_000, 100, 30), (1_000, 200, 100), (50_000, 50, 30))
TABLES = ((2_000, 30, 20), (100_000, 20, 30))
BOTORCH = ((2_000, 50_000), (5_000, 200_000))
PROBIT = Probit()
SMOOTH = RBF((0.5,) * 5, 4.0)
KERNELS = {"smooth": SMOOTH, "full rank": SMOOTH + 0.4 * Independent()}
"""The true kernel, whose rank is far below n, and one with an effect of each item's own."""


def task(n, m, seed=0):
    """x ~ U[0,1]⁵, f ~ GP(0, 4·RBF(ℓ = 0.5)) by 2,000 random waves, P(a ≻ b) = Φ(f_a − f_b)."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 5))
    waves, phases = 2.0 * rng.standard_normal((5, 2_000)), rng.uniform(0.0, 2.0 * np.pi, 2_000)
    f = np.zeros(n)
    for start in range(0, n, 2_000):
        part = slice(start, start + 2_000)
        f[part] = np.cos(X[part] @ waves + phases) @ rng_weights(2_000)
    a = rng.integers(n, size=m)
    b = (a + 1 + rng.integers(n - 1, size=m)) % n
    first = rng.random(m) < ndtr(f[a] - f[b])
    return X, np.where(first, a, b), np.where(first, b, a)


def rng_weights(k):
    return np.sqrt(8.0 / k) * np.random.default_rng(1).standard_normal(k)


def problem(n, m, device, tolerance=1e-4):
    X, winner, loser = task(n, m)
    pairs, count = np.unique(winner * n + loser, return_counts=True)
    edges = Rows.between(pairs // n, pairs % n, count.astype(float), Outcomes(None, None))
    universe = Inputs(X, index=np.arange(n)).on(device_called(device))
    return ItemProblem(universe, edges, Settings(tolerance=tolerance))


class Meter:
    """Seconds and gigabytes of what runs inside."""

    def __init__(self, device):
        self.is_card = device.startswith("cuda")

    def __enter__(self):
        if self.is_card:
            import torch

            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        self.begin = perf_counter()
        return self

    def __exit__(self, *failure):
        sync(self.is_card)
        self.seconds = perf_counter() - self.begin
        self.gigabytes = float("nan")
        if self.is_card:
            import torch

            self.gigabytes = torch.cuda.max_memory_allocated() / 1e9


def sync(is_card=True):
    if is_card:
        import torch

        torch.cuda.synchronize()


def speed(options):
    """Inference at given hyperparameters."""
    head = ("n / m", "kernel", "rank", "sweeps", "seconds", "of it factor", "peak GB", "converged")
    yield "## Inference at given hyperparameters, tolerance 1e-4", head
    sizes = ((100, 1_000), (500, 5_000)) if options.quick else (*SIZES, *LARGE)
    for n, m in sizes:
        if n > options.most:
            continue
        p = problem(n, m, options.device)
        for name, kernel in KERNELS.items():
            yield guarded(options, (f"{n:,} / {m:,}", name), fixed, p, kernel, options.device)


def fixed(p, kernel, device):
    hyper = ItemHyper(kernel, PROBIT)
    best, factor, peak = np.inf, np.inf, 0.0
    repeats = 3 if len(p.universe) <= 5_000 else 1
    for _ in range(repeats):
        with Meter(device) as m:
            p.prior(hyper)
        factor = min(factor, m.seconds)
        with Meter(device) as m:
            report = solve(p, hyper).inference.report
        best, peak = min(best, m.seconds), m.gigabytes
    return (report.rank, report.n_sweeps, *figures(best, factor, peak), report.converged)


def same(options):
    """The card's numbers against the host's."""
    head = ("n / m", "kernel", "log evidence apart", "means apart", "variances apart", "host s")
    yield "## The same numbers as on the CPU (relative, tolerance 1e-10)", head
    sizes = ((300, 2_000),) if options.quick else ((300, 2_000), (2_000, 50_000))
    for n, m in sizes:
        for name, kernel in KERNELS.items():
            yield guarded(options, (f"{n:,} / {m:,}", name), apart, n, m, kernel, options.device)


def apart(n, m, kernel, device):
    found = []
    for where in (None, device):
        p = problem(n, m, where, 1e-10)
        begin = perf_counter()
        solution = solve(p, ItemHyper(kernel, PROBIT))
        seconds = perf_counter() - begin
        posterior = p.posterior(solution)
        found.append((np.array(solution.log_evidence), posterior.mean, posterior.var, seconds))
    (*host, host_seconds), (*card, _) = found
    errors = [np.abs(a - b).max() / np.abs(a).max() for a, b in zip(host, card, strict=True)]
    return (*(f"{error:.1e}" for error in errors), f"{host_seconds:.2f}")


def blas(options):
    """A sweep against the library calls that it consists of, at the same sizes."""
    head = (
        "n / m",
        "kernel",
        "rank",
        "sweep s",
        "rule on the host s",
        "library s",
        "ratio",
        "parts",
    )
    yield "## A sweep against the card's own BLAS", head
    sizes = ((500, 5_000),) if options.quick else AGAINST_BLAS
    for n, m in sizes:
        p = problem(n, m, options.device)
        for name, kernel in KERNELS.items():
            yield guarded(options, (f"{n:,} / {m:,}", name), sweep, p, kernel, options.device)


def sweep(p, kernel, device):
    import torch

    prior, is_card = p.prior(ItemHyper(kernel, PROBIT)), device.startswith("cuda")
    rng = np.random.default_rng(0)
    weight, shift = rng.uniform(0.1, 0.5, (2, len(p.edges)))
    ours = clock(lambda: prior.refresh(weight, shift).var, is_card)
    state = prior.refresh(weight, shift)
    mean, var = state.mean, state.var
    del state
    sites, outcomes = Sites(weight, shift), p.edges.outcomes
    rule = clock(lambda: RULES["ep"].propose(mean, var, sites, PROBIT, outcomes), False)
    factor, L = prior.factor, prior.design.laplacian(weight).tocsr()
    parts = [torch.from_numpy(x).to(factor.device) for x in (L.indptr, L.indices, L.data)]
    csr = torch.sparse_csr_tensor(*parts, size=L.shape)
    rank = factor.shape[1]
    B = factor.T @ factor
    B.diagonal().add_(1.0)
    lower = torch.linalg.cholesky_ex(B)[0]
    half = torch.linalg.solve_triangular(lower, factor.T, upper=False)
    calls = {
        "sparse": lambda: csr @ factor,
        "product": lambda: factor.T @ factor,
        "Cholesky": lambda: torch.linalg.cholesky_ex(B),
        "solve": lambda: torch.linalg.solve_triangular(lower, factor.T, upper=False),
        "covariance": lambda: half.T @ half,
    }
    times = {name: clock(call, is_card) for name, call in calls.items()}
    total = sum(times.values())
    words = ", ".join(f"{name} {seconds:.4f}" for name, seconds in times.items())
    return (rank, *figures(ours, rule, total), f"{ours / total:.2f}", words)


def people(options):
    """Many users: the same sweep, inference and predictions on the host and on the card."""
    head = (
        "users × votes, items",
        "sweep on the host s",
        "on the card s",
        "ratio",
        "variances apart",
        "inference on the host s",
        "on the card s",
        "of it the rule s",
        "sweeps",
        "gradient on the host s",
        "on the card s",
        "everybody's utilities on the host s",
        "on the card s",
        "peak GB",
    )
    yield "## MultiUserGP: users' stacks on the host and on the card (tolerance 1e-4)", head
    for n_users, votes, n in ((200, 10, 10),) if options.quick else PEOPLE:
        name = f"{n_users:,} × {votes}, {n}"
        yield guarded(options, (name,), peoples, n_users, votes, n, options.device)


def peoples(n_users, votes, n, device):
    is_card = device.startswith("cuda")
    here, there = (users_on(where, n_users, votes, n, is_card) for where in (None, device))
    error = np.abs(there.var - here.var).max() / here.var.max()
    ratio = f"{here.sweep / there.sweep:.1f}"
    return (
        *figures(here.sweep, there.sweep),
        ratio,
        f"{error:.1e}",
        *figures(here.inference, there.inference, there.rule),
        there.n_sweeps,
        *figures(here.gradient, there.gradient, here.utilities, there.utilities, there.gigabytes),
    )


class Timed(NamedTuple):
    """Seconds of the parts of a fit of many users, and the variances that it found."""

    var: np.ndarray
    sweep: float
    inference: float
    rule: float
    n_sweeps: int
    gradient: float
    utilities: float
    gigabytes: float


def users_on(where, n_users, votes, n, is_card):
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(n_users), votes)
    winner = rng.integers(n, size=n_users * votes)
    loser = (winner + 1 + rng.integers(n - 1, size=len(winner))) % n
    data = Comparisons.from_pairs(winner, loser, user=user, items=range(n), users=range(n_users))
    items, users = Inputs(index=np.arange(n)), Inputs(index=np.arange(n_users))
    p = UserProblem.of(items, users, Rows.by_user(data), Settings(tolerance=1e-4))
    p = p.on(device_called(where))
    hyper = UserHyper(FreeCovariance.of(np.eye(n) + 1.0), Constant(1.0), 0.5, PROBIT)
    prior = p.prior(hyper)
    sites = Sites(*rng.uniform(0.1, 0.5, (2, len(p.edges))))
    sweep = clock(lambda: prior.refresh(sites.tau, sites.nu).var, is_card, 3)
    state = prior.refresh(sites.tau, sites.nu)
    mean, var = state.mean, state.var
    rule = clock(lambda: RULES["ep"].propose(mean, var, sites, PROBIT, p.edges.outcomes), False)
    del state
    with Meter("cuda" if is_card else "cpu") as meter:
        solution = solve(p, hyper)
    n_sweeps = solution.inference.report.n_sweeps
    posterior, everybody = p.posterior(solution), np.arange(n_users)
    slope = clock(lambda: gradient(p, solution), is_card, 1)
    predicted = clock(lambda: posterior.utilities(everybody), is_card, 1)
    return Timed(
        var,
        sweep,
        meter.seconds,
        rule * (n_sweeps + 1),
        n_sweeps,
        slope,
        predicted,
        meter.gigabytes,
    )


def tables(options):
    """Communities: log-likelihoods of all users, (users × answers) counts times a table."""
    head = (
        "users × votes, items, communities",
        "distinct answers",
        "on the host s",
        "on the card, table and sums carried s",
        "product alone on the card s",
        "ratio",
    )
    yield "## CommunityGP: counts times a table, in four-byte numbers", head
    for n_users, votes, n in ((200, 10, 10),) if options.quick else TABLES:
        name = f"{n_users:,} × {votes}, {n}, 8"
        yield guarded(options, (name,), table_product, n_users, votes, n, options.device)


def table_product(n_users, votes, n, device):
    import torch

    rng, is_card = np.random.default_rng(0), device.startswith("cuda")
    user = np.repeat(np.arange(n_users), votes)
    winner = rng.integers(n, size=n_users * votes)
    loser = (winner + 1 + rng.integers(n - 1, size=len(winner))) % n
    counts = Answers.of(Comparisons.from_pairs(winner, loser, user=user)).counts
    table = rng.standard_normal((counts.shape[1], 8)).astype(np.float32)
    host = clock(lambda: log_likelihoods(counts, table), False)
    where = torch.device(device.removeprefix("torch:"))
    parts = (torch.from_numpy(x).to(where) for x in (counts.indptr, counts.indices, counts.data))
    there = torch.sparse_csr_tensor(*parts, size=counts.shape)
    known = torch.from_numpy(table).to(where)
    carried = clock(lambda: (there @ torch.from_numpy(table).to(where)).cpu(), is_card)
    alone = clock(lambda: there @ known, is_card)
    return (counts.shape[1], *figures(host, carried, alone), f"{host / carried:.1f}")


def clock(call, is_card, repeats=5):
    call()
    seconds = []
    for _ in range(repeats):
        sync(is_card)
        begin = perf_counter()
        call()
        sync(is_card)
        seconds.append(perf_counter() - begin)
    return median(seconds)


def learn(options):
    """Hyperparameters by the evidence."""
    head = ("n / m", "evaluations", "rank", "seconds", "peak GB", "lengthscales", "variance")
    yield (
        "## Hyperparameters: five lengthscales and a variance, started at 1 (true: 0.5 and 4)",
        head,
    )
    for n, m in ((300, 3_000),) if options.quick else LEARNED:
        yield guarded(options, (f"{n:,} / {m:,}",), learned, n, m, options.device)


def learned(n, m, device):
    p = problem(n, m, device, 1e-7)
    with Meter(device) as meter:
        solution = maximize_evidence(p, ItemHyper(RBF((1.0,) * 5, 1.0), PROBIT))
    report, kernel = solution.inference.report, solution.hyper.kernel
    lengths = " ".join(f"{length:.2f}" for length in kernel.lengthscale)
    return (
        report.n_evaluations,
        report.rank,
        *figures(meter.seconds, meter.gigabytes),
        lengths,
        f"{kernel.variance:.2f}",
    )


def botorch(options):
    """BoTorch at the true hyperparameters, in a process of its own that may be stopped."""
    yield "## BoTorch's PairwiseGP at given hyperparameters", ("n / m", "seconds", "peak GB")
    for n, m in ((300, 2_000),) if options.quick else BOTORCH:
        if n > options.most:
            continue
        yield guarded(options, (f"{n:,} / {m:,}",), peer, n, m, options)


def peer(n, m, options):
    command = [sys.executable, __file__, "--peer", str(n), str(m), "--device", options.device]
    limit = options.cap + 60.0  # imports
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, check=False, env=None
        )
    except subprocess.TimeoutExpired:
        return (f"> {options.cap:.0f} (stopped)", "")
    if done.returncode:
        return (f"failed: {done.stderr.strip().splitlines()[-1][:120]}", "")
    return tuple(figures(*json.loads(done.stdout.strip().splitlines()[-1])))


def run_peer(n, m, device):
    import torch
    from botorch.models.pairwise_gp import PairwiseGP
    from gpytorch.kernels import RBFKernel, ScaleKernel

    where = device.removeprefix("torch:")
    for size, pairs in ((50, 200), (n, m)):  # the first warms up
        X, winner, loser = task(size, pairs)
        features = torch.tensor(X, dtype=torch.double, device=where)
        comparisons = torch.tensor(np.column_stack([winner, loser]), device=where)
        kernel = ScaleKernel(RBFKernel(ard_num_dims=5))
        kernel.base_kernel.lengthscale = torch.full((1, 5), 0.5, dtype=torch.double)
        kernel.outputscale = torch.tensor(4.0, dtype=torch.double)
        with Meter(device) as meter, torch.no_grad():
            model = PairwiseGP(features, comparisons, covar_module=kernel.to(features)).eval()
            model.posterior(features).mean.sum().item()
    print(json.dumps([meter.seconds, meter.gigabytes]))


PARTS = {part.__name__: part for part in (same, speed, blas, learn, people, tables, botorch)}


def guarded(options, names, work, *args):
    """A row of a table; whatever goes wrong stands in it."""
    try:
        signal.signal(signal.SIGALRM, too_long)
        signal.alarm(int(options.cap) + 90 if work is peer else int(options.cap))
        return (*names, *work(*args))
    except Exception as error:
        return (*names, f"{type(error).__name__}: {str(error).splitlines()[0][:160]}")
    finally:
        signal.alarm(0)


def too_long(*_):
    raise TimeoutError("longer than --cap")


def figures(*numbers):
    return tuple(f"{number:.3g}" for number in numbers)


def machine(device):
    import torch

    words = [
        platform.platform(),
        f"Python {platform.python_version()}",
        f"torch {torch.__version__}",
    ]
    if device.startswith("cuda"):
        card = torch.cuda.get_device_properties(device)
        words += [card.name, f"{card.total_memory / 1e9:.0f} GB", f"CUDA {torch.version.cuda}"]
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        try:
            told = subprocess.run(query, capture_output=True, text=True, check=True).stdout
            words.append(f"driver {told.strip().splitlines()[0]}")
        except (OSError, subprocess.CalledProcessError, IndexError):
            words.append("driver unknown")
    return ", ".join(words)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--out")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cap", type=float, default=240.0, help="most seconds of a row")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--most", type=int, default=40_000, help="items of the largest tasks")
    parser.add_argument("--peer", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        run_peer(*options.peer, options.device)
        return

    def tell(line):
        print(line, flush=True)
        if options.out:
            with open(options.out, "a", encoding="utf-8") as file:
                file.write(line + "\n")

    tell(machine(options.device))
    # handles and modules are made at the first call, which is nobody's time
    guarded(options, (), fixed, problem(500, 5_000, options.device), SMOOTH, options.device)
    for name in options.parts or PARTS:
        rows = PARTS[name](options)
        title, head = next(rows)
        tell(f"\n{title}\n")
        tell("| " + " | ".join(head) + " |")
        tell("|" + " --- |" * len(head))
        for row in rows:
            tell("| " + " | ".join(map(str, row)) + " |")


if __name__ == "__main__":
    main()
