"""The state and tools that routes share: database, cookies, rate limits, pages, languages."""

import asyncio
import logging
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import nh3
from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from itsdangerous import BadSignature, URLSafeTimedSerializer
from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from sqlalchemy.exc import OperationalError

from penchant.study.config import FOLLOW_BROWSER
from penchant.study.folder import SETTINGS, Folder, keeps_ending
from penchant.study.refusals import ENGLISH, ParticipantRefusal, Refusal, languages, strings
from penchant.study.store import Database, participants, studies
from penchant.study.store.database import Job, P, T
from penchant.study.web.safety import Rate, shared_numbers

SESSION_SECONDS = 90 * 86_400
MOST_SECONDS = 10.0
"""A write that takes longer counts as one that fails."""
LEAST_ROOM = 4_000_000
"""Free bytes below which the disk counts as full: small writes may still succeed."""
log = logging.getLogger("penchant.study")


@dataclass
class Site:
    """One web process of a study."""

    folder: Folder
    database: Database
    now: Callable[[], float] = time.time
    shown: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._looked, self._problems = -1.0, list[str]()
        key = self.folder.secret.encode()[:64]
        self._frames = dict[str, tuple[float, tuple[str, ...]]]()
        shared = shared_numbers(self.folder.path / "limits", 6)

        def rate(burst: float, per_second: float) -> Rate:
            return Rate(burst, per_second, numbers=shared.pop(), key=key)

        # a class behind one address joins within a minute; a person answers a few times a second
        self.joins, self.answers = rate(300, 5.0), rate(60, 10.0)
        self.wrong_tokens, self.owners = rate(20, 0.1), rate(200, 20.0)
        # the model refits after each; a class may leave together
        self.erasures = rate(80, 1 / 30)
        # guarded joins from one address; beyond them, browsers compute
        self.crowds = rate(90, 1.0)

    def problems(self) -> list[str]:
        """What is wrong with this server; empty if nothing is."""
        found = keeps_ending(self.folder.path)
        if not (self.folder.path / SETTINGS).is_file():
            found.append("the folder of the study is gone")
        return found

    async def problems_of_writing(self) -> list[str]:
        """What keeps answers from being written; empty if nothing does. Cached for a second."""
        if time.monotonic() < self._looked + 1.0:
            return self._problems
        found = []
        with suppress(FileNotFoundError):
            if shutil.disk_usage(self.folder.path).free < LEAST_ROOM:
                found.append("the disk is full")
        try:
            await asyncio.wait_for(self.write(studies.rewrite), MOST_SECONDS)
        except (OperationalError, OSError, TimeoutError) as error:
            log.error("answers cannot be written: %s", type(error).__name__)
            found.append("answers cannot be written")
        self._looked, self._problems = time.monotonic(), found
        return found

    async def frames(self, study: str) -> tuple[str, ...]:
        """Origins that may show a study's pages in a frame. Cached for a second."""
        looked, found = self._frames.get(study, (-1.0, ()))
        if time.monotonic() > looked + 1.0:
            try:
                found = (await self.read(studies.get, study)).config.frame_ancestors
            except (Refusal, OperationalError):
                return found
            self._frames[study] = time.monotonic(), found
        return found

    async def write(self, job: Job[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Run a job in the writer thread and wait for its commit."""
        return await asyncio.wrap_future(self.database.submit(job, *args, **options))

    async def read(self, job: Job[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Run a job that changes nothing, in a thread."""
        return await asyncio.to_thread(lambda: self.database.read(job, *args, **options))

    async def erase(self, study: str, person: str) -> int:
        """Erase a person, also from the database's log; return how many events were removed."""
        n = await self.write(participants.erase, study, person, self.now())
        await asyncio.to_thread(self.database.scrub)
        return n

    def signer(self, role: str) -> URLSafeTimedSerializer:
        """Signs the cookies of a role."""
        return URLSafeTimedSerializer(self.folder.secret, salt=f"penchant-study-{role}")

    def give_cookie(
        self, request: Request, response: Response, role: str, study: str, content: Any
    ) -> None:
        """Set the signed cookie of a participant or owner: HttpOnly, SameSite=Lax."""
        response.set_cookie(
            f"{role}_{study}",
            self.signer(role).dumps({"study": study, **content}),
            max_age=SESSION_SECONDS,
            path=f"/s/{study}" if role == "participant" else "/",
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )

    def cookie(self, request: Request, role: str, study: str) -> dict[str, Any] | None:
        """The content of a cookie with a valid signature for this study, or None."""
        raw = request.cookies.get(f"{role}_{study}")
        if raw is None:
            return None
        try:
            content, signed = self.signer(role).loads(raw, return_timestamp=True)
        except BadSignature:
            return None
        # a clock may step back: a cookie from the future counts as new
        if self.now() - signed.timestamp() > SESSION_SECONDS or content.get("study") != study:
            return None
        return content

    def participant(self, request: Request, study: str) -> str:
        """The id of the participant who sent the request."""
        content = self.cookie(request, "participant", study)
        if content is None:
            raise ParticipantRefusal("forbidden", "stranger")
        return str(content["id"])

    async def require_owner(self, request: Request, study: str) -> None:
        """Refuse requests without an owner's token or a cookie of a valid owner's invite.

        Wrong tokens from the same address do not lock the owner out.
        """
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        now = self.now()
        invite = None
        if kind.lower() == "bearer":
            async with self.guessing(request):
                invite = await self.read(studies.find_invite, study, token, "owner", now)
        elif (content := self.cookie(request, "owner", study)) is not None:
            invite = await self.read(studies.get_invite, study, content["id"], now)
        if invite is None:
            raise ParticipantRefusal("forbidden", "owner_only")
        self.owners.check(invite.id)

    @asynccontextmanager
    async def guessing(self, request: Request) -> AsyncIterator[None]:
        """Count wrong tokens per address and refuse further ones when there are too many.

        A right token is always accepted: it is too long to be guessed.
        """
        try:
            yield
        except Refusal as refusal:
            if refusal.code == "token" and not self.wrong_tokens.allows(address(request)):
                raise ParticipantRefusal("busy", "guesses") from None
            raise


def site_of(request: Request) -> Site:
    """The site that a request came to."""
    return request.app.state.site


def address(request: Request) -> str:
    """The client's address; forwarded headers count only from the proxies that `serve` names."""
    return request.client.host if request.client else "unknown"


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form, as text."""
    return {name: str(value) for name, value in (await request.form()).items()}


def language(request: Request, fixed: str = FOLLOW_BROWSER) -> str:
    """The language asked for, else the study's, else the first that a browser accepts."""
    wanted = request.query_params.get("lang") or request.cookies.get("lang") or ""
    accepted = request.headers.get("accept-language", "").split(",")
    asked = [wanted, fixed, *(part.split(";")[0] for part in accepted)]
    short = [name.strip().lower().split("-")[0] for name in asked]
    known = languages()
    return next((name for name in short if name in known), ENGLISH)


TAGS = {
    *("p", "br", "hr", "em", "strong", "code", "pre", "blockquote", "ul", "ol", "li"),
    *("h1", "h2", "h3", "h4", "table", "thead", "tbody", "tr", "th", "td"),
}
"""Allowed HTML tags of Markdown: no links and no images, which would contact other servers."""


@cache
def as_html(markdown: str) -> str:
    """Markdown as sanitised HTML.

    >>> as_html("**bold** <script>alert(1)</script>")
    '<p><strong>bold</strong> &lt;script&gt;alert(1)&lt;/script&gt;</p>'
    """
    raw = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    return nh3.clean(raw, tags=TAGS, attributes={}).strip()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("penchant.study.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["markdown"] = as_html
    return environment


def page(name: str, language: str, status: int = 200, **content: Any) -> HTMLResponse:
    """A page from its template."""
    template = _environment().get_template(f"{name}.html")
    return HTMLResponse(template.render(t=strings(language), language=language, **content), status)
