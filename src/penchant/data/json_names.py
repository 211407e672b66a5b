"""Names in JSON, where 1, 1.0, true and "1" are four different values."""

import json
from collections import Counter
from typing import Any

from penchant.data.source import EXACT
from penchant.errors import DataError


def json_names(raw: list[str]) -> list[Any]:
    """JSON values as names; 1, 1.0 and true are different names, kept as they are written."""
    names = {text: _json_name(text) for text in raw}
    n_spellings = Counter(names.values())
    written = {
        text: text if isinstance(name, float) and n_spellings[name] > 1 else name
        for text, name in names.items()
    }
    given = {name for text, name in names.items() if text.startswith('"')}
    for text, name in written.items():
        if name in given and not text.startswith('"'):
            raise DataError(
                f"both {text} and the text {json.dumps(name)} occur as names, so that they cannot "
                "be told apart: write them alike"
            )
    return [written[text] for text in raw]


def _json_name(text: str) -> Any:
    try:
        name = json.loads(text)
    except ValueError as error:  # a number of thousands of digits
        raise DataError(f"{text[:40]}… cannot be a name ({error}): write it as text") from None
    if isinstance(name, list | dict):
        raise DataError(f"{name!r} cannot be a name: names must be text or numbers")
    if isinstance(name, float) and abs(name) >= EXACT["DOUBLE"]:
        raise DataError(
            f"{text} cannot be a name: numbers with a point, or of more than 19 digits, can merge "
            f"from {EXACT['DOUBLE']} on; write names as whole numbers or text"
        )
    return text if isinstance(name, bool) else name
