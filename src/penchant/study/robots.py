"""Simulated participants with known utilities, who answer over HTTP."""

import asyncio
import hashlib
import math
import random
import ssl
import time
from collections import Counter
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import httpx

NORMAL = NormalDist()


@dataclass(frozen=True)
class RobotTaste:
    """A robot's utilities: a draw that all robots share, plus a draw of its own."""

    seed: int = 0
    person: int = 0
    disagreement: float = 0.3
    spread: float = 1.5

    def utility(self, content: str) -> float:
        """The utility of an item, by its visible content."""
        own = _draw(f"{self.seed}|{self.person}|{content}")
        return self.spread * _draw(f"{self.seed}|{content}") + self.disagreement * own


def shown_content(option: dict[str, str]) -> str:
    """What a participant sees of an option: its text, its HTML, or the address of its file."""
    return option.get("text") or option.get("html") or option.get("url", "")


def _draw(text: str) -> float:
    """A standard normal number that belongs to a text."""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")
    return NORMAL.inv_cdf((number + 0.5) / 2**56)


@dataclass
class RobotCrowd:
    """The results: acknowledged answers by question, seconds of requests, statuses, retries.

    ends: the time at which they stop, by the monotonic clock; may be changed while they answer.
    """

    acknowledged: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)
    retries: int = 0
    ends: float = math.inf


@dataclass(frozen=True)
class RobotPlan:
    """How a crowd behaves.

    pause: mean seconds between a person's answers. ramp: seconds within which all join. patience:
    tries of one request while the server is away, a tenth of a second to two seconds apart.
    """

    people: int = 50
    answers: int = 40
    pause: float = 0.0
    ramp: float = 2.0
    seed: int = 0
    skip: float = 0.02
    undo: float = 0.02
    deadline: float = 600.0
    patience: int = 12


async def simulate(
    address: str, study: str, plan: RobotPlan, crowd: RobotCrowd | None = None
) -> RobotCrowd:
    """Let people join one after another within `ramp` seconds and answer."""
    crowd = crowd or RobotCrowd()
    crowd.ends = time.monotonic() + plan.deadline
    # one client each: a pool of hundreds of connections is searched with every request
    trust = ssl.create_default_context()
    settings: dict[str, Any] = {"headers": {"Origin": address.rstrip("/")}, "timeout": 20.0}
    clients = [
        httpx.AsyncClient(base_url=address, verify=trust, **settings) for _ in range(plan.people)
    ]
    try:
        robots = [Robot(http, study, plan, k, crowd) for k, http in enumerate(clients)]
        await asyncio.gather(*(robot.take_part() for robot in robots))
    finally:
        await asyncio.gather(*(http.aclose() for http in clients))
    return crowd


class Robot:
    """One simulated participant."""

    def __init__(
        self, http: httpx.AsyncClient, study: str, plan: RobotPlan, number: int, crowd: RobotCrowd
    ) -> None:
        self.http, self.base, self.plan, self.crowd = http, f"/s/{study}", plan, crowd
        self.delay = plan.ramp * number / max(1, plan.people)
        self.rng = random.Random(plan.seed * 100_003 + number)
        self.taste = RobotTaste(plan.seed, number)
        self.cookie = ""

    async def take_part(self) -> None:
        """Join, answer until done, leave."""
        await asyncio.sleep(self.delay)
        reply = await self._call("join", "POST", "/join", data={"consent": "yes"})
        self.cookie = reply.headers.get("set-cookie", "").split(";")[0]
        given = 0
        while given < self.plan.answers and time.monotonic() < self.crowd.ends:
            turn = (await self._call("next", "GET", "/next?n=2")).json()
            if not turn.get("questions"):
                return
            given += await self._answer(turn["questions"][0])
            if turn["undo"] and self.rng.random() < self.plan.undo:
                await self._take_back(turn["undo"])
            if self.plan.pause:
                await asyncio.sleep(self.plan.pause * (0.5 + self.rng.random()))

    async def _answer(self, question: dict[str, Any]) -> bool:
        order = None if self.rng.random() < self.plan.skip else self.order(question)
        body = {"question": question["id"], "order": order, "ms": self.rng.randrange(500, 4000)}
        reply = await self._call("answer", "POST", "/answer", json=body)
        if reply.status_code == 200:
            self.crowd.acknowledged[question["id"]] = reply.json()["seq"]
        return order is not None

    async def _take_back(self, question: str) -> None:
        reply = await self._call("undo", "POST", "/undo", json={"question": question})
        if reply.status_code == 200:
            self.crowd.acknowledged.pop(question, None)

    def order(self, question: dict[str, Any]) -> list[list[int]]:
        """This robot's answer: by utilities with noise, so that a choice of two is probit."""
        felt = [
            self.taste.utility(shown_content(option)) + self.rng.gauss(0.0, math.sqrt(0.5))
            for option in question["options"]
        ]
        places = sorted(range(len(felt)), key=felt.__getitem__, reverse=True)
        if question["form"] == "rank":
            return [[place] for place in places]
        return [[places[0]], sorted(places[1:])]

    async def _call(self, what: str, method: str, path: str, **body: Any) -> httpx.Response:
        """Send a request, again while the server is away; every request may be repeated."""
        headers = {"Cookie": self.cookie} if self.cookie else {}
        for attempt in range(self.plan.patience):
            begun = time.perf_counter()
            try:
                reply = await self.http.request(method, self.base + path, headers=headers, **body)
            except httpx.TransportError:
                reply = None
            if reply is not None and reply.status_code not in (429, 503):
                took = time.perf_counter() - begun
                self.crowd.seconds.setdefault(what, []).append(took)
                self.crowd.statuses[reply.status_code] += 1
                return reply
            self.crowd.retries += 1
            await asyncio.sleep(min(2.0, 0.1 * 1.7**attempt))
        tries = f"after {self.plan.patience} tries"
        raise httpx.ConnectError(f"no answer from {self.http.base_url} {tries}")
