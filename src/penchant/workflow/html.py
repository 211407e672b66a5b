"""Pieces of a self-contained HTML page: no scripts, no other files, every text escaped."""

import base64
import io
import re
from collections.abc import Sequence
from html import escape
from typing import Any

_NUMBER = r"[+-]?[\d,]+(\.\d+)?( ?%)?"
_NUMERIC = re.compile(rf"–|{_NUMBER}(( to | ± ){_NUMBER}| \(\d+%\))?")

STYLE = """
:root { color-scheme: light; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --band: #f6f8fa; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 50rem; color: var(--ink);
  background: #fff; font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; padding-top: .75rem;
  border-top: 1px solid var(--line); }
p { max-width: 42rem; }
a { color: #0550ae; }
.soft, figcaption, caption { color: var(--soft); font-size: .875rem; }
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; }
figure { margin: 1rem 0; }
figure img { display: block; width: 100%; height: auto; }
.scroll { overflow-x: auto; }
.dense img { min-width: 30rem; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; margin: .75rem 0;
  font-variant-numeric: tabular-nums; overflow-wrap: normal; }
caption { text-align: left; padding-bottom: .4rem; }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { font-weight: 600; }
.number { text-align: right; }
td.number { white-space: nowrap; }
td:not(.number) { min-width: 6.5rem; }
.warning { background: #fff8c5; border-left: .25rem solid #9a6700; padding: .5rem .75rem; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .75rem; }
@media (max-width: 30rem) {
  table { font-size: .8125rem; }
  th, td { padding-right: .35rem; }
}
@page { margin: 18mm 15mm; }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; }
  figure img { max-height: 150mm; width: auto; max-width: 100%; }
  .scroll { overflow: visible; break-inside: avoid; }
}
"""


def page(title: str, lead: str, sections: Sequence[tuple[str, str]], foot: str) -> str:
    """The whole document; sections are (heading, body), and foot and bodies are HTML already."""
    links = "".join(
        f'<li><a href="#part-{k}">{escape(heading)}</a></li>'
        for k, (heading, _) in enumerate(sections, start=1)
    )
    parts = "".join(
        f'<section aria-labelledby="part-{k}"><h2 id="part-{k}">{escape(heading)}</h2>{body}'
        "</section>\n"
        for k, (heading, body) in enumerate(sections, start=1)
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(title)}</h1>{lead}</header>\n"
        f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n'
        f"<main>\n{parts}</main>\n<footer>{foot}</footer>\n</body>\n</html>\n"
    )


def paragraph(text: str, kind: str = "") -> str:
    """One paragraph of text."""
    return f"<p{_class(kind)}>{escape(text)}</p>"


def table(caption: str, rows: Sequence[Sequence[Any]], header: Sequence[str]) -> str:
    """A table whose first column heads its rows; numbers are formatted by the caller.

    A further column whose cells all look like numbers is set to the right.
    """
    columns = list(zip(*rows, strict=True))[1:] or [("",)] * (len(header) - 1)
    kinds = ["", *("number" if all(map(_is_numeric, column)) else "" for column in columns)]
    head = "".join(
        f'<th scope="col"{_class(kind)}>{escape(name)}</th>'
        for name, kind in zip(header, kinds, strict=True)
    )
    body = "".join(f"<tr>{_cells(row, kinds)}</tr>" for row in rows)
    return (
        f'<div class="scroll" role="region" aria-label="{escape(caption)}" tabindex="0">'
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def figure(axes: Any, alt: str, caption: str, width: str, dense: bool = False) -> str:
    """A drawing of matplotlib's, as a picture inside the page.

    An image of its own, not inline: the parts of two drawings would share their names. A dense
    one scrolls on a narrow screen rather than shrink until nothing can be read.
    """
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "penchant"}):
        axes.figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    image = f'<img alt="{escape(alt)}" src="data:image/svg+xml;base64,{data}">'
    if dense:
        region = f'role="region" aria-label="{escape(caption)}" tabindex="0"'
        image = f'<div class="scroll dense" {region}>{image}</div>'
    return (
        f'<figure style="max-width:{width}">{image}'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _cells(row: Sequence[Any], kinds: Sequence[str]) -> str:
    (name, _), *rest = zip(row, kinds, strict=True)
    head = f'<th scope="row">{escape(str(name))}</th>'
    return head + "".join(f"<td{_class(kind)}>{escape(str(cell))}</td>" for cell, kind in rest)


def _is_numeric(cell: Any) -> bool:
    return _NUMERIC.fullmatch(str(cell)) is not None


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
