"""The owner's pages, and what they read: one live stream, and lists a page at a time."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, responses

from penchant.study.refusals import Refusal, strings
from penchant.study.store import reports, studies
from penchant.study.web.forms import settings_form
from penchant.study.web.owner import Owned
from penchant.study.web.participant import StudyName
from penchant.study.web.site import form_of, language, page, site_of

PAGES = ("overview", "items", "people", "questions", "settings", "data")
"""Templates `owner_{name}.html`; the first is at /o/{study}."""
LANGUAGES = ("en", "de")
LIVE_SECONDS = 0.7
"""Between two looks for changes: as often as the model process writes snapshots."""
MOST_STREAMS = 50
"""Open pages of one process: each reads the database every LIVE_SECONDS."""

router = APIRouter(tags=["owner"])
lists = APIRouter(prefix="/api/studies/{study}", tags=["owner"])
Words = Annotated[str, Query(max_length=200)]
PageNumber = Annotated[int, Query(ge=1, le=1_000_000)]


@router.get("/o/{study}", response_class=responses.HTMLResponse)
async def first_page(study: StudyName, request: Request) -> responses.Response:
    """The overview, or with a link's key the sign-in page; a GET changes nothing."""
    site = site_of(request)
    key = request.query_params.get("key", "")[:200]
    if key:
        it = await site.read(studies.get, study)
        return page("login", language(request, it.config.language), study=study, key=key)
    return await owner_page(study, PAGES[0], request)


def _further_page(name: str) -> Callable[..., Any]:
    async def show(study: StudyName, request: Request) -> responses.Response:
        return await owner_page(study, name, request)

    return show


for _name in PAGES[1:]:
    options: dict[str, Any] = {"response_class": responses.HTMLResponse, "name": _name}
    router.get(f"/o/{{study}}/{_name}", **options)(_further_page(_name))


async def owner_page(study: str, name: str, request: Request) -> responses.Response:
    """One of the owner's pages."""
    site = site_of(request)
    it = await site.read(studies.get, study)
    await site.require_owner(request, study)
    spoken = language(request)
    spoken = spoken if spoken in LANGUAGES else LANGUAGES[0]
    words = strings(f"owner.{spoken}")
    content: dict[str, Any] = {}
    if name == "items":
        content["features"] = await site.read(reports.feature_names, study)
    if name in ("questions", "settings"):
        groups = settings_form(it.config, words)
        some = [group for group in groups if group["name"] in ("question", "quality")]
        content["groups"] = some if name == "questions" else groups
    return page(
        f"owner_{name}",
        spoken,
        study=study,
        config=it.config,
        here=name,
        pages=PAGES,
        o=words,
        # the words of settings are in the forms already
        words={key: text for key, text in words.items() if not key.startswith("set_")},
        asked=request.query_params.get("lang"),
        languages=LANGUAGES,
        **content,
    )


@router.post("/o/{study}/login")
async def login(study: StudyName, request: Request) -> responses.Response:
    """Exchange the key of a link for a cookie."""
    site = site_of(request)
    key = (await form_of(request)).get("key", "")[:200]
    async with site.guessing(request):
        invite = await site.read(studies.find_invite, study, key, "owner", site.now())
    response = responses.RedirectResponse(f"/o/{study}", 303)
    site.give_cookie(request, response, "owner", study, {"id": invite.id})
    return response


@lists.get("/ranking")
async def list_ranking(
    study: StudyName, site: Owned, q: Words = "", page: PageNumber = 1
) -> responses.JSONResponse:
    """A page of the items whose names contain q, by rank."""
    return responses.JSONResponse(await site.read(reports.ranking, study, q, page))


@lists.get("/people")
async def list_people(
    study: StudyName, site: Owned, q: Words = "", page: PageNumber = 1
) -> responses.JSONResponse:
    """A page of the people whose ids begin with q, those to look at more closely first."""
    return responses.JSONResponse(await site.read(reports.people, study, site.now(), q, page))


@lists.get("/questions")
async def count_questions(study: StudyName, site: Owned) -> responses.JSONResponse:
    """Questions by kind, and how long answers took."""
    return responses.JSONResponse(await site.read(reports.questions, study))


@lists.get("/live", response_class=responses.StreamingResponse)
async def live(study: StudyName, request: Request, site: Owned) -> responses.StreamingResponse:
    """Server-sent events: an overview with the first ten items, whenever it has changed."""
    streams = request.app.state
    if streams.open_streams >= MOST_STREAMS:
        raise Refusal("busy", "too many pages watch this study: close some")

    async def changes() -> AsyncIterator[str]:
        streams.open_streams += 1
        try:
            last: Any = None
            while not await request.is_disconnected():
                seen = await site.read(reports.version, study)
                if seen != last:
                    last = seen
                    state = await site.read(reports.live, study, site.now())
                    yield f"data: {json.dumps(state)}\n\n"
                else:
                    yield ": still here\n\n"
                await asyncio.sleep(LIVE_SECONDS)
        finally:
            streams.open_streams -= 1

    return responses.StreamingResponse(
        changes(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )
