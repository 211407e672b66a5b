"""The routes of participants."""

from dataclasses import replace
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from penchant.study.config import LARGEST_SET, Config
from penchant.study.differences import marked_differences
from penchant.study.questions import CHECK
from penchant.study.refusals import ParticipantRefusal, Refusal, languages, strings
from penchant.study.store import participants, studies
from penchant.study.store.participants import Turn
from penchant.study.store.studies import RUNNING, Study
from penchant.study.store.tables import hash_external_id
from penchant.study.web import guard
from penchant.study.web.ask_first import panel_id, said_first
from penchant.study.web.site import Site, address, as_html, form_of, language, page, site_of

router = APIRouter(prefix="/s/{study}", tags=["participants"])

T = TypeVar("T", bound=Response)
StudyName = Annotated[str, Path(pattern="^[a-z0-9-]{1,40}$")]
QuestionId = Annotated[str, Field(min_length=1, max_length=64)]


class Reply(BaseModel):
    """An answer: positions on the screen in groups, best first; null for a skip."""

    question: QuestionId
    order: list[list[int]] | None = Field(None, max_length=8)
    ms: int | None = Field(None, ge=0, le=86_400_000)


class Which(BaseModel):
    """The question whose answer is withdrawn."""

    question: QuestionId


@router.get("", response_class=HTMLResponse)
async def welcome(study: StudyName, request: Request) -> Response:
    """The first page: welcome, consent, start. A GET changes nothing."""
    site = site_of(request)
    it = await site.read(studies.get, study)
    given = request.query_params
    panels = [given[name] for name in it.config.panel_parameters if given.get(name)]
    panel = panel_id(panels[0]) if panels else None
    here = site.cookie(request, "participant", study)
    # two people of a panel may share a browser
    if here is not None and panel in (None, here.get("panel")):
        return RedirectResponse(f"/s/{study}/vote", 303)
    words = language(request, it.config.language)
    if it.state != RUNNING:
        return page("message", words, heading=it.config.question, text=it.state)
    return page(
        "welcome",
        words,
        study=study,
        config=it.config,
        invite=request.query_params.get("invite", "")[:200],
        panel=panel or "",
        lang=request.query_params.get("lang", "")[:5],
        ask_first=it.config.ask_first,
        ticket=guard.ticket(site, study, it.config),
    )


@router.post("/join")
async def join(study: StudyName, request: Request) -> Response:
    """Exchange a link's token, a panel's id or nothing for a cookie."""
    site = site_of(request)
    site.joins.check(address(request))
    form = await form_of(request)
    config = (await site.read(studies.get, study)).config
    words = language(request, config.language)
    new = None
    if config.guard_joins:
        new, doubt = guard.admit(site, study, form, address(request))
        if doubt:
            return guard.once_more(site, study, config, form, words, doubt)
    token, external = form.get("invite") or None, panel_id(form.get("panel", ""))
    hashed = hash_external_id(external, study, site.folder.secret) if external else None
    who: dict[str, Any] = {"token": token, "external_id_hash": hashed, "new": new}
    who["said_first"], who["screened_out"] = said_first(config.ask_first, form)
    who["consent"] = form.get("consent") == "yes"
    who["known"] = (site.cookie(request, "participant", study) or {}).get("id")
    async with site.guessing(request):
        person = await site.write(participants.join, study, site.now(), **who)
    response = RedirectResponse(f"/s/{study}/vote", 303)
    site.give_cookie(request, response, "participant", study, {"id": person, "panel": external})
    if form.get("lang") in languages():
        response.set_cookie("lang", form["lang"], path=f"/s/{study}", samesite="lax")
    return response


@router.get("/vote", response_class=HTMLResponse)
async def vote_page(study: StudyName, request: Request) -> Response:
    """The page with a question; it works without scripts."""
    site = site_of(request)
    if site.cookie(request, "participant", study) is None:
        return RedirectResponse(f"/s/{study}", 303)
    try:
        it, turn = await _turn(site, request, study, 1)
    except Refusal as refusal:
        if refusal.code != "forbidden":
            raise
        # they were erased: without the cookie they may join again
        return _forget(RedirectResponse(f"/s/{study}", 303), study)
    words = language(request, it.config.language)
    if not turn.questions and it.state != studies.PAUSED:
        return RedirectResponse(f"/s/{study}/done", 303)
    shown = await _shown(site, it.config, turn)
    return page("vote", words, study=study, config=it.config, turn=shown, state=it.state)


@router.get("/next")
async def next_questions(
    study: StudyName, request: Request, n: Annotated[int, Query(ge=1, le=4)] = 2
) -> JSONResponse:
    """Up to n open questions of the participant."""
    site = site_of(request)
    it, turn = await _turn(site, request, study, n)
    return JSONResponse({"state": it.state, **await _shown(site, it.config, turn)})


@router.post("/answer")
async def answer(study: StudyName, reply: Reply, request: Request) -> JSONResponse:
    """Record an answer or a skip. A retry gets the same reply, and counts once."""
    site, person = _who(request, study)
    seq, repeated = await site.write(
        participants.answer, study, person, reply.question, reply.order, reply.ms, site.now()
    )
    return JSONResponse({"seq": seq, "repeated": repeated})


@router.post("/vote")
async def vote(study: StudyName, request: Request) -> Response:
    """`answer` from a form, for browsers without scripts."""
    site, person = _who(request, study)
    form = await form_of(request)
    question, order = form.get("question", "")[:64], _order_of(form)
    await site.write(participants.answer, study, person, question, order, None, site.now())
    return RedirectResponse(f"/s/{study}/vote", 303)


@router.post("/undo")
async def undo(study: StudyName, which: Which, request: Request) -> JSONResponse:
    """Withdraw one of the last answers."""
    site, person = _who(request, study)
    await site.write(participants.undo, study, person, which.question, site.now())
    return JSONResponse({"undone": which.question})


@router.post("/undo-form")
async def undo_form(study: StudyName, request: Request) -> Response:
    """`undo` from a form."""
    site, person = _who(request, study)
    question = (await form_of(request)).get("question", "")[:64]
    await site.write(participants.undo, study, person, question, site.now())
    return RedirectResponse(f"/s/{study}/vote", 303)


@router.get("/done", response_class=HTMLResponse)
async def done(study: StudyName, request: Request) -> Response:
    """Thanks, the completion code or the way back to the panel, and erasing one's data."""
    site = site_of(request)
    content = site.cookie(request, "participant", study)
    if content is None:
        return RedirectResponse(f"/s/{study}", 303)
    it, turn = await _turn(site, request, study, 1)
    words = language(request, it.config.language)
    finished = turn.finished or it.state == studies.CLOSED
    earned = finished and turn.answers > 0
    config, said = it.config, "nothing_left" if turn.ran_out else "done_default"
    code, redirect = (config.completion_code, config.redirect) if earned else ("", "")
    if turn.screened_out:
        code, redirect = config.screened_out_code, config.screened_out_redirect
        config, said = replace(config, thanks=""), "screened_out"
    return page(
        "done",
        words,
        study=study,
        config=config,
        finished=finished,
        code=code,
        said=said,
        undo=turn.undo if it.state == RUNNING else None,
        redirect=redirect.replace("{id}", quote(str(content.get("panel", "")), safe="")),
    )


@router.delete("/me")
async def erase_me(study: StudyName, request: Request) -> JSONResponse:
    """Erase the participant who sends this, with all their data."""
    return _forget(JSONResponse({"erased_events": await _erase(study, request)}), study)


@router.post("/erase")
async def erase_form(study: StudyName, request: Request) -> Response:
    """The same from a form."""
    await _erase(study, request)
    it = await site_of(request).read(studies.get, study)
    words = language(request, it.config.language)
    heading = strings(words)["erased_title"]
    return _forget(page("message", words, heading=heading, text="erased"), study)


async def _erase(study: str, request: Request) -> int:
    site, person = _who(request, study)
    site.erasures.check(address(request))
    return await site.erase(study, person)


def _forget(response: T, study: str) -> T:
    """Delete the participant cookie."""
    response.delete_cookie(f"participant_{study}", path=f"/s/{study}")
    return response


def _who(request: Request, study: str) -> tuple[Site, str]:
    site = site_of(request)
    person = site.participant(request, study)
    site.answers.check(person)
    return site, person


async def _turn(site: Site, request: Request, study: str, n: int) -> tuple[Study, Turn]:
    _, person = _who(request, study)
    now = site.now()

    def job(conn: Connection) -> tuple[Study, Turn]:
        return studies.get(conn, study), participants.turn(conn, study, person, n, now)

    return await site.write(job)


async def _shown(site: Site, config: Config, turn: Turn) -> dict[str, Any]:
    """A turn as JSON: no ids or names of items, nothing about other people."""
    wanted = {item for q in turn.questions if q.kind != CHECK for item in q.shown}
    unknown = wanted - set(site.shown)
    if unknown:
        rows = await site.read(studies.items_by_id, unknown)
        site.shown.update(
            {row.id: option(row.id, row.media, row.body, row.caption) for row in rows}
        )
    return {
        "questions": [_question(site, config, q) for q in turn.questions],
        "done": turn.answers,
        "of": config.answers_per_person,
        "finished": turn.finished,
        "undo": turn.undo,
    }


def _question(site: Site, config: Config, row: Any) -> dict[str, Any]:
    prompt, tie = config.question, config.tie and row.form == "pair"
    if row.kind == CHECK:
        number = int(row.shown[0].split("/")[1])
        check = config.checks[number] if number < len(config.checks) else None
        places = [int(item.split("/")[2]) for item in row.shown]
        texts = check.options if check else tuple("–" for _ in places)
        options = [{"kind": "text", "text": texts[k]} for k in places]
        prompt = check.prompt if check else prompt
    else:
        options = with_settings([site.shown[item] for item in row.shown], config)
    return {"id": row.id, "prompt": prompt, "form": row.form, "tie": tie, "options": options}


def option(item: str, medium: str, body: str, caption: str = "") -> dict[str, Any]:
    """The visible part of an item; its id is random and says nothing."""
    if medium == "text":
        return {"kind": "text", "text": body}
    if medium == "markdown":
        return {"kind": "markdown", "html": as_html(body)}
    if medium == "html":
        return {"kind": "html", "url": f"/media/page/{item}"}
    shown = {"kind": medium, "url": f"/media/{body}"}
    return shown | {"caption": caption} if caption else shown


def with_settings(options: list[dict[str, Any]], config: Config) -> list[dict[str, Any]]:
    """Options as the study's settings want them: differences marked, media that must be played."""
    if config.must_play:
        played = ("audio", "video")
        options = [{**o, "must_play": True} if o["kind"] in played else o for o in options]
    if config.mark_differences and [o["kind"] for o in options] == ["text", "text"]:
        marked = marked_differences(*(o["text"] for o in options))
        options = [{**o, "difference": html} for o, html in zip(options, marked, strict=True)]
    return options


def _order_of(form: dict[str, str]) -> list[list[int]] | None:
    """The answer in a form."""
    choice = form.get("choice", "")
    if choice == "skip":
        return None
    places = {key: value for key, value in form.items() if key.startswith("place-")}
    try:
        if choice == "tie":
            return [[0, 1]]
        if choice == "order":
            by_place = {int(value): int(key[6:]) for key, value in places.items()}
            if len(by_place) < len(places):
                raise ParticipantRefusal("bad", "same_place")
            return [[by_place[place]] for place in sorted(by_place)]
        first, n = int(choice), int(form.get("n", "2"))
    except Refusal:
        raise
    except ValueError:
        raise ParticipantRefusal("bad", "no_choice") from None
    return [[first], [place for place in range(min(n, LARGEST_SET)) if place != first]]


ABOUT_ME = ("kind", "joined", "last_seen", "consent", "said_first", "suggestions")
"""Columns about a person that they get with their data."""


@router.get("/me")
async def export_me(study: StudyName, request: Request) -> JSONResponse:
    """All that is kept of the participant who sends this: what they were shown and said, and when.

    Withdrawn answers are in it too, marked so. Options are as they were shown, without names.
    """
    site, person = _who(request, study)
    it, row, asked, events = await site.read(participants.data_of, study, person)
    turn = Turn(asked, 0, False, False, None)
    shown = {q["id"]: q for q in (await _shown(site, it.config, turn))["questions"]}
    said = [
        {
            "question": shown[event.question]["prompt"],
            "options": shown[event.question]["options"],
            "order": event.payload.get("order"),
            "ms": event.ms,
            "at": event.at,
            "withdrawn": not event.live,
        }
        for event in events
        if event.question in shown
    ]
    content = {"study": study, **{name: row[name] for name in ABOUT_ME}, "answers": said}
    headers = {"Content-Disposition": f'attachment; filename="{study}-my-data.json"'}
    return JSONResponse(content, headers=headers)
