"""Approvals: a cell lists all that a person likes, out of what anybody lists."""

import re
from collections.abc import Sequence

from penchant.errors import DataError
from penchant.io.formats.ballots import Ballots, Sheet, ballot_shape
from penchant.io.recognise import listed

_APPROVAL = re.compile(
    r"\b(?:select|choose|check|tick|mark)\s+all\b|\ball (?:that|you)\b", re.IGNORECASE
)


def _columns(names: Sequence[str], user: str | None) -> list[str]:
    return [name for name in names if _APPROVAL.search(name)]


@ballot_shape(
    "approvals",
    "a row is a person, a cell lists all the items that they like",
    "user, and one whose name holds 'like' or 'approve'",
    _columns,
    takes_all=True,
)
def _read(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    if len(columns) != 1:
        raise DataError(
            f"{sheet.name} has {len(columns)} columns of lists, {listed(columns)}: it must have "
            "one; make a table of each"
        )
    cells = [cell for *_, (cell,) in sheet.rows(columns)]
    mark = next((m for m in ";|" if any(m in cell for cell in cells)), ",")
    lists = [dict.fromkeys(i.strip() for i in cell.split(mark) if i.strip()) for cell in cells]
    known = sorted({item for liked in lists for item in liked})
    rankings, users = [], []
    for user, liked in zip(sheet.users, lists, strict=True):
        others = [item for item in known if item not in liked]
        if liked and others:
            rankings.append([list(liked), others])
            users.append(user)
    said = f"{len(cells):,} lists of what is liked among {len(known)} items"
    return Ballots(rankings, users, said, tied=False)
