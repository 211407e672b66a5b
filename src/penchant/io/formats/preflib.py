"""PrefLib files of orders: .soc .soi .toc .toi."""

import re
from pathlib import Path

import numpy as np

from penchant.data import MOST, Comparisons, merge_rankings
from penchant.errors import DataError

SUFFIXES = (".soc", ".soi", ".toc", ".toi")

_NUMBER = r"[0-9]{1,15}"  # fifteen digits are fewer than build.MOST
_NAME = re.compile(rf"#\s*ALTERNATIVE NAME ({_NUMBER}):\s*(.*?)\s*$")
_VOTE = re.compile(rf"({_NUMBER})\s*:(.*)")
_PLACE = re.compile(rf"\{{([^{{}}]*)\}}|({_NUMBER})")  # a group of tied alternatives, or one
_TIED = rf"\{{\s*{_NUMBER}(?:\s*,\s*{_NUMBER})*\s*\}}"
_ORDER = re.compile(rf"\s*(?:{_TIED}|{_NUMBER})(?:\s*,\s*(?:{_TIED}|{_NUMBER}))*\s*")


def read_preflib(path: Path) -> Comparisons:
    """Read the votes of a PrefLib file; each order counts as often as it was cast.

    Within an order all listed alternatives are compared; an alternative that an incomplete
    order leaves out is not compared by it.
    """
    names, orders, votes = _parse(path)
    if not orders:
        raise DataError(f"{path} holds no votes: lines such as '12: 1,{{2,3}},4' must follow the #")
    numbers = sorted(names)
    size = max(sum(map(len, order)) for order in orders)
    if sum(votes) * max(1, size * (size - 1) // 2) > MOST:
        raise DataError(f"{path} holds more than {MOST} votes: that cannot be counted")
    read = merge_rankings(orders, None, numbers, count=np.array(votes, dtype=np.intp))
    named = tuple(map(names.__getitem__, numbers))
    return Comparisons.from_table(*read._replace(items=named))


def _parse(path: Path) -> tuple[dict[int, str], list[list[list[int]]], list[int]]:
    names: dict[int, str] = {}
    orders: list[list[list[int]]] = []
    votes: list[int] = []
    for number, line in enumerate(_lines(path), start=1):
        if name := _NAME.match(line):
            if int(name[1]) in names:
                raise DataError(f"{path} line {number} names alternative {name[1]} again")
            names[int(name[1])] = name[2] or name[1]
        elif line.strip() and not line.startswith("#"):
            vote = _VOTE.fullmatch(line.strip())
            if vote is None or not _ORDER.fullmatch(vote[2]) or int(vote[1]) < 1:
                raise DataError(
                    f"{path} line {number} is {line[:60]!r}: a vote must look like "
                    "'12: 1,{2,3},4' (how many voters, then the order, in numbers of at most 15 "
                    "digits)"
                )
            votes.append(int(vote[1]))
            orders.append(_places(vote[2]))
    listed = {i for order in orders for tied in order for i in tied}
    for i in sorted(listed - set(names)):
        raise DataError(
            f"{path} has votes for alternative {i}, but no line '# ALTERNATIVE NAME {i}'"
        )
    if len(set(names.values())) < len(names):
        raise DataError(f"{path} gives two alternatives the same name: every name must be unique")
    return names, orders, votes


def _lines(path: Path) -> list[str]:
    try:
        # a name may hold what splitlines takes for the end of a line, such as U+2028
        return path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not text in UTF-8 ({error}): save it as UTF-8") from None


def _places(order: str) -> list[list[int]]:
    return [
        [int(alternative) for alternative in (tied or single).split(",") if alternative.strip()]
        for tied, single in _PLACE.findall(order)
    ]
