"""PreferenceGP against BoTorch's PairwiseGP and choix on the task of tasks.gp_task."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from tasks import gp_task

SIZES = ((100, 1_000), (500, 5_000), (1_000, 20_000), (2_000, 50_000))
REPEATS = 2
TIMEOUT = 300
ROWS = (
    ("penchant ep", None),
    ("botorch laplace", "penchant ep"),
    ("penchant evidence", None),
    ("botorch evidence", "penchant evidence"),
    ("penchant ep, no kernel", None),
    ("choix ep, no kernel", "penchant ep, no kernel"),
)
LIMITS = {  # sizes beyond which a contestant is known to outrun the timeout many times over
    "choix ep, no kernel": 500,
    "botorch evidence": 1_000,
    "penchant ep, no kernel": 500,
}


def contest(name, path, peer_python):
    """One run in its own process; None when it fails or takes too long."""
    python = sys.executable if name.startswith("penchant") else str(peer_python)
    script = Path(__file__).parent / "contestants.py"
    try:
        done = subprocess.run(
            [python, str(script), name, path], capture_output=True, timeout=TIMEOUT, text=True
        )
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout) if done.returncode == 0 else None


def summary(runs):
    runs = [run for run in runs if run is not None]
    if not runs:
        return None
    middle = {key: float(np.median([run[key] for run in runs])) for key in runs[0]}
    total = [run["fit"] + run["predict"] for run in runs]
    return {**middle, "total": float(np.median(total)), "spread": (min(total), max(total))}


def run(quick, peer_python):
    lines = [
        "## Posterior and hyperparameters against BoTorch and choix",
        "",
        "Seconds to fit and predict 5,000 held-out pairs (median of "
        f"{1 if quick else REPEATS} runs, range); × = peer ÷ penchant in the same run.",
        "",
        "| n / m | contestant | seconds | × time | peak MB | × memory | log-lik (ceiling) |",
        "|---|---|---|---|---|---|---|",
    ]
    for n, m in SIZES[:1] if quick else SIZES:
        task = gp_task(n, m, seed=0)
        with tempfile.NamedTemporaryFile(suffix=".npz") as file:
            np.savez(file.name, **task)
            results = {}
            for name, against in ROWS:
                if n > LIMITS.get(name, n):
                    continue
                repeats = 1 if quick or "evidence" in name else REPEATS
                runs = [contest(name, file.name, peer_python) for _ in range(repeats)]
                results[name] = summary(runs)
                lines.append(row(n, m, name, results[name], results.get(against), task["ceiling"]))
    return "\n".join(lines)


def row(n, m, name, result, ours, ceiling):
    if result is None:
        return f"| {n:,} / {m:,} | {name} | failed or over {TIMEOUT} s | | | | |"
    low, high = result["spread"]
    time_ratio = f"{result['total'] / ours['total']:.1f}" if ours else ""
    memory_ratio = f"{result['peak_mb'] / ours['peak_mb']:.1f}" if ours else ""
    return (
        f"| {n:,} / {m:,} | {name} | {result['total']:.2f} ({low:.2f}–{high:.2f}) | {time_ratio} | "
        f"{result['peak_mb']:.0f} | {memory_ratio} | {result['log_lik']:.4f} ({ceiling:.4f}) |"
    )
