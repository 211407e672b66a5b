"""The log: one line for each event of the processes, as text or as JSON.

A line holds plain facts: numbers, states, templates of addresses. It never holds an address, a
token, or anything about people.
"""

import json
import logging
import sys
import time
import traceback
from collections.abc import Hashable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

FORMS = ("plain", "json")
QUIET_SECONDS = 10.0
log = logging.getLogger("penchant.study")

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def tell(event: str, sentence: str, level: int = logging.INFO, **facts: Any) -> None:
    """Log an event: a sentence for people with the {names} of its facts.

    With --log json each fact is a field of its own.
    """
    log.log(level, sentence.format(**facts), extra={"event": event, "facts": facts})


class Seldom:
    """Tells what may happen many times a second: one line of a kind every QUIET_SECONDS."""

    def __init__(self) -> None:
        self.kinds: dict[Hashable, tuple[float, int]] = {}

    def tell(self, event: str, sentence: str, level: int, **facts: Any) -> None:
        """Log an event, or count it; a kind is the event with its facts but for `seconds`."""
        kind = (event, *(value for name, value in facts.items() if name != "seconds"))
        now = time.monotonic()
        until, times = self.kinds.get(kind, (0.0, 0))
        if now < until:
            self.kinds[kind] = (until, times + 1)
            return
        self.kinds[kind] = (now + QUIET_SECONDS, 0)
        tell(event, f"{sentence} (times: {{times}})", level, **facts, times=times + 1)


class Lines(logging.Formatter):
    """Lines of text. Messages of errors may hold what was sent: only their types are told."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatException(self, ei: ExcInfo) -> str:
        frames = "".join(traceback.format_tb(ei[2]))
        return f"{frames}{ei[0].__name__ if ei[0] else ''}"


class JsonLines(Lines):
    """Lines of JSON: at, level, event, message and the event's facts."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"at": at, "level": record.levelname.lower(), "process": record.process}
        line |= {"event": getattr(record, "event", "note"), "message": record.getMessage()}
        line |= getattr(record, "facts", {})
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def set_up(form: str) -> None:
    """Log to standard error in one of FORMS. Frequent events are told as JSON only."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else Lines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    log.setLevel(logging.DEBUG if form == "json" else logging.INFO)
    if form == "json":
        logging.captureWarnings(True)
        sys.excepthook = _log_error


def _log_error(*error: Any) -> None:
    log.critical("the process ends by an error", exc_info=error, extra={"event": "error"})
