"""Which column of a table plays which role, what the caller says of it, and the list of shapes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import isfinite
from typing import Any

from penchant.data import closest
from penchant.errors import DataError
from penchant.io.source import Source, as_number, literal

SHAPES: dict[str, str] = {}
"""What `shape=` can say, and how the rows of such a table are meant; filled by `io.formats`."""
WANTED: dict[str, str] = {}
"""Names of columns that make a table of each shape."""

# Spellings that are recognised, compared without case, spaces, underscores and a final "id".
SPELLINGS = {
    "winner": (
        *("winner", "preferred", "chosen", "better", "win", "won", "selected", "winnername"),
        *("winningteam", "winningplayer", "winningmodel", "winningitem", "winneritem"),
    ),
    "loser": (
        *("loser", "other", "rejected", "worse", "lose", "lost", "losername"),
        *("losingteam", "losingplayer", "losingmodel", "losingitem", "loseritem"),
    ),
    "user": ("user", "rater", "judge", "voter", "annotator", "worker", "person", "respondent"),
    "tie": ("tie", "tied", "draw"),
    "count": ("count", "n", "times"),
}
# These mean winner and loser only when they stand together and nothing clearer is there.
PAIRED_SPELLINGS = (("first", "second"), ("a", "b"))
# Where two columns name the items, this one says which of them won.
OUTCOME_SPELLINGS = (
    *("winner", "outcome", "result", "choice", "preference", "preferred", "chosen", "vote"),
    *("verdict", "judgment", "judgement", "decision", "selected", "better", "ftr"),
)
# So do these, where none of those is there.
VAGUE_OUTCOMES = (
    *("score", "points", "label", "answer", "rating", "res", "selection", "pick", "picked"),
    *("chosenoption", "chosenside", "selectedoption", "winnerside", "winningside", "winninganswer"),
)
# Where winners are named, this one says how clearly they won, in words.
STRENGTH_SPELLINGS = (
    *("strength", "preferencestrength", "strengthofpreference", "degree", "intensity"),
    *("howmuch", "howmuchbetter", "margin"),
)
# Where winners are named, this one names the item that was shown first, as a study's export does.
SHOWN_FIRST = "shownfirst"
ITEM_STEMS = (
    *("model", "item", "option", "alternative", "candidate", "product", "player", "team", "system"),
    *("", "name", "image", "text", "answer", "response", "completion"),
)
ITEM_WORDS = ("item", "option", "candidate", "alternative", "product", "name", "choice")
SCORE_STEMS = ("score", "goals", "goal", "points", "teamscore", "teamgoals", "ft?g", "?g")
SIDES = (
    *(("a", "b"), ("1", "2"), ("left", "right"), ("first", "second"), ("home", "away")),
    *(("one", "two"), ("white", "black"), ("h", "a"), ("player", "opponent"), ("team", "opponent")),
)


_SHOWN, _LONG = 30, 80  # columns that a message lists, and letters of each


def find_column(name: str, role: str, available: Sequence[str], table: str) -> str:
    """Return the column that is asked for, spelled as the table spells it."""
    if name in available:
        return name
    by_spelling = {plain(column): column for column in reversed(available)}
    if plain(name) in by_spelling:
        return by_spelling[plain(name)]
    raise DataError(
        f"{table} has no column {name!r} for the {role}{closest(name, available)}: its columns "
        f"are {listed(available)}"
    )


def letters(column: str) -> str:
    """A column's name without case, spaces and marks."""
    return re.sub(r"[\W_]+", "", column).casefold()


def plain(column: str) -> str:
    """A column's name without case, spaces, marks and a final "id"."""
    return letters(column).removesuffix("id") or letters(column)


def listed(available: Sequence[str]) -> str:
    """The columns' names as a message shows them."""
    shown = [repr(name if len(name) <= _LONG else f"{name[:_LONG]}…") for name in available]
    more = [f"… and {len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
    return ", ".join([*shown[:_SHOWN], *more]) if shown else "none"


_QUOTED = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
_TEST = re.compile(
    rf"\s*(?P<column>{_QUOTED}|[^=<>!'\"();]+?)\s*(?P<op>==|!=|<>|<=|>=|=|<|>)\s*"
    rf"(?P<value>{_QUOTED}|[^=<>!'\"();]*?)\s*(?:\b(?P<join>and|or)\b|$)",
    re.IGNORECASE | re.DOTALL,
)
_SQL = {"==": "=", "!=": "<>"}
_FORM = (
    "it must look like language = en and turns > 2 (and, or; = != < <= > >=; quotes are optional)"
)
_MOST_SEGMENTS = 100  # parts of a file; a column with more values is an id or a number


@dataclass(frozen=True)
class CellTest:
    """A cell of a column held against a value."""

    column: str
    op: str
    value: str

    def sql(self, source: Source) -> str:
        """Return SQL that is true or false for every row, never NULL: an empty cell is ''."""
        column = source[find_column(self.column, "where", source.names, source.name)]
        cell = f"coalesce(trim({column.text}), '')"
        value, number = literal(self.value), _finite(self.value)
        op = _SQL.get(self.op, self.op)
        if number is None:  # texts, such as dates, are in the order of their letters
            return f"({cell} {op} {value})"
        if op in ("=", "<>"):
            same = f"{cell} = {value} OR coalesce({as_number(cell)} = {number!r}, false)"
            return f"({same})" if op == "=" else f"(NOT ({same}))"
        return f"(coalesce({as_number(cell)} {op} {number!r}, false))"


Where = tuple[tuple[CellTest, ...], ...]
"""Any of these, each of which is all of its tests."""


def parse_where(text: str | None) -> Where:
    """Return the tests in a text; `and` binds closer than `or`.

    >>> [[(t.column, t.op, t.value) for t in each] for each in parse_where("a = x or n >= 2")]
    [[('a', '=', 'x')], [('n', '>=', '2')]]
    """
    if text is None:
        return ()
    found, place, every = [[]], 0, True  # type: ignore[var-annotated]
    while every:
        match = _TEST.match(text, place)
        if match is None:
            raise DataError(f"where is {text!r}, which cannot be read at {text[place:]!r}: {_FORM}")
        found[-1].append(
            CellTest(_unquoted(match["column"]), match["op"], _unquoted(match["value"]))
        )
        found += [[]] if (match["join"] or "").casefold() == "or" else []
        place, every = match.end(), bool(match["join"])
    return tuple(map(tuple, found))


def _unquoted(word: str) -> str:
    word = word.strip()
    mark = word[:1]
    return word[1:-1].replace(mark * 2, mark) if mark in ("'", '"') else word


def _finite(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if isfinite(number) else None


def filtered(con: Any, source: Source, where: Where) -> Source:
    """Return the rows of a table that pass the condition, which messages then name."""
    if not where:
        return source
    either = " OR ".join("(" + " AND ".join(t.sql(source) for t in each) + ")" for each in where)
    rows = f"(SELECT * FROM {source.sql} WHERE {either})"
    if not con.execute(f"SELECT count(*) FROM {rows}").fetchone()[0]:
        raise DataError(f"no row of {source.name} is one where {written(where)}: {_FORM}")
    return replace(source, sql=rows, name=f"{source.name} where {written(where)}")


def written(where: Where) -> str:
    """Return the condition as a person would write it."""
    return " or ".join(" and ".join(f"{t.column} {t.op} {t.value}" for t in each) for each in where)


def segments_of(con: Any, source: Source, by: str) -> tuple[str, list[str]]:
    """Return the column's name and the different texts in it, those of most rows first."""
    name = find_column(by, "by", source.names, source.name)
    cell = f"coalesce(trim({source[name].text}), '')"
    found = con.execute(
        f"SELECT {cell} AS cell FROM {source.sql} GROUP BY cell ORDER BY count(*) DESC, cell "
        f"LIMIT {_MOST_SEGMENTS + 1}"
    ).fetchall()
    if len(found) > _MOST_SEGMENTS:
        raise DataError(
            f"column {name!r} of {source.name} has more than {_MOST_SEGMENTS} different values: "
            "segments must be fewer; choose another column, or select some rows with where="
        )
    return name, [cell for (cell,) in found]


def within(where: Where, column: str, value: str) -> Where:
    """Return the rows of `where` in one segment."""
    return tuple((*each, CellTest(column, "=", value)) for each in where or ((),))


@dataclass(frozen=True)
class ReadOptions:
    """What the caller says about a table.

    columns : by role; "time", "margin" and "first" are read only when named here. covariates : a
    column each, or "one - other". where : which rows to read.
    """

    columns: Mapping[str, str | None]
    covariates: tuple[str, ...] = ()
    shape: str | None = None
    skip_bad: bool = False
    where: Where = ()

    @classmethod
    def of(
        cls,
        *,
        covariates: Sequence[str] = (),
        shape: str | None = None,
        skip_bad: bool = False,
        where: str | None = None,
        **columns: str | None,
    ) -> "ReadOptions":
        """From the arguments of `read_comparisons`."""
        if shape is not None and shape not in SHAPES:
            known = "; ".join(f"{name!r}: {meaning}" for name, meaning in SHAPES.items())
            raise DataError(f"shape is {shape!r}: it must be one of {known}")
        return cls(columns, tuple(covariates), shape, skip_bad, parse_where(where))


def choose_columns(
    available: Sequence[str], asked: Mapping[str, str | None], table: str = "the table"
) -> dict[str, str]:
    """Return the column for each role: the one asked for, or the one it looks like.

    table : what messages call the table.

    >>> choose_columns(["Rater ID", "chosen", "rejected"], {"user": None})
    {'winner': 'chosen', 'loser': 'rejected', 'user': 'Rater ID'}
    """
    by_spelling = {plain(column): column for column in reversed(available)}
    chosen = find_roles(available, asked, tuple(SPELLINGS), table)
    if "winner" not in chosen and "loser" not in chosen:
        for winner, loser in PAIRED_SPELLINGS:
            if winner in by_spelling and loser in by_spelling:
                chosen |= {"winner": by_spelling[winner], "loser": by_spelling[loser]}
                break
    lacking = [role for role in ("winner", "loser") if role not in chosen]
    if lacking:
        raise DataError(
            f"{table} has no column that is recognised as the {' or the '.join(lacking)}: its "
            f"columns are {listed(available)}; say which it is, as in "
            f"{_suggested(lacking, available, chosen)}, and check that the first line names the "
            "columns"
        )
    refuse_double_roles(chosen)
    return {role: chosen[role] for role in SPELLINGS if role in chosen}


def find_roles(
    available: Sequence[str], asked: Mapping[str, str | None], roles: Sequence[str], table: str
) -> dict[str, str]:
    """Return the columns that are asked for, or look like one of the roles."""
    by_spelling = {plain(column): column for column in reversed(available)}
    chosen: dict[str, str] = {}
    for role in roles:
        name = asked.get(role)
        if name is not None:
            chosen[role] = find_column(name, role, available, table)
        elif found := [by_spelling[word] for word in SPELLINGS[role] if word in by_spelling]:
            chosen[role] = found[0]
    return chosen


def find_sides(available: Sequence[str], stems: Sequence[str]) -> tuple[str, str] | None:
    """Return two columns that differ only in their side, as model_a and model_b do.

    >>> find_sides(["id", "HomeTeam", "AwayTeam"], ITEM_STEMS)
    ('HomeTeam', 'AwayTeam')
    """
    by_spelling = {letters(column): column for column in reversed(available)}
    for stem in stems:
        for one, two in SIDES:
            if "?" in stem:
                ways = [(stem.replace("?", one), stem.replace("?", two))]
            else:
                ways = [(stem + one, stem + two), (one + stem, two + stem)]
            for first, second in ways:
                if first in by_spelling and second in by_spelling:
                    return by_spelling[first], by_spelling[second]
    return None


def all_sides(available: Sequence[str]) -> list[tuple[str, str]]:
    """Return all pairs of columns that differ only in their side.

    >>> all_sides(["photo_a", "photo_b", "winner"])
    [('photo_a', 'photo_b')]
    """
    by_spelling = {letters(column): column for column in reversed(available)}
    found: dict[tuple[str, str], None] = {}
    for word, column in by_spelling.items():
        for one, two in SIDES:
            others = [word[: -len(one)] + two] if word.endswith(one) else []
            others += [two + word[len(one) :]] if word.startswith(one) else []
            found |= {(column, by_spelling[o]): None for o in others if o in by_spelling}
    return list(found)


def _suggested(lacking: Sequence[str], available: Sequence[str], chosen: Mapping[str, str]) -> str:
    """Which columns may be meant: those of a similar name, or the only two, in order.

    What merely stands there may be a side, a rank or a time, and ranking those is worse than none.
    """
    left = {column.casefold(): column for column in available if column not in chosen.values()}
    only_two = len(available) == 2 and not any(map(_TIMES.search, available))
    words = []
    for role in lacking:
        near = get_close_matches(role, left, n=1) or (list(left)[:1] if only_two else [])
        words.append(f"{role}={left.pop(near[0]) if near else 'NAME'!r}")
    return ", ".join(words)


_TIMES = re.compile(r"time|date|stamp|created|updated|\bday|\byear", re.IGNORECASE)


def refuse_double_roles(chosen: Mapping[str, str]) -> None:
    """Raise where one column was chosen for two roles."""
    role_of: dict[str, str] = {}
    for role, column in chosen.items():
        if column in role_of:
            raise DataError(
                f"column {column!r} cannot be both {role_of[column]} and {role}: name two "
                "different columns"
            )
        role_of[column] = role
