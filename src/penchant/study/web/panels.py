"""For the owner: which people are those of a panel's list, and whom to approve.

The ids of the list are hashed with the study's key, as they were when people joined. They are in
the request and its reply, and stored nowhere.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Depends, Request, responses
from pydantic import BaseModel, Field, ValidationError
from starlette.datastructures import UploadFile

import penchant.study as ps
from penchant.study.config import Config
from penchant.study.items import LARGEST_FILE
from penchant.study.refusals import Refusal, strings
from penchant.study.store import studies
from penchant.study.store.reports import Panel, panel
from penchant.study.store.tables import hash_external_id
from penchant.study.web.ask_first import panel_id
from penchant.study.web.owner import owner_site
from penchant.study.web.participant import StudyName
from penchant.study.web.site import Site, language, page, site_of

Owned = Annotated[Site, Depends(owner_site)]
router = APIRouter(tags=["owner"])
API = "/api/studies/{study}/panel"

Verdict = Literal["approve", "reject", "screened_out", "unknown"]
VERDICTS = get_args(Verdict)
MOST_IDS, MOST_SHOWN = 50_000, 500
ID_COLUMNS = {
    *("participantid", "participant", "prolificid", "prolificpid", "workerid", "panelid"),
    *("externalid", "respondentid", "pid", "id"),
}
"""Names of the column of ids in panels' own lists, without case and marks."""


class Approval(BaseModel):
    """Whom the owner approves: a person of whom all of this is true."""

    finished: bool = True
    most_failed_checks: int | None = Field(0, ge=0)
    least_answers: int = Field(1, ge=0)
    not_excluded: bool = True


class PanelIn(BaseModel):
    """A panel's list of ids, and the rule by which it is sorted."""

    ids: list[Annotated[str, Field(max_length=500)]] = Field(max_length=MOST_IDS)
    rule: Approval = Field(default_factory=lambda: Approval.model_validate({}))


@router.post(API)
async def match(study: StudyName, wanted: PanelIn, site: Owned) -> responses.JSONResponse:
    """Which people the ids are, what they did, and what the rule says of each."""
    rows = await _rows(site, study, wanted)
    counts = Counter(row["verdict"] for row in rows)
    return responses.JSONResponse({"counts": {v: counts[v] for v in VERDICTS}, "rows": rows})


@router.post(API + "/list/{verdict}")
async def download(
    study: StudyName, verdict: Verdict, wanted: PanelIn, site: Owned
) -> responses.Response:
    """The ids of one verdict as CSV; with those to reject, why."""
    return _as_csv(study, verdict, await _rows(site, study, wanted))


@router.post(API + "/form", include_in_schema=False)
async def from_form(study: StudyName, request: Request, site: Owned) -> responses.Response:
    """The same from the page's form: a table, or one of the lists."""
    it = await site.read(studies.get, study)
    async with request.form(max_part_size=LARGEST_FILE) as form:
        file, pasted = form.get("file"), str(form.get("ids", ""))
        content = await file.read() if isinstance(file, UploadFile) else b""
        given = {name: str(value) for name, value in form.items() if name != "file"}
    try:
        uploaded = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refusal("bad", "the list is not text in UTF-8: save it as CSV in UTF-8") from None
    rule = {
        "finished": "finished" in given,
        "not_excluded": "not_excluded" in given,
        "least_answers": given.get("least_answers") or 0,
        "most_failed_checks": given.get("most_failed_checks") or None,
    }
    ids = [*ids_in(pasted, it.config), *ids_in(uploaded, it.config)]
    try:
        wanted = PanelIn.model_validate({"ids": ids, "rule": rule})
    except ValidationError as error:
        first = error.errors()[0]
        raise Refusal("bad", f"{first['loc'][-1]}: {first['msg']}") from None
    rows = await _rows(site, study, wanted)
    if given.get("list") in VERDICTS:
        return _as_csv(study, given["list"], rows)
    return _page(study, request, wanted, rows)


@router.get("/o/{study}/panel", response_class=responses.HTMLResponse)
async def panel_page(study: StudyName, request: Request) -> responses.Response:
    """The page on which an owner pastes a panel's list."""
    site = site_of(request)
    await site.require_owner(request, study)
    return _page(study, request, PanelIn(ids=[]), [])


def _page(
    study: str, request: Request, wanted: PanelIn, rows: list[dict[str, Any]]
) -> responses.Response:
    words = language(request)
    counts = Counter(row["verdict"] for row in rows)
    return page(
        "panel",
        words,
        p=strings(f"panel.{words}"),
        study=study,
        asked=request.query_params.get("lang"),
        ids=wanted.ids,
        rule=wanted.rule,
        rows=rows[:MOST_SHOWN],
        counts={verdict: counts[verdict] for verdict in VERDICTS},
    )


async def _rows(site: Site, study: str, wanted: PanelIn) -> list[dict[str, Any]]:
    ids, key = filter(None, map(panel_id, wanted.ids)), site.folder.secret
    hashed = {given: hash_external_id(given, study, key) for given in ids}

    def job(conn: Any) -> list[dict[str, Any]]:
        return rows_of(panel(conn, study, list(hashed.values())), hashed, wanted.rule)

    return await site.read(job)


def rows_of(known: Panel, hashed: dict[str, str], rule: Approval) -> list[dict[str, Any]]:
    """A row an id, in the order of the list; hashed: the ids and their hashes."""
    config = known.study.config
    wanted = {known.people[h].id for h in hashed.values() if h in known.people}
    answers = [a for a in known.record.answers.values() if a.participant in wanted]
    skips = [event.participant for event in known.record.skipped.values()]
    raters = {row["participant"]: row for row in ps.raters(answers, skips, config)}
    nobody = {"answers": 0, "checks": {"right": 0, "wrong": 0}, "look_closer": []}
    nobody |= {"skipped": 0, "seconds": None, "left": None, "reliability": None}
    rows: list[dict[str, Any]] = []
    for given, hashed_id in hashed.items():
        person = known.people.get(hashed_id)
        if person is None:
            rows.append({"id": given, "participant": None, "verdict": "unknown", "why": []})
            continue
        limit = config.answers_per_person
        row = {"id": given, **nobody, **raters.get(person.id, {}), "participant": person.id}
        row["finished"] = person.finished is not None or person.answers >= (limit or float("inf"))
        row["screened_out"] = person.screened_out
        row["excluded"] = person._mapping.get("excluded", False)
        why = [] if person.screened_out else _why_not(row, rule)
        verdict = "screened_out" if person.screened_out else "reject" if why else "approve"
        rows.append({**row, "verdict": verdict, "why": why})
    return rows


def _why_not(row: dict[str, Any], rule: Approval) -> list[str]:
    """What of the rule is not true of a person."""
    most = rule.most_failed_checks
    broken = {
        "finished": rule.finished and not row["finished"],
        "answers": row["answers"] < rule.least_answers,
        "checks": most is not None and row["checks"]["wrong"] > most,
        "excluded": rule.not_excluded and row["excluded"],
    }
    return [name for name, is_broken in broken.items() if is_broken]


def _as_csv(study: str, verdict: str, rows: Iterable[dict[str, Any]]) -> responses.Response:
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    is_reject = verdict == "reject"
    write(["id", "why"] if is_reject else ["id"])
    for row in rows:
        if row["verdict"] == verdict:
            write([row["id"], " ".join(row["why"])] if is_reject else [row["id"]])
    headers = {"Content-Disposition": f'attachment; filename="{study}-{verdict}.csv"'}
    return responses.Response(text.getvalue(), media_type="text/csv", headers=headers)


def ids_in(text: str, config: Config) -> list[str]:
    """The ids in a text: one a line, or the column of ids of a panel's CSV file.

    >>> ids_in("Status,Participant id\\nDONE,5f0c\\nDONE,77aa\\n", Config("Which?"))
    ['5f0c', '77aa']
    """
    lines = text.strip().splitlines()
    if not lines:
        return []
    marks = {mark: lines[0].count(mark) for mark in ",;\t"}
    try:
        rows = list(csv.reader(lines, delimiter=max(marks, key=marks.__getitem__)))
    except csv.Error as error:
        raise Refusal("bad", f"the list cannot be read as CSV: {error}") from None
    names = [re.sub(r"[\W_]+", "", cell).casefold() for cell in rows[0]]
    ours = {re.sub(r"[\W_]+", "", name).casefold() for name in config.panel_parameters}
    found = [place for place, name in enumerate(names) if name in ours | ID_COLUMNS]
    if found:
        rows = [row[found[0] : found[0] + 1] for row in rows[1:]]
    elif len(rows) > 1 and len(rows[0]) > 1:
        raise Refusal(
            "bad",
            f"the list has {len(rows[0])} columns, and none is called participant_id: name the "
            "column of ids so, or send the ids alone",
        )
    return [cell.strip() for row in rows for cell in row if cell.strip()]
