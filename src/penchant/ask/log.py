"""The file behind a session: one JSON event a line, on disk before anything is learned from it.

A line is whole or it does not count: after a cut (a kill, a full disk) what stands behind the last
line break is dropped when the file is read, and written over when it is continued. Lines end with
"\\n" and nothing else; names may hold any other character.
"""

import json
import os
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from penchant.ask.answers import orders_of, with_orders
from penchant.data import Comparisons
from penchant.errors import DataError, DataWarning, warn
from penchant.io import sync_folder, take_lock

Event = dict[str, Any]
EVENTS = ("start", "ask", "tell", "undo", "stop")


class Known(NamedTuple):
    """What is known of a file: its size, how many bytes are whole events, the break they lack."""

    size: int = 0
    whole: int = 0
    glue: bytes = b""


NEW = Known()


class Log:
    """Appends events to a file, one writer at a time.

    >>> import tempfile
    >>> log = Log(Path(tempfile.mkdtemp()) / "log")
    >>> log.append({"event": "undo"})
    >>> read_log(log.path)[0]
    [{'event': 'undo'}]
    """

    def __init__(self, path: str | PathLike[str], known: Known = NEW) -> None:
        self.path = Path(path)
        self._file: int | None = None
        self._known = [known]
        self._is_lost = False

    def append(self, event: Event) -> None:
        """Write an event to disk; after an error the file is as it was."""
        before, line = self._known[-1], encoded(event)
        line = before.glue + line
        file = self._opened(before.size)
        try:
            os.ftruncate(file, before.whole)  # what a cut has left
            os.lseek(file, before.whole, os.SEEK_SET)
            left = memoryview(line)
            while left:
                left = left[os.write(file, left) :]
            os.fsync(file)
        except BaseException as error:
            self._cut(before)
            if not isinstance(error, OSError):
                raise
            raise DataError(
                f"{self.path} cannot be written ({error.strerror or error}): nothing was learned "
                "or counted; make room, or begin a session elsewhere, and tell it again"
            ) from error
        end = before.whole + len(line)
        self._known.append(Known(end, end))

    def take_back(self) -> None:
        """Remove the event that was appended last, because nothing could be learned from it."""
        self._known.pop()
        self._cut(self._known[-1])

    def close(self) -> None:
        """Let another writer go on; a later `append` opens the file again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.close()

    def _cut(self, known: Known) -> None:
        """Back to fewer events; where that fails nobody knows what is on disk."""
        self._known[-1] = known._replace(size=known.whole)
        try:
            if self._file is not None:
                os.ftruncate(self._file, known.whole)
                os.fsync(self._file)
        except OSError:
            self._is_lost = True

    def _opened(self, size: int) -> int:
        """The file, for this writer alone, as this writer left it."""
        if self._is_lost:
            raise DataError(
                f"{self.path} could not be put right after an error: go on with Session.replay, "
                "which takes what is on disk"
            )
        if self._file is None:
            self._file = _open_alone(self.path)
        found = os.fstat(self._file)
        if not (self.path.exists() and os.path.samestat(found, self.path.stat())):
            raise DataError(
                f"{self.path} was moved or removed while a session was writing to it: put it back, "
                "or begin a new session"
            )
        if found.st_size != size:
            self.close()
            raise DataError(
                f"{self.path} has {found.st_size} bytes and this session knows of {size}: somebody "
                "else has written to it; go on with Session.replay, or give a new file"
            )
        return self._file


def _open_alone(path: Path) -> int:
    """A descriptor with a lock that ends with it; file systems without locks have none."""
    is_new = not path.exists()
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:
        raise DataError(
            f"{path} cannot be opened for writing ({error.strerror}): give the log a place in a "
            "folder that exists and may be written to"
        ) from None
    try:
        take_lock(file)  # without one, a file that has grown is noticed all the same
    except BlockingIOError:
        os.close(file)
        raise DataError(
            f"{path} is being written by another session: two would mix their answers; close that "
            "one first, or give a new file"
        ) from None
    if is_new:
        sync_folder(path.parent)
    return file


def encoded(event: Event) -> bytes:
    """An event as one line.

    >>> encoded({"event": "stop", "reason": "a\\nb"})
    b'{"event": "stop", "reason": "a\\\\nb"}\\n'
    """
    try:
        text = json.dumps(event, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"a {event['event']!r} cannot be written to a session's log ({error}): names, users "
            "and seeds must be text or numbers"
        ) from None
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair is text in Python, but in no encoding
        return json.dumps(event).encode() + b"\n"


def columns_of(answers: Comparisons) -> dict[str, Any]:
    """The columns of `from_pairs` that say something, as JSON values, and the rankings."""
    orders, answers = orders_of(answers), answers.single_pairs()
    items, users = answers.items, answers.users
    columns: dict[str, Any] = {
        "winner": [items[i] for i in answers.winner],
        "loser": [items[i] for i in answers.loser],
        "count": answers.count.tolist(),
        "tie": answers.told_ties.tolist(),
    }
    if answers.user is not None:
        columns["user"] = [users[i] for i in answers.user]
    for name in ("margin", "first", "time"):
        if (column := getattr(answers, name)) is not None:
            columns[name] = column.tolist()
    if answers.covariates is not None:
        names = answers.covariate_names
        columns["covariates"] = dict(zip(names, answers.covariates.T.tolist(), strict=True))
    return {**columns, "rankings": orders} if orders else columns


def answers_from(columns: Mapping[str, Any], items: tuple[Any, ...]) -> Comparisons:
    """What `columns_of` wrote."""
    values = dict(columns)
    orders = values.pop("rankings", [])
    pairs = Comparisons.from_pairs(**values, items=items) if values["winner"] else None
    if not orders and pairs is not None:
        return pairs
    users = [order["user"] for order in orders]
    return with_orders(pairs, orders, None if users[0] is None else users, items)


def check_names(data: Comparisons) -> None:
    """Names that come back from JSON as they were."""
    for name in (*data.items, *data.users):
        if not isinstance(name, str | int | float) or name != name:
            raise DataError(
                f"the name {name!r} cannot be written to a session's log: names of items and "
                "users must be text or numbers"
            )


def read_log(path: str | PathLike[str]) -> tuple[list[Event], Known]:
    """The events of a file, and what is needed to go on with it."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise DataError(f"there is no file {path}: check the path of the log") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read as a session's log ({error.strerror})") from None
    *lines, rest = content.split(b"\n")
    events = [_event(line, f"line {k} of {path}") for k, line in enumerate(lines, 1)]
    whole, glue = len(content) - len(rest), b""
    if rest:
        try:
            events.append(_event(rest, f"the last line of {path}"))
            whole, glue = len(content), b"\n"
        except DataError:
            warn(
                f"the last line of {path} was cut off and is left out: the answer in it, if it is "
                "one, was never acknowledged; give it again",
                DataWarning,
            )
    return events, Known(len(content), whole, glue)


def _event(line: bytes, where: str) -> Event:
    """One line as an event."""
    try:
        event = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{where} is not JSON ({error}): a session's log must hold one event a line; restore "
            "the file, or keep the lines before"
        ) from None
    if not isinstance(event, dict) or event.get("event") not in EVENTS:
        raise DataError(
            f"{where} is not an event of a session: it must be an object whose 'event' is one of "
            f"{', '.join(EVENTS)}"
        )
    return event
