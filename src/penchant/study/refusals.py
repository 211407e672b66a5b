"""Refusals: a code for programs, a sentence for people in their language."""

import json
from functools import cache
from importlib import resources
from typing import Any

from penchant.errors import DataError

STATUS = {
    "unknown": 404,
    "token": 403,
    "forbidden": 403,
    "closed": 409,
    "paused": 409,
    "conflict": 409,
    "too_large": 413,
    "bad": 422,
    "busy": 429,
    "unavailable": 503,
}
"""Every code, and the HTTP status that goes with it."""


class Refusal(DataError):
    """A request that the state of the study does not allow. code: one of STATUS."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def in_language(self, language: str) -> str:
        """The sentence in a language; English where there is no translation."""
        return str(self)


class ParticipantRefusal(Refusal):
    """A refusal that participants may see: its sentence is `refused_{name}` in every language.

    >>> refusal = ParticipantRefusal("conflict", "undo", n=3)
    >>> str(refusal)
    'only your last 3 answers can be taken back'
    >>> refusal.in_language("de")
    'nur Ihre letzten 3 Antworten lassen sich zurücknehmen'
    """

    def __init__(self, code: str, name: str, **values: Any) -> None:
        self.name, self.values = name, values
        super().__init__(code, self.in_language("en"))

    def in_language(self, language: str) -> str:
        """The sentence."""
        return strings(language)[f"refused_{self.name}"].format(**self.values)


@cache
def strings(language: str) -> dict[str, str]:
    """Every string of a language, by name."""
    file = resources.files("penchant.study") / "web" / "strings" / f"{language}.json"
    return json.loads(file.read_text(encoding="utf-8"))
