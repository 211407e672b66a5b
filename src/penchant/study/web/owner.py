"""The owner's side: a JSON interface (bearer token or cookie); its pages are in `pages`."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, Query, Request, UploadFile, responses
from pydantic import BaseModel, Field, FiniteFloat, Json
from starlette.background import BackgroundTask

from penchant.study.folder import backup_to, read_votes, write_votes
from penchant.study.items import LARGEST_FILE, LARGEST_TEXT, store_media
from penchant.study.refusals import Refusal, check_language
from penchant.study.store import learning, participants, reports, studies
from penchant.study.store.studies import NewItem
from penchant.study.web.participant import StudyName
from penchant.study.web.site import Site, site_of


async def owner_site(study: StudyName, request: Request) -> Site:
    """The site, for its owner."""
    site = site_of(request)
    await site.require_owner(request, study)
    return site


Owned = Annotated[Site, Depends(owner_site)]
router = APIRouter(prefix="/api/studies/{study}", tags=["owner"])
Id = Annotated[str, Field(min_length=1, max_length=64)]
PREVIEW_SECONDS = 120.0
"""Longest wait for a preview: in big studies the model process may be learning."""


class Changes(BaseModel):
    """What to change of a study: its state, or settings by name."""

    state: str | None = None
    config: dict[str, Any] = Field(default_factory=dict, max_length=40)


class ItemIn(BaseModel):
    """An item that is shown as text, Markdown or HTML."""

    name: str = Field(min_length=1, max_length=500)
    media: str = Field("text", pattern="^(text|markdown|html)$")
    body: str = Field("", max_length=LARGEST_TEXT)
    features: dict[str, FiniteFloat] = Field(default_factory=dict, max_length=1000)


class InviteIn(BaseModel):
    """Invitations to make."""

    n: int = Field(1, ge=1, le=1000)
    role: str = Field("participant", pattern="^(participant|owner)$")
    label: str = Field("", max_length=200)
    uses: int | None = Field(1, ge=1, le=1_000_000)
    days: float | None = Field(None, gt=0, le=3650)


class Exclude(BaseModel):
    """People to exclude from what the model learns, or to bring back."""

    people: list[Annotated[str, Field(max_length=64)]] = Field(min_length=1, max_length=10_000)
    excluded: bool = True
    preview: bool = False


@router.get("")
async def get_study(study: StudyName, site: Owned) -> responses.JSONResponse:
    """Settings, counts, ranking, raters, calibration."""
    it = await site.read(studies.get, study)
    return responses.JSONResponse({"config": it.config.to_json(), **await overview(site, study)})


@router.patch("")
async def change_study(study: StudyName, changes: Changes, site: Owned) -> responses.JSONResponse:
    """Pause, run or close it; change settings."""
    now = site.now()
    check_language(str(changes.config.get("language", "auto")))

    def job(conn: Any) -> None:
        if changes.config:
            studies.change_config(conn, study, changes.config)
        if changes.state is not None:
            studies.set_state(conn, study, changes.state, now)

    await site.write(job)
    return await get_study(study, site)


@router.get("/items")
async def list_items(study: StudyName, site: Owned) -> list[dict[str, Any]]:
    """All items, retired ones too."""
    rows = await site.read(studies.items_of, study)
    hidden = ("study", "position")
    return [{k: v for k, v in row._mapping.items() if k not in hidden} for row in rows]


@router.post("/items", status_code=201)
async def add_items(
    study: StudyName, items: Annotated[list[ItemIn], Field(max_length=10_000)], site: Owned
) -> dict[str, list[str]]:
    """Add items while the study runs."""
    new = [NewItem(**dict(item)) for item in items]
    return {"ids": await site.write(studies.add_items, study, new, site.now())}


@router.post("/items/upload", status_code=201)
async def upload_item(
    study: StudyName,
    site: Owned,
    name: Annotated[str, Form(min_length=1, max_length=500)],
    medium: Annotated[str, Form(pattern="^(image|audio|video)$")],
    file: Annotated[UploadFile, File()],
    features: Annotated[Json[dict[str, FiniteFloat]] | None, Form()] = None,
    caption: Annotated[str, Form(max_length=LARGEST_TEXT)] = "",
) -> dict[str, list[str]]:
    """Add one item that is a file, its features as JSON; the client's name and type are ignored."""
    content = await file.read(LARGEST_FILE + 1)
    given = (content, FilePath(file.filename or "").suffix, medium, "the file")
    stored = await asyncio.to_thread(store_media, site.folder.media, *given)
    new = [NewItem(name, medium, stored, features or {}, caption)]
    try:
        return {"ids": await site.write(studies.add_items, study, new, site.now())}
    except Refusal:
        (site.folder.media / stored).unlink(missing_ok=True)
        raise


@router.delete("/items/{item}")
async def retire_item(study: StudyName, item: Id, site: Owned) -> dict[str, str]:
    """Retire an item: it is not asked about any more."""
    await site.write(studies.retire, study, item, site.now())
    return {"retired": item}


@router.post("/items/{item}/restore")
async def restore_item(study: StudyName, item: Id, site: Owned) -> dict[str, str]:
    """Bring a retired item back."""
    await site.write(studies.restore, study, item, site.now())
    return {"restored": item}


@router.get("/invites")
async def list_invites(study: StudyName, site: Owned) -> list[dict[str, Any]]:
    """Invitations, without their tokens, of which only hashes are stored."""
    return await site.read(studies.invites_of, study)


@router.post("/invites", status_code=201)
async def make_invites(study: StudyName, wanted: InviteIn, site: Owned) -> dict[str, list[str]]:
    """Make invitations; their links are shown only here."""
    now = site.now()

    def job(conn: Any) -> list[str]:
        given = wanted.model_dump(exclude={"n"})
        return [studies.create_invite(conn, study, now, **given) for _ in range(wanted.n)]

    tokens = await site.write(job)
    return {"paths": [invite_path(study, wanted.role, token) for token in tokens]}


def invite_path(study: str, role: str, token: str) -> str:
    """The path of a link that carries a token."""
    return f"/o/{study}?key={token}" if role == "owner" else f"/s/{study}?invite={token}"


@router.delete("/invites/{invite}")
async def revoke(study: StudyName, invite: Id, site: Owned) -> dict[str, str]:
    """Revoke an invitation."""
    await site.write(studies.revoke_invite, study, invite)
    return {"revoked": invite}


@router.get("/participants")
async def list_participants(study: StudyName, site: Owned) -> list[dict[str, Any]]:
    """Who takes part, by random ids."""
    return await site.read(participants.participants_of, study, site.now())


@router.post("/participants/exclude")
async def exclude(study: StudyName, wanted: Exclude, site: Owned) -> responses.JSONResponse:
    """Exclude people from what the model learns, or bring them back; their answers stay.

    A preview changes nothing. Its ranking is what the model would say.
    """
    given = (study, wanted.people, wanted.excluded)
    ranking: list[dict[str, Any]] = []
    if wanted.preview:
        change = await site.read(participants.exclusion, *given)
        ranking = await _preview(site, study, change)
    else:
        change = await site.write(participants.exclude, *given, site.now())
    effect = {"answers": change.answers, "people": len(change.people), "ranking": ranking}
    return responses.JSONResponse(effect)


async def _preview(site: Site, study: str, change: participants.Exclusion) -> list[dict[str, Any]]:
    """The ranking that the model process works out for a change, when it gets to it."""
    wanted = await site.write(learning.want_preview, study, change, site.now())
    ends = time.monotonic() + PREVIEW_SECONDS
    try:
        while time.monotonic() < ends:
            ranking = await site.read(learning.preview, wanted)
            if ranking is not None:
                return ranking
            await asyncio.sleep(0.2)
    finally:
        await site.write(learning.end_preview, wanted)
    raise Refusal("unavailable", "the model process did not answer: try again in a minute")


@router.delete("/participants/{person}")
async def erase(study: StudyName, person: Id, site: Owned) -> dict[str, int]:
    """Erase a person and all their data."""
    return {"erased_events": await site.erase(study, person)}


@router.get("/plan")
async def plan(study: StudyName, site: Owned) -> responses.JSONResponse:
    """How many more answers, people and how much money until enough is known."""
    state = await overview(site, study)
    return responses.JSONResponse({name: state[name] for name in ("stop", "left", "plan")})


@router.get("/export")
async def export(
    study: StudyName,
    site: Owned,
    form: Annotated[str, Query(alias="format", pattern="^(csv|jsonl|parquet)$")] = "csv",
    everybody: bool = False,
) -> responses.FileResponse:
    """All answers that were not withdrawn, as `penchant rank` reads them.

    everybody: those of excluded people, too.
    """

    def job(conn: Any) -> list[dict[str, Any]]:
        with studies.uncollected():
            return list(reports.export_rows(conn, study, everybody))

    rows = await site.read(job)
    return await _download(f"{study}.{form}", lambda path: write_votes(rows, path))


@router.post("/import", status_code=201)
async def import_votes(
    study: StudyName, site: Owned, file: Annotated[UploadFile, File()]
) -> dict[str, int]:
    """Import votes from a CSV file: winner, loser, and optionally tie, user, count.

    Of a study's export, votes that are here already are not imported again.
    """
    content = await file.read(LARGEST_FILE + 1)
    rows, is_export = await asyncio.to_thread(read_votes, content)
    given = (study, rows, site.now(), is_export)
    return {"rows": await site.write(studies.import_answers, *given)}


@router.get("/backup")
async def backup(study: StudyName, site: Owned) -> responses.FileResponse:
    """A copy of the database and media as one file, made while the study runs."""
    return await _download(
        f"{study}-backup.zip", lambda path: backup_to(site.folder, site.database, path)
    )


async def _download(name: str, write: Callable[[FilePath], None]) -> responses.FileResponse:
    """Write a temporary file and send it; afterwards it is deleted."""
    folder = FilePath(tempfile.mkdtemp(prefix="penchant-"))
    await asyncio.to_thread(write, folder / name)
    clean = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
    return responses.FileResponse(folder / name, filename=name, background=clean)


async def overview(site: Site, study: str) -> dict[str, Any]:
    """Counts, and the model's last summary."""
    return await site.read(reports.overview, study, site.now())
