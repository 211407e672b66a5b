"""The deterministic search for communities: what it finds, in what time, and what it says of it.

    python benchmarks/variational.py [--quick] [--draws 5] [--verdicts]

prints Markdown. Times are of the processor: set OPENBLAS_NUM_THREADS=1 for the figures of one core.
"""

import argparse
from collections import Counter
from time import process_time
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from penchant.communities.assignment import Answers
from penchant.communities.mixture import find_communities
from penchant.communities.taste import Crowd
from penchant.communities.verdict import judge
from penchant.data import Comparisons
from penchant.gp import ItemHyper
from penchant.kernels import Inputs
from penchant.likelihoods import Probit
from penchant.metrics import adjusted_rand
from penchant.models.defaults import Scaling, utility_kernel
from penchant.reproduce.community_trials import Trial, draw_votes

VOTES = (10, 30)
FOUR = (0.4, 0.3, 0.2, 0.1)


class Structure(NamedTuple):
    """Shares of the communities, and how people differ within them.

    smooth: sd of a person's own weights of the features, in units of the communities' own;
    of_items: sd of a person's own utility of each item; shuffled: votes dealt to random people.
    """

    shares: tuple[float, ...]
    smooth: float = 0.0
    of_items: float = 0.4
    shuffled: bool = False


STRUCTURES = {
    "one taste": Structure((1.0,)),
    "4 communities": Structure(FOUR),
    "8 communities": Structure((1 / 8,) * 8),
    "12 communities": Structure((1 / 12,) * 12),
    "95 and 5 %": Structure((0.95, 0.05)),
    "4 communities, personal spread .6": Structure(FOUR, smooth=0.6, of_items=0.0),
    "none, personal spread .3": Structure((1.0,), smooth=0.3, of_items=0.0),
    "none, personal spread 1": Structure((1.0,), smooth=1.0, of_items=0.0),
    "none, items' spread 1": Structure((1.0,), of_items=1.0),
    "shuffled users": Structure(FOUR, shuffled=True),
}


def draw(structure, n_votes, seed, n_users):
    """Logistic votes of so many users on random pairs of 100 items with ten features."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((100, 10))
    centres = rng.standard_normal((len(structure.shares), 10))
    communities = rng.choice(len(structure.shares), n_users, p=structure.shares)
    own = centres[communities] + structure.smooth * rng.standard_normal((n_users, 10))
    f = 2.0 * own @ X.T / np.sqrt(10) + structure.of_items * rng.standard_normal((n_users, 100))
    user = np.repeat(np.arange(n_users), n_votes)
    first = rng.integers(100, size=len(user))
    second = (first + rng.integers(1, 100, size=len(user))) % 100
    wins = rng.random(len(user)) < expit(f[user, first] - f[user, second])
    winner, loser = np.where(wins, first, second), np.where(wins, second, first)
    if structure.shuffled:
        user = rng.permutation(user)
        communities[:] = 0
    data = Comparisons.from_pairs(winner, loser, user=user, items=range(100), users=range(n_users))
    return Trial(X, data, np.zeros((0, 3), dtype=np.intp), communities)


def crowd_of(trial):
    """The crowd as CommunityGP would see it: standardised features and the default kernel."""
    X = Scaling.of(trial.X).apply(trial.X)
    items = Inputs(X, index=np.arange(len(X)))
    hyper = ItemHyper(utility_kernel(items, None), Probit())
    return Crowd(Answers.of(trial.train), items, hyper)


def timed(work):
    """What it returns, and the processor time it took."""
    begin = process_time()
    result = work()
    return result, process_time() - begin


def accuracy(found, trial):
    """Share of the held-out votes predicted."""
    user, winner, loser = trial.test.T
    return float(np.mean(found.prob(found.membership[user], winner, loser) > 0.5))


def task(n_users, draws):
    """The table of the simulated votes of benchmarks/communities.py."""
    lines = [
        f"## {n_users:,} users, four communities (40, 30, 20, 10 %)",
        "",
        "| votes a user | seed | found | adjusted Rand | accuracy (oracle) | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for n_votes in VOTES:
        for seed in range(draws):
            trial = draw_votes(n_votes, seed, n_users)
            found, seconds = timed(lambda trial=trial: find_communities(crowd_of(trial)))
            rand = adjusted_rand(trial.communities, found.labels)
            lines.append(
                f"| {n_votes} | {seed} | {found.n_communities} | {rand:.3f} | "
                f"{accuracy(found, trial):.4f} ({trial.oracle:.4f}) | {seconds:.2f} |"
            )
    return lines


def structures(n_users, draws, verdicts):
    """What is found where, and the verdict on it."""
    lines = [
        f"## Structures, {n_users:,} users, {draws} draws",
        "",
        "| structure | votes | found | adjusted Rand | s | verdicts | evidence, nats | s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, structure in STRUCTURES.items():
        for n_votes in VOTES:
            rows = [
                measure(structure, n_votes, 1000 + seed, n_users, verdicts) for seed in range(draws)
            ]
            found, rand, seconds, said, evidence, judging = zip(*rows, strict=True)
            lines.append(
                f"| {name} | {n_votes} | {tally(found)} | {np.mean(rand):.2f} | "
                f"{np.median(seconds):.2f} | {tally(said)} | "
                f"{min(evidence):.0f} … {max(evidence):.0f} | {np.median(judging):.1f} |"
            )
    return lines


def measure(structure, n_votes, seed, n_users, verdicts):
    """Number found, adjusted Rand index, seconds, verdict, its evidence, its seconds."""
    trial = draw(structure, n_votes, seed, n_users)
    found, seconds = timed(lambda: find_communities(crowd_of(trial)))
    rand = adjusted_rand(trial.communities, found.labels)
    if not verdicts:
        return found.n_communities, rand, seconds, "", float("nan"), float("nan")
    support, judging = timed(lambda: judge(found))
    return found.n_communities, rand, seconds, support.verdict, support.evidence, judging


def tally(values):
    """How often each value occurred: "4 × 5, 5"."""
    counts = sorted(Counter(values).items(), key=lambda item: -item[1])
    return ", ".join(f"{value}" + (f" × {n}" if n > 1 else "") for value, n in counts)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one draw of small crowds")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--verdicts", action="store_true", help="also judge the communities")
    options = parser.parse_args()
    draws = 1 if options.quick else options.draws
    for n_users in (300,) if options.quick else (2_000, 10_000):
        print("\n".join([*task(n_users, draws), ""]), flush=True)
    n_users = 200 if options.quick else 1_500
    print("\n".join(structures(n_users, draws, options.verdicts)))


if __name__ == "__main__":
    main()
