"""Security of the web application: headers, origins, sizes, rate limits."""

import hashlib
import logging
import mmap
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penchant.study.items import LARGEST_FILE
from penchant.study.refusals import STATUS, ParticipantRefusal, Refusal

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
SANDBOX_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
)
"""For HTML that an owner wrote: no script, no forms, no other address, an origin of its own."""

SMALL_BODY = 64_000
LARGE_BODY = LARGEST_FILE + 1_000_000
WRITES = ("POST", "PUT", "PATCH", "DELETE")


class Safety:
    """Middleware: strict headers on every reply, limits and origin checks on every write."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        trusted = scope["scheme"] == "https" or _is_local(headers.get("host", ""))

        body = _Body(receive)

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                frames = await _framed_by(scope)
                _harden(MutableHeaders(scope=message), trusted, scope["path"], frames)
                if frames and trusted:
                    message["headers"] = [_in_frames(*header) for header in message["headers"]]
                message["status"] = 413 if body.is_too_large else message["status"]
            await send(message)

        refusal = None
        if scope["method"] in WRITES:
            refusal = why_not(headers)
            largest = LARGE_BODY if scope["path"].startswith("/api/") else SMALL_BODY
            announced = headers.get("content-length") or "0"
            if not announced.isdigit() or int(announced) > largest:
                refusal = too_large(largest)
            body.largest = largest
        if refusal is not None:
            status = STATUS[refusal.code]
            reply = JSONResponse({"error": refusal.code, "message": str(refusal)}, status)
            await reply(scope, receive, send_safely)
            return
        await self.app(scope, body.receive, send_safely)


def too_large(largest: int) -> Refusal:
    """The refusal of a body of more than `largest` bytes."""
    return Refusal("too_large", f"at most {largest / 1e6:.3g} MB can be sent here")


def why_not(headers: Headers) -> Refusal | None:
    """The refusal of a write that comes from another site by its headers; None if it is allowed.

    A request with a token needs no origin: only cookies are sent by other sites' pages.
    """
    if headers.get("authorization", "").lower().startswith("bearer "):
        return None
    wrong = ParticipantRefusal("forbidden", "elsewhere")
    site = headers.get("sec-fetch-site")
    if site is not None:
        return None if site in ("same-origin", "none") else wrong
    origin = headers.get("origin")
    return None if origin and urlsplit(origin).netloc == headers.get("host") else wrong


def _is_local(host: str) -> bool:
    return urlsplit(f"//{host}").hostname in ("127.0.0.1", "localhost", "::1")


async def _framed_by(scope: Scope) -> Sequence[str]:
    """Origins that may show this page in a frame: participants' pages only, and HTML in them."""
    _, kind, study, *_ = f"{scope['path']}//".split("/")
    if kind == "s":
        return await scope["app"].state.site.frames(study)
    return scope.get("state", {}).get("frames", ())


def _in_frames(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """A header of a page in another site's frame, where browsers send only such cookies.

    They are apart for each site that shows the frame; writes are checked by `why_not` as ever.
    """
    if name == b"set-cookie" and b"SameSite=lax" in value:
        value = value.replace(b"; Secure", b"").replace(b"SameSite=lax", b"SameSite=none")
        value += b"; Secure; Partitioned"
    return name, value


def _harden(headers: MutableHeaders, trusted: bool, path: str, frames: Sequence[str] = ()) -> None:
    policy = headers.get("Content-Security-Policy", CONTENT_POLICY)
    for alone, also in (("'none'", ""), ("'self'", "'self' ")) if frames else ():
        listed = f"frame-ancestors {also}{' '.join(frames)}"
        policy = policy.replace(f"frame-ancestors {alone}", listed)
    headers["Content-Security-Policy"] = policy
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Cross-Origin-Opener-Policy"] = "same-origin"
    headers["Cross-Origin-Resource-Policy"] = "same-origin"
    headers["Permissions-Policy"] = "camera=(), microphone=(), geolocation=()"
    # over plain HTTP browsers send no Sec-Fetch-Site, and "no-referrer" would blank the Origin
    # of forms, which is then all that there is to check
    headers["Referrer-Policy"] = "no-referrer" if trusted else "same-origin"
    if not path.startswith(("/static/", "/media/")):
        headers.setdefault("Cache-Control", "no-store")


class _Body:
    """Counts the bytes of a body: Content-Length may be wrong or missing."""

    def __init__(self, receive: Receive, largest: int = SMALL_BODY) -> None:
        self._receive, self.largest = receive, largest
        self.seen, self.is_too_large = 0, False

    async def receive(self) -> Message:
        message = await self._receive()
        self.seen += len(message.get("body", b""))
        if self.seen > self.largest:
            self.is_too_large = True
            raise too_large(self.largest)
        return message


SLOTS = 1 << 15
"""Buckets of a limit. Two people in one bucket share its limit, which is far above normal use."""

SLOT_BYTES = 16
log = logging.getLogger("penchant.study")


class Rate:
    """A rate limit: `burst` at once, then `per_second`, for each person or address.

    numbers: (2 SLOTS,) the level of each leaky bucket, and its time; all zero at first. Two
    processes that count at the same instant may miss one: a limit need not be exact.

    >>> rate = Rate(burst=2, per_second=0.1, clock=lambda: 100.0)
    >>> [rate.allows("ann"), rate.allows("ann"), rate.allows("ann"), rate.allows("bob")]
    [True, True, False, True]
    """

    def __init__(
        self,
        burst: float,
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
        numbers: memoryview | None = None,
        key: bytes = b"",
    ) -> None:
        self.burst, self.per_second, self.clock, self.key = burst, per_second, clock, key
        if numbers is None:
            numbers = memoryview(bytearray(SLOTS * SLOT_BYTES))
        self.numbers: memoryview[float] = numbers.cast("d")

    def allows(self, who: str) -> bool:
        """Whether one more is allowed; counts it if so."""
        slot, now = self._slot(who), self.clock()
        used, at = self.numbers[slot], self.numbers[slot + 1]
        # a later time was counted before the machine restarted
        used = 0.0 if at > now else max(0.0, used - (now - at) * self.per_second)
        allowed = used + 1.0 <= self.burst
        self.numbers[slot], self.numbers[slot + 1] = used + allowed, now
        return allowed

    def check(self, who: str) -> None:
        """Count one more, or refuse it."""
        if not self.allows(who):
            raise ParticipantRefusal("busy", "too_often")

    def _slot(self, who: str) -> int:
        """The bucket of a name by a keyed hash: nobody can choose to share another's bucket."""
        digest = hashlib.blake2b(who.encode(), digest_size=8, key=self.key).digest()
        return 2 * (int.from_bytes(digest, "big") % SLOTS)


def shared_numbers(path: Path, n: int, size: int = SLOTS * SLOT_BYTES) -> list[memoryview]:
    """The numbers of n limits, in a file that all web processes map; it holds no names.

    Disk space is allocated at once: writing into a hole of a mapped file on a full disk kills the
    process. Without space each process counts for itself.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(descriptor, n * size)
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, n * size)
            whole = memoryview(mmap.mmap(descriptor, n * size))
        finally:
            os.close(descriptor)
    except OSError as error:
        log.warning("%s are counted apart by each web process: %s", path.name, error.strerror)
        whole = memoryview(bytearray(n * size))
    return [whole[k * size : (k + 1) * size] for k in range(n)]
