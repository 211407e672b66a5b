"""Which column of a table plays which role."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from penchant.data.names import closest
from penchant.errors import DataError

# Spellings that are recognised, compared without case, spaces, underscores and a final "id".
SPELLINGS = {
    "winner": ("winner", "preferred", "chosen", "better", "win", "won", "selected"),
    "loser": ("loser", "other", "rejected", "worse", "lose", "lost"),
    "user": ("user", "rater", "judge", "voter", "annotator", "worker", "person", "respondent"),
    "tie": ("tie", "tied", "draw"),
    "count": ("count", "n", "times"),
}
# These mean winner and loser only when they stand together and nothing clearer is there.
PAIRED_SPELLINGS = (("first", "second"), ("a", "b"))


def choose_columns(
    available: Sequence[str],
    asked: Mapping[str, str | None],
    *,
    guess: bool,
    table: str = "the table",
) -> dict[str, str]:
    """Return the column for each role: the one asked for, or where allowed the one it looks like.

    table : what messages call the table.

    >>> choose_columns(["Rater ID", "chosen", "rejected"], {"user": None}, guess=True)
    {'winner': 'chosen', 'loser': 'rejected', 'user': 'Rater ID'}
    """
    by_spelling = {_plain(column): column for column in reversed(available)}
    chosen: dict[str, str] = {}
    for role in SPELLINGS:
        name = asked.get(role)
        if name is not None:
            chosen[role] = _named(name, role, available, table)
        elif guess:
            spelling = next((word for word in SPELLINGS[role] if word in by_spelling), None)
            chosen |= {} if spelling is None else {role: by_spelling[spelling]}
    if guess and "winner" not in chosen and "loser" not in chosen:
        for winner, loser in PAIRED_SPELLINGS:
            if winner in by_spelling and loser in by_spelling:
                chosen |= {"winner": by_spelling[winner], "loser": by_spelling[loser]}
                break
    lacking = [role for role in ("winner", "loser") if role not in chosen]
    if lacking:
        raise DataError(
            f"{table} has no column that is recognised as the {' or the '.join(lacking)}: its "
            f"columns are {_listed(available)}; say which it is, as in "
            f"{_suggested(lacking, available, chosen)}, and check that the first line names the "
            "columns"
        )
    _refuse_double_roles(chosen)
    return {role: chosen[role] for role in SPELLINGS if role in chosen}


def _plain(column: str) -> str:
    plain = re.sub(r"[\W_]+", "", column).casefold()
    return plain.removesuffix("id") or plain


def _named(name: str, role: str, available: Sequence[str], table: str) -> str:
    if name in available:
        return name
    by_spelling = {_plain(column): column for column in reversed(available)}
    if _plain(name) in by_spelling:
        return by_spelling[_plain(name)]
    raise DataError(
        f"{table} has no column {name!r} for the {role}{closest(name, available)}: its columns "
        f"are {_listed(available)}"
    )


def _suggested(lacking: Sequence[str], available: Sequence[str], chosen: Mapping[str, str]) -> str:
    """Which columns may be meant: those of a similar name, else those left over, in order."""
    left = [column for column in available if column not in chosen.values()]
    words = []
    for role in lacking:
        near = get_close_matches(role, map(str.casefold, left), n=1)
        at = [column.casefold() for column in left].index(near[0]) if near else 0
        words.append(f"{role}={left.pop(at) if left else 'NAME'!r}")
    return ", ".join(words)


def _refuse_double_roles(chosen: dict[str, str]) -> None:
    role_of: dict[str, str] = {}
    for role, column in chosen.items():
        if column in role_of:
            raise DataError(
                f"column {column!r} cannot be both {role_of[column]} and {role}: name two "
                "different columns"
            )
        role_of[column] = role


def _listed(available: Sequence[str]) -> str:
    return ", ".join(map(repr, available)) if available else "none"
