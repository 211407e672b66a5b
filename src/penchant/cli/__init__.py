"""The command line: a command's module is loaded when it is called.

Data go to stdout, everything else to stderr. Exit codes: 0 ok, 1 a check failed, 2 usage,
3 bad data, 130 interrupted.
"""

import gc
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from errno import EPIPE
from importlib import import_module
from types import FrameType
from typing import Any

import click

import penchant as pc

COMMANDS = {
    "fit": "Learn a model from comparisons and save it.",
    "rank": "Rank the items, with intervals.",
    "predict": "Tell how likely one item is preferred to another.",
    "ask": "Say which comparisons to make next.",
    "groups": "Show communities of taste.",
    "evaluate": "Compare models on held-out comparisons.",
    "report": "Write everything into one HTML file.",
    "study": "Run a study with people in a browser.",
    "demo": "See it all on a simulated study.",
    "bench": "Time the models on this machine.",
    "doctor": "Check the installation.",
}
"""Every command and its one-line help, here so that `penchant --help` imports none of them."""

_MODULES = {"groups": "rank", "ask": "predict", "report": "evaluate", "bench": "doctor"}
"""Commands that stand in another's module."""

CHECK_FAILED, BAD_DATA, INTERRUPTED = 1, 3, 130


class LazyCommands(click.Group):
    """Imports a command's module only when it runs, so that `--help` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name == "study":
            module, name = "penchant.study", "command"
        else:
            module, name = f"penchant.cli.{_MODULES.get(cmd_name, cmd_name)}", f"{cmd_name}_command"
        with _modules_stay():
            return getattr(import_module(module), name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = get_close_matches(name, COMMANDS, n=1)
            ctx.fail(
                f"there is no command {name!r}" + (f": did you mean {near[0]}?" if near else "")
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        _mend_streams()
        try:
            with _plain_warnings(), interruptible():
                return super().invoke(ctx)
        except (pc.DataError, pc.NumericalError) as error:  # numbers that no computer can hold
            _fail(ctx, str(error), BAD_DATA)
        except pc.PenchantError as error:
            _fail(ctx, str(error), CHECK_FAILED)
        except KeyboardInterrupt:
            _fail(ctx, "interrupted: files are as they were before", INTERRUPTED)
        except MemoryError:
            _fail(ctx, "memory ran out: give --set max_rank=500, or fewer items", CHECK_FAILED)
        except OSError as error:
            if error.errno == EPIPE:  # the reader is gone: click ends quietly
                raise
            _fail(ctx, str(error), CHECK_FAILED)


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


@contextmanager
def _modules_stay() -> Iterator[None]:
    """Keep the garbage collector from what modules define while they load, now and at exit.

    Going through these objects takes a quarter of a small command's time, and none is garbage. A
    process that has NumPy already is a program's or a test's: nothing changes there.
    """
    if "numpy" in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


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


def _mend_streams() -> None:
    """Replace closed streams by the null device; escape what a terminal cannot show."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # kept open until the process ends
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _fail(ctx: click.Context, message: str, code: int) -> None:
    click.secho(f"error: {visible(message)}", fg="red", err=True)
    ctx.exit(code)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show a warning as one line, without the place in the code."""

    def show(message: Warning | str, *place: Any, **more: Any) -> None:
        hint = " (here: --set n_sweeps=400)" if "n_sweeps" in str(message) else ""
        click.secho(f"warning: {visible(str(message))}{hint}", fg="yellow", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@click.group(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: penchant demo",
)
@click.version_option(package_name="penchant")
def main() -> None:
    """Learn what people prefer from comparisons.

    Give a file whose rows say which of two items was preferred, and by whom if you know.
    """
