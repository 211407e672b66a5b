"""Whether the study works, for monitors: /healthz, /readyz and /metrics."""

import asyncio
import shutil
from typing import Any

import sqlalchemy as sa
from fastapi import APIRouter, Request, responses

from penchant.study.refusals import ParticipantRefusal
from penchant.study.store import reports, whole
from penchant.study.store import tables as t
from penchant.study.web.metrics import gauge
from penchant.study.web.site import Site, site_of

router = APIRouter(tags=["health"])
LOCAL = ("127.0.0.1", "::1")
PASSED_ON = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""Headers by which a proxy tells that a request is not of this machine."""


@router.get("/healthz")
async def healthz(request: Request) -> responses.Response:
    """Whether this server works: its folder is there, and no process keeps ending. Cheap."""
    return _told(site_of(request).problems())


@router.get("/readyz")
async def readyz(request: Request) -> responses.Response:
    """Whether answers can be written, besides: it writes, and looks for room on the disk."""
    site = site_of(request)
    return _told(site.problems() + await site.problems_of_writing())


def _told(problems: list[str]) -> responses.Response:
    content = {"ok": not problems, "problems": problems}
    return responses.JSONResponse(content, 503 if problems else 200)


@router.get("/metrics", response_class=responses.PlainTextResponse)
async def metrics(request: Request) -> responses.Response:
    """Numbers in Prometheus' text format, for the owner or from this machine."""
    site, counts = site_of(request), request.app.state.counts
    if counts is None:
        raise ParticipantRefusal("unknown", "page")
    if not _is_local(request):
        await site.require_owner(request, site.folder.study)
    counts.gauges[1] = site.database.waiting
    known = await site.read(_numbers, site.folder.study, site.now())
    disk = await asyncio.to_thread(shutil.disk_usage, site.folder.path)
    lines = [*counts.lines(), *_of_study(site, known)]
    lines += gauge("penchant_disk_free_bytes", disk.free, "Free bytes where the folder is.")
    text = "\n".join([*lines, ""])
    return responses.Response(text, media_type="text/plain; version=0.0.4")


def _is_local(request: Request) -> bool:
    """Whether the request comes from this machine, and no proxy passed it on."""
    host = request.url.hostname in (*LOCAL, "localhost")
    peer = request.client is not None and request.client.host in LOCAL
    return host and peer and not any(name in request.headers for name in PASSED_ON)


def _numbers(conn: sa.Connection, study: str, now: float) -> dict[str, Any]:
    s = t.snapshot.c
    newest = sa.select(sa.func.max(s.created)).where(s.study == study)
    return {
        "answers": reports.counts(conn, study, now)["answers"],
        "snapshot": conn.execute(newest).scalar(),
        "backup": (whole.last_backup(conn, study) or {}).get("at"),
    }


def _of_study(site: Site, known: dict[str, Any]) -> list[str]:
    of, now = {"study": site.folder.study}, site.now()
    ages = {k: None if known[k] is None else now - known[k] for k in ("snapshot", "backup")}
    return [
        *gauge("penchant_answers", known["answers"], "Answers that stand.", **of),
        *gauge(
            "penchant_snapshot_age_seconds",
            ages["snapshot"],
            "Seconds since the model process saved what it knows.",
            **of,
        ),
        *gauge(
            "penchant_backup_age_seconds",
            ages["backup"],
            "Seconds since the last dated backup.",
            **of,
        ),
    ]
