"""Items: reading a list of them from CSV, and their media files."""

import csv
import io
import math
import re
from collections.abc import Callable
from pathlib import Path

from penchant.errors import DataError
from penchant.study.folder import write_private
from penchant.study.metadata import without_metadata
from penchant.study.refusals import Refusal
from penchant.study.store.studies import NewItem
from penchant.study.store.tables import new_id
from penchant.study.svg import checked_svg

NAMES = ("name", "item", "id", "title")
SHOWN = ("text", "markdown", "html", "image", "audio", "video")
FILES = ("image", "audio", "video")


Table = list[dict[str, str]]
"""Rows of cells by the names of their columns, which are alike in all rows."""


def read_items(path: Path, media_folder: Path) -> tuple[list[NewItem], list[str]]:
    """Read the items of a CSV file; also return notes on ignored parts of it.

    The column `name` (or the first one) names the items. `text`, `markdown`, `html`, `image`,
    `audio` or `video` says what to show, the last three as files beside the CSV. A `text` beside
    one of these three is its caption. Every other column of numbers is a feature for the model.
    If the first line names no columns, every line is an item.
    """
    rows, first_line = _rows(path)

    def where(number: int) -> str:
        return f"line {first_line + number}"

    items, notes = items_of(rows, path.parent, media_folder, f"{path.name} ", where)
    if first_line == 1:
        notes.insert(0, f"{path.name} begins with no names of columns: every line is an item")
    if len(items) < 2:
        raise DataError(f"{path.name} has {len(items)} item: a study needs at least two")
    return items, notes


def items_of(
    rows: Table,
    files: Path,
    media_folder: Path,
    source: str = "",
    where: Callable[[int], str] = "row {}".format,
) -> tuple[list[NewItem], list[str]]:
    """The items of a table, as `read_items` reads them.

    files: the folder of images and so on. source, where: the table and a row in messages.

    >>> items, notes = items_of([{"name": "tea", "sweet": "2"}], Path(), Path())
    >>> items[0].features
    {'sweet': 2.0}
    """
    header = list(rows[0]) if rows else ["name"]
    name_column = next((h for h in header if h.lower() in NAMES), header[0])
    shown = [h for h in header if h.lower() in SHOWN and h != name_column]
    others = [h for h in header if h != name_column and h not in shown]
    features = [h for h in others if all(_number(row[h]) is not None for row in rows)]
    notes = [f"column {h!r} holds more than numbers: ignored" for h in others if h not in features]
    items, places = [], dict[str, str]()
    for number, row in enumerate(rows):
        name, place = row[name_column].strip(), where(number)
        if not name:
            raise DataError(f"{source}{place} has no {name_column}: every item needs a name")
        if name in places:
            raise DataError(
                f"{source}{place} names {name!r}, as {places[name]} does: names must differ; leave "
                "one out or tell them apart"
            )
        places[name] = place
        medium, body, caption = _shown(row, shown, files, source + place, media_folder)
        values = {h: _number(row[h]) or 0.0 for h in features}
        items.append(NewItem(name, medium, body, values, caption))
    return items, notes


def _rows(path: Path) -> tuple[Table, int]:
    """The rows, and the line of the first of them."""
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
    return [dict(zip(header, row, strict=True)) for row in table[1:]], first_line


def _names_columns(table: list[list[str]], path: Path) -> bool:
    """Whether the first line names the columns; otherwise it is an item."""
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
    row: dict[str, str], columns: list[str], files: Path, where: str, folder: Path
) -> tuple[str, str, str]:
    """What is shown: its medium, its body, and its caption."""
    given = {h.lower(): row[h] for h in columns if row[h].strip()}
    for medium in ("text", "markdown", "html"):
        if len(given.get(medium, "")) > LARGEST_TEXT:
            raise DataError(
                f"{where} has {len(given[medium])} characters of {medium}: at most {LARGEST_TEXT} "
                "can be shown"
            )
    caption = given.pop("text").strip() if "text" in given and {*given} & {*FILES} else ""
    if len(given) > 1:
        raise DataError(f"{where} has both {' and '.join(given)}: give one")
    if not given:
        return "text", "", ""
    ((medium, cell),) = given.items()
    if medium not in FILES:
        return medium, cell, ""
    file = files / cell.strip()
    what = f"{where}: {medium} {cell.strip()}"
    if not file.is_file():
        raise DataError(f"{what} is not there: the path is read from {files.resolve()}")
    if file.stat().st_size > LARGEST_FILE:
        raise DataError(f"{what} is larger than {LARGEST_FILE / 1e6:.0f} MB: make it smaller")
    return medium, store_media(folder, file.read_bytes(), file.suffix, medium, what), caption


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


LARGEST_FILE = 20_000_000
"""Bytes."""
LARGEST_TEXT = 20_000
"""Characters."""

SIGNATURES: dict[str, tuple[str, str, re.Pattern[bytes]]] = {
    ".png": ("image", "image/png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ".jpg": ("image", "image/jpeg", re.compile(rb"\xff\xd8\xff")),
    ".gif": ("image", "image/gif", re.compile(rb"GIF8[79]a")),
    ".svg": ("image", "image/svg+xml", re.compile(rb"\s*(\xef\xbb\xbf)?\s*<")),
    ".webp": ("image", "image/webp", re.compile(rb"RIFF....WEBP", re.DOTALL)),
    ".mp3": ("audio", "audio/mpeg", re.compile(rb"ID3|\xff[\xe2-\xff]")),
    ".wav": ("audio", "audio/wav", re.compile(rb"RIFF....WAVE", re.DOTALL)),
    ".ogg": ("audio", "audio/ogg", re.compile(rb"OggS")),
    ".m4a": ("audio", "audio/mp4", re.compile(rb"....ftyp(M4A|mp42|isom)", re.DOTALL)),
    ".mp4": ("video", "video/mp4", re.compile(rb"....ftyp", re.DOTALL)),
    ".webm": ("video", "video/webm", re.compile(rb"\x1aE\xdf\xa3")),
}
"""By ending: the medium, the type in HTTP, and how such a file begins."""

MEDIA_NAME = re.compile(r"[A-Za-z0-9_-]{16}\.[a-z0-9]{3,4}")


def store_media(folder: Path, content: bytes, ending: str, medium: str, what: str) -> str:
    """Store a file under a random name and return the name. what: the file's name in messages."""
    ending = {".jpeg": ".jpg"}.get(ending.lower(), ending.lower())
    known = [e for e, (kind, _, _) in SIGNATURES.items() if kind == medium]
    if ending not in known:
        raise Refusal("bad", f"{what} ends in {ending!r}: as {medium} it must end in {known}")
    if len(content) > LARGEST_FILE:
        raise Refusal(
            "too_large",
            f"{what} has {len(content) / 1e6:.0f} MB: a file may have {LARGEST_FILE / 1e6:.0f}",
        )
    if not SIGNATURES[ending][2].match(content):
        raise Refusal("bad", f"{what} does not begin as a {ending} file does: is it broken?")
    if ending == ".svg":
        content = checked_svg(content, what)
    try:
        content = without_metadata(content, ending)
    except ValueError as error:
        raise Refusal("bad", f"{what} cannot be read as {ending}: {error}; save it anew") from error
    name = new_id() + ending
    scratch = folder / f"{name}.part"
    write_private(scratch, content)
    scratch.replace(folder / name)
    return name


def find_media(folder: Path, name: str) -> tuple[Path, str]:
    """The path and type of a stored file; any other name is refused."""
    path = folder / name
    if not MEDIA_NAME.fullmatch(name) or path.suffix not in SIGNATURES or not path.is_file():
        raise Refusal("unknown", "there is no such file")
    return path, SIGNATURES[path.suffix][1]
