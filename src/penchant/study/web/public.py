"""Pages beside the questions: public results, and suggestions of items. Both are off by default."""

import time
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, Field, FiniteFloat
from sqlalchemy import Connection

from penchant.study.events import ANSWER
from penchant.study.refusals import ParticipantRefusal
from penchant.study.store import learning, studies
from penchant.study.store import suggestions as jobs
from penchant.study.store import tables as t
from penchant.study.store.studies import NewItem
from penchant.study.web.owner import Id, Owned
from penchant.study.web.participant import StudyName
from penchant.study.web.site import form_of, language, page, site_of

FEWEST_PEOPLE = 5
"""Who knows all answers but one could read that one off the ranking: so few people are too few."""
ROWS = 100
"""Items of a page of results."""
FRESH_SECONDS = 3.0
"""A page that many look at reads the database once in so long."""

router = APIRouter(tags=["public"])


@router.get("/r/{study}", response_class=HTMLResponse)
async def results(
    study: StudyName, request: Request, n: Annotated[int, Query(ge=1, le=10_000)] = 1
) -> Response:
    """The ranking with intervals, page n of it, and how many answers there are."""
    site = site_of(request)
    known = request.app.state.__dict__.setdefault("results", {})
    read_at, content = known.get(study, (-FRESH_SECONDS, None))
    if time.monotonic() > read_at + FRESH_SECONDS:
        content = await site.read(_results, study)
        known[study] = (time.monotonic(), content)
    words = language(request, content["config"].language)
    rows = content["rows"][ROWS * (n - 1) : ROWS * n]
    if n > 1 and not rows:
        raise ParticipantRefusal("unknown", "page")
    more = len(content["rows"]) > ROWS * n
    given = {**content, "rows": rows, "number": n, "more": more, "fewest": FEWEST_PEOPLE}
    return page("results", words, study=study, **given)


def _results(conn: Connection, study: str) -> dict[str, Any]:
    it = studies.get(conn, study)
    if not it.config.public_results:
        raise ParticipantRefusal("unknown", "page")
    e = t.event.c
    people = sa.select(sa.func.count(e.participant.distinct()))
    n_people = conn.execute(people.where(e.study == study, e.live, e.kind == ANSWER)).scalar_one()
    known = learning.last_summary(conn, study) or {}
    shown = known.get("ranking", []) if n_people >= FEWEST_PEOPLE else []
    items = {row.id: row for row in studies.items_of(conn, study) if row.active}
    rows = [row for row in shown if row["item"] in items]
    low, high = (pick([row[k] for row in rows], default=0.0) for k, pick in LIMITS)
    wide = (high - low) or 1.0
    has_places = len(rows) == len(shown)  # places count retired items too
    return {
        "config": it.config,
        "n_answers": known.get("answers", 0),
        "rows": [
            {
                "rank": rank,
                "name": items[row["item"]].name,
                "picture": _picture(items[row["item"]]),
                "places": (row["rank_low"], row["rank_high"]) if has_places else None,
                # positions on an axis of 0 to 100
                **{k: round(100 * (row[k] - low) / wide, 1) for k in ("low", "utility", "high")},
            }
            for rank, row in enumerate(rows, start=1)
        ],
    }


LIMITS = (("low", min), ("high", max))


def _picture(item: Any) -> str | None:
    return f"/media/{item.body}" if item.media == "image" else None


@router.get("/s/{study}/suggest", response_class=HTMLResponse)
async def suggest_page(study: StudyName, request: Request) -> Response:
    """A form for one suggestion."""
    return await _suggest_page(study, request)


@router.post("/s/{study}/suggest", response_class=HTMLResponse)
async def suggest(study: StudyName, request: Request) -> Response:
    """Suggest an item by a text; only the owner sees it."""
    site = site_of(request)
    person = site.participant(request, study)
    site.answers.check(person)
    text = (await form_of(request)).get("text", "")
    await site.write(jobs.suggest, study, person, text, site.now())
    return await _suggest_page(study, request, sent=True)


async def _suggest_page(study: str, request: Request, sent: bool = False) -> Response:
    site = site_of(request)
    it = await site.read(studies.get, study)
    if not it.config.suggestions:
        raise ParticipantRefusal("unknown", "page")
    site.participant(request, study)
    words, given = language(request, it.config.language), {"sent": sent, "longest": jobs.LONGEST}
    return page("suggest", words, study=study, config=it.config, **given)


suggestions = APIRouter(prefix="/api/studies/{study}/suggestions", tags=["owner"])


class Decision(BaseModel):
    """About a suggestion. name, features: of the item, where it is added."""

    add: bool
    name: str = Field("", max_length=500)
    features: dict[str, FiniteFloat] = Field(default_factory=dict, max_length=1000)


@suggestions.get("")
async def list_suggestions(study: StudyName, site: Owned) -> list[dict[str, Any]]:
    """The suggestions that wait for a decision, and how many people made each."""
    return await site.read(jobs.waiting, study)


@suggestions.post("/{suggestion}")
async def decide(
    study: StudyName, suggestion: Id, decision: Decision, site: Owned
) -> dict[str, str | None]:
    """Add a suggestion as an item, or decline it; the same text from others goes with it."""
    item = NewItem(decision.name, features=decision.features) if decision.add else None
    return {"item": await site.write(jobs.decide, study, suggestion, item, site.now())}
