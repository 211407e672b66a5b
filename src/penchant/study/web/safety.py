"""What keeps a study safe on the web: headers, origins, sizes."""

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penchant.study.media import LARGEST_FILE
from penchant.study.refusals import ParticipantRefusal, Refusal

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
                _harden(MutableHeaders(scope=message), trusted, scope["path"])
                message["status"] = 413 if body.is_too_large else message["status"]
            await send(message)

        refusal = None
        if scope["method"] in WRITES:
            refusal = why_not(headers)
            largest = LARGE_BODY if scope["path"].startswith("/api/") else SMALL_BODY
            announced = headers.get("content-length") or "0"
            if not announced.isdigit() or int(announced) > largest:
                refusal = Refusal("too_large", f"at most {largest / 1e6:.3g} MB can be sent here")
            body.largest = largest
        if refusal is not None:
            status = 413 if refusal.code == "too_large" else 403
            reply = JSONResponse({"error": refusal.code, "message": str(refusal)}, status)
            await reply(scope, receive, send_safely)
            return
        await self.app(scope, body.receive, send_safely)


def why_not(headers: Headers) -> Refusal | None:
    """Why a write is not taken: another site sent it, as far as browsers tell.

    Programs that carry a token, not a cookie, need not say where they come from.
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


def _harden(headers: MutableHeaders, trusted: bool, path: str) -> None:
    headers.setdefault("Content-Security-Policy", CONTENT_POLICY)
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
    """Counts what arrives: a length that was announced may be a lie, or missing."""

    def __init__(self, receive: Receive, largest: int = SMALL_BODY) -> None:
        self._receive, self.largest = receive, largest
        self.seen, self.is_too_large = 0, False

    async def receive(self) -> Message:
        message = await self._receive()
        self.seen += len(message.get("body", b""))
        if self.seen > self.largest:
            self.is_too_large = True
            raise Refusal("too_large", f"at most {self.largest / 1e6:.3g} MB can be sent here")
        return message
