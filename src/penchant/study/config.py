"""What the owner of a study decides: the question, its form, limits and checks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from penchant.errors import DataError

FORMATS = ("pair", "best", "rank")
MODELS = ("shared", "personal")
LANGUAGES = ("en", "de")
FOLLOW_BROWSER = "auto"
LARGEST_SET = 8
CRITERIA = ("variance_ratio", "information_gain", "expected_best", "thompson", "random")
"""Those of `penchant.ask`, named here because web processes load no numerics."""


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise DataError(f"{name} is {value!r}: it must be text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise DataError(f"{name} is {value!r}: it holds half a character, not text") from None
    return value


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(value):
        raise DataError(f"{name} is {value!r}: it must be a list of texts, none of them empty")
    return tuple(_text(name, text) for text in value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise DataError(f"{name} is {value!r}: it must be true or false")
    return value


def _one_of(*known: str) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise DataError(f"{name} is {value!r}: it must be one of {', '.join(known)}")
        return value

    return check


def _number(low: float, high: float, *, optional: bool = False) -> Callable[[str, Any], Any]:
    """A number from low to high, whole where low is; optional: or None."""

    def check(name: str, value: Any) -> Any:
        whole = isinstance(low, int)
        right_type = isinstance(value, int if whole else int | float)
        if value is None and optional:
            return value
        if not right_type or isinstance(value, bool) or not low <= value <= high:
            kind = "a whole number" if whole else "a number"
            none = ", or null" if optional else ""
            raise DataError(f"{name} is {value!r}: it must be {kind} from {low} to {high}{none}")
        return value

    return check


def _address(name: str, value: Any) -> str:
    url = urlsplit(_text(name, value))
    if value and (url.scheme not in ("http", "https") or not url.netloc):
        raise DataError(
            f"{name} is {value!r}: it must be a whole address that starts with https://"
        )
    return str(value)


@dataclass(frozen=True)
class Check:
    """An attention check that the owner writes: options of plain text, one of them right.

    >>> Check("Choose the second one.", ("first", "second"), right=1).right
    1
    """

    prompt: str
    options: tuple[str, ...]
    right: int

    def __post_init__(self) -> None:
        _text("the prompt of a check", self.prompt)
        object.__setattr__(self, "options", _texts("the options of a check", self.options))
        if len(self.options) < 2:
            raise DataError(
                f"the check {self.prompt!r} has the options {list(self.options)}: it needs at "
                "least two"
            )
        if type(self.right) is not int or not 0 <= self.right < len(self.options):
            raise DataError(
                f"the check {self.prompt!r} says that option {self.right!r} is right: it must be "
                f"a position from 0 to {len(self.options) - 1}"
            )


def _checks(name: str, value: Any) -> tuple[Check, ...]:
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
        raise DataError(f"{name} is {value!r}: it must be a list of checks")
    return tuple(check if isinstance(check, Check) else _as_check(check) for check in value)


def _as_check(values: Any) -> Check:
    if not isinstance(values, Mapping) or set(values) != {"prompt", "options", "right"}:
        raise DataError(
            f"a check is {values!r}: it must have a prompt, options and the position of the right "
            'one, as {"prompt": "…", "options": ["…", "…"], "right": 0}'
        )
    return Check(**values)


def _setting(default: Any, check: Callable[[str, Any], Any]) -> Any:
    """A setting and what it must be: the check returns the value to keep, or raises."""
    return field(default=default, metadata={"check": check})


_SHARE, _MANY = _number(0.0, 1.0), 1_000_000


@dataclass(frozen=True)
class Config:
    """The settings of one study.

    Parameters
    ----------
    question : str
        What participants are asked, above the items.
    format : {"pair", "best", "rank"}
        Two items; the best of `size`; an order of `size`.
    tie, skip : bool
        Whether "equally good" (of pairs) and "skip" are offered.
    undo : int
        How many of their last answers participants may take back; 0: none.
    repeat_share, random_share, check_share : float
        Shares of a person's questions that repeat an earlier one of theirs, that are drawn at
        random, and that are attention checks.
    apart : float in [0, 0.4]
        Keeps pairs away from even: asked only where |P − ½| is at least this, for raters who
        are not trained to tell near-equals.
    answers_per_person, minutes_per_person : int or None
        Limits of one person's part.
    lease_seconds : int
        How long a question that was shown counts as about to be answered.
    ahead : int
        How many questions are kept prepared for each person who is here.
    model : {"shared", "personal"}
        One taste for all, or one for each person around a shared one.
    stop_top, stop_level : int, float
        Enough is known when the best `stop_top` are settled with this probability.
    close_when_enough : bool
        Close the study by itself then.
    reward : float or None
        What one person's part costs, in the owner's money: for the plan.
    open_link : bool
        Whether everybody who knows the address may take part, or only who was invited.
    language : {"auto", "en", "de"}
        Of everything around the question; "auto" follows each browser.
    redirect : str
        Where a panel's participants go when they are done; `{id}` becomes the panel's own id.
    """

    question: str = field(metadata={"check": _text})
    format: str = _setting("pair", _one_of(*FORMATS))
    size: int = _setting(2, _number(2, LARGEST_SET))
    tie: bool = _setting(True, _flag)
    skip: bool = _setting(True, _flag)
    undo: int = _setting(10, _number(0, 1000))
    repeat_share: float = _setting(0.05, _SHARE)
    random_share: float = _setting(0.1, _SHARE)
    check_share: float = _setting(0.05, _SHARE)
    checks: tuple[Check, ...] = _setting((), _checks)
    apart: float = _setting(0.0, _number(0.0, 0.4))
    answers_per_person: int | None = _setting(40, _number(1, _MANY, optional=True))
    minutes_per_person: int | None = _setting(None, _number(1, _MANY, optional=True))
    lease_seconds: int = _setting(120, _number(5, 86_400))
    ahead: int = _setting(3, _number(1, 50))
    model: str = _setting("shared", _one_of(*MODELS))
    criterion: str = _setting("information_gain", _one_of(*CRITERIA))
    stop_top: int = _setting(1, _number(1, 10_000))
    stop_level: float = _setting(0.95, _number(0.5, 0.999))
    close_when_enough: bool = _setting(False, _flag)
    reward: float | None = _setting(None, _number(0.0, float(_MANY), optional=True))
    open_link: bool = _setting(True, _flag)
    language: str = _setting(FOLLOW_BROWSER, _one_of(FOLLOW_BROWSER, *LANGUAGES))
    welcome: str = _setting("", _text)
    consent: str = _setting("", _text)
    thanks: str = _setting("", _text)
    completion_code: str = _setting("", _text)
    redirect: str = _setting("", _address)
    panel_parameters: tuple[str, ...] = _setting(("PROLIFIC_PID", "participant", "pid"), _texts)

    def __post_init__(self) -> None:
        for it in fields(self):
            object.__setattr__(self, it.name, it.metadata["check"](it.name, getattr(self, it.name)))
        if not self.question.strip():
            raise DataError("the question is empty: say what people are to decide")
        if self.format == "pair" and self.size != 2:
            raise DataError(f'size is {self.size}: a pair has 2 items; format "best" takes more')
        if self.repeat_share + self.random_share + self.check_share > 1.0:
            raise DataError("repeat_share, random_share and check_share exceed 1 together")

    def to_json(self) -> dict[str, Any]:
        """The settings as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Config":
        """The settings from plain values; an unknown name is an error.

        >>> Config.from_json({"question": "Which?", "format": "best", "size": 4}).size
        4
        """
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise DataError(
                f"{unknown[0]!r} is no setting of a study: there are {', '.join(sorted(known))}"
            )
        return cls(**values)
