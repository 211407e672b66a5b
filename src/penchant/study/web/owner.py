"""The owner's page: signing in by a link, and the dashboard."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from sqlalchemy import Connection

from penchant.study.refusals import Refusal
from penchant.study.store import reports, studies
from penchant.study.web.pages import page
from penchant.study.web.participant import StudyName
from penchant.study.web.site import Site, language, site_of

router = APIRouter(tags=["owner"])

LIVE_SECONDS = 0.7
MOST_STREAMS = 50


@router.get("/o/{study}", response_class=HTMLResponse)
async def dashboard(study: StudyName, request: Request) -> Response:
    """The dashboard, or with a link's key the button that opens it: looking changes nothing."""
    site = site_of(request)
    it, items = await site.read(lambda c: (studies.get(c, study), studies.items_of(c, study)))
    key = request.query_params.get("key", "")[:200]
    if key:
        words = language(request, it.config.language)
        return page("login", words, study=study, key=key)
    await site.require_owner(request, study)
    features = sorted(items[0].features) if items else []
    return page("dashboard", "en", study=study, config=it.config, features=features)


@router.post("/o/{study}/login")
async def login(study: StudyName, request: Request) -> Response:
    """Exchange the key of a link for a cookie."""
    site = site_of(request)
    form = await request.form()
    key, now = str(form.get("key") or "")[:200], site.now()
    async with site.guessing(request):
        invite = await site.read(lambda c: studies.find_invite(c, study, key, "owner", now))
    response = RedirectResponse(f"/o/{study}", 303)
    site.give_cookie(request, response, "owner", study, {"id": invite.id})
    return response


@router.get("/api/studies/{study}/live", response_class=StreamingResponse)
async def live(study: StudyName, request: Request) -> StreamingResponse:
    """Server-sent events: the state of the study whenever it changed."""
    site = site_of(request)
    await site.require_owner(request, study)
    streams = request.app.state
    if streams.open_streams >= MOST_STREAMS:
        raise Refusal("busy", "too many pages watch this study: close some")

    async def changes() -> AsyncIterator[str]:
        streams.open_streams += 1
        try:
            last: Any = None
            while not await request.is_disconnected():
                seen = await site.read(lambda c: reports.version(c, study))
                if seen != last:
                    last = seen
                    state = await overview(site, study)
                    yield f"data: {json.dumps(state)}\n\n"
                else:
                    yield ": still here\n\n"
                await asyncio.sleep(LIVE_SECONDS)
        finally:
            streams.open_streams -= 1

    return StreamingResponse(
        changes(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )


async def overview(site: Site, study: str) -> dict[str, Any]:
    """Everything that the dashboard shows."""
    now = site.now()

    def job(conn: Connection) -> dict[str, Any]:
        return reports.overview(conn, study, now)

    return await site.read(job)
