"""What the owner of a study decides: the question, its form, limits and checks."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from penchant.errors import DataError

FORMATS = ("pair", "best", "rank")
MODELS = ("shared", "personal")
LANGUAGES = ("en", "de")
FOLLOW_BROWSER = "auto"
LARGEST_SET = 8


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
        object.__setattr__(self, "options", tuple(map(str, self.options)))
        if len(self.options) < 2 or not all(self.options):
            raise DataError(
                f"the check {self.prompt!r} has the options {list(self.options)}: it needs at "
                "least two, none of them empty"
            )
        if not isinstance(self.right, int) or not 0 <= self.right < len(self.options):
            raise DataError(
                f"the check {self.prompt!r} says that option {self.right!r} is right: it must be "
                f"a position from 0 to {len(self.options) - 1}"
            )


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

    question: str
    format: str = "pair"
    size: int = 2
    tie: bool = True
    skip: bool = True
    undo: int = 10
    repeat_share: float = 0.05
    random_share: float = 0.1
    check_share: float = 0.05
    checks: tuple[Check, ...] = ()
    apart: float = 0.0
    answers_per_person: int | None = 40
    minutes_per_person: int | None = None
    lease_seconds: int = 120
    ahead: int = 3
    model: str = "shared"
    criterion: str = "information_gain"
    stop_top: int = 1
    stop_level: float = 0.95
    close_when_enough: bool = False
    reward: float | None = None
    open_link: bool = True
    language: str = FOLLOW_BROWSER
    welcome: str = ""
    consent: str = ""
    thanks: str = ""
    completion_code: str = ""
    redirect: str = ""
    panel_parameters: tuple[str, ...] = field(default=("PROLIFIC_PID", "participant", "pid"))

    def __post_init__(self) -> None:
        checks = (c if isinstance(c, Check) else _as_check(c) for c in self.checks)
        object.__setattr__(self, "checks", tuple(checks))
        object.__setattr__(self, "panel_parameters", tuple(self.panel_parameters))
        self._check_texts()
        self._check_choices()
        self._check_numbers()

    def _check_texts(self) -> None:
        for f in fields(self):
            if f.type is str and not isinstance(getattr(self, f.name), str):
                raise DataError(f"{f.name} is {getattr(self, f.name)!r}: it must be text")
            if f.type is bool and not isinstance(getattr(self, f.name), bool):
                raise DataError(f"{f.name} is {getattr(self, f.name)!r}: it must be true or false")
        if not self.question.strip():
            raise DataError("the question is empty: say what people are to decide")
        url = urlsplit(self.redirect)
        if self.redirect and (url.scheme not in ("http", "https") or not url.netloc):
            raise DataError(
                f"redirect is {self.redirect!r}: it must be a whole address that starts with "
                "https://"
            )

    def _check_choices(self) -> None:
        for name, known in (
            ("format", FORMATS),
            ("model", MODELS),
            ("language", (FOLLOW_BROWSER, *LANGUAGES)),
        ):
            if getattr(self, name) not in known:
                raise DataError(
                    f"{name} is {getattr(self, name)!r}: it must be one of {', '.join(known)}"
                )
        if self.format == "pair" and self.size != 2:
            raise DataError(f'size is {self.size}: a pair has 2 items; format "best" takes more')
        if not 2 <= self.size <= LARGEST_SET:
            raise DataError(f"size is {self.size}: a question shows 2 to {LARGEST_SET} items")

    def _check_numbers(self) -> None:
        for name in ("repeat_share", "random_share", "check_share"):
            _expect(name, getattr(self, name), 0.0, 1.0)
        if self.repeat_share + self.random_share + self.check_share > 1.0:
            raise DataError("repeat_share, random_share and check_share exceed 1 together")
        _expect("apart", self.apart, 0.0, 0.4)
        _expect("stop_level", self.stop_level, 0.5, 0.999)
        for name, low, high in (("undo", 0, 1000), ("ahead", 1, 50), ("lease_seconds", 5, 86_400)):
            _expect(name, getattr(self, name), low, high)
        _expect("stop_top", self.stop_top, 1, 10_000)
        for name in ("answers_per_person", "minutes_per_person", "reward"):
            if getattr(self, name) is not None:
                _expect(name, getattr(self, name), 0 if name == "reward" else 1, 1_000_000)

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


def _as_check(values: Any) -> Check:
    if not isinstance(values, Mapping) or set(values) != {"prompt", "options", "right"}:
        raise DataError(
            f"a check is {values!r}: it must have a prompt, options and the position of the right "
            'one, as {"prompt": "…", "options": ["…", "…"], "right": 0}'
        )
    return Check(**values)


def _expect(name: str, value: Any, low: float, high: float) -> None:
    whole = isinstance(low, int)
    right_type = isinstance(value, int) if whole and name != "reward" else True
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not right_type or not low <= value <= high:
        kind = "a whole number" if whole else "a number"
        raise DataError(f"{name} is {value!r}: it must be {kind} from {low} to {high}")
