"""A study under load: latency while the model fits, and many people against one at a time.

python benchmarks/study.py load      200 robots, 100 answers a second for 60 s, 200 items
python benchmarks/study.py crowd     answers that 30 people at once need, against one by one
python benchmarks/study.py first     from items.csv to the first vote in a browser (CHROMIUM=path)
python benchmarks/study.py rounds    learning 20 more answers after 20,000: told and fitted anew
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import click
import httpx
import numpy as np
import sqlalchemy as sa
from scipy.special import ndtr

from penchant.ask import Joint
from penchant.likelihoods import Probit
from penchant.study import (
    Config,
    Event,
    Folder,
    NewItem,
    RobotCrowd,
    RobotPlan,
    StudyLearner,
    best_questions,
    pair_key,
    running,
    simulate,
)
from penchant.study.store import reports, studies

RAMP = 8.0
"""Seconds within which everybody has joined, before the seconds that count."""


@click.group()
def main() -> None:
    """Benchmarks of the study server."""


@main.command()
@click.option("--people", default=200)
@click.option("--rate", default=100.0, help="Answers a second of all of them.")
@click.option("--seconds", default=60.0)
@click.option("--items", default=200)
@click.option("--database", help="postgresql://… instead of SQLite.")
def load(people: int, rate: float, seconds: float, items: int, database: str | None) -> None:
    """Latency of answers and questions beside that of an empty route, in the same run."""
    with tempfile.TemporaryDirectory(prefix="penchant-") as scratch:
        folder = Folder.create(Path(scratch) / "bench", "bench", database)
        config = Config("Which?", answers_per_person=None)
        store = folder.open()
        new = [NewItem(f"item {k}") for k in range(items)]
        store.write(studies.create, "bench", config, new, time.time())
        with running(folder.path) as address:
            wait_for_stock(store)
            watch = OpenPairs(store, config)
            crowd, empty = asyncio.run(under_load(address, people, rate, seconds, watch))
            state = store.read(reports.overview, "bench", time.time())
            events = store.read(studies.events_after, "bench")
        store.close()
    full = [e.at for e in events if e.kind in ("answer", "skip") and e.at > events[-1].at - seconds]
    counts = state["counts"]
    report = {
        "answers": len(crowd.acknowledged),
        "answers_per_second": round(len(full) / seconds, 1),
        "failed_5xx": sum(n for status, n in crowd.statuses.items() if status >= 500),
        "retries": crowd.retries,
        "queue_hits": round(1.0 - counts["without_model"] / max(1, counts["questions"]), 4),
        "open_at_two_people": round(watch.twice / max(1, watch.open), 4),
        "model_behind_events": state["model"]["behind"],
    }
    for what, times in (("empty", empty), *crowd.seconds.items()):
        p50, p99 = np.quantile(times, (0.5, 0.99))
        report[f"{what}_ms"] = {"p50": round(1e3 * p50, 1), "p99": round(1e3 * p99, 1)}
    click.echo(json.dumps(report, indent=2))


def wait_for_stock(store) -> None:
    """The model process has prepared its first questions."""
    for _ in range(300):
        made = store.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM question").scalar())
        if made:
            return
        time.sleep(0.1)
    sys.exit("the model process prepared nothing within 30 s")


class OpenPairs:
    """Looks now and then how many open questions are open at two people at once."""

    def __init__(self, store, config: Config) -> None:
        self.store, self.config = store, config
        self.open = self.twice = 0

    def look(self) -> None:
        """Count once. A repeat is wanted, so it does not count."""
        held = "state = 'open' AND kind <> 'repeat' AND leased_until > :now"
        query = sa.text(f"SELECT pair, count(*) AS n FROM question WHERE {held} GROUP BY pair")
        rows = self.store.read(lambda c: c.execute(query, {"now": time.time()}).all())
        self.open += sum(row.n for row in rows)
        self.twice += sum(row.n for row in rows if row.n > 1)


async def under_load(
    address: str, people: int, rate: float, seconds: float, watch: OpenPairs
) -> tuple[RobotCrowd, list[float]]:
    """Robots at a rate, and meanwhile a request to the empty route every 20 ms."""
    # what an answer takes comes on top of the pause before it
    pause = 0.95 * people / rate
    plan = RobotPlan(people, 10**6, pause=pause, ramp=RAMP, deadline=seconds + RAMP)
    task = asyncio.create_task(simulate(address, "bench", plan))
    empty: list[float] = []
    async with httpx.AsyncClient(base_url=address) as http:
        while not task.done():
            if len(empty) % 100 == 50:
                await asyncio.to_thread(watch.look)
            begun = time.perf_counter()
            await http.get("/static/icon.svg")
            empty.append(time.perf_counter() - begun)
            await asyncio.sleep(0.02)
    return await task, empty


@main.command()
@click.option("--items", default=30)
@click.option("--people", default=30)
@click.option("--answers", default=600)
@click.option("--runs", default=20)
def crowd(items: int, people: int, answers: int, runs: int) -> None:
    """Error after as many answers, asking many at once or one at a time.

    Truths are drawn from the model's own prior, so the posterior's variance is the expected
    squared error; beside it the error that was made, which has the same mean and more noise.
    """
    curves = np.empty((2, runs, 2, answers))
    twice = 0
    for seed in range(runs):
        truth = np.random.default_rng([seed, 1]).standard_normal(items)
        curves[0, seed], _ = run_study(truth, 1, answers, seed)
        curves[1, seed], pairs = run_study(truth, people, answers, seed)
        twice += pairs
    mean = curves.mean(axis=1)
    for target in (0.5, 0.35, 0.25, 0.15):
        for kind, name in enumerate(("expected", "made")):
            alone, together = (first_below(mean[how, kind], target) for how in (0, 1))
            ratio = f"{together / alone:.3f}" if together and alone else "not reached"
            click.echo(f"squared error {target}, {name}: {alone} and {together} answers: {ratio}")
    asked = runs * answers
    click.echo(f"same pair open at two people: {100 * twice / asked:.2f} % of {asked} questions")


def first_below(curve: np.ndarray, target: float) -> int:
    """After how many answers a curve is at its target for good; 0: never."""
    above = np.flatnonzero(curve > target)
    return 0 if len(above) and above[-1] == len(curve) - 1 else int(above[-1]) + 2


def run_study(truth, people: int, answers: int, seed: int) -> tuple[np.ndarray, int]:
    """(2, answers) the error expected and made after each answer, `people` questions open at any
    time; and how often a pair was open twice."""
    rng = np.random.default_rng([seed, 2])
    n = len(truth)
    names = [str(k) for k in range(n)]
    belief = Joint(np.zeros(n), np.eye(n), Probit())
    config = Config("Which?", tie=False)
    held: list[tuple[str, ...]] = []
    errors, twice = np.empty((2, answers)), 0
    for number in range(answers):
        while len(held) < people:
            (pick,) = best_questions(belief, names, config, 1, held, seed=number)
            twice += pair_key(pick) in {pair_key(other) for other in held}
            held.append(pick)
        # anybody may be the next to answer
        a, b = map(int, held.pop(int(rng.integers(len(held)))))
        won = rng.random() < ndtr(truth[a] - truth[b])
        belief = belief.answered(a, b, 1 if won else -1)
        off = belief.mean - truth
        errors[:, number] = (np.trace(belief.cov) - belief.cov.mean() * n) / n, off.var()
    return errors, twice


@main.command()
def first() -> None:
    """Seconds from a list of items to a vote that a browser was told is kept: two commands."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or "chromium"
    with (
        tempfile.TemporaryDirectory(prefix="penchant-") as scratch,
        sync_playwright() as driver,
        driver.chromium.launch(executable_path=path, args=["--no-sandbox"]) as browser,
    ):
        items = Path(scratch) / "items.csv"
        items.write_text("\n".join(["name", *(f"drink {k}" for k in range(20))]))
        penchant = [sys.executable, "-m", "penchant", "study"]
        begun = time.perf_counter()
        new = ["new", f"{scratch}/drinks", "--items", str(items), "--question", "Which?"]
        subprocess.run(penchant + new, check=True, capture_output=True)
        made = time.perf_counter()
        serve = [*penchant, "serve", f"{scratch}/drinks", "--port", "0"]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
            try:
                page = browser.new_page()
                page.goto(server.stdout.readline().split()[-1], timeout=60_000)
                served = time.perf_counter()
                page.click("button.primary")
                page.wait_for_selector("#vote:not(.waiting) ~ #keys:not(:empty)")
                with page.expect_response("**/answer") as reply:
                    page.keyboard.press("ArrowLeft")
                voted = time.perf_counter()
                if not reply.value.ok:
                    sys.exit(f"the vote was refused: {reply.value.text()}")
            finally:
                server.terminate()
    steps = {"new_s": made - begun, "serve_s": served - made, "vote_s": voted - served}
    steps["all_s"] = voted - begun
    click.echo(json.dumps({name: round(seconds, 2) for name, seconds in steps.items()}))


@main.command()
@click.option("--items", default=(20, 200, 1000), multiple=True)
@click.option("--model", default="shared")
def rounds(items: tuple[int, ...], model: str) -> None:
    """Processor seconds of one round of the model process, best of three."""
    for n in items:
        rng = np.random.default_rng(0)
        names = [f"item {k}" for k in range(n)]
        worth = rng.standard_normal(n)
        events = [Event(k, "add_item", payload={"item": name}) for k, name in enumerate(names)]
        for k in range(n, n + 20_060):
            a, b = (int(i) for i in rng.choice(n, 2, replace=False))
            better = int(worth[b] - worth[a] + rng.standard_normal() > 0)
            said = {"items": [names[a], names[b]], "order": [[better], [1 - better]]}
            said |= {"form": "pair", "kind": "normal"}
            events.append(Event(k, "answer", f"person {k % 200}", f"q{k}", said))
        learner = StudyLearner(Config("Which?", model=model), {name: {} for name in names})
        learner.advance(events[: n + 20_000])
        seconds: dict[str, list[float]] = {"told": [], "fitted": []}
        for start in (0, 20, 40):
            more = events[n + 20_000 + start :][:20]
            for how, layout in (("told", learner.layout), ("fitted", ())):
                again = replace(learner, record=deepcopy(learner.record), layout=layout)
                begun = time.process_time()
                again.advance(more)
                seconds[how].append(time.process_time() - begun)
            learner = again
        click.echo(f"{n} items: " + ", ".join(f"{k} {min(v):.3f} s" for k, v in seconds.items()))


if __name__ == "__main__":
    main()
