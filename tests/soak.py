"""Random data through every model and command, against what must always hold: `make soak`.

Every trial prints nothing and has a seed; the first violation prints its seed and what was found,
and the run ends with exit code 1. `python tests/soak.py --repeat SEED` plays that trial again.
"""

import argparse
import copy
import csv
import json
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from click.testing import CliRunner

import penchant as pc
from penchant.ask import CRITERIA
from penchant.cli import main as cli
from penchant.errors import PenchantError
from penchant.gp import as_shown
from penchant.kernels import RBF, Independent, Matern
from penchant.likelihoods import Abstain, Lapse, Logit, Probit, Ties

sys.path.insert(0, str(Path(__file__).resolve().parent))

from metamorphic.relations import RELATIONS
from metamorphic.worlds import random_case

NAMES = ["tea", "café", "=1+1", "a,b", 'q"uote', "007", "7", "-1", "\u2028", "🍵", "NULL", "nan "]
CONVERGED = 2e-4
"""Utilities at one fixed point, reached in two ways: the prior's scale is near one, and sites stop
at a tolerance."""


class Violation(AssertionError):
    """Something that must always hold did not."""


def must(holds, what, **values):
    if not holds:
        shown = ", ".join(f"{name}={value!r}"[:500] for name, value in values.items())
        raise Violation(f"{what}: {shown}")


def close(one, other, what, tolerance=CONVERGED):
    one, other = np.asarray(one), np.asarray(other)
    gap = np.abs(one - other).max(initial=0.0) / (1.0 + np.abs(other).max(initial=0.0))
    must(gap <= tolerance, what, gap=gap)


# Random problems


def random_names(rng, n):
    names = [str(name) for name in rng.permutation(NAMES)] + [f"item {k}" for k in range(n)]
    return [name.strip() or "x" for name in names][:n] if rng.random() < 0.5 else list(range(n))


def random_data(rng, people=False, ties=False):
    n, m = int(rng.integers(2, 20)), int(rng.integers(1, 90))
    names = random_names(rng, n)
    f = rng.standard_normal(n) * rng.choice([0.0, 1.0, 10.0])
    a = rng.integers(n, size=m)
    b = (a + rng.integers(1, n, size=m)) % n
    first = f[a] - f[b] + rng.standard_normal(m) > 0
    winner, loser = np.where(first, a, b), np.where(first, b, a)
    columns = {
        "user": [f"user {k}" for k in rng.integers(rng.integers(1, 7), size=m)] if people else None,
        "tie": rng.random(m) < 0.2 if ties else None,
        "count": rng.integers(1, 4, size=m) if rng.random() < 0.5 else None,
    }
    return pc.Comparisons.from_pairs(
        [names[i] for i in winner], [names[i] for i in loser], items=names, **columns
    )


def random_features(rng, n):
    kind = rng.integers(5)
    if kind == 0:
        return None
    X = rng.standard_normal((n, int(rng.integers(1, 4)))) * 10.0 ** rng.integers(-3, 4)
    if kind == 1:
        X[:, 0] = 1.0
    if kind == 2:
        X = X[rng.integers(n, size=n)]
    return X


def random_relations(rng, n):
    if rng.random() < 0.7:
        return None
    W = (rng.random((n, n)) < 0.4) * rng.random((n, n))
    W = W + W.T
    np.fill_diagonal(W, 0.0)
    return {"near": W}


def random_settings(rng, X, ties):
    likelihoods = ["ties"] if ties else ["probit", "logit", Lapse(Probit(), 0.05)]
    kernels = [Independent(10.0 ** rng.integers(-2, 3))]
    if X is not None:
        kernels += [RBF(1.0, 2.0), Matern(1.5) + Independent(0.1)]
    return {
        "kernel": kernels[rng.integers(len(kernels))] if rng.random() < 0.6 else None,
        "likelihood": likelihoods[rng.integers(len(likelihoods))],
        "random_state": int(rng.integers(1000)),
    }


# What must hold of a model of utilities


def check_answers(model, data, rng):
    must(np.isfinite(model.predict()).all(), "utilities are finite", model=model)
    if not data.tie.all():
        must(np.isfinite(model.score(data)), "the score is finite", model=model)
    check_odds(model, data, rng)
    check_ranking(model, data)
    check_file(model)


def check_odds(model, data, rng):
    pairs = [(a, b) for a in data.items for b in data.items if a != b]
    pairs = [pairs[k] for k in rng.permutation(len(pairs))[:40]]
    odds = model.predict_proba(pairs, ties=True)
    must(np.isfinite(odds).all() and (odds >= 0).all(), "odds are probabilities", odds=odds)
    close(odds.sum(axis=1), 1.0, "win, tie and loss sum to one", 1e-9)
    given = model.predict_proba(pairs) + model.predict_proba([p[::-1] for p in pairs])
    close(given, 1.0, "P(a, b) + P(b, a) is one", 1e-9)


def check_ranking(model, data):
    rows = list(model.rank(level=0.9))
    must(sorted(row.rank for row in rows) == list(range(1, data.n_items + 1)), "ranks", rows=rows)
    for row in rows:
        must(row.low <= row.utility <= row.high, "intervals hold their middle", row=row)
        must(row.rank_low <= row.rank_high, "intervals of ranks are in order", row=row)
    close(sum(row.prob_best for row in rows), 1.0, "somebody is best", 1e-9)


def check_file(model):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        again = pc.load(path)
    # a posterior that a load rebuilds is the same to rounding: threads of BLAS add in another order
    close(again.predict(), model.predict(), "a file keeps the utilities", 1e-12)
    ranked, before = list(again.rank()), list(model.rank())
    must([row.item for row in ranked] == [row.item for row in before], "a file keeps the ranking")
    for name in ("utility", "low", "high"):  # the same sums, maybe over arrays laid out otherwise
        close(*([getattr(row, name) for row in rows] for rows in (ranked, before)), name, 1e-12)
    before, after = raters_of(model), raters_of(again)
    must((before is None) == (after is None), "a file keeps what is known of raters")
    if before is not None:
        levels = [{row.user: row.reliability for row in table} for table in (before, after)]
        close(*([level[u] for u in levels[0]] for level in levels), "a file keeps raters", 1e-6)
    close(copy.deepcopy(model).predict(), model.predict(), "a copy is the same", 0.0)


def check_score(model, data):
    """The score is the mean log-probability of what happened: by whom, how shown, and when."""
    pairs = [(data.items[a], data.items[b]) for a, b in zip(data.winner, data.loser, strict=True)]
    who = None if data.user is None else [data.users[u] for u in data.user]
    how = as_shown(model, data, np.ones(len(data), dtype=bool))
    win, tie, _ = model.predict_proba(pairs, who, ties=True, **how).T
    counted = ~data.tie | (tie > 0.0)
    if counted.any():
        log_prob = np.log(np.where(data.tie, tie, win)[counted])
        mean = np.average(log_prob, weights=data.count[counted])
        close(model.score(data), mean, "the score is the mean log-probability", 1e-8)


def raters_of(model):
    try:
        return model.raters_
    except PenchantError:  # nobody is named, or the model does not judge
        return None


def check_asking(model, data, rng):
    for name in sorted(CRITERIA):
        k = min(int(rng.integers(1, 4)), data.n_items * (data.n_items - 1) // 2)
        pairs = model.ask(k, name)
        known = set(data.items)
        must(all(a != b and {a, b} <= known for a, b in pairs), "questions are pairs", pairs=pairs)


def check_steps(model, refit, data, rng):
    """tell, withdraw and undo against a refit with the same hyperparameters."""
    before, converged = model.predict().tobytes(), model.report_.converged
    row = int(rng.integers(len(data)))
    pair = [(data.items[data.loser[row]], data.items[data.winner[row]])]
    user = {} if data.user is None else {"user": data.users[data.user[row]]}
    if not data.tie[row]:
        model.tell(pair, reconverge=True, **user)
        check_same(model, refit(model.comparisons_), converged, "tell equals a refit")
        model.withdraw(pair, **user)
        must(model.comparisons_ == data, "withdraw takes back what was told")
        check_same(model, refit(data), converged, "withdraw equals a refit")
        model.undo().undo()
    must(model.predict().tobytes() == before, "undo is exact")


def check_same(model, other, converged, what):
    """Compare converged fits only: lapses under a wide prior may not converge, and say so."""
    if converged and model.report_.converged and other.report_.converged:
        close(model.predict(), other.predict(), what)


def utility_trial(rng, estimator, people):
    ties = rng.random() < 0.3
    data = random_data(rng, people, ties)
    X, relations = random_features(rng, data.n_items), random_relations(rng, data.n_items)
    how = random_settings(rng, X, ties)
    if estimator is pc.CommunityGP:
        how |= {"inference": "mcmc", "n_sweeps": 6, "n_chains": 1} if rng.integers(2) else {}
    learned = estimator is not pc.CommunityGP and rng.random() < 0.5
    how |= {"optimize": None} if not learned else {}
    how |= {} if estimator is pc.PreferenceGP else {"progress": False}
    given = copy.deepcopy((X, relations))

    def refit(data):
        return estimator(**{**how, "optimize": None}).fit(X, data, relations=relations)

    model = estimator(**how).fit(X, data, relations=relations)
    data = data.pooled() if estimator is pc.PreferenceGP else data
    must(model.comparisons_ == data, "the data are kept")
    check_answers(model, data, rng)
    check_asking(model, data, rng)
    if not learned and estimator is not pc.CommunityGP:
        check_steps(model, refit, data, rng)
    close(0.0 if X is None else X, 0.0 if X is None else given[0], "features are not changed", 0.0)
    for name, W in (relations or {}).items():
        must((given[1][name] == W).all(), "relations are not changed")


# Every setting with every kind of answer


def random_answers(rng, kinds):
    """A few answers about five items, with whatever `kinds` says that they tell."""
    n, m = 5, int(rng.integers(1, 9))
    a = rng.integers(n, size=m)
    b = (a + rng.integers(1, n, size=m)) % n
    tie = rng.random(m) < 0.4 if "ties" in kinds else np.zeros(m, dtype=bool)
    told = {
        "ties": {"tie": tie},
        "counts": {"count": rng.integers(1, 4, size=m)},
        "margins": {"margin": np.where(tie, 0.0, 0.1 + rng.random(m))},
        "sides": {"first": rng.choice([-1, 0, 1], size=m)},
        "lengths": {"covariates": {"length": rng.standard_normal(m)}},
        "times": {"time": rng.integers(50, size=m).astype(float)},
        "people": {"user": rng.integers(3, size=m), "users": range(3)},
    }
    columns = {name: values for kind in kinds & set(told) for name, values in told[kind].items()}
    data = pc.Comparisons.from_pairs(a, b, items=range(n), **columns)
    if not kinds & {"rankings", "tied rankings"} or kinds & {"margins", "lengths", "times"}:
        return data
    orders = []
    for _ in range(int(rng.integers(1, 6))):
        places = [[int(rng.integers(n))]]
        for item in rng.permutation(np.delete(np.arange(n), places[0])).tolist():
            if "tied rankings" in kinds and rng.random() < 0.4:
                places[-1].append(item)
            elif rng.random() < 0.8:
                places.append([item])
        orders.append(places)
    people = rng.integers(3, size=len(orders)).tolist() if "people" in kinds else None
    return data + pc.Comparisons.from_rankings(orders, users=people, items=range(n))


def any_setting(rng, kinds):
    """An estimator with settings out of all that it has, whether they go together or not."""

    def one_of(*values):
        return values[rng.integers(len(values))]

    base = one_of(Probit(), Logit())
    how = {
        "likelihood": one_of(
            *("probit", "logit", "ties", "ties", Ties(0.3, "logit")),
            *(Abstain(base, 0.2), Lapse(base, 0.05), Lapse(Ties(0.3), 0.05)),
            *(["gaussian"] * 4 if "margins" in kinds else []),
        ),
        "random_state": 0,
    }
    has_people = "people" in kinds
    several = (pc.MultiUserGP, pc.CommunityGP) if has_people else ()
    estimator = one_of(pc.PreferenceGP, *several)
    if estimator is pc.CommunityGP:
        how |= {"personal": one_of(True, False, "auto"), "progress": False}
        if one_of(True, True, False):
            return estimator(n_communities=one_of(None, None, 2), **how)
        how |= {"inference": "mcmc", "n_sweeps": 4, "n_chains": 1}
        return estimator(sampler=one_of("collapsed", "blocked"), **how)
    how |= {"inference": one_of("ep", "ep", "ep", "laplace", "variational", "exact")}
    how |= {"optimize": one_of(None, "evidence", "evidence", "em")}
    how |= {"raters": one_of(None, None, "lapse", "noise") if has_people else None}
    how |= {"kernel": one_of(None, None, None, RBF())}
    if estimator is pc.MultiUserGP:
        return estimator(sparse=one_of(None, None, (2, 2)), progress=False, **how)
    how |= {"clustered": one_of(True, False), "max_rank": one_of(None, None, 2)}
    timed = "times" in kinds
    how |= one_of({}, {"drift": "ou"}, {"half_life": 10.0}) if timed else {}
    return estimator(**how)


def settings_trial(rng):
    """A right answer or a clear refusal of what does not go together."""
    every = ["ties", "counts", "margins", "sides", "lengths", "times", "people", "people"]
    every += ["rankings", "tied rankings"]
    kinds = set(rng.choice(every, size=int(rng.integers(6))).tolist())
    model = any_setting(rng, kinds)
    data, more = random_answers(rng, kinds), random_answers(rng, kinds)
    X = rng.standard_normal((data.n_items, 2)) if rng.random() < 0.6 else None
    model.fit(X, data)
    check_usable(model, data, rng)
    model.tell(more)
    check_usable(model, data, rng)


def check_usable(model, data, rng):
    """A fitted model refuses nothing."""
    try:
        check_answers(model, data, rng)
        if data.rankings is None:
            check_score(model, data)
        for train, test in data.folds(2):
            must(train + test == data, "folds neither cut nor lose an answer", model=model)
        if rng.random() < 0.1:
            choice = pc.choose_model(data)
            choice.model.fit(None, data)
    except PenchantError as error:
        raise Violation(f"{error} by {model} after {data}") from error


def relations_trial(rng, n_checked=4):
    """A few of the relations of tests/metamorphic, of any case that they apply to."""
    case = random_case(rng)
    world = case.world()
    model = world.fit(case.estimator())
    applying = [name for name, each in RELATIONS.items() if each.applies(case)]
    if case.model != "PreferenceGP":  # the prior of a learned covariance depends on n: known
        applying = [name for name in applying if name != "unknown_item"]
    for name in rng.permutation(applying)[:n_checked].tolist():
        try:
            RELATIONS[name].check(case, world, model)
        except (AssertionError, PenchantError) as error:
            raise Violation(f"{name} of {case!r}: {error}") from error


def random_table(rng):
    """The text of a small table of any shape, much of it tied or left out."""
    items = list("abcde"[: rng.integers(2, 6)])
    shape, rows = rng.choice(["pairs", "outcome", "rankings", "ratings", "grades"]), []
    people = int(rng.integers(4))
    for row in range(int(rng.integers(1, 9))):
        who = [f"user {rng.integers(people)}"] if people else []
        a, b = rng.choice(items, size=2, replace=False)
        grades = {item: str(rng.integers(1, 4)) for item in items if rng.random() < 0.7}
        if shape == "pairs":
            rows.append([a, b, str(rng.integers(3) // 2), *who])
        elif shape == "outcome":
            rows.append([a, b, rng.choice(["model_a", "model_b", "tie"]), *who])
        elif shape == "ratings":
            rows.append([f"user {row}", *(grades.get(item, "") for item in items)])
        else:
            rows += [[f"user {row}", *graded] for graded in grades.items()]
    names = {
        "pairs": ["winner", "loser", "tie", *["user"] * bool(people)],
        "outcome": ["model_a", "model_b", "winner", *["judge"] * bool(people)],
        "ratings": ["user", *(f"How good? [{item}]" for item in items)],
        "rankings": ["ballot", "item", "position"],
        "grades": ["user", "item", "rating"],
    }
    return "".join(",".join(map(str, row)) + "\n" for row in [names[shape], *rows])


def table_trial(rng):
    """Small tables of every shape through every command, within this process."""
    with tempfile.TemporaryDirectory() as folder:
        votes = Path(folder) / "votes.csv"
        votes.write_text(random_table(rng), encoding="utf-8")
        model = ["--model", str(rng.choice(["gp", "multi-user", "community"]))]
        commands = [
            ["rank", *model],
            ["rank"],
            ["evaluate", "--folds", "2"],
            ["report", "-o", f"{folder}/report.html"],
            ["groups"],
            ["ask", *model],
            ["fit", "-o", f"{folder}/model.penchant"],
        ]
        name, *options = commands[rng.integers(len(commands))]
        done = CliRunner().invoke(cli, [name, str(votes), *options])
        text, error = votes.read_text(encoding="utf-8"), done.exception
        is_known = error is None or isinstance(error, SystemExit)
        must(is_known, "no tracebacks", command=name, options=options, text=text, error=error)
        must(done.exit_code in (0, 1, 3), "known exit codes", code=done.exit_code, text=text)


def scores_trial(rng, estimator):
    n, d = int(rng.integers(4, 40)), int(rng.integers(1, 5))
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n)
    qid = rng.integers(2, size=n) if rng.random() < 0.5 else None
    given = X.copy(), y.copy()
    model = estimator().fit(X, y, qid)
    scores = model.predict(X)
    must(np.isfinite(scores).all(), "scores are finite", scores=scores)
    must((given[0] == X).all() and (y == given[1]).all(), "input is not changed")
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        again = pc.load(Path(folder) / "model").predict(X)
    must(again.tobytes() == scores.tobytes(), "a file keeps every bit")


def perceptron_trial(rng):
    model = pc.PreferencePerceptron(random_state=int(rng.integers(100)))
    for _ in range(int(rng.integers(1, 8))):
        docs = rng.standard_normal((int(rng.integers(2, 9)), 3))
        order = model.present(docs)
        must(sorted(order) == list(range(len(docs))), "an order holds every object", order=order)
        model.learn(docs, order, rng.permutation(order))
        must(np.isfinite(model.coef_).all(), "weights are finite")


def command_trial(rng):
    """Commands as a stranger runs them: JSON or a clear error, never a traceback."""
    data = random_data(rng, people=rng.random() < 0.5)
    with tempfile.TemporaryDirectory() as folder:
        votes, saved = Path(folder) / "votes.csv", Path(folder) / "model.penchant"
        with votes.open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(["winner", "loser", "user"][: 2 if data.user is None else 3])
            for k in range(len(data)):
                row = [data.items[data.winner[k]], data.items[data.loser[k]]]
                row += [] if data.user is None else [data.users[data.user[k]]]
                table.writerows([row] * int(data.count[k]))
        pair = [str(data.items[data.winner[0]]), str(data.items[data.loser[0]])]
        commands = [
            ["rank", votes, "--json"],
            ["fit", votes, "-o", saved, "--json"],
            ["predict", saved, "--json", "--pair", *pair],
            ["ask", saved, "-k", "2", "--json"],
            ["evaluate", votes, "--folds", "2", "--json"],
        ]
        for command in [commands[0], commands[int(rng.integers(1, 5))]]:
            if command[1] == saved and not saved.exists():
                run_command(commands[1])
            run_command(command)


def run_command(command):
    words = [sys.executable, "-m", "penchant", *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    said = done.stderr[-800:]
    must("Traceback" not in done.stderr, "no tracebacks", command=command[0], said=said)
    must(done.returncode in (0, 1, 3), "known exit codes", code=done.returncode, said=said)
    if done.returncode == 0:
        found = json.loads(done.stdout)
        rows = found.get("rows", []) if command[0] == "rank" else []
        must(all(row["low"] <= row["utility"] <= row["high"] for row in rows), "rows", rows=rows)


TRIALS = {
    "PreferenceGP": (6, lambda rng: utility_trial(rng, pc.PreferenceGP, rng.random() < 0.3)),
    "MultiUserGP": (4, lambda rng: utility_trial(rng, pc.MultiUserGP, True)),
    "CommunityGP": (2, lambda rng: utility_trial(rng, pc.CommunityGP, True)),
    "settings": (5, settings_trial),
    "relations": (6, relations_trial),
    "tables": (2, table_trial),
    "RankRLS": (1, lambda rng: scores_trial(rng, pc.RankRLS)),
    "KPCRank": (1, lambda rng: scores_trial(rng, pc.KPCRank)),
    "RankSVM": (1, lambda rng: scores_trial(rng, pc.RankSVM)),
    "PreferencePerceptron": (1, perceptron_trial),
    "commands": (1, command_trial),
}
"""Every trial with how often it is drawn."""


def trial(seed, only=None):
    """Play one; returns its name and how it ended."""
    rng = np.random.default_rng(seed)
    weights = np.array([weight for weight, _ in TRIALS.values()], dtype=float)
    name = str(rng.choice(list(TRIALS), p=weights / weights.sum()))
    name = only or name
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            TRIALS[name][1](rng)
            ended = "ok"
        except PenchantError as error:
            must(len(str(error)) > 20, "an error says what to do", error=str(error))
            ended = f"refused, {str(error)[:70]}"
    is_noisy = any(issubclass(warning.category, RuntimeWarning) for warning in said)
    return name, ended + (", numpy warned" if is_noisy else "")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=None, help="of the first trial")
    parser.add_argument("--repeat", type=int, help="play one trial again")
    parser.add_argument("--only", choices=TRIALS, help="one kind of trial")
    parser.add_argument("--trials", type=int, default=None, help="at most so many")
    options = parser.parse_args(argv)
    first = options.repeat if options.repeat is not None else options.seed
    first = int(time.time()) * 1000 if first is None else first
    n_most = 1 if options.repeat is not None else options.trials or sys.maxsize
    counts, seed, end = Counter(), first, time.monotonic() + 60.0 * options.minutes
    print(f"soak: from seed {first}", flush=True)
    while seed - first < n_most and (seed == first or time.monotonic() < end):
        try:
            counts[trial(seed, options.only)] += 1
        except Exception:
            traceback.print_exc()
            only = f" --only {options.only}" if options.only else ""
            print(f"violation with seed {seed}: python tests/soak.py --repeat {seed}{only}")
            return 1
        seed += 1
        if (seed - first) % 100 == 0:
            print(f"{seed - first} trials, next seed {seed}", flush=True)
    for (name, ended), count in sorted(counts.items()):
        print(f"{count:6d}  {name}: {ended}")
    print(f"{seed - first} trials without a violation, seeds {first} to {seed - 1}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
