"""Users in shards: time, memory and bytes of a sweep, and what they say about 10⁹ votes.

    python benchmarks/cluster.py --votes 1000000 2000000 --engine local ray --model communities
    python benchmarks/cluster.py --votes 100000000 --folder votes   # writes them alone

Votes of people in eight communities, everybody with a taste of their own beside, are written to
Parquet, scanned and fitted: hyperparameters from some users, then sweeps over all. Beside a sweep
stands the time to read the same bytes, and to multiply as many matrices of the same sizes. The
projection takes the measured time a vote, the measured bytes, and a network of BANDWIDTH; it says
nothing of what was not measured.
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
from penchant.engines import LocalEngine, RayEngine
from penchant.gp import UserPart, tied_items

BANDWIDTH = 1e9
"""Bytes a second into the driver that the projection assumes."""
CHUNK = 1_000_000
WORKERS = (16, 64, 256)
COMMUNITIES, OWN = 8, 0.7
PRODUCTS = 8
"""Of p × p matrices that a sweep multiplies for a user, solving counted in."""


def generate(folder, n_votes, n_items, votes_each, seed=0):
    """Write n_votes to Parquet, a million a file; every user answers in one file only."""
    rng = np.random.default_rng(seed)
    tastes = rng.normal(size=(COMMUNITIES, n_items))
    for number, start in enumerate(range(0, n_votes, CHUNK)):
        m = min(CHUNK, n_votes - start)
        user = np.arange(m) // votes_each
        n_users = user[-1] + 1
        mine = tastes[rng.integers(COMMUNITIES, size=n_users)]
        mine += OWN * rng.normal(size=(n_users, n_items))
        a = rng.integers(n_items, size=m)
        b = (a + rng.integers(1, n_items, size=m)) % n_items
        first = mine[user, a] - mine[user, b] + rng.normal(size=m) > 0
        rows = {
            "winner": np.where(first, a, b),
            "loser": np.where(first, b, a),
            "user": user + start // votes_each,
        }
        with duckdb.connect() as con:
            con.register("rows", rows)
            con.execute(f"COPY rows TO '{folder}/votes-{number:04d}.parquet' (FORMAT parquet)")


class Timed:
    """Work on a part that also says how long it took."""

    def __init__(self, work):
        self.work = work

    def __call__(self, part, state, told):
        begin = time.perf_counter()
        state, result = self.work(part, state, told)
        return state, (result, time.perf_counter() - begin)


class Recorded:
    """Every sweep of an engine: its seconds, those of the work in it, bytes down and up."""

    def __init__(self, engine):
        self.engine, self.sweeps = engine, []
        self.originals = {name: getattr(engine, name) for name in ("sweep", "look")}

    def __enter__(self):
        for name, original in self.originals.items():
            setattr(self.engine, name, self._timed(original))
        return self

    def _timed(self, original):
        def sweep(engine, work, told):
            begin = time.perf_counter()
            results, busy = zip(*original(engine, Timed(work), told), strict=True)
            seconds = time.perf_counter() - begin
            if results[0] is not None:  # else something was written down
                up = max(len(pickle.dumps(result)) for result in results)
                self.sweeps.append((seconds, sum(busy), len(pickle.dumps(told)), up))
            return list(results)

        return sweep

    def __exit__(self, *_):
        for name, original in self.originals.items():
            setattr(self.engine, name, original)


def engine_class(name):
    return LocalEngine if name == "local" else RayEngine


MODELS = {
    "users": lambda engine: pc.MultiUserGP(kernel=pc.kernels.Independent(), engine=engine),
    "communities": lambda engine: pc.CommunityGP(
        personal=False, n_communities=COMMUNITIES, engine=engine
    ),
}


def reading(votes):
    """Seconds to read every bucket once."""
    begin = time.perf_counter()
    for number in range(len(votes.sizes)):
        votes.files.load(number)
    return time.perf_counter() - begin


def multiplying(votes):
    """Seconds of as many products of matrices as a sweep over independent items has, one core:
    those of one bucket, times all votes."""
    bucket = votes.files.load(0)
    part = UserPart.of(0, bucket, tied_items(np.eye(bucket.n_items)))
    stacks = [np.ones((k, p, p)) for k, p in (block.shape for block in part.blocks)]
    begin = time.process_time()
    for stack in stacks:
        for _ in range(PRODUCTS):
            stack @ stack
    return (time.process_time() - begin) * votes.n_comparisons / max(1, bucket.n_comparisons)


def measure(files, model, engine, shards, scratch, max_memory):
    """Scan and fit; a row of the table, and what a sweep costs."""
    begin = time.perf_counter()
    with pc.scan_comparisons(files, shards=shards, scratch=scratch, max_memory=max_memory) as votes:
        scanning = time.perf_counter() - begin
        once = reading(votes)
        products = multiplying(votes) if model == "users" else 0.0
        begin = time.perf_counter()
        with Recorded(engine_class(engine)) as record:
            MODELS[model](engine).fit(None, votes)
        fitting = time.perf_counter() - begin
        seconds, busy, down, up = np.median(record.sweeps, axis=0)
        row = {
            "model": model,
            "engine": engine,
            "votes": f"{votes.n_comparisons:,}",
            "users": f"{votes.n_users:,}",
            "scan": f"{scanning:.1f} s",
            "fit": f"{fitting:.1f} s",
            "sweeps": str(len(record.sweeps)),
            "a sweep": f"{seconds:.2f} s",
            "at work": f"{busy:.2f} s",
            "reading": f"{once:.2f} s",
            "products": f"{products:.2f} s" if products else "–",
            "down": f"{down / 1e3:,.0f} kB",
            "up a bucket": f"{up / 1e3:,.0f} kB",
            "memory": f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB",
        }
        return row, (busy / votes.n_comparisons, down, up)


def projected(per_vote, down, up):
    """Seconds of a sweep for more votes and workers than there are here."""
    begin = time.perf_counter()
    one = np.ones(int(up) // 8)
    for _ in range(100):
        one = one + 1.0
    adding = (time.perf_counter() - begin) / 100
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
    # workers × work = votes · per_vote; the driver's part grows with the workers
    each = (down + up) / BANDWIDTH + adding
    level = [f"{n:.0e} votes at {np.sqrt(n * per_vote / each):,.0f}" for n in (10**9, 10**10)]
    return rows, "The driver takes as long as a worker with " + ", ".join(level) + " workers."


def shown(rows):
    return "\n".join(table(list(rows[0]), [list(row.values()) for row in rows]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--votes", type=int, nargs="+", default=[1_000_000, 2_000_000])
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--each", type=int, default=20, help="votes of a user")
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--engine", nargs="+", default=["local"])
    parser.add_argument("--model", nargs="+", default=["users"], choices=MODELS)
    parser.add_argument("--max-memory", type=float, default=4.0, help="GB")
    parser.add_argument("--scratch")
    parser.add_argument("--folder", help="write the votes here, and stop")
    given = parser.parse_args()
    if given.folder:
        Path(given.folder).mkdir(parents=True, exist_ok=True)
        generate(given.folder, given.votes[0], given.items, given.each)
        return
    rows, last = [], ()
    bound = int(given.max_memory * 2**30)
    for n_votes in given.votes:
        with tempfile.TemporaryDirectory(dir=given.scratch) as folder:
            generate(folder, n_votes, given.items, given.each)
            files = str(Path(folder) / "*.parquet")
            for model in given.model:
                for engine in given.engine:
                    row, last = measure(files, model, engine, given.shards, given.scratch, bound)
                    rows.append(row)
    print(shown(rows))
    projection, level = projected(*last)
    print(f"\nProjected, by the last row:\n\n{shown(projection)}\n\n{level}")


if __name__ == "__main__":
    main()
