"""Best and worst: a row names both, and in further columns all that was shown."""

import re
from collections.abc import Sequence

from penchant.io.formats.ballots import Ballots, Sheet, ballot_shape, one_each
from penchant.io.recognise import listed

_ENDS = (("best", "most"), ("worst", "least"))
_SHOWN = re.compile(
    r"(item|option|alternative|product|shown|candidate)[ _#]*([0-9]+|[a-z])", re.IGNORECASE
)


def _columns(names: Sequence[str], user: str | None) -> list[str]:
    ends = one_each(names, _ENDS)
    return ends + [name for name in names if _SHOWN.fullmatch(name.strip())] if ends else []


@ballot_shape(
    "best-worst",
    "a row names the best and the worst of the items in its other columns",
    "best, worst, item_1, item_2, item_3 …",
    _columns,
    least=2,
)
def _read(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    rankings, users = [], []
    for row, user, (best, worst, *cells) in sheet.rows(columns):
        with sheet.one_row():
            shown = [item for item in cells if item]
            for column, item in zip(columns, (best, worst), strict=False):
                if not item or (shown and item not in shown):
                    among = f", one of {listed(shown)}" if shown else ""
                    raise sheet.wrong(column, row, item, f"name an item that was shown{among}")
            if best == worst:
                raise sheet.wrong(columns[1], row, worst, "differ from the best")
            others = [item for item in shown if item not in (best, worst)]
            rankings.append([[best], others, [worst]] if others else [[best], [worst]])
            users.append(user)
    said = f"{len(rankings):,} choices of a best and a worst item"
    return Ballots(rankings, users, said, tied=False)
