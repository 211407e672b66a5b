"""Users in shards: time, memory and bytes of a sweep, and what they say about 10⁹ votes.

    python benchmarks/cluster.py --votes 2000000 --engine local

Votes of people with tastes of their own are written to Parquet, scanned, and fitted by MultiUserGP
with fixed hyperparameters. The projection takes the measured time a vote, the measured bytes, and
a network of BANDWIDTH; it says nothing of what was not measured.
"""

import argparse
import pickle
import resource
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
from contest import table

import penchant as pc
from penchant.engines.local import LocalEngine
from penchant.engines.sums import tree
from penchant.gp.users.sweeps import add_seen, add_taught

BANDWIDTH = 1e9
"""Bytes a second into the driver that the projection assumes."""
CHUNK = 1_000_000
WORKERS = (16, 64, 256)


def generate(folder, n_votes, n_items, votes_each, seed=0):
    """Write n_votes to Parquet, a million a file; every user answers in one file only."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=n_items)
    for number, start in enumerate(range(0, n_votes, CHUNK)):
        m = min(CHUNK, n_votes - start)
        user = np.arange(m) // votes_each
        own = rng.normal(size=(user[-1] + 1, n_items))
        a = rng.integers(n_items, size=m)
        b = (a + rng.integers(1, n_items, size=m)) % n_items
        difference = shared[a] - shared[b] + own[user, a] - own[user, b]
        first = difference + rng.normal(size=m) > 0
        rows = {
            "winner": np.where(first, a, b),
            "loser": np.where(first, b, a),
            "user": user + start // votes_each,
        }
        with duckdb.connect() as con:
            con.register("rows", rows)
            con.execute(f"COPY rows TO '{folder}/votes-{number:04d}.parquet' (FORMAT parquet)")


class Recorded:
    """Seconds of every sweep, bytes down and up, and seconds to add up, as the engine goes."""

    def __init__(self, engine):
        self.engine, self.sweeps, self.original = engine, [], engine.sweep

    def __enter__(self):
        record = self

        def sweep(self, work, told):
            begin = time.perf_counter()
            results = record.original(self, work, told)
            seconds = time.perf_counter() - begin
            up = [len(pickle.dumps(result)) for result in results]
            begin = time.perf_counter()
            seen, known = zip(*results, strict=True)
            tree(seen, add_seen), tree(known, add_taught)
            adding = (time.perf_counter() - begin) / len(results)
            record.sweeps.append((seconds, len(pickle.dumps(told)), max(up), adding))
            return results

        self.engine.sweep = sweep
        return self

    def __exit__(self, *_):
        self.engine.sweep = self.original


def engine_class(name):
    if name == "local":
        return LocalEngine
    from penchant.engines.ray import RayEngine

    return RayEngine


def measure(files, engine, shards, scratch, max_memory):
    """Scan and fit; a row of the table, and the sweeps."""
    begin = time.perf_counter()
    with pc.scan_comparisons(files, shards=shards, scratch=scratch, max_memory=max_memory) as votes:
        scanning = time.perf_counter() - begin
        begin = time.perf_counter()
        for number in range(len(votes.sizes)):
            votes.files.load(number)
        reading = time.perf_counter() - begin
        settings = {"kernel": pc.kernels.Independent(2.0), "optimize": None, "progress": False}
        begin = time.perf_counter()
        with Recorded(engine_class(engine)) as record:
            model = pc.MultiUserGP(**settings, engine=engine).fit(None, votes)
        fitting = time.perf_counter() - begin
        seconds, down, up, adding = np.median(record.sweeps, axis=0)
        row = {
            "engine": engine,
            "votes": f"{votes.n_comparisons:,}",
            "users": f"{votes.n_users:,}",
            "scan": f"{scanning:.1f} s",
            "read once": f"{reading:.1f} s",
            "fit": f"{fitting:.1f} s",
            "sweeps": str(model.report_.n_sweeps),
            "a sweep": f"{seconds:.2f} s",
            "down": f"{down / 1e3:,.0f} kB",
            "up a bucket": f"{up / 1e3:,.0f} kB",
            "memory": f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB",
        }
        return row, (seconds / votes.n_comparisons, down, up, adding)


def projected(per_vote, down, up, adding):
    """Seconds of a sweep for more votes and workers than there are here."""
    rows = []
    for n_votes in (10**9, 10**10):
        for workers in WORKERS:
            buckets = max(64, workers)
            working = n_votes * per_vote / workers
            driving = (workers * down + buckets * up) / BANDWIDTH + buckets * adding
            rows.append(
                {
                    "votes": f"{n_votes:.0e}",
                    "workers": str(workers),
                    "work": f"{working:,.1f} s",
                    "driver": f"{driving:.2f} s",
                    "sweep": f"{working + driving:,.1f} s",
                    "driver's share": f"{driving / (working + driving):.1%}",
                }
            )
    return rows


def shown(rows):
    return "\n".join(table(list(rows[0]), [list(row.values()) for row in rows]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--votes", type=int, nargs="+", default=[1_000_000, 2_000_000])
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--each", type=int, default=20, help="votes of a user")
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--engine", nargs="+", default=["local"])
    parser.add_argument("--max-memory", type=float, default=4.0, help="GB")
    parser.add_argument("--scratch")
    given = parser.parse_args()
    rows = []
    for n_votes in given.votes:
        with tempfile.TemporaryDirectory(dir=given.scratch) as folder:
            generate(folder, n_votes, given.items, given.each)
            for engine in given.engine:
                row, cost = measure(
                    str(Path(folder) / "*.parquet"),
                    engine,
                    given.shards,
                    given.scratch,
                    int(given.max_memory * 2**30),
                )
                rows.append(row)
    print(shown(rows))
    print("\nProjected, by the last row:\n")
    print(shown(projected(*cost)))


if __name__ == "__main__":
    main()
