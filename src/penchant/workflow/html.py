"""Pieces of a self-contained HTML page: no other files, readable without scripts, every text
escaped."""

import base64
import io
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple
from warnings import catch_warnings, filterwarnings

_NUMBER = r"[+-]?[\d,]+(\.\d+)?( ?%)?"
_NUMERIC = re.compile(rf"–|{_NUMBER}(( to | ± ){_NUMBER}| \(\d+%\))?")
_FIRST_NUMBER = re.compile(r"[+-]?[\d,]+(\.\d+)?")

_ASSETS = files(__package__)
STYLE, SCRIPT = (
    "\n" + (_ASSETS / name).read_text(encoding="utf-8") for name in ("report.css", "report.js")
)
"""The script sorts and searches tables; the page is complete without it."""


class Drawn(NamedTuple):
    """A table cell in HTML, and the number by which it is sorted."""

    html: str
    sort: float


def interval(row: Any, span: tuple[float, float], form: str = "+.2f") -> Drawn:
    """A utility and its interval, as numbers and drawn on a scale from span[0] to span[1]."""
    whole = max(span[1] - span[0], 1e-300)
    left, middle = (min(1.0, max(0.0, (x - span[0]) / whole)) for x in (row.low, row.utility))
    width = (row.high - row.low) / whole
    text = f"{row.utility:{form}} <span class=soft>{row.low:{form}} to {row.high:{form}}</span>"
    drawn = f'<i style="left:{left:.1%};width:{width:.1%}"></i><b style="left:{middle:.1%}"></b>'
    return Drawn(f'{text}<span class="range" aria-hidden="true">{drawn}</span>', row.utility)


def page(title: str, lead: str, sections: Sequence[tuple[str, str]], foot: str) -> str:
    """The document; sections are (heading, body). Lead, bodies and foot are HTML already."""
    links = parts = ""
    for k, (heading, body) in enumerate(sections, start=1):
        links += f'<li><a href="#part-{k}">{escape(heading)}</a></li>'
        parts += f'<section aria-labelledby="part-{k}"><h2 id="part-{k}">{escape(heading)}</h2>'
        parts += f"{body}</section>\n"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(title)}</h1>{lead}</header>\n"
        f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n'
        f"<main>\n{parts}</main>\n<footer>{foot}</footer>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def paragraph(text: str, kind: str = "") -> str:
    """One paragraph of text."""
    return f"<p{_class(kind)}>{escape(text)}</p>"


def table(
    caption: str, rows: Sequence[Sequence[Any]], header: Sequence[str], sortable: bool = False
) -> str:
    """A table whose first column heads its rows; numbers are formatted by the caller.

    A further column whose cells all look like numbers is set to the right. sortable : by a click
    on a column's head, and searchable by the rows' names.
    """
    columns = list(zip(*rows, strict=True))[1:] or [("",)] * (len(header) - 1)
    kinds = ["", *("number" if all(map(_is_numeric, column)) else "" for column in columns)]
    head = "".join(
        f'<th scope="col"{_class(kind)}>{escape(name)}</th>'
        for name, kind in zip(header, kinds, strict=True)
    )
    body = "".join(f"<tr>{_cells(row, kinds, header)}</tr>" for row in rows)
    return (
        f'<div class="scroll" role="region" aria-label="{escape(caption)}" tabindex="0">'
        f"<table{_class('sortable' * sortable)}><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def figure(axes: Any, alt: str, caption: str, width: str, dense: bool = False) -> str:
    """A drawing of matplotlib's, as a picture inside the page.

    It is an image, not inline SVG: two drawings would use the same ids. A dense one scrolls on a
    narrow screen instead of shrinking.
    """
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "penchant"}), catch_warnings():
        # letters stay text: the browser has the fonts
        filterwarnings("ignore", message="Glyph .* missing from font")
        axes.figure.savefig(
            buffer, format="svg", bbox_inches="tight", metadata={"Date": None}, transparent=True
        )
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    image = f'<img alt="{escape(alt)}" src="data:image/svg+xml;base64,{data}">'
    if dense:
        region = f'role="region" aria-label="{escape(caption)}" tabindex="0"'
        image = f'<div class="scroll dense" {region}>{image}</div>'
    return (
        f'<figure style="max-width:{width}">{image}'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _cells(row: Sequence[Any], kinds: Sequence[str], header: Sequence[str]) -> str:
    name, *rest = row
    text = f'<th scope="row">{escape(str(name))}</th>'
    for cell, kind, label in zip(rest, kinds[1:], header[1:], strict=True):
        about = f'{_class(kind)} data-label="{escape(label)}"'
        if isinstance(cell, Drawn):
            text += f'<td{about} data-sort="{cell.sort!r}">{cell.html}</td>'
        else:
            text += f"<td{about}{_sort_key(str(cell))}>{escape(str(cell))}</td>"
    return text


def _sort_key(cell: str) -> str:
    """The attribute with the number that a cell begins with; empty for a dash."""
    if cell == "–":
        return ' data-sort=""'
    number = _FIRST_NUMBER.match(cell) if _is_numeric(cell) else None
    return f' data-sort="{float(number[0].replace(",", "")):g}"' if number else ""


def _is_numeric(cell: Any) -> bool:
    return not isinstance(cell, Drawn) and _NUMERIC.fullmatch(str(cell)) is not None


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
