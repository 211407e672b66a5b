"""A terminal: Ctrl-C ends a command anywhere; text of others is shown, never obeyed."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupt(KeyboardInterrupt):
    """Ctrl-C. A class of its own: once a plain KeyboardInterrupt has passed through `exec` of a
    text, as while libraries load, `python -m` dies of the signal whatever exit code is asked."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise Interrupt at Ctrl-C, also where a library turns that into an error of its own, as
    compiled modules do while they load. Where Ctrl-C is ignored (nohup), it stays so."""
    came = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        raise Interrupt

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Exception as error:
        if came:
            raise Interrupt from error
        raise
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


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
