"""A large file of battles from disk to distinct rows, beside pandas, which only parses it."""

import tempfile
import time
from pathlib import Path

import numpy as np
from contest import ROUNDS, table

from penchant.io import read_comparisons

BATTLES, MODELS = 5_000_000, 200
COVARIATES = ("length_a - length_b", "style_a - style_b")


def run(quick):
    n, rounds = (20_000, 1) if quick else (BATTLES, ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "arena.csv")
        write_battles(path, n)
        return [
            "## Reading a file of battles",
            "",
            f"{n:,} battles between {MODELS} models with ties, two covariates and the order "
            f"shown, {path.stat().st_size / 1e6:.0f} MB of CSV. pandas parses; penchant parses, "
            "checks every row, recognises the shape, codes names and merges equal rows. Seconds "
            "of the processor and of the clock, medians of interleaved runs; × = penchant ÷ "
            "pandas.",
            "",
            *table(("what", "processor", "clock", "× processor", "× clock"), rows(path, rounds)),
        ]


def write_battles(path, n, seed=0):
    """Battles with a side effect of .25 and effects of length and style."""
    import duckdb
    import pandas as pd

    rng = np.random.default_rng(seed)
    utility = rng.normal(size=MODELS)
    a = rng.integers(MODELS, size=n)
    b = (a + 1 + rng.integers(MODELS - 1, size=n)) % MODELS
    length, style = rng.integers(20, 2000, size=(2, n)), rng.integers(30, size=(2, n))
    g = utility[a] - utility[b] + 0.25 + 3e-4 * (length[0] - length[1])
    g += 0.02 * (style[0] - style[1]) + rng.logistic(size=n)
    won = np.where(np.abs(g) < 0.4, 2, np.where(g > 0.0, 0, 1))
    names = [f"model-{k:03d}-chat" for k in range(MODELS)]
    frame = pd.DataFrame(
        {
            "model_a": pd.Categorical.from_codes(a, names),
            "model_b": pd.Categorical.from_codes(b, names),
            "winner": pd.Categorical.from_codes(won, ["model_a", "model_b", "tie"]),
            "length_a": length[0],
            "length_b": length[1],
            "style_a": style[0],
            "style_b": style[1],
        }
    )
    with duckdb.connect() as con:
        con.register("battles", frame)
        con.execute(f"COPY (FROM battles) TO '{path}' (HEADER)")


def rows(path, rounds):
    import pandas as pd

    contestants = {
        "pandas.read_csv": lambda: pd.read_csv(path),
        "read_comparisons": lambda: read_comparisons(path),
        "read_comparisons, covariates": lambda: read_comparisons(path, covariates=COVARIATES),
    }
    taken = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, read in contestants.items():
            began = time.process_time(), time.perf_counter()
            read()
            taken[name].append((time.process_time() - began[0], time.perf_counter() - began[1]))
    medians = {name: np.median(seconds, axis=0) for name, seconds in taken.items()}
    ours = medians["pandas.read_csv"]
    return [
        [name, *(f"{s:.2f}" for s in median), *(f"{x:.2f}" for x in median / ours)]
        for name, median in medians.items()
    ]
