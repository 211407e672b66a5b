"""Every string that participants read: a language is one file in `web/strings`."""

import json
from functools import cache
from importlib import resources


@cache
def strings(language: str) -> dict[str, str]:
    """Every string of a language.

    >>> strings("de")["skip"]
    'Überspringen'
    """
    file = resources.files("penchant.study") / "web" / "strings" / f"{language}.json"
    texts: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return texts
