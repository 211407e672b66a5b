"""Many items at a bounded rank: time and memory as items double."""

import json
import subprocess
import sys

ITEMS, COMPARISONS, RANK = 100_000, 1_000_000, 500

SCRIPT = r"""
import json, pathlib, re, resource, sys, time
import numpy as np
import penchant as pc
n, m, rank = map(int, sys.argv[1:4])
rng = np.random.default_rng(0)
X = rng.random((n, 5))
f = 3 * np.sin(3 * X[:, 0]) + 2 * X[:, 1] * X[:, 2]
a = rng.integers(n, size=m)
b = (a + 1 + rng.integers(n - 1, size=m)) % n
first = f[a] - f[b] + rng.standard_normal(m) > 0
data = pc.Comparisons.from_pairs(np.where(first, a, b), np.where(first, b, a), items=range(n))
start = time.perf_counter()
model = pc.PreferenceGP(pc.kernels.RBF(0.7, 4.0), optimize=None, max_rank=rank).fit(X, data)
seconds = time.perf_counter() - start
# a child's ru_maxrss begins at its parent's: the kernel's own count is asked where there is one
status = pathlib.Path("/proc/self/status")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
if status.exists():
    peak = int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) / 2**20
r = float(np.corrcoef(model.predict(), f)[0, 1])
json.dump({"seconds": seconds, "gb": peak, "r": r, "sweeps": model.report_.n_sweeps}, sys.stdout)
"""


def measure(n, m, rank):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(n), str(m), str(rank)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def run(quick):
    n, m, rank = (5_000, 50_000, 100) if quick else (ITEMS, COMPARISONS, RANK)
    lines = [
        "## Many items at a bounded rank",
        "",
        f"{m:,} comparisons, 5 features, rank {rank}, fixed hyperparameters.",
        "",
        "| items | seconds | × for twice the items | peak GB | sweeps | correlation with truth |",
        "|---|---|---|---|---|---|",
    ]
    previous = None
    for size in (n, 2 * n):
        result = measure(size, m, rank)
        growth = f"{result['seconds'] / previous:.2f}" if previous else ""
        previous = result["seconds"]
        lines.append(
            f"| {size:,} | {result['seconds']:.1f} | {growth} | {result['gb']:.2f} | "
            f"{result['sweeps']} | {result['r']:.3f} |"
        )
    return lines
