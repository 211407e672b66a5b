"""Pieces of a self-contained HTML page: no other files, readable without scripts, every text
escaped."""

import base64
import io
import re
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple
from warnings import catch_warnings, filterwarnings

_NUMBER = r"[+-]?[\d,]+(\.\d+)?( ?%)?"
_NUMERIC = re.compile(rf"–|{_NUMBER}(( to | ± ){_NUMBER}| \(\d+%\))?")
_FIRST_NUMBER = re.compile(r"[+-]?[\d,]+(\.\d+)?")

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de;
  --band: #f6f8fa; --paper: #fff; --link: #0550ae; --mark: #0072b2; --reach: #b3d1e6;
  --alert: #fff8c5; --edge: #9a6700; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9ba5b0; --line: #343c46; --band: #161b22; --paper: #0d1117;
    --link: #79b8ff; --mark: #6cb6ff; --reach: #24476b; --alert: #33290a; --edge: #d29922; }
  figure img { filter: invert(1) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 56rem; color: var(--ink);
  background: var(--paper); overflow-wrap: anywhere;
  font: 1rem/1.55 system-ui, "Segoe UI", Roboto, "Noto Sans", "Noto Sans CJK SC", "PingFang SC",
    "Microsoft YaHei", "Noto Color Emoji", "Apple Color Emoji", "Segoe UI Emoji", sans-serif; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; padding-top: .75rem;
  border-top: 1px solid var(--line); }
p { max-width: 42rem; }
a { color: var(--link); }
.soft, figcaption, caption { color: var(--soft); font-size: .875rem; }
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; }
figure { margin: 1rem 0; }
figure img { display: block; width: 100%; height: auto; }
.scroll { overflow-x: auto; }
.dense img { min-width: 30rem; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; margin: .75rem 0;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .4rem; }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { font-weight: 600; }
th[scope=row] { min-width: 7rem; }
.number { text-align: right; }
td.number { white-space: nowrap; }
thead th { overflow-wrap: normal; }
thead button { all: unset; cursor: pointer; }
thead button:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
[aria-sort=ascending] button::after { content: " \\25B2"; font-size: .7em; }
[aria-sort=descending] button::after { content: " \\25BC"; font-size: .7em; }
input[type=search] { font: inherit; padding: .35rem .6rem; width: 100%; max-width: 20rem;
  color: inherit; background: var(--band); border: 1px solid var(--soft); border-radius: .35rem; }
td:has(.range) { white-space: nowrap; }
.range { display: block; position: relative; height: .8rem; min-width: 7rem; margin-top: .2rem; }
.range i { position: absolute; top: .25rem; height: .3rem; background: var(--reach);
  border-radius: .15rem; }
.range b { position: absolute; top: .1rem; width: .6rem; height: .6rem; margin-left: -.3rem;
  background: var(--mark); border-radius: 50%; }
.warning { background: var(--alert); border-left: .25rem solid var(--edge); padding: .5rem .75rem; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .75rem; }
@media (max-width: 40rem) {
  table, tbody { display: block; }
  caption { display: block; }
  thead tr { display: flex; flex-wrap: wrap; gap: .1rem .9rem; }
  thead th { display: block; border: 0; padding: 0; color: var(--soft); font-weight: 400; }
  table:not(.live) thead { position: absolute; left: -99rem; }
  .live thead tr::before { content: "Sort by:"; color: var(--soft); }
  tbody tr { display: flex; flex-wrap: wrap; gap: .05rem .9rem; padding: .45rem 0;
    border-bottom: 1px solid var(--line); }
  tbody tr[hidden] { display: none; }
  tbody th, tbody td { display: block; border: 0; padding: 0; text-align: left; min-width: 0; }
  tbody th { flex: 1 0 100%; }
  td.number { white-space: normal; }
  td:has(.range) { flex: 1 0 100%; }
  td::before { content: attr(data-label) " "; color: var(--soft); }
}
@page { margin: 18mm 15mm; }
@media print {
  :root { color-scheme: light; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav, input[type=search] { display: none; }
  h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; }
  figure img { max-height: 150mm; width: auto; max-width: 100%; }
  .scroll { overflow: visible; }
}
"""

SCRIPT = """
for (const table of document.querySelectorAll("table.sortable")) {
  table.classList.add("live");
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const key = (row, k) => row.cells[k].dataset.sort ?? row.cells[k].textContent;
  heads.forEach((head, k) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.onclick = () => {
      const up = head.ariaSort ? head.ariaSort === "descending" : k < 2;
      const order = new Intl.Collator(undefined, { numeric: true });
      const compare = (a, b) => {
        const [x, y] = [key(a, k), key(b, k)], d = x - y;
        return x === "" || y === "" ? (x === "") - (y === "")
          : (Number.isNaN(d) ? order.compare(x, y) : d) * (up ? 1 : -1);
      };
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.ariaSort = up ? "ascending" : "descending";
      body.append(...[...body.rows].sort(compare));
    };
  });
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Search";
  search.setAttribute("aria-label", "Search " + table.caption.textContent);
  search.oninput = () => {
    const words = search.value.toLocaleLowerCase();
    for (const row of body.rows)
      row.hidden = !row.cells[0].textContent.toLocaleLowerCase().includes(words);
  };
  table.parentNode.before(search);
}
"""
"""Sorts and searches tables where scripts run; without them the page is whole, too."""


class Drawn(NamedTuple):
    """A cell that holds more than a text: its HTML, and the number that it is sorted by."""

    html: str
    sort: float


def interval(row: Any, span: tuple[float, float], form: str = "+.2f") -> Drawn:
    """A utility and its interval, as numbers and drawn on a scale from span[0] to span[1]."""
    low, high = span

    def at(value: float) -> str:
        return f"{100.0 * min(1.0, max(0.0, (value - low) / max(high - low, 1e-300))):.1f}%"

    width = f"{100.0 * (row.high - row.low) / max(high - low, 1e-300):.1f}%"
    text = f"{row.utility:{form}} <span class=soft>{row.low:{form}} to {row.high:{form}}</span>"
    drawn = (
        f'<i style="left:{at(row.low)};width:{width}"></i><b style="left:{at(row.utility)}"></b>'
    )
    return Drawn(f'{text}<span class="range" aria-hidden="true">{drawn}</span>', row.utility)


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

    An image of its own, not inline: the parts of two drawings would share their names. A dense
    one scrolls on a narrow screen rather than shrink until nothing can be read.
    """
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "penchant"}), catch_warnings():
        # letters stay letters: whoever looks at the page has a font for them, or nobody has
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
    """The number that a cell begins with, where it looks like one; nothing for a dash."""
    if cell == "–":
        return ' data-sort=""'
    number = _FIRST_NUMBER.match(cell) if _is_numeric(cell) else None
    return f' data-sort="{float(number[0].replace(",", "")):g}"' if number else ""


def _is_numeric(cell: Any) -> bool:
    return not isinstance(cell, Drawn) and _NUMERIC.fullmatch(str(cell)) is not None


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
