"""The deterministic search for communities: what it finds, in what time, and what it says of it.

    python benchmarks/variational.py [--quick] [--draws 20] [--verdicts] [--structure "one taste" …]
                                     [--bare]
    python benchmarks/variational.py --large 1000000
    python benchmarks/variational.py --race
    python benchmarks/variational.py --films
    python benchmarks/variational.py --people

The last ones: many users against chains; 2,000 users against peers and chains; MovieLens' ratings
as pairs; sushi and cars against everybody's own taste, and what is said there about the number of
communities.

prints Markdown. Times are of the processor: set OPENBLAS_NUM_THREADS=1 for the figures of one core.
"""

import argparse
import re
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import combinations, product
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
from communities import accuracy as share_right
from communities import people_task
from scipy.special import expit, ndtr
from sklearn.cluster import KMeans

import penchant as pc
from experiments.communities import Trial, cars_trial, draw_votes, sushi_trial
from penchant.communities import (
    WITHIN,
    Answers,
    MixtureData,
    find_communities,
    judge,
    single_population,
)
from penchant.data import Comparisons
from penchant.datasets import load_movielens
from penchant.gp import ItemHyper
from penchant.kernels import Independent, Inputs
from penchant.likelihoods import Probit
from penchant.metrics import adjusted_rand
from penchant.models import Scaling, utility_kernel

sys.path.insert(0, str(Path(__file__).parent / "contestants"))
from people import CONTESTANTS, penchant_communities, penchant_from_scratch

VOTES = (10, 30)
FIRST_SEED = 30_000
"""Of the draws of structures, by which no threshold was chosen, and of the race."""
LARGE = {
    "search": penchant_communities,
    "blocked chain from scratch, 20 sweeps": partial(
        penchant_from_scratch, sampler="blocked", n_sweeps=20, n_chains=1
    ),
}
RACE = (
    "penchant CommunityGP",
    "Polis' steps",
    "scikit-learn mixture by BIC",
    "scikit-learn DP mixture",
    "penchant CommunityGP, chains from scratch",
)
FILMS = {"one community": {"n_communities": 1, "personal": False}, "search": {}}
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
    if trial.X is None:
        return bare_crowd_of(trial)
    X = Scaling.of(trial.X).apply(trial.X)
    items = Inputs(X, index=np.arange(len(X)))
    hyper = ItemHyper(utility_kernel(items, None), Probit())
    return MixtureData(Answers.of(trial.train), items, hyper)


def timed(work):
    """What it returns, and the processor time it took."""
    begin = process_time()
    result = work()
    return result, process_time() - begin


def accuracy(found, trial):
    """Share of the held-out votes predicted."""
    user, winner, loser = trial.test.T
    fitted = found.allocation
    each = [fitted.model.posterior(component) for component in fitted.components]
    gaps = np.array([posterior.difference(winner, loser) for posterior in each])
    p = ndtr(gaps[:, 0] / np.sqrt(1.0 + gaps[:, 1]))
    return float(np.mean(np.sum(found.membership[user].T * p, axis=0) > 0.5))


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


def structures(names, n_users, draws, verdicts, bare):
    """What is found where, and the verdict on it: a line as soon as its draws are done."""
    print(f"## Structures, {n_users:,} users, {draws} draws\n")
    print("| structure | votes | found | adjusted Rand | s | verdicts | evidence, nats | s |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    alarms, misses = [], []
    for name in names:
        structure = STRUCTURES[name]
        for n_votes in VOTES:
            rows = [
                measure(structure, n_votes, FIRST_SEED + seed, n_users, verdicts, bare)
                for seed in range(draws)
            ]
            found, rand, seconds, said, evidence, judging = zip(*rows, strict=True)
            there = len(structure.shares) > 1 and not structure.shuffled
            (misses if there else alarms).extend(
                (verdict == "supported") != there for verdict in said
            )
            print(
                f"| {name} | {n_votes} | {tally(found)} | {np.mean(rand):.2f} | "
                f"{np.median(seconds):.2f} | {tally(said)} | "
                f"{min(evidence):.0f} … {max(evidence):.0f} | {np.median(judging):.1f} |",
                flush=True,
            )
    if verdicts:
        print(f"\nfalse alarms: {sum(alarms)} of {len(alarms)}; misses: {sum(misses)}", end="")
        print(f" of {len(misses)}")


def measure(structure, n_votes, seed, n_users, verdicts, bare):
    """Number found, adjusted Rand index, seconds, verdict, its evidence, its seconds."""
    trial = draw(structure, n_votes, seed, n_users)
    trial = trial._replace(X=None if bare else trial.X)
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


def large(n_users):
    """Very many users, 20 votes each: the search against chains, each in a process of its own."""
    trial = draw_votes(20, 0, n_users, n_test=1)
    for contestant in LARGE.items():
        process = get_context("fork").Process(target=compete_at_large, args=(trial, *contestant))
        process.start()
        process.join()


def compete_at_large(trial, name, contestant):
    """One contestant; the memory before is that of the votes, which all of them share."""
    fit, predict = contestant(people_task(trial))
    Path("/proc/self/clear_refs").write_text("5")  # the peak of drawing the votes is forgotten
    before = peak_memory()
    _, seconds = timed(fit)
    peak = peak_memory()
    labels = predict()["labels"]
    rand = adjusted_rand(trial.communities, labels)
    print(f"{name}: {seconds:.1f} s, {len(np.unique(labels))} found, adjusted Rand {rand:.3f}, ")
    print(f"  peak memory {1024 * peak:.0f} MiB, {1024 * before:.0f} before", flush=True)


def peak_memory():
    """Of this process, in GiB."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 2**20


def race(draws, n_users=2_000):
    """Everybody on the same votes, in turns; the seconds are the processor's, to fit alone."""
    for name in RACE:  # what is imported at the first fit counts for nobody
        CONTESTANTS[name](people_task(draw_votes(5, 0, 50)))[0]()
    print("| votes | seed | contestant | found | adjusted Rand | accuracy (oracle) | s | × |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for n_votes, seed in product(VOTES, range(FIRST_SEED, FIRST_SEED + draws)):
        trial = draw_votes(n_votes, seed, n_users)
        task, ours = people_task(trial), None
        for name in RACE:
            fit, predict = CONTESTANTS[name](task)
            _, seconds = timed(fit)
            ours = ours or seconds
            predicted = predict()
            share = share_right(predicted)
            right = "" if share is None else f"{share:.4f} ({trial.oracle:.4f})"
            print(
                f"| {n_votes} | {seed} | {name} | {len(np.unique(predicted['labels']))} | "
                f"{adjusted_rand(trial.communities, predicted['labels']):.3f} | {right} | "
                f"{seconds:.2f} | {seconds / ours:.2g} |",
                flush=True,
            )


def films():
    """MovieLens: as many random pairs of everybody's ratings as they gave, a fifth held out."""
    ratings = load_movielens()
    rng = np.random.default_rng(0)
    votes = []
    for user in np.unique(ratings.user):
        mine = np.flatnonzero(ratings.user == user)
        a, b = rng.choice(mine, (2, len(mine)))
        lead = ratings.rating[a] - ratings.rating[b]
        first, second = np.where(lead > 0, a, b), np.where(lead > 0, b, a)
        pairs = np.column_stack([ratings.item[first], ratings.item[second]])[lead != 0]
        votes.append(np.column_stack([np.full(len(pairs), user), pairs]))
    user, winner, loser = np.concatenate(votes).T
    data = pc.Comparisons.from_pairs(winner, loser, user=user)
    train, test = data.split(0.2, random_state=0)
    for name, how in FILMS.items():
        model = pc.CommunityGP(random_state=0, progress=False, **how)
        _, seconds = timed(lambda model=model: model.fit(None, train))
        print(f"{name}: {seconds:.1f} s, {model.n_communities_} found, {model.score(test):.4f}")
    support, seconds = timed(lambda: model.support_)
    print(f"{support.sentence} ({seconds:.1f} s)", flush=True)


def people():
    """Sushi and cars: CommunityGP as it is against MultiUserGP; modes of taste by their number."""
    trials = {
        "sushi, 27 pairs": sushi_trial(0),
        "sushi, 5 pairs": sushi_trial(0, n_pairs=5),
        "cars, 60 %": cars_trial(0),
    }
    print("| data | model | found | log-likelihood | accuracy | s | verdict |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name, trial in trials.items():
        user, winner, loser = trial.test.T
        for model in (pc.MultiUserGP(), pc.CommunityGP(random_state=0, progress=False)):
            _, seconds = timed(lambda model=model, trial=trial: model.fit(trial.X, trial.train))
            prob = model.predict_proba(np.column_stack([winner, loser]), users=user)
            is_mixture = isinstance(model, pc.CommunityGP)
            print(
                f"| {name} | {type(model).__name__} | {model.n_communities_ if is_mixture else ''}"
                f" | {np.log(prob).mean():.4f} | {np.mean(prob > 0.5):.4f} | {seconds:.1f}"
                f" | {model.verdict_ if is_mixture else ''} |",
                flush=True,
            )
    print("\n| data | modes | nats over one, by start | adjusted Rand between starts |")
    print("|---|---|---|---|", flush=True)
    for name, trial in trials.items():
        number_of_modes(name, trial)


def number_of_modes(name, trial, starts=5):
    """Evidence of 2 to 6 modes of taste against one, from several starts, and their agreement."""
    single = single_population(find_communities(crowd_of(trial), n_communities=1))
    one = single.modes
    own = single.effects.votes.integrate_out(one.sites, one.spread).pull
    for k in range(2, 7):
        gains, labels = [], []
        for seed in range(starts):
            near = KMeans(k, n_init=1, random_state=seed).fit(own).labels_
            start = single.effects.start(np.eye(k)[near], WITHIN * one.spread)
            modes = single.effects.fit(replace(start, sites=one.sites))
            gains.append(modes.objective - one.objective)
            labels.append(modes.membership.argmax(axis=1))
        rand = [adjusted_rand(a, b) for a, b in combinations(labels, 2)]
        said = ", ".join(f"{gain:+.0f}" for gain in gains)
        print(f"| {name} | {k} | {said} | {min(rand):.2f} … {max(rand):.2f} |", flush=True)


def bare_crowd_of(trial):
    """The crowd of items without features."""
    items = Inputs(index=np.arange(trial.train.n_items))
    return MixtureData(Answers.of(trial.train), items, ItemHyper(Independent(), Probit()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one draw of small crowds")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--verdicts", action="store_true", help="also judge the communities")
    parser.add_argument("--structure", action="append", choices=STRUCTURES, help="only these")
    parser.add_argument("--bare", action="store_true", help="structures without item features")
    parser.add_argument("--users", type=int, default=1_500, help="in every structure")
    parser.add_argument("--large", type=int, metavar="USERS", help="only so many users, 20 votes")
    parser.add_argument("--race", action="store_true", help="only 2,000 users, against others")
    parser.add_argument("--films", action="store_true", help="only MovieLens")
    parser.add_argument("--people", action="store_true", help="only sushi and cars")
    options = parser.parse_args()
    if options.large:
        return large(options.large)
    if options.race:
        return race(options.draws)
    if options.films:
        return films()
    if options.people:
        return people()
    draws = 1 if options.quick else options.draws
    for n_users in () if options.structure else (300,) if options.quick else (2_000, 10_000):
        print("\n".join([*task(n_users, draws), ""]), flush=True)
    n_users = 200 if options.quick else options.users
    return structures(
        options.structure or STRUCTURES, n_users, draws, options.verdicts, options.bare
    )


if __name__ == "__main__":
    main()
