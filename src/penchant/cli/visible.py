"""Text of others on somebody's terminal or spreadsheet: shown, never obeyed."""

from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the start of a formula."""


def visible(text: str) -> str:
    """The text with control characters written out, so that no name can move a cursor.

    >>> visible("tea\\x1b[2J\\nmilk")
    'tea\\\\x1b[2J\\nmilk'
    """
    return "".join(
        letter
        if letter.isprintable() or letter == "\n"
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def harmless(cell: Any) -> Any:
    """A cell that no spreadsheet runs: text that looks like a formula gets an apostrophe.

    >>> harmless("=1+1"), harmless(-1.5)
    ("'=1+1", -1.5)
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
