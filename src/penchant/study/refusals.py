"""Refusals: a code for programs, a sentence for people in their language."""

import json
import re
from functools import cache
from importlib import resources
from pathlib import Path
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


STRINGS = resources.files("penchant.study") / "web" / "strings"
ENGLISH = "en"
OWN: list[Path] = []
"""The folder `strings` of the study that this process serves."""


def use_strings(folder: Path) -> None:
    """Use also the languages of a study's folder; a wrong file there raises a DataError."""
    OWN[:] = [folder] if folder.is_dir() else []
    strings.cache_clear()
    languages.cache_clear()
    for file in sorted(folder.glob("*.json")):
        strings(file.stem)


@cache
def languages() -> tuple[str, ...]:
    """Every language that can be selected: those with a file, English first."""
    files = [file.name for place in (STRINGS, *OWN) for file in place.iterdir()]
    found = {match[1] for name in files if (match := re.fullmatch(r"([a-z]{2,3})\.json", name))}
    return (ENGLISH, *sorted(found - {ENGLISH}))


def check_language(language: str) -> None:
    """Refuse a language that has no file; "auto" is none."""
    if language != "auto" and language not in languages():
        raise DataError(
            f"language is {language!r}: there are {', '.join(languages())}; for another one put "
            f"strings/{language}.json into the study's folder"
        )


@cache
def strings(language: str) -> dict[str, str]:
    """Every string of a language, by name; English where it has none.

    "owner.de" is the German of the owner's pages.
    """
    kind = language.rpartition(".")[0]
    english = f"{kind}.{ENGLISH}" if kind else ENGLISH
    found = {} if language == english else dict(strings(english))
    for place in (STRINGS, *OWN):
        file = place / f"{language}.json"
        if file.is_file():
            found |= _checked(file, found or None)
    return found


def _checked(file: Any, english: dict[str, str] | None) -> dict[str, str]:
    """The strings of a file, which may have the places {…} that the English ones have."""
    what = f"strings/{file.name}"
    try:
        texts = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{what} is no JSON in UTF-8 that can be read: {error}") from error
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise DataError(f"{what} must be one object of texts, as en.json is")
    for name, text in texts.items() if english else ():
        known = set(re.findall(r"\{(.*?)\}", english.get(name, "") if english else ""))
        places = re.findall(r"\{(.*?)\}", text)
        if not known.issuperset(places) or len(re.findall("[{}]", text)) != 2 * len(places):
            allowed = ", ".join(f"{{{place}}}" for place in sorted(known)) or "no {…}"
            raise DataError(f"{what} has {name!r} as {text!r}: it may have {allowed}")
    return texts
