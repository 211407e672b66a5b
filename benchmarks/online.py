"""PreferencePerceptron against the speed of memory, Vowpal Wabbit and river.

A part of `benchmarks/run.py`; alone: `python benchmarks/online.py [--quick] [--peers PYTHON]`,
where PYTHON is the interpreter of an environment with numpy, vowpalwabbit and river. Against the
speed of memory the best of several repeats counts, against peers the median with its range.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from contest import table
from peers import PYTHON, clean_reason

REPEATS = 15
PEER_REPEATS = 3
TIMEOUT = 900
N_DOCS, N_FEATURES = 24, 700
PAIR_FEATURES = 100
HELD_OUT = 20_000
RIVER_PAIRS = 20_000
"""river's rate does not depend on the length, and a longer run would only take longer."""

OURS = {
    "penchant, perceptron": {"loss": "perceptron"},
    "penchant, logistic": {"loss": "logistic", "rate": 0.05},
    "penchant, logistic, adaptive": {"loss": "logistic", "update": "adaptive", "rate": 0.1},
    "penchant, logistic, adaptive, float32": {
        "loss": "logistic",
        "update": "adaptive",
        "rate": 0.1,
        "dtype": "float32",
    },
}
VW = {
    "vw, cache reader, hinge, --sgd": "--loss_function hinge --sgd",
    "vw, cache reader, logistic, --sgd": "--loss_function logistic --sgd",
    "vw, cache reader, logistic, adaptive": "--loss_function logistic",
}
RIVER = ("Perceptron", "LogisticRegression")


def seconds(action):
    begin = perf_counter()
    action()
    return perf_counter() - begin


def ceiling_row(dtype, update, X, y, qid):
    """One line: the whole of `fit` against one batched product X @ w, taken by turns."""
    from threadpoolctl import threadpool_limits

    from penchant.models import PreferencePerceptron

    model = PreferencePerceptron(update=update, dtype=dtype)
    model.fit(X[:N_DOCS], y[:N_DOCS])  # compiles
    weights = np.ones(N_FEATURES, dtype)
    loop, one_core, all_cores = [], [], []
    for _ in range(REPEATS):
        loop.append(seconds(lambda: model.fit(X, y, qid)))
        with threadpool_limits(1):
            one_core.append(seconds(lambda: X @ weights))
        all_cores.append(seconds(lambda: X @ weights))
    n_rounds, time = len(X) // N_DOCS, min(loop)
    return (
        f"| {dtype} | {update} | {n_rounds / time:,.0f} | {X.nbytes / time / 1e9:.1f} "
        f"| {min(one_core) / time:.0%} | {min(all_cores) / time:.0%} |"
    )


def ceiling_table(n_rounds):
    rng = np.random.default_rng(0)
    rows = [
        f"`fit` on {n_rounds:,} rounds of {N_DOCS} documents × {N_FEATURES} features: present, "
        "improve by label, learn. The loop is sequential and runs on one core.",
        "",
        "| precision | update | rounds a second | GB/s | of the batched product on one core "
        "| on all cores |",
        "|---|---|---|---|---|---|",
    ]
    qid = np.repeat(np.arange(n_rounds), N_DOCS)
    y = rng.integers(0, 5, qid.size).astype(float)
    for dtype in ("float64", "float32"):
        X = rng.standard_normal((qid.size, N_FEATURES), dtype)
        updates = ("additive", "adaptive", "exponentiated")
        rows.extend([ceiling_row(dtype, update, X, y, qid) for update in updates])
    return rows


def pair_task(n_pairs):
    """Winners and losers, (n, 100) each, of logistic choices by a linear taste."""
    rng = np.random.default_rng(1)
    first, second = rng.standard_normal((2, n_pairs, PAIR_FEATURES))
    taste = 2.0 * rng.standard_normal(PAIR_FEATURES) / np.sqrt(PAIR_FEATURES)
    chosen = rng.random(n_pairs) < 1.0 / (1.0 + np.exp((second - first) @ taste))
    return np.where(chosen[:, None], first, second), np.where(chosen[:, None], second, first)


def learn_with_penchant(better, worse, setting):
    from penchant.models import PreferencePerceptron

    X = np.concatenate([better, worse]).astype(setting.get("dtype", "float64"))
    winner, loser = np.arange(len(better)), len(better) + np.arange(len(better))
    learn = lambda n: PreferencePerceptron(**setting).learn_pairs(X, winner[:n], loser[:n])  # noqa: E731
    learn(2)  # compiles
    times = [seconds(lambda: learn(None)) for _ in range(REPEATS)]
    return times, learn(None).coef_


def write_for_vw(differences, text):
    with text.open("w") as file:
        for t, row in enumerate(differences):
            sign = 1 if t % 2 else -1  # both labels, as a classifier expects
            features = " ".join(f"{i}:{sign * value:.6g}" for i, value in enumerate(row))
            file.write(f"{sign} | {features}\n")


def learn_with_vw(options, text):
    """One pass over the binary cache of an earlier run: no text is parsed in the time."""
    import vowpalwabbit

    files = f"-d {text} --cache_file {text}.cache --quiet"
    if not Path(f"{text}.cache").exists():
        vowpalwabbit.Workspace(files).finish()
    begin = perf_counter()
    model = vowpalwabbit.Workspace(f"{files} --noconstant -b 10 {options}")
    time = perf_counter() - begin
    return time, np.array([model.predict(f"| {i}:1") for i in range(PAIR_FEATURES)])


def learn_with_river(name, differences):
    from river import linear_model

    model = getattr(linear_model, name)()
    labels = [bool(t % 2) for t in range(len(differences))]
    rows = [
        dict(enumerate((row if label else -row).tolist()))
        for row, label in zip(differences, labels, strict=True)
    ]
    begin = perf_counter()
    for row, label in zip(rows, labels, strict=True):
        model.learn_one(row, label)
    time = perf_counter() - begin
    return time, np.array([model.weights.get(i, 0.0) for i in range(PAIR_FEATURES)])


def contest(path):
    """In the peers' interpreter: print JSON, name → rates (pairs a second) and accuracy."""
    differences = np.load(path)
    train, test = differences[HELD_OUT:], differences[:HELD_OUT]
    text = Path(path).with_suffix(".txt")
    write_for_vw(train, text)
    runs = {name: (len(train), learn_with_vw, (options, text)) for name, options in VW.items()}
    for name in RIVER:
        some = train[:RIVER_PAIRS]
        runs[f"river, {name}"] = (len(some), learn_with_river, (name, some))
    results = {}
    for name, (n_pairs, learn, arguments) in runs.items():
        try:
            attempts = [learn(*arguments) for _ in range(PEER_REPEATS)]
        except ImportError:
            results[name] = "not installed"
        else:
            weights = attempts[0][1]
            rates = [n_pairs / time for time, _ in attempts]
            results[name] = [rates, float(np.mean(test @ weights > 0))]
    print(json.dumps(results))


def peer_results(differences, peer_python):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "differences.npy")
        np.save(path, differences)
        command = [str(peer_python), __file__, "--contest", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return {"vw, river": f"over {TIMEOUT} s"}
        except OSError:
            return {"vw, river": "not installed"}
    if done.returncode:
        return {"vw, river": f"failed: {clean_reason(done.stderr)}"}
    return json.loads(done.stdout)


def pair_table(n_pairs, peer_python):
    better, worse = pair_task(n_pairs + HELD_OUT)
    differences = better - worse
    results = {}
    for name, setting in OURS.items():
        times, weights = learn_with_penchant(better[HELD_OUT:], worse[HELD_OUT:], setting)
        accuracy = float(np.mean(differences[:HELD_OUT] @ weights > 0))
        results[name] = [[n_pairs / time for time in times], accuracy]
    slowest = min((rates for rates, _ in results.values()), key=np.median)
    results |= peer_results(differences, peer_python)
    rows = []
    for name, result in results.items():
        if isinstance(result, str):
            rows.append([name, result, "", ""])
            continue
        rates, accuracy = result
        ratio = "" if name in OURS else ratio_of(slowest, rates)
        rows.append([name, with_range(rates, ",.0f"), ratio, f"{accuracy:.3f}"])
    return [
        f"{n_pairs:,} pairs of {PAIR_FEATURES} dense features, one pass: median and range of "
        f"{REPEATS} passes, of peers {PEER_REPEATS}; × = slowest row of penchant ÷ peer in the "
        "same run, with the range that the passes allow.",
        "",
        *table(("learner", "pairs a second", "×", "held-out pairs right"), rows),
    ]


def with_range(values, form):
    return f"{np.median(values):{form}} ({min(values):{form}}–{max(values):{form}})"


def ratio_of(ours, theirs):
    low, high = min(ours) / max(theirs), max(ours) / min(theirs)
    return f"{np.median(ours) / np.median(theirs):.3g} ({low:.3g}–{high:.3g})"


def run(quick, peer_python=PYTHON):
    lines = ["## Online learning against the speed of memory, Vowpal Wabbit and river", ""]
    lines += ceiling_table(500 if quick else 5_000)
    lines += ["", *pair_table(20_000 if quick else 500_000, peer_python)]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--peers", default=PYTHON, metavar="PYTHON")
    parser.add_argument("--contest", metavar="FILE", help="(used by the script itself)")
    arguments = parser.parse_args()
    if arguments.contest:
        contest(arguments.contest)
    else:
        print("\n".join(run(arguments.quick, arguments.peers)))


if __name__ == "__main__":
    main()
