"""The web application of a study's folder."""

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

from fastapi import FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException

import penchant
from penchant.errors import DataError
from penchant.study.folder import NUMBERS, Folder
from penchant.study.items import find_media
from penchant.study.logs import Seldom
from penchant.study.refusals import STATUS, ParticipantRefusal, Refusal
from penchant.study.store import studies
from penchant.study.web import health, owner, pages, panels, participant, public
from penchant.study.web.metrics import Counts, Watch
from penchant.study.web.safety import SANDBOX_POLICY, Rate, Safety, shared_numbers
from penchant.study.web.site import Site, language, page, site_of

__all__ = ["Counts", "Rate", "create_app", "shared_numbers"]

RETRY_AFTER = {429: "5", 503: "1"}
"""Seconds, by status."""


def create_app(
    folder: Folder,
    now: Callable[[], float] = time.time,
    *,
    migrate: bool = True,
    metrics: int = 0,
    number: int = 0,
) -> FastAPI:
    """The application: `uvicorn` serves it, tests call it.

    metrics: how many web processes count for /metrics, 0 if it is off. number: which one this is.
    """
    database = folder.open(migrate=migrate)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        database.close()

    app = FastAPI(
        title="penchant study",
        version=penchant.__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.site = Site(folder, database, now)
    app.state.open_streams = 0
    counts = Counts(folder.path / NUMBERS, metrics, number) if metrics else Counts()
    app.state.counts = counts if metrics else None
    app.add_middleware(Safety)
    app.state.seldom = Seldom()
    app.add_middleware(Watch, counts=counts, database=database, seldom=app.state.seldom)
    app.include_router(panels.router)  # before the owner's pages by name
    for router in (participant.router, pages.router, pages.lists, owner.router, health.router):
        app.include_router(router)
    for router in (public.router, public.suggestions):
        app.include_router(router)
    app.get("/", include_in_schema=False)(_home)
    app.get("/media/page/{item}", include_in_schema=False)(_html_item)
    app.get("/media/{name}", include_in_schema=False)(_media)
    static = resources.files("penchant.study.web") / "static"
    app.mount("/static", StaticFiles(directory=str(static)))
    app.add_exception_handler(DataError, _explain)
    app.add_exception_handler(HTTPException, _no_page)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(OperationalError, _unavailable)
    app.add_exception_handler(OSError, _unavailable)
    return app


async def _home(request: Request) -> Response:
    """The folder's study."""
    return RedirectResponse(f"/s/{site_of(request).folder.study}", 303)


async def _media(name: str, request: Request) -> Response:
    path, kind = find_media(site_of(request).folder.media, name)
    headers = {"Cache-Control": "private, max-age=86400, immutable"}
    headers["Content-Security-Policy"] = SANDBOX_POLICY
    return FileResponse(path, media_type=kind, headers=headers)


async def _html_item(item: str, request: Request) -> Response:
    """The owner's HTML, for a sandboxed frame only."""
    rows = await site_of(request).read(studies.items_by_id, [item])
    if not rows or rows[0].media != "html":
        raise Refusal("unknown", "there is no such file")
    headers = {"Content-Security-Policy": SANDBOX_POLICY}
    request.state.frames = await site_of(request).frames(rows[0].study)
    return Response(rows[0].body, media_type="text/html; charset=utf-8", headers=headers)


async def _explain(request: Request, error: Any) -> Response:
    """A refusal: JSON for programs, a page in the browser's language for people."""
    refusal = error if isinstance(error, Refusal) else Refusal("bad", str(error))
    status = STATUS[refusal.code]
    headers = {"Retry-After": RETRY_AFTER[status]} if status in RETRY_AFTER else None
    if "text/html" in request.headers.get("accept", ""):
        words = language(request)
        study = request.path_params.get("study", "")
        return page("refusal", words, status, message=refusal.in_language(words), study=study)
    return JSONResponse({"error": refusal.code, "message": str(refusal)}, status, headers)


async def _no_page(request: Request, error: Any) -> Response:
    """Unknown addresses (404) and methods (405)."""
    if error.status_code == 404:
        return await _explain(request, ParticipantRefusal("unknown", "page"))
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)


async def _malformed(request: Request, error: Any) -> Response:
    """A malformed request: where and why. The values are left out, as JSON may not hold them."""
    found = [{name: fault[name] for name in ("loc", "msg", "type")} for fault in error.errors()]
    return JSONResponse({"detail": jsonable_encoder(found)}, 422)


async def _unavailable(request: Request, error: Any) -> Response:
    """The database or the disk is not available: 503, and a retry loses nothing."""
    # messages of errors may hold what was sent
    why = error.strerror if isinstance(error, OSError) else type(error.orig).__name__
    request.app.state.seldom.tell("unavailable", "unavailable: {why}", logging.ERROR, why=why)
    return await _explain(request, ParticipantRefusal("unavailable", "away"))
