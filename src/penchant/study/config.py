"""The settings of a study: the question, its form, limits and checks."""

import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass
from pydantic_core import ArgsKwargs

from penchant.errors import DataError

Format = Literal["pair", "best", "rank"]
Model = Literal["shared", "personal"]
# those of `penchant.ask`, repeated because web processes load no numerics
Criterion = Literal["variance_ratio", "information_gain", "expected_best", "thompson", "random"]
FORMATS, MODELS, CRITERIA = get_args(Format), get_args(Model), get_args(Criterion)
FOLLOW_BROWSER = "auto"
Goal = Literal["best", "top", "order"]
ASKED_BY: dict[str, Criterion] = {
    **{"best": "expected_best", "top": "information_gain", "order": "information_gain"}
}
"""By goal: the criterion that serves it."""
LARGEST_SET = 8


def _whole_characters(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("it must be text, not half a character") from None
    return value


def _language(value: str) -> str:
    if value != FOLLOW_BROWSER and not re.fullmatch("[a-z]{2,3}", value):
        raise ValueError("it must be auto, or the letters of a language, such as en")
    return value


Text = Annotated[str, AfterValidator(_whole_characters)]
NotEmpty = Annotated[Text, Field(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Limit = Annotated[int, Field(ge=1, le=1_000_000)]
STRICT = ConfigDict(strict=True, allow_inf_nan=False, extra="forbid")


@dataclass(frozen=True, config=STRICT)
class Check:
    """An attention check that the owner writes: options of plain text, one of them right."""

    prompt: Text
    options: Annotated[tuple[NotEmpty, ...], Field(strict=False, min_length=2)]
    right: Annotated[int, Field(ge=0)]

    def __post_init__(self) -> None:
        if self.right >= len(self.options):
            raise ValueError(f"its right option must be from 0 to {len(self.options) - 1}")


def _as_check(values: Any) -> Any:
    return Check(**values) if isinstance(values, Mapping) else values


NUMBER, TEXT = "number", "text"
TAKEN = frozenset(
    (
        *("ballot", "item", "items", "position", "rank", "place"),
        *("shown", "shownfirst", "question"),
        *("kind", "form", "ms", "at", "winner", "loser", "tie", "tied", "draw", "user", "rater"),
        *("judge", "voter", "annotator", "worker", "person", "respondent", "count", "n", "times"),
        *("strength", "preferencestrength", "strengthofpreference", "degree", "intensity"),
        *("howmuch", "howmuchbetter", "margin", "outcome", "result", "choice", "preference"),
        *("preferred", "chosen", "better", "win", "won", "selected", "other", "rejected", "worse"),
        *("lose", "lost", "vote", "verdict", "judgment", "judgement", "decision", "a", "b"),
        *("first", "second", "left", "right", "winnername", "losername", "name", "excluded"),
    )
)
"""Columns that `penchant rank` reads as something else, without marks and a final "id"."""


def _column(name: str) -> str:
    if not re.fullmatch("[a-z][a-z0-9_]{0,39}", name):
        raise ValueError("it must be at most 40 small letters, digits and _, a letter first")
    if re.sub("_|id$", "", name) in TAKEN:
        raise ValueError("it must be another word: votes have such a column")
    return name


def _choices(value: Any) -> Any:
    if value in (NUMBER, TEXT):
        return value
    options = value if isinstance(value, list | tuple) else ()
    whole = [o for o in options if isinstance(o, str) and o and o == o.strip()]
    if 2 <= len(set(whole)) == len(options) <= 300:
        return tuple(map(_whole_characters, whole))
    raise ValueError('it must be different texts, or "number" or "text"')


@dataclass(frozen=True, config=STRICT)
class AskFirst:
    """A question before the first item. name: its column in the export.

    options: what can be chosen, or "number" or "text". screen_out: options that end it politely.
    """

    name: Annotated[str, AfterValidator(_column)]
    label: NotEmpty
    options: Annotated[tuple[str, ...] | str, BeforeValidator(_choices)]
    required: bool = True
    screen_out: Annotated[tuple[NotEmpty, ...], Field(strict=False)] = ()

    def __post_init__(self) -> None:
        known = self.options if isinstance(self.options, tuple) else ()
        if unknown := set(self.screen_out) - set(known):
            raise ValueError(f"screen_out must be some of its options, and {min(unknown)!r} is not")


def _as_first(values: Any) -> Any:
    return AskFirst(**values) if isinstance(values, Mapping) else values


def _origin(value: str) -> str:
    # ";" or a blank would end the directive of the policy
    found = re.fullmatch(r"https?://[a-z0-9.-]+(?::(\d{1,5}|\*))?", value)
    if found is None or int((found[1] or "0").replace("*", "0")) > 65535:
        raise ValueError("it must be a whole origin, such as https://panel.example.org")
    return value


def _whole_address(value: str) -> str:
    url = urlsplit(value)
    if value and (url.scheme not in ("http", "https") or not url.netloc):
        raise ValueError("it must be a whole address that starts with https://")
    return value


@dataclass(frozen=True, config=STRICT)
class Config:
    """The settings of one study.

    Parameters
    ----------
    question : str
        The text above the items.
    format : {"pair", "best", "rank"}
        Two items; the best of `size`; an order of `size`.
    tie, skip : bool
        Whether "equally good" (of pairs) and "skip" are offered.
    undo : int
        How many of their last answers participants may withdraw.
    repeat_share, random_share, check_share : float
        Shares of a person's questions that repeat an earlier one of theirs, that are drawn at
        random, and that are attention checks.
    apart : float in [0, 0.4]
        Ask only pairs with |P − ½| of at least this, for raters who are not trained to
        distinguish near-equals.
    answers_per_person, minutes_per_person : int or None
        Limits of one person's part.
    lease_seconds : int
        How long an open question counts as about to be answered.
    ahead : int
        How many questions are prepared for each person who is present.
    model : {"shared", "personal"}
        One set of utilities for all, or one for each person around shared ones.
    criterion : {"auto", "information_gain", "expected_best", ...}
        How questions are chosen; "auto" follows the goal.
    stop_top, stop_level : int, float
        Enough is known when the goal is reached with this probability; the goal "top" is the best
        `stop_top` items.
    close_when_enough : bool
        Close the study by itself then.
    reward : float or None
        Cost of one participant, in the owner's currency, for the plan.
    open_link : bool
        Whether everybody with the address may take part, or only invited people.
    language : str
        Of the page around the question; "auto" follows each browser. A language is a file in
        web/strings, or in the folder `strings` of the study.
    redirect : str
        Address to which a panel's participants return; `{id}` becomes the panel's id.
    mark_differences : bool
        Of two texts mark the words in which they differ.
    must_play : bool
        Audio and video must be played before an answer is taken.
    suggestions : bool
        Participants may suggest items; the owner decides about each.
    public_results : bool
        Show the ranking to everybody at /r/{study}, nothing about people.
    ask_first : tuple of AskFirst
        Questions to people before the first item: who they are, and whether they may take part.
    screened_out_code, screened_out_redirect : str
        For those whose part ends there, instead of `completion_code` and `redirect`.
    frame_ancestors : tuple of str
        Origins of sites that may show participants' pages in a frame.
    guard_joins : bool
        Whether joining takes the study's own form, and where many join from one address, some
        computing by the browser.
    goal : {"best", "top", "order"}
        What is to be found: the best item, the best `stop_top`, or the whole order. Questions and
        the stop rule follow it.
    """

    question: Text
    format: Format = "pair"
    size: Annotated[int, Field(ge=2, le=LARGEST_SET)] = 2
    tie: bool = True
    skip: bool = True
    undo: Annotated[int, Field(ge=0, le=1000)] = 10
    repeat_share: Share = 0.05
    random_share: Share = 0.1
    check_share: Share = 0.05
    checks: Annotated[
        tuple[Annotated[Check, BeforeValidator(_as_check)], ...], Field(strict=False)
    ] = ()
    apart: Annotated[float, Field(ge=0, le=0.4)] = 0.0
    answers_per_person: Limit | None = 40
    minutes_per_person: Limit | None = None
    lease_seconds: Annotated[int, Field(ge=5, le=86_400)] = 120
    ahead: Annotated[int, Field(ge=1, le=50)] = 3
    model: Model = "shared"
    criterion: Criterion | Literal["auto"] = "auto"
    stop_top: Annotated[int, Field(ge=1, le=10_000)] = 1
    stop_level: Annotated[float, Field(ge=0.5, le=0.999)] = 0.95
    close_when_enough: bool = False
    reward: Annotated[float, Field(ge=0, le=1_000_000)] | None = None
    open_link: bool = True
    language: Annotated[Text, AfterValidator(_language)] = FOLLOW_BROWSER
    welcome: Text = ""
    consent: Text = ""
    thanks: Text = ""
    completion_code: Text = ""
    redirect: Annotated[Text, AfterValidator(_whole_address)] = ""
    panel_parameters: Annotated[tuple[NotEmpty, ...], Field(strict=False)] = (
        *("PROLIFIC_PID", "participant", "pid"),
    )
    mark_differences: bool = False
    must_play: bool = False
    suggestions: bool = False
    public_results: bool = False
    ask_first: Annotated[
        tuple[Annotated[AskFirst, BeforeValidator(_as_first)], ...],
        Field(strict=False, max_length=50),
    ] = ()
    screened_out_code: Text = ""
    screened_out_redirect: Annotated[Text, AfterValidator(_whole_address)] = ""
    frame_ancestors: Annotated[
        tuple[Annotated[Text, AfterValidator(_origin)], ...], Field(strict=False, max_length=20)
    ] = ()
    guard_joins: bool = False
    goal: Goal = "best"

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise ValueError("the question is empty: say what people are to decide")
        if self.format == "pair" and self.size != 2:
            raise ValueError(f'size is {self.size}: a pair has 2 items; format "best" takes more')
        if self.repeat_share + self.random_share + self.check_share > 1.0:
            raise ValueError("repeat_share, random_share and check_share exceed 1 together")
        if len({asked.name for asked in self.ask_first}) < len(self.ask_first):
            raise ValueError("ask_first: every question must have a name of its own")

    @property
    def asked_by(self) -> Criterion:
        """The criterion by which questions are chosen.

        >>> Config("Which?", goal="order").asked_by, Config("Which?", criterion="random").asked_by
        ('information_gain', 'random')
        """
        return ASKED_BY[self.goal] if self.criterion == "auto" else self.criterion

    def to_json(self) -> dict[str, Any]:
        """The settings as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Config":
        """The settings from plain values; wrong values and unknown names raise a DataError.

        Without a goal, several items to find are the goal "top".

        >>> Config.from_json({"question": "Which?", "stop_top": 4}).goal
        'top'
        """
        if "goal" not in values and values.get("stop_top", 1) != 1:
            values = {**values, "goal": "top"}
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise DataError(
                f"{unknown[0]!r} is no setting of a study: there are {', '.join(sorted(known))}"
            )
        try:
            return cls(**values)
        except ValidationError as error:
            raise DataError(_explanation(error)) from None


def _explanation(error: ValidationError) -> str:
    """What the first wrong setting is, and what it must be."""
    first = error.errors()[0]
    what, got = " ".join(map(str, first["loc"])), first["input"]
    must = re.sub(r"^\w+ should", "it must", first["msg"].removeprefix("Value error, "))
    must = must.replace("Field required", "it must be given")
    if isinstance(got, ArgsKwargs):  # wrong as a whole
        return f"{what}: {must}" if what else must
    return f"{what} is {got!r}: {must}"
