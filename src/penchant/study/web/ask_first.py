"""What people say before the first item: a panel's id, and answers to the owner's questions."""

from collections.abc import Mapping, Sequence
from math import isfinite

from penchant.study.config import NUMBER, TEXT, AskFirst
from penchant.study.refusals import ParticipantRefusal

LONGEST_TEXT = 500
LONGEST_ID = 200

Said = dict[str, str | int | float]


def panel_id(given: str) -> str:
    """A panel's id as it is hashed: people and spreadsheets leave blanks around it.

    >>> panel_id(" 5f0c ")
    '5f0c'
    """
    return given.strip()[:LONGEST_ID]


def said_first(asked: Sequence[AskFirst], form: Mapping[str, str]) -> tuple[Said, bool]:
    """The answers of a form by the names of their questions, and whether one screens out.

    >>> age = AskFirst("age", "Your age", ("under 18", "18 or more"), screen_out=("under 18",))
    >>> said_first([age], {"ask-age": "under 18"})
    ({'age': 'under 18'}, True)
    """
    said: Said = {}
    for question in asked:
        given = form.get(f"ask-{question.name}", "").strip()
        if given:
            said[question.name] = _value(question, given)
        elif question.required:
            raise ParticipantRefusal("bad", "unanswered", label=question.label)
    return said, any(said.get(question.name) in question.screen_out for question in asked)


def _value(question: AskFirst, given: str) -> str | int | float:
    if question.options == TEXT and len(given) <= LONGEST_TEXT:
        return given
    if question.options == NUMBER:
        try:
            number = float(given.replace(",", "."))
        except ValueError:
            number = float("nan")
        if isfinite(number) and abs(number) < 1e12:
            return int(number) if number == int(number) else number
    elif given in question.options and isinstance(question.options, tuple):
        return given
    raise ParticipantRefusal("bad", "unfitting", label=question.label)
