"""Ctrl-C ends a command with exit code 130, wherever it arrives."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


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
