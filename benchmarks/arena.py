"""An arena of millions of battles, from CSV to leaderboard, beside pandas and evalica in one run.

python benchmarks/arena.py [--battles 5000000] [--models 200] [--python .venv-bench/bin/python]

Every battle has two models, an outcome (ties too), the lengths and the bold words of both answers;
the one shown first gains .1. penchant's leaderboard has intervals and is at equal sides, lengths
and style; evalica's is plain Bradley–Terry without either.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

ORDER, LENGTH, STYLE = 0.1, 0.0004, 0.05
BATCH = 500_000
PEER = """
import sys, time
begin = time.perf_counter()
import pandas as pd, evalica
data = pd.read_csv(sys.argv[1])
read = time.perf_counter()
winners = data["winner"].map(
    {"model_a": evalica.Winner.X, "model_b": evalica.Winner.Y, "tie": evalica.Winner.Draw}
)
found = evalica.bradley_terry(data["model_a"], data["model_b"], winners)
end = time.perf_counter()
print(f"read {read - begin:.2f} s, ratings {end - read:.2f} s", file=sys.stderr)
print(found.scores.to_json())
"""


def make_file(path, n_battles, n_models, seed=0):
    """Write the battles in batches; returns the true utilities by name."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(n_models) * 0.5
    names = np.array([f"model-{k:03d}" for k in range(n_models)])
    for start in range(0, n_battles, BATCH):
        m = min(BATCH, n_battles - start)
        a = rng.integers(n_models, size=m)
        b = (a + 1 + rng.integers(n_models - 1, size=m)) % n_models
        length = rng.gamma(2.0, 200.0, size=(2, m)).astype(int)
        bold = rng.poisson(3.0, size=(2, m)) + rng.random((2, m)).round(3)
        z = LENGTH * (length[0] - length[1]) + STYLE * (bold[0] - bold[1])
        g = truth[a] - truth[b] + ORDER + z + rng.standard_normal(m)
        outcome = np.where(np.abs(g) < 0.3, "tie", np.where(g > 0, "model_a", "model_b"))
        frame = pd.DataFrame(
            {
                "model_a": names[a],
                "model_b": names[b],
                "winner": outcome,
                "length_a": length[0],
                "length_b": length[1],
                "bold_a": bold[0],
                "bold_b": bold[1],
            }
        )
        frame.to_csv(path, mode="w" if start == 0 else "a", header=start == 0, index=False)
    return dict(zip(names.tolist(), truth.tolist(), strict=True))


def timed(command):
    """Wall-clock seconds of a whole process, and what it printed."""
    begin = time.perf_counter()
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "200"}
    )
    return time.perf_counter() - begin, done.stdout, done.stderr


def main():
    """Make the file, run both, print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--battles", type=int, default=5_000_000)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--python", default=sys.executable, help="a Python that has evalica")
    parser.add_argument("--file", help="keep the file here, or use it again")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(asked.file) if asked.file else Path(folder) / "arena.csv"
        truth = None
        if not path.exists():
            truth = make_file(path, asked.battles, asked.models)
            path.with_suffix(".json").write_text(json.dumps(truth))
        truth = truth or json.loads(path.with_suffix(".json").read_text())
        ours = [sys.executable, "-m", "penchant", "rank", str(path), "--json"]
        for covariate in ("length_a - length_b", "bold_a - bold_b"):
            ours += ["--covariate", covariate]
        seconds, out, said = timed(ours)
        rows = json.loads(out)["rows"]
        peer_seconds, out, peer_said = timed([asked.python, "-c", PEER, str(path)])
    peer = json.loads(out)
    utility = {row["item"]: row["utility"] for row in rows}
    names = list(truth)
    levels = np.mean(list(truth.values())), np.mean(list(utility.values()))
    off = [abs(truth[r["item"]] - levels[0] - r["utility"] + levels[1]) for r in rows]
    covered = np.mean([o < (r["high"] - r["low"]) / 2 for o, r in zip(off, rows, strict=True)])
    print(said.strip(), peer_said.strip(), sep="\n")
    for label, scores, taken in (
        ("penchant", utility, seconds),
        ("pandas + evalica", peer, peer_seconds),
    ):
        tau = kendalltau([truth[n] for n in names], [scores[n] for n in names]).statistic
        print(f"{label:18s} {taken:7.2f} s   Kendall τ with the truth {tau:.4f}")
    print(f"ratio {seconds / peer_seconds:.2f}; nominal 95 % intervals cover {covered:.1%}")


if __name__ == "__main__":
    main()
