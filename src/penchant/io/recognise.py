"""Which column of a table plays which role, what the caller says of it, and the list of shapes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from penchant.errors import DataError
from penchant.io.source import Where, find_column, listed, parse_where, plain

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
    by_spelling = {bare(column): column for column in reversed(available)}
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
    by_spelling = {bare(column): column for column in reversed(available)}
    found: dict[tuple[str, str], None] = {}
    for word, column in by_spelling.items():
        for one, two in SIDES:
            others = [word[: -len(one)] + two] if word.endswith(one) else []
            others += [two + word[len(one) :]] if word.startswith(one) else []
            found |= {(column, by_spelling[o]): None for o in others if o in by_spelling}
    return list(found)


def bare(column: str) -> str:
    """A column's name without case, spaces and marks."""
    return re.sub(r"[\W_]+", "", column).casefold()


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
