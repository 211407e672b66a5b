"""A table of texts in the formats that people paste: Markdown, LaTeX, HTML, spreadsheets."""

import re
from collections.abc import Collection, Sequence
from html import escape
from os import PathLike
from typing import Any

from penchant.errors import DataError
from penchant.io import whole_file

Cells = Sequence[Sequence[str]]
"""A header and rows of texts."""

_LATEX = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # what no spreadsheet can hold


def to_text(cells: Cells, left: Collection[int]) -> str:
    """Aligned columns; `left`: the numbers of those that begin at the left.

    >>> print(to_text([["rank", "item"], ["1", "tea"]], left=(1,)))
    rank  item
       1  tea
    """
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )


def to_markdown(cells: Cells) -> str:
    """A Markdown table.

    >>> print(to_markdown([["item", "rank"], ["a|b", "1"]]))
    | item | rank |
    | --- | --- |
    | a\\|b | 1 |
    """
    header, *rows = cells
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_one_line, line)) + " |" for line in lines)


def _one_line(cell: str) -> str:
    return " ".join(cell.split()).replace("|", "\\|")


def to_latex(cells: Cells) -> str:
    """A LaTeX tabular, the first two columns to the left as in a ranking's `rank, item`.

    >>> print(to_latex([["rank", "item"], ["1", "R&D"]]))
    \\begin{tabular}{rl}
    \\hline
    rank & item \\\\
    \\hline
    1 & R\\&D \\\\
    \\hline
    \\end{tabular}
    """
    header, *rows = (" & ".join(map(_in_latex, line)) + r" \\" for line in cells)
    columns = "rl" + "r" * (len(cells[0]) - 2)
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", header, r"\hline", *rows]
    return "\n".join([*lines, r"\hline", r"\end{tabular}"])


def _in_latex(cell: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in " ".join(cell.split()))


def to_html(cells: Cells) -> str:
    """An HTML table, every text escaped."""
    header, *rows = cells
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def to_excel(
    rows: Sequence[dict[str, Any]], columns: Sequence[str], path: str | PathLike[str]
) -> None:
    """Write an .xlsx file with numbers as numbers; no name is taken for a formula."""
    try:
        from openpyxl import Workbook  # type: ignore[import-untyped]
    except ImportError:
        raise DataError(
            "to_excel needs openpyxl, which is not installed: install it, or write a file that "
            "spreadsheets open with to_pandas().to_csv(path)"
        ) from None
    book = Workbook()
    sheet = book.active
    for line, row in enumerate([dict(zip(columns, columns, strict=True)), *rows], start=1):
        for place, name in enumerate(columns, start=1):
            value = row[name]
            if isinstance(value, float) and value != value:
                continue
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            cell = sheet.cell(line, place, value if is_number else _CONTROL.sub("", str(value)))
            cell.data_type = "n" if is_number else "s"
    sheet.freeze_panes = "A2"
    with whole_file(path) as file:
        book.save(file)
