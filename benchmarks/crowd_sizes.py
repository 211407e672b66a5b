"""Crowds of real sizes: time, memory and held-out log-likelihood of models of many users.

`python crowd_sizes.py [SHAPE …]` runs each shape in a process of its own, whose peak memory is the
operating system's account. Shapes are simulated but for `movielens`, which needs the data set.
"""

import argparse
import json
import resource
import subprocess
import sys
import warnings
from time import process_time

import numpy as np
from contest import table

import penchant as pc


def arguments(rng):
    """32 topics × 33 items, 3,800 workers, 65,000 votes; workers judge 1 to 25 topics."""
    n_topics, size, n_users = 32, 33, 3_800
    taste = rng.standard_normal(n_topics * size)
    n_of = np.minimum(1 + rng.geometric(0.55, n_users), 25)
    n_of[:12] = 25
    user, topic = [], []
    for who, k in enumerate(n_of):
        for one in rng.choice(n_topics, k, replace=False):
            votes = rng.integers(1, 13) if who >= 12 else 33
            user += [who] * votes
            topic += [one] * votes
    user, topic = np.array(user), np.array(topic)
    a = rng.integers(size, size=len(user))
    b = (a + 1 + rng.integers(size - 1, size=len(user))) % size
    n_items = n_topics * size
    own = 0.6 * rng.standard_normal((n_users, n_items))
    return answered(user, topic * size + a, topic * size + b, taste + own, rng)


def many(rng):
    """20,000 users × 2,000 items × 50 votes each, tastes of eight dimensions."""
    n_users, n_items = 20_000, 2_000
    user, a, b = random_pairs(rng, n_users, n_items)
    where = rng.standard_normal((n_items, 8))
    wants = rng.standard_normal(8) + 0.7 * rng.standard_normal((n_users, 8))
    utility = (0.5 * wants @ where.T).astype(np.float32)
    return answered(user, a, b, utility, rng)


def random_pairs(rng, n_users, n_items, n_each=50):
    """Who is asked about which two items."""
    user = np.repeat(np.arange(n_users), n_each)
    a = rng.integers(n_items, size=len(user))
    return user, a, (a + 1 + rng.integers(n_items - 1, size=len(user))) % n_items


def answered(user, a, b, utility, rng):
    """Answers with unit noise, as comparisons; no features."""
    gap = utility[user, a] - utility[user, b] + rng.standard_normal(len(user))
    winner, loser = np.where(gap > 0, a, b), np.where(gap > 0, b, a)
    n_users, n_items = utility.shape
    data = pc.Comparisons.from_pairs(
        winner, loser, user=user, items=range(n_items), users=range(n_users)
    )
    return None, data


def movielens(rng):
    """943 users × 1,682 films, each rating in one pair with another of the user's, genres."""
    films = pc.datasets.load_movielens()
    user, winner, loser = [], [], []
    for who in range(films.user.max() + 1):
        mine = rng.permutation(np.flatnonzero(films.user == who))
        first, second = mine, np.roll(mine, 1)
        gap = films.rating[first] - films.rating[second]
        keep = gap != 0
        best = np.where(gap > 0, films.item[first], films.item[second])[keep]
        worst = np.where(gap > 0, films.item[second], films.item[first])[keep]
        user += [who] * len(best)
        winner += best.tolist()
        loser += worst.tolist()
    data = pc.Comparisons.from_pairs(
        winner, loser, user=user, items=range(len(films.titles)), users=range(943)
    )
    return films.genres, data


def catalogue(rng):
    """2,000 users × 10,000 items × 50 votes each, tastes along eight features of the items."""
    n_users, n_items = 2_000, 10_000
    user, a, b = random_pairs(rng, n_users, n_items)
    X = rng.standard_normal((n_items, 8))
    wants = 0.5 * rng.standard_normal(8) + 0.4 * rng.standard_normal((n_users, 8))
    curved = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
    data = answered(user, a, b, (wants @ X.T + curved).astype(np.float32), rng)[1]
    return X, data


SHAPES = {"arguments": arguments, "movielens": movielens, "many": many, "catalogue": catalogue}
MODELS = {
    "MultiUserGP()": lambda: pc.MultiUserGP(progress=False),
    "PreferenceGP(), pooled": lambda: pc.PreferenceGP(),
}


def measured(shape, model):
    """Fit one model to one shape in this process; what is printed is read by the parent."""
    X, data = SHAPES[shape](np.random.default_rng(0))
    train, test = data.split(0.1, random_state=0)
    start = process_time()
    fitted = MODELS[model]().fit(X, train)
    seconds = process_time() - start
    return {
        "seconds": seconds,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "score": fitted.score(test),
        "votes": train.n_comparisons,
        "choice": fitted.report_.optimizer.partition(";")[0],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="*", default=list(SHAPES), help=", ".join(SHAPES))
    parser.add_argument("--one", nargs=2, metavar=("SHAPE", "MODEL"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        warnings.simplefilter("ignore")
        print(json.dumps(measured(*given.one)))
        return
    rows = []
    for shape in given.shapes:
        for model in MODELS:
            command = [sys.executable, __file__, "--one", shape, model]
            child = subprocess.run(command, capture_output=True, text=True, check=True)
            r = json.loads(child.stdout.splitlines()[-1])
            size = f"{r['votes']:,}"
            memory = f"{r['megabytes']:,.0f}"
            score = f"{r['score']:.4f}"
            rows.append([shape, model, size, f"{r['seconds']:.1f}", memory, score, r["choice"]])
    head = ("shape", "model", "votes", "CPU seconds", "MB at most", "held-out log-lik.", "chosen")
    print("\n".join(table(head, rows)))


if __name__ == "__main__":
    main()
