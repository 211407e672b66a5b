"""Two texts with the words marked in which they differ."""

import html
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache

MANY_WORDS = 400
"""From here on difflib ignores the most frequent words: their number of matches is quadratic."""


@lru_cache(maxsize=256)
def marked_differences(one: str, other: str) -> tuple[str, str]:
    """Both texts as HTML: every word that the other does not have at this place is in <mark>.

    The texts are escaped, and <mark> is the only tag.

    >>> marked_differences("a cup of tea", "a pot of <tea>")
    ('a <mark>cup</mark> of <mark>tea</mark>', 'a <mark>pot</mark> of <mark>&lt;tea&gt;</mark>')
    """
    texts = [re.findall(r"\S+|\s+", text) for text in (one, other)]
    places = [[at for at, part in enumerate(parts) if not part.isspace()] for parts in texts]
    a, b = ([parts[at] for at in ats] for parts, ats in zip(texts, places, strict=True))
    matcher = SequenceMatcher(None, a, b, autojunk=min(len(a), len(b)) > MANY_WORDS)
    differs: tuple[set[int], set[int]] = (set(), set())
    for kind, *ends in matcher.get_opcodes():
        for marks, ats, start, stop in zip(differs, places, ends[::2], ends[1::2], strict=True):
            if kind != "equal" and start < stop:  # with the spaces between the words
                marks.update(range(ats[start], ats[stop - 1] + 1))
    return _html(texts[0], differs[0]), _html(texts[1], differs[1])


def _html(parts: Sequence[str], marks: set[int]) -> str:
    found, is_open = [], False
    for at, part in enumerate([*parts, ""]):
        if (at in marks) != is_open:
            is_open = at in marks
            found.append("<mark>" if is_open else "</mark>")
        found.append(html.escape(part))
    return "".join(found)
