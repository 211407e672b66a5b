"""Counts of requests, for /metrics and the log.

Each web process counts in a part of its own of a file that all of them map, so that any of them can
add up all parts, and a process that is started again goes on counting.
"""

import logging
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penchant.study.logs import Seldom
from penchant.study.store import Database
from penchant.study.web.safety import WRITES, shared_numbers

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds of the histogram, in seconds."""
METHODS = ("GET", "HEAD", "OPTIONS", *WRITES)
NOT_ROUTED = "(no route)"
"""The template of requests that no route took, or that were refused before."""
LABEL, N_NUMBERS = 96, len(BOUNDS) + 2
RECORD = LABEL + 8 * N_NUMBERS
RECORDS = 400
"""Combinations of method, template and status that a process counts; the rest share one."""
GAUGES = 16
"""Bytes at the start: open streams, and jobs that wait for the writer."""
PART = GAUGES + RECORDS * RECORD

STREAM = "text/event-stream"
SLOW_SECONDS = 1.0
"""A request is slow if its reply begins later."""
TOLD = "{method} {route} answered {status} after {seconds} s"


class Counts:
    """The counts of one process, and of all of them; without a path, of this one alone."""

    def __init__(self, path: Path | None = None, processes: int = 1, number: int = 0) -> None:
        parts = shared_numbers(path, processes, PART) if path else [memoryview(bytearray(PART))]
        self.parts, self.mine = parts, parts[number]
        self.gauges: memoryview[float] = self.mine[:GAUGES].cast("d")
        self.gauges[0] = self.gauges[1] = 0.0
        self.records = dict(_records(self.mine))

    def add(self, method: str, template: str, status: int, seconds: float) -> None:
        """Count one request."""
        label = f"{method if method in METHODS else 'other'} {status} {template}"[:LABEL]
        if label not in self.records:
            label = label if len(self.records) < RECORDS - 1 else f"other {status} {NOT_ROUTED}"
            at = GAUGES + len(self.records) * RECORD
            if label not in self.records and at < PART:
                self.records[label] = self.mine[at + LABEL : at + RECORD].cast("d")
                raw = label.encode().ljust(LABEL, b"\0")
                # the first byte last: another process may read it now
                self.mine[at + 1 : at + LABEL] = raw[1:LABEL]
                self.mine[at] = raw[0]
        numbers = self.records.get(label)
        if numbers is not None:
            numbers[bisect_left(BOUNDS, seconds)] += 1.0
            numbers[-1] += seconds

    def lines(self) -> Iterable[str]:
        """All counts in Prometheus' text format."""
        requests = defaultdict[tuple[str, str, str], float](float)
        times = defaultdict[tuple[str, str], list[float]](lambda: [0.0] * N_NUMBERS)
        for part in self.parts:
            for label, numbers in _records(part):
                method, status, template = label.split(" ", 2)
                requests[method, template, status] += sum(numbers[:-1])
                known = times[method, template]
                known[:] = [a + b for a, b in zip(known, numbers, strict=True)]
        yield from _head("penchant_requests_total", "counter", "Requests by route and status.")
        for (method, route, status), n in sorted(requests.items()):
            labels = {"method": method, "route": route, "status": status}
            yield _line("penchant_requests_total", n, labels)
        what = "Seconds until the reply began."
        yield from _head("penchant_request_seconds", "histogram", what)
        for (method, route), known in sorted(times.items()):
            here, n = {"method": method, "route": route}, 0.0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), known, strict=False):
                n += count
                yield _line("penchant_request_seconds_bucket", n, here | {"le": bound})
            yield _line("penchant_request_seconds_sum", known[-1], here)
            yield _line("penchant_request_seconds_count", n, here)
        gauges = [sum(part[:GAUGES].cast("d")[k] for part in self.parts) for k in (0, 1)]
        yield from gauge("penchant_open_streams", gauges[0], "Open pages of the owner.")
        yield from gauge("penchant_writer_queue", gauges[1], "Writes that wait for the database.")


def _records(part: memoryview) -> Iterable[tuple[str, "memoryview[float]"]]:
    for at in range(GAUGES, PART, RECORD):
        label = bytes(part[at : at + LABEL]).rstrip(b"\0")
        if not label:
            return
        yield label.decode(errors="replace"), part[at + LABEL : at + RECORD].cast("d")


def gauge(name: str, value: float | None, what: str, **labels: str) -> Iterable[str]:
    """The lines of one number; none if it is not known."""
    if value is not None:
        yield from _head(name, "gauge", what)
        yield _line(name, value, labels)


def _head(name: str, kind: str, what: str) -> Iterable[str]:
    yield f"# HELP {name} {what}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, value: float, labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {float(value)!r}" if inside else f"{name} {float(value)!r}"


class Watch:
    """Middleware: counts every request; logs slow ones and refused writes."""

    def __init__(self, app: ASGIApp, counts: Counts, database: Database, seldom: Seldom) -> None:
        self.app, self.counts, self.database, self.seldom = app, counts, database, seldom

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = time.perf_counter()
        status, seconds, streams = 500, -1.0, 0

        async def send_watched(message: Message) -> None:
            nonlocal status, seconds, streams
            if message["type"] == "http.response.start":
                status, seconds = message["status"], time.perf_counter() - begun
                streams = _type(message).startswith(STREAM)
                self.counts.gauges[0] += streams
            await send(message)

        try:
            await self.app(scope, receive, send_watched)
        finally:
            took = seconds if seconds >= 0.0 else time.perf_counter() - begun
            method, template = scope["method"], _template(scope)
            self.counts.add(method, template, status, took)
            self.counts.gauges[0] -= streams
            self.counts.gauges[1] = self.database.waiting
            about = {"method": method if method in METHODS else "other", "route": template}
            about |= {"status": status, "seconds": round(took, 3)}
            if took >= SLOW_SECONDS:
                self.seldom.tell("slow_request", f"slow: {TOLD}", logging.WARNING, **about)
            if status >= 400 and method in WRITES:
                self.seldom.tell("write_refused", f"refused: {TOLD}", logging.WARNING, **about)


def _type(message: Message) -> str:
    return Headers(raw=message.get("headers", [])).get("content-type", "")


def _template(scope: Scope) -> str:
    if "route" in scope:
        return str(scope["route"].path)
    return "/static" if scope["path"].startswith("/static/") else NOT_ROUTED
