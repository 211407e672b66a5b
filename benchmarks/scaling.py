"""How time grows with the data: part of `make check-all PARTS=speed`.

For each size that may become large, time is measured while that size doubles and everything else
stays as it is; the slope of log time against log size is its exponent. The command fails when an
exponent is above what is promised by more than two standard errors, or too uncertain to tell.
"""

import argparse
import sys
import warnings
from dataclasses import dataclass

import numpy as np
from contest import table
from tasks import best_time

import penchant as pc
from penchant.errors import ConvergenceWarning

REPEATS = 3
MAX_ERROR = 0.15
"""A standard error beyond which a slope says nothing."""


def items_at_bounded_rank(n):
    """PreferenceGP, 200,000 comparisons, rank 200."""
    return gp_work(n, 200_000, rank=200)


def comparisons(m):
    """PreferenceGP, 2,000 items, rank 200."""
    return gp_work(2_000, m, rank=200)


def gp_work(n, m, rank):
    rng = np.random.default_rng(0)
    X = rng.random((n, 5))
    f = 3 * np.sin(3 * X[:, 0]) + 2 * X[:, 1] * X[:, 2]
    data = pc.Comparisons.from_pairs(*answers(f[None], np.zeros(m, int), rng), items=range(n))
    model = pc.PreferenceGP(pc.kernels.RBF(0.7, 4.0), optimize=None, max_rank=rank)
    return lambda: model.fit(X, data)


def users(n_users):
    """MultiUserGP, 20 items, 20 comparisons a user, fixed parameters."""
    data = crowd(n_users, 20, 20)
    model = pc.MultiUserGP(optimize=None, progress=False)
    return lambda: model.fit(None, data)


def votes(n_votes):
    """CommunityGP, blocked, 30 items, 20 votes a user, ten sweeps."""
    data = crowd(n_votes // 20, 30, 20)
    model = pc.CommunityGP(
        inference="mcmc",
        sampler="blocked",
        optimize=None,
        n_sweeps=10,
        n_chains=1,
        progress=False,
        random_state=0,
    )
    return lambda: model.fit(None, data)


def crowd(n_users, n_items, n_answers):
    """Users of four tastes."""
    rng = np.random.default_rng(0)
    tastes = 1.5 * rng.standard_normal((4, n_items))
    user = np.repeat(np.arange(n_users), n_answers)
    winner, loser = answers(tastes, user % 4, rng)
    return pc.Comparisons.from_pairs(
        winner, loser, user=user, items=range(n_items), users=range(n_users)
    )


def answers(utilities, taste, rng):
    """Winner and loser of a random pair for each entry of `taste`, a row of `utilities`."""
    n, k = utilities.shape[1], len(taste)
    a = rng.integers(n, size=k)
    b = (a + 1 + rng.integers(n - 1, size=k)) % n
    first = utilities[taste, a] - utilities[taste, b] + rng.standard_normal(k) > 0
    return np.where(first, a, b), np.where(first, b, a)


@dataclass(frozen=True)
class Check:
    """`prepare(size)` makes work to be timed; its exponent is promised to be at most `limit`."""

    prepare: object
    sizes: tuple[int, ...]
    limit: float = 1.1


CHECKS = {
    "items": Check(items_at_bounded_rank, (25_000, 50_000, 100_000, 200_000)),
    "comparisons": Check(comparisons, (250_000, 500_000, 1_000_000, 2_000_000)),
    "users": Check(users, (2_500, 5_000, 10_000, 20_000)),
    "votes": Check(votes, (250_000, 500_000, 1_000_000, 2_000_000)),
}


def slope(sizes, seconds):
    """Exponent and its standard error, by least squares on logarithms."""
    coefficients, cov = np.polyfit(np.log(sizes), np.log(seconds), 1, cov=True)
    return float(coefficients[0]), float(np.sqrt(cov[0, 0]))


def verdict(exponent, error, limit):
    if exponent + 2 * error <= limit:
        return "holds"  # however noisy
    if error > MAX_ERROR:
        return "too noisy to tell"
    return "exceeded" if exponent - 2 * error > limit else "holds"


def measure(name):
    """A row of the table; the last cell is the verdict."""
    check = CHECKS[name]
    seconds = []
    for size in check.sizes:
        print(f"scaling: {name}: {size:,}", file=sys.stderr)
        seconds.append(best_time(REPEATS, check.prepare(size)))
    exponent, error = slope(check.sizes, seconds)
    return [
        name,
        check.prepare.__doc__.rstrip("."),
        f"{check.sizes[0]:,}–{check.sizes[-1]:,}",
        " · ".join(f"{s:.2f}" for s in seconds),
        f"{exponent:.2f} ± {error:.2f}",
        f"≤ {check.limit}",
        verdict(exponent, error, check.limit),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="SIZE", help=", ".join(CHECKS))
    names = parser.parse_args().names or CHECKS
    warnings.simplefilter("ignore", ConvergenceWarning)  # ten sweeps are to be timed, not used
    rows = [measure(name) for name in names]
    head = ("growing", "with", "from–to", "seconds", "exponent", "promised", "verdict")
    print("\n".join(table(head, rows)))
    sys.exit(any(row[-1] != "holds" for row in rows))


if __name__ == "__main__":
    main()
