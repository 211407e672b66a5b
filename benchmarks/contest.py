"""Contestants against each other: the same task, in turns, each run in a process of its own."""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from peers import clean_reason, python_of

TIMEOUT = 300
ROUNDS = 3
PATIENCE = 20.0
"""What takes longer than so many seconds runs once: its spread is small against the ratio."""


@dataclass(frozen=True)
class Entry:
    """All runs of one contestant on one task, or why there are none.

    seconds: of each run, to fit and predict; predicted: by the first run.
    """

    name: str
    seconds: tuple[float, ...] = ()
    peak_mb: float = float("nan")
    predicted: dict[str, np.ndarray] | None = None
    failure: str = ""

    def time(self):
        """The median, with the range of several runs."""
        if self.failure:
            return self.failure
        middle = f"{np.median(self.seconds):.2f}"
        if len(self.seconds) == 1:
            return middle
        return f"{middle} ({min(self.seconds):.2f}–{max(self.seconds):.2f})"

    def times(self, ours):
        """How many times as long as `ours` it takes, with the range that the runs allow."""
        if ours is None or self.failure or ours.failure or self.name == ours.name:
            return ""
        middle = np.median(self.seconds) / np.median(ours.seconds)
        low, high = min(self.seconds) / max(ours.seconds), max(self.seconds) / min(ours.seconds)
        return f"{middle:.3g} ({low:.3g}–{high:.3g})"


def compete(family, names, task, rounds=ROUNDS):
    """Let the contestants of a family have a go at a task (arrays by name), several times round.

    Returns {name: Entry}.
    """
    entries = {name: Entry(name) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "task.npz")
        np.savez(file, **task)
        for _ in range(rounds):
            for name, so_far in entries.items():
                if not so_far.failure and max(so_far.seconds, default=0.0) < PATIENCE:
                    entries[name] = _join(so_far, _attempt(family, name, file))
    return entries


def _join(before, now):
    if now.failure or not before.seconds:
        return now
    return Entry(before.name, before.seconds + now.seconds, before.peak_mb, before.predicted)


def _attempt(family, name, task_file):
    """One run."""
    print(f"  {name}", file=sys.stderr)
    predicted_file = task_file.with_name("predicted.npz")
    script = Path(__file__).parent / "contestants"
    command = [python_of(name), str(script), family, name, str(task_file), str(predicted_file)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT, text=True)
    except subprocess.TimeoutExpired:
        return Entry(name, failure=f"over {TIMEOUT} s")
    except OSError:
        return Entry(name, failure="not installed")
    if done.returncode:
        missing = "ModuleNotFoundError" in done.stderr
        reason = "not installed" if missing else f"failed: {clean_reason(done.stderr)}"
        return Entry(name, failure=reason)
    measured = json.loads(done.stdout.splitlines()[-1])
    with np.load(predicted_file) as archive:
        predicted = dict(archive)
    return Entry(name, (measured["fit"] + measured["predict"],), measured["peak_mb"], predicted)


def table(head, rows):
    """Lines of a Markdown table."""
    line = "| {} |".format
    return [line(" | ".join(head)), "|---" * len(head) + "|", *(line(" | ".join(r)) for r in rows)]


def error_rate(log_prob):
    """Share of answers thought unlikely; an even chance is half an error."""
    even = np.log(0.5)
    return float(np.mean(log_prob < even) + 0.5 * np.mean(log_prob == even))
