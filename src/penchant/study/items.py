"""Reading a list of items: names, what to show of them, and numbers that describe them."""

import csv
import io
import math
from pathlib import Path

from penchant.errors import DataError
from penchant.study import media
from penchant.study.store.studies import NewItem

NAMES = ("name", "item", "id", "title")
SHOWN = ("text", "markdown", "html", "image", "audio", "video")
FILES = ("image", "audio", "video")


def read_items(path: Path, media_folder: Path) -> tuple[list[NewItem], list[str]]:
    """Items of a CSV file, and notes on what of it was left aside.

    A column `name` (or the first one) names the items; `text`, `markdown`, `html`, `image`,
    `audio` or `video` says what to show, the last three as files beside the CSV; every other
    column that holds numbers only is a feature, from which the model learns. A list whose first
    line names no columns is all items.
    """
    header, rows, first_line = _rows(path)
    name_column = next((h for h in header if h.lower() in NAMES), header[0])
    shown = [h for h in header if h.lower() in SHOWN and h != name_column]
    others = [h for h in header if h != name_column and h not in shown]
    features = [h for h in others if all(_number(row[h]) is not None for row in rows)]
    notes = [f"{path.name} begins with no names of columns: every line is an item"]
    notes = notes if first_line == 1 else []
    notes += [
        f"column {h!r} holds more than numbers: left aside" for h in others if h not in features
    ]
    items, lines = [], dict[str, int]()
    for line, row in enumerate(rows, start=first_line):
        name = row[name_column].strip()
        if not name:
            raise DataError(
                f"{path.name} line {line} has no {name_column}: every item needs a name"
            )
        if name in lines:
            raise DataError(
                f"{path.name} line {line} names {name!r}, as line {lines[name]} does: names must "
                "differ; leave one out or tell them apart"
            )
        lines[name] = line
        medium, body = _shown(row, shown, path, line, media_folder)
        values = {h: _number(row[h]) or 0.0 for h in features}
        items.append(NewItem(name, medium, body, values))
    if len(items) < 2:
        raise DataError(f"{path.name} has {len(items)} item: a study needs at least two")
    return items, notes


def _rows(path: Path) -> tuple[list[str], list[dict[str, str]], int]:
    """Names of the columns, the rows, and the line of the first of them."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError(
            f"there is no file {path} (looked in {Path.cwd()}): check the path"
        ) from None
    except (UnicodeDecodeError, IsADirectoryError) as error:
        raise DataError(f"{path} cannot be read as text in UTF-8 ({error}): save it so") from error
    first = text.split("\n", 1)[0]
    separator = max(",;\t", key=first.count)
    table = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if any(row)]
    if not table:
        raise DataError(f"{path.name} is empty: its first line must name the columns")
    header, first_line = [cell.strip() for cell in table[0]], 2
    if not _names_columns(table, path):
        header = ["name", *(f"column {k}" for k in range(2, len(header) + 1))]
        table, first_line = [header, *table], 1
    if len(set(header)) < len(header) or not all(header):
        raise DataError(
            f"{path.name} has the columns {header}: each needs a name of its own; is the first "
            "line the names of the columns?"
        )
    for line, row in enumerate(table[1:], start=first_line):
        if len(row) != len(header):
            raise DataError(
                f"{path.name} line {line} has {len(row)} cells, its first line {len(header)}: put "
                "text that holds a separator in quotes"
            )
    return header, [dict(zip(header, row, strict=True)) for row in table[1:]], first_line


def _names_columns(table: list[list[str]], path: Path) -> bool:
    """Whether the first line names the columns, and is no item itself."""
    first = [cell.strip().lower() for cell in table[0]]
    if any(cell.removesuffix("s") in (*NAMES, *SHOWN) for cell in first) or not all(first):
        return True
    if len(first) == 1:
        return False
    rows = [row for row in table[1:] if len(row) == len(first)]
    numbers = [k for k in range(len(first)) if all(_number(row[k]) is not None for row in rows)]
    if not rows or not numbers:
        raise DataError(
            f"{path.name} begins with {table[0]}: it cannot be told whether these are names of "
            "columns or an item; begin with a line that has a column called name"
        )
    return any(_number(first[k]) is None for k in numbers)


def _shown(
    row: dict[str, str], columns: list[str], path: Path, line: int, folder: Path
) -> tuple[str, str]:
    given = [h for h in columns if row[h].strip()]
    if len(given) > 1:
        raise DataError(f"{path.name} line {line} has both {given[0]} and {given[1]}: give one")
    if not given:
        return "text", ""
    medium, cell = given[0].lower(), row[given[0]]
    if medium not in FILES:
        if len(cell) > media.LARGEST_TEXT:
            raise DataError(
                f"{path.name} line {line} has {len(cell)} characters of {medium}: at most "
                f"{media.LARGEST_TEXT} can be shown"
            )
        return medium, cell
    file = path.parent / cell.strip()
    what = f"{path.name} line {line}: {medium} {cell.strip()}"
    if not file.is_file():
        raise DataError(f"{what} is not there: the path is read from the folder of {path.name}")
    if file.stat().st_size > media.LARGEST_FILE:
        raise DataError(f"{what} is larger than {media.LARGEST_FILE / 1e6:.0f} MB: make it smaller")
    return medium, media.store(folder, file.read_bytes(), file.suffix, medium, what)


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
