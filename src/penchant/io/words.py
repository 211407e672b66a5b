"""What a word or number says about two items: which one won, or neither, and how clearly."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

FIRST_WON, TIE, SECOND_WON = 1, 0, -1

_TIES = frozenset(
    (
        *("tie", "tied", "tie bothbad", "bothbad", "both bad", "both good", "both", "neither"),
        *("draw", "d", "equal", "equally good", "same", "about the same", "the same", "none"),
        *("no preference", "no difference", "undecided", "either", "tie both bad", "tied both bad"),
        *("tie both good", "both equal", "both are equal", "similar", "indifferent"),
    )
)
_BAD = re.compile(r"both ?bad")
_FAMILIES = (
    *(("a", "b"), ("left", "right"), ("first", "second"), ("home", "away"), ("white", "black")),
    *(("one", "two"),),
)
_ANY = (("left", "right"), ("first", "second"), ("win", "loss"), ("won", "lost"), ("w", "l"))
_STRENGTH = {
    3: ("much", "far", "a lot", "significantly", "strongly", "definitely", "clearly", "way"),
    1: ("slightly", "a bit", "a little", "marginally", "somewhat", "barely", "probably"),
}
_FILLING = re.compile(
    r"\b(is|was|are|the|model|response|answer|option|item|team|side|prefer|preferred|wins?|won|"
    r"i|than|one|by|assistant|completion|strong|strength|preference|for)\b"
)
_SIGN = re.compile(r"(?:[a-z0-9]+ ?)?(>{1,3}|<{1,3}|=+)(?: ?[a-z0-9]+)?")

_SCORE = r"(\d+(?:[.,]\d+)?|1/2|½)"
_TWO_SCORES = re.compile(rf"{_SCORE}\s*[-–—−:]\s*{_SCORE}")

_POINTS = "1 means that the first won, 0 that the second did, 0.5 a tie"
_NUMBERED = "the number tells which one won"
_SIGNED = "positive means that the first won, negative that the second did, 0 a tie"
_FROM_LEFT = "negative means that the first won, positive that the second did, 0 a tie"


def is_both_bad(word: str) -> bool:
    """Whether an outcome that is a tie says that both were bad.

    >>> is_both_bad("tie (bothbad)"), is_both_bad("tie")
    (True, False)
    """
    return _BAD.search(_words(word)) is not None


@dataclass(frozen=True)
class Vocabulary:
    """The meaning of each outcome that occurs, and in words how outcomes are meant.

    side : FIRST_WON, TIE or SECOND_WON by outcome. strength : how clearly, 1 to 3, or empty
    where outcomes do not tell.
    """

    side: Mapping[str, int]
    strength: Mapping[str, float]
    meaning: str


def read_words(outcomes: Iterable[str], first: str, second: str) -> Vocabulary:
    """Return what those outcomes mean that are words about the columns `first` and `second`.

    >>> read_words(["model_a", "tie (bothbad)"], "model_a", "model_b").side
    {'model_a': 1, 'tie (bothbad)': 0}
    """
    said = {word: _read_word(word, first, second) for word in outcomes}
    told = {word: meaning for word, meaning in said.items() if meaning is not None}
    graded = {clear for _, clear in told.values()} - {2.0, 0.0}
    return Vocabulary(
        {word: side for word, (side, _) in told.items()},
        {word: clear for word, (_, clear) in told.items()} if graded else {},
        "the word tells which side won",
    )


def _read_word(word: str, first: str, second: str) -> tuple[int, float] | None:
    text = word.strip().casefold()
    sign = _SIGN.fullmatch(text)
    if sign:
        side = {">": FIRST_WON, "<": SECOND_WON, "=": TIE}[sign[1][0]]
        return side, 0.0 if side == TIE else 1.0 + len(sign[1])
    text = _words(text)
    if text in _TIES:
        return TIE, 0.0
    sides = _sides(first, second)
    for one, two in sides:  # before anything is taken away: a column may be called "winner"
        if text in (one, two) and one != two:
            return (FIRST_WON if text == one else SECOND_WON), 2.0
    clear, text = _strength(text)
    worse = re.search(r"\bworse\b", text) is not None
    text = re.sub(r"\b(better|worse|best)\b.*", " ", text)
    text = " ".join(_FILLING.sub(" ", text).split())
    for one, two in sides:
        one, two = (" ".join(_FILLING.sub(" ", side).split()) or side for side in (one, two))
        if text in (one, two) and one != two:
            won = (text == one) != worse
            return (FIRST_WON if won else SECOND_WON), clear or 2.0
    return None


def _sides(first: str, second: str) -> list[tuple[str, str]]:
    """Return the words for the two columns: their names, the sides that these speak of, and the
    initials of those ("l" is left between left and right, "a" is away between home and away)."""
    sides = [(_words(first), _words(second))]
    for one, two in _FAMILIES:
        if one in first.casefold() and two in second.casefold() and len(one) > 1:
            sides += [(one, two), (one[0], two[0])]
    taken = {word for pair in sides for word in pair}
    sides += [] if {"a", "b"} & taken else [("a", "b")]
    return sides + [pair for pair in _ANY if pair != ("w", "l") or not {"w", "l"} & taken]


def read_strengths(words: Iterable[str]) -> dict[str, float]:
    """Return how clearly one item won by the words that tell: 3 much, 2, 1 slightly, 0 a tie.

    >>> read_strengths(["much better", "better", "about the same", "blue"])
    {'much better': 3.0, 'better': 2.0, 'about the same': 0.0}
    """
    found: dict[str, float] = {}
    for word in words:
        text = _words(word)
        clear, rest = (0.0, "") if text in _TIES else _strength(text)
        rest = _FILLING.sub(" ", re.sub(r"\b(better|worse|moderately|clear)\b", " ", rest))
        if text and not rest.split():
            found[word] = 2.0 if clear is None else clear
    return found


def _strength(text: str) -> tuple[float | None, str]:
    """How clearly, where an adverb tells, and the text without such adverbs."""
    clear = None
    for strength, adverbs in _STRENGTH.items():
        for adverb in adverbs:
            if re.search(rf"\b{adverb}\b", text):
                clear, text = float(strength), re.sub(rf"\b{adverb}\b", " ", text)
    return clear, text


def _words(label: str) -> str:
    return " ".join(re.sub(r"[\W_]+", " ", label).casefold().split())


def read_numbers(outcomes: Iterable[str]) -> list[Vocabulary]:
    """Return every way in which the outcomes can be numbers; none where one is not.

    >>> [v.side for v in read_numbers(["1", "0.5", "0"])]
    [{'1': 1, '0.5': 0, '0': -1}]
    >>> [v.meaning for v in read_numbers(["1", "2"])]
    ['the number tells which one won: 1 or 2']
    """
    value = {word: _number(word) for word in outcomes}
    distinct = set(value.values())
    if not distinct or not all(map(math.isfinite, distinct)):
        return []
    found = []
    if distinct <= {0.0, 0.5, 1.0}:
        points = {1.0: FIRST_WON, 0.5: TIE, 0.0: SECOND_WON}
        found.append(Vocabulary({w: points[x] for w, x in value.items()}, {}, _POINTS))
    for low in (0.0, 1.0):
        if distinct <= {low, low + 1.0}:
            side = {w: FIRST_WON if x == low else SECOND_WON for w, x in value.items()}
            found.append(Vocabulary(side, {}, f"{_NUMBERED}: {low:g} or {low + 1:g}"))
    if distinct == {0.0, 1.0, 2.0}:
        for low, tie in ((1.0, 0.0), (0.0, 2.0)):
            named = {low: FIRST_WON, low + 1.0: SECOND_WON, tie: TIE}
            meaning = f"{_NUMBERED}: {low:g} or {low + 1:g}, {tie:g} a tie"
            found.append(Vocabulary({w: named[x] for w, x in value.items()}, {}, meaning))
    if min(distinct) < 0.0:
        strength = {w: abs(x) for w, x in value.items()} if len(set(map(abs, distinct))) > 2 else {}
        side = {w: int(x > 0) - int(x < 0) for w, x in value.items()}
        found.append(Vocabulary(side, strength, _SIGNED))
        if max(map(abs, distinct)) > 1.0:  # a scale from left to right begins below zero
            turned = {word: -won for word, won in side.items()}
            found.append(Vocabulary(turned, strength, _FROM_LEFT))
    return found


def read_scores(outcomes: Iterable[str]) -> Vocabulary | None:
    """Return what the outcomes mean if each is a score such as 2-1, or a result of chess.

    >>> read_scores(["2-1", "0 : 3"]).strength
    {'2-1': 1.0, '0 : 3': 3.0}
    >>> read_scores(["1-0", "1/2-1/2"]).side
    {'1-0': 1, '1/2-1/2': 0}
    """
    lead: dict[str, float] = {}
    for word in outcomes:
        scores = _TWO_SCORES.fullmatch(word.strip())
        if scores is None:
            return None
        one, two = (
            0.5 if score in ("1/2", "½") else float(score.replace(",", "."))
            for score in scores.groups()
        )
        lead[word] = one - two
    clear = {word: abs(by) for word, by in lead.items()}
    return Vocabulary(
        {word: int(by > 0) - int(by < 0) for word, by in lead.items()},
        clear if max(clear.values(), default=0.0) > 1.0 else {},
        "the scores of the first and the second",
    )


def _number(word: str) -> float:
    try:
        return float(word.replace(",", "."))  # 0,5 is a half in many countries
    except ValueError:
        return math.nan
