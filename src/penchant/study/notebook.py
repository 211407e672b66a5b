"""A study served from a notebook, or from any Python session."""

import atexit
import re
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Iterable, Mapping
from html import escape
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection

from penchant.errors import DataError, DataWarning
from penchant.study.config import Config
from penchant.study.folder import SETTINGS, Folder
from penchant.study.items import FILES, items_of, read_items
from penchant.study.store import reports, studies
from penchant.study.store.studies import NewItem
from penchant.study.supervisor import Supervisor, address_of, listen, wait_until_up

NOTEBOOKS = ("http://localhost:*", "http://127.0.0.1:*")
"""Sites that may show the voting page in a frame: notebooks on this machine."""
HEIGHT = 640
"""Pixels of the frame."""
SERVED: dict[Path, "StudyServer"] = {}
"""What this process serves, by folder."""


class StudyServer:
    """A study that is being served; `serve` makes it.

    vote, owner : str
        The links for participants and for the owner. The owner's is valid until `stop`.
    folder : Path
        Where the answers are kept.
    """

    def __init__(self, folder: Folder, port: int = 0) -> None:
        self.folder, self._folder = folder.path, folder
        self._sock = listen("127.0.0.1", port)
        self._supervisor = Supervisor(folder.path, self._sock)
        # a daemon, because Python waits for other threads before it calls `stop` at its end
        self._thread = threading.Thread(target=self._supervisor.run, name="study", daemon=True)
        address = address_of(self._sock, "127.0.0.1")
        invite = (folder.study, time.time(), "owner", "notebook", None, 30.0)
        with folder.open() as database:
            key = database.write(studies.create_invite, *invite)
            self._invite = database.read(
                studies.find_invite, folder.study, key, "owner", time.time()
            ).id
        self.vote = f"{address}/s/{folder.study}"
        self.owner = f"{address}/o/{folder.study}?key={key}"
        self._thread.start()
        atexit.register(self.stop)
        SERVED[self.folder] = self
        try:
            wait_until_up(address)
        except BaseException:
            self.stop()
            raise

    def ranking(self) -> Any:
        """The ranking as the model knows it now: a DataFrame where pandas is installed, else rows.

        `utility` with its 95 % interval `low` to `high`, `prob_best`, places, comparisons.
        """
        with self._folder.open(migrate=False) as database:
            known = database.read(reports.overview, self._folder.study, time.time())
        rows = [{"name": row["name"], **row} for row in known["ranking"]]
        return _frame([{k: v for k, v in row.items() if k != "item"} for row in rows])

    def answers(self) -> Any:
        """All answers that stand, as `read_comparisons` reads them: a DataFrame, or rows."""
        with self._folder.open(migrate=False) as database:
            return _frame(
                database.read(lambda conn: list(reports.export_rows(conn, self._folder.study)))
            )

    def stop(self) -> None:
        """End the server and the model process; the answers stay in the folder."""
        if SERVED.pop(self.folder, None) is None:
            return
        atexit.unregister(self.stop)
        self._supervisor.stopping.set()
        self._thread.join()
        self._sock.close()
        if (self.folder / SETTINGS).is_file():
            with self._folder.open(migrate=False) as database:
                database.write(studies.revoke_invite, self._folder.study, self._invite)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _state(self) -> str:
        return "answers in" if self.folder in SERVED else "stopped; answers in"

    def __repr__(self) -> str:
        return f"participants: {self.vote}\nowner:        {self.owner}\n{self._state} {self.folder}"

    def _repr_html_(self) -> str:
        links = (
            f'<p><a href="{escape(self.vote)}" target="_blank">{escape(self.vote)}</a> · '
            f'<a href="{escape(self.owner)}" target="_blank" rel="noreferrer">the owner\'s page</a>'
            f" · {self._state} <code>{escape(str(self.folder))}</code></p>"
        )
        if self.folder not in SERVED:
            return links
        frame = (
            f'<iframe src="{escape(self.vote)}" title="the voting page" width="100%" '
            f'height="{HEIGHT}" frameborder="0"></iframe>'
        )
        return links + frame


def serve(
    items: Any,
    question: str,
    folder: str | PathLike[str] | None = None,
    *,
    port: int = 0,
    **settings: Any,
) -> StudyServer:
    """Serve a study on this machine in the background; its processes end with this one.

    items : list of str, DataFrame, list of dict, or path
        Names; or a table with the columns of `items.csv`, or the path of one. Paths of images in
        a table are read from the current folder.
    question : str
        What people are asked.
    folder : path, optional
        Where answers are kept; by default a folder in the current one, named after the question.
        If it holds the study already, it goes on: new items are added, settings changed.
    port : int
        0 takes a free one.
    settings
        Settings of a study, such as `format="best"`.

    In a notebook the result shows the voting page.

    >>> import tempfile
    >>> import penchant as pc
    >>> place = tempfile.TemporaryDirectory()
    >>> study = pc.study.serve(["tea", "milk"], "Which drink?", f"{place.name}/drinks")
    >>> study.vote
    'http://127.0.0.1:.../s/drinks'
    >>> len(study.answers())
    0
    >>> study.stop()
    >>> place.cleanup()
    """
    path = Path(folder if folder is not None else _name(question)).resolve()
    values: dict[str, Any] = {"frame_ancestors": NOTEBOOKS, **settings}
    if "size" not in values and values.get("format", "pair") != "pair":
        values["size"] = 4
    config = Config.from_json({"question": question, **values})
    with tempfile.TemporaryDirectory(prefix="penchant-") as scratch:
        found, notes = _items(items, Path(scratch))
        for note in notes:
            warnings.warn(note, DataWarning, stacklevel=2)
        if (path / SETTINGS).exists():
            it = _go_on(Folder(path), found, question, values, Path(scratch))
        else:
            it = _begin(path, found, config, Path(scratch))
    return SERVED[path] if path in SERVED else StudyServer(it, port)


def _begin(path: Path, items: list[NewItem], config: Config, media: Path) -> Folder:
    if len(items) < config.size:
        raise DataError(f"a question shows {config.size} items: {len(items)} given")
    it = Folder.create(path, _name(path.name), None)
    try:
        _move(items, media, it.media)
        with it.open() as database:
            database.write(studies.create, it.study, config, items, time.time())
    except BaseException:
        (path / SETTINGS).unlink(missing_ok=True)
        raise
    return it


def _go_on(
    it: Folder, items: list[NewItem], question: str, settings: dict[str, Any], media: Path
) -> Folder:
    """Add the items that are new and change settings."""

    def job(conn: Connection) -> list[NewItem]:
        known = studies.get(conn, it.study).config.question
        if known != question:
            raise DataError(f"{it.path} holds a study that asks {known!r}: give another folder")
        names = {row.name for row in studies.items_of(conn, it.study)}
        new = [item for item in items if item.name not in names]
        studies.change_config(conn, it.study, settings)
        studies.add_items(conn, it.study, new, time.time())
        return new

    with it.open() as database:
        _move(database.write(job), media, it.media)
    return it


def _move(items: list[NewItem], here: Path, there: Path) -> None:
    """Move the media files of items."""
    for item in items:
        if item.media in FILES:
            shutil.move(here / item.body, there / item.body)


def _items(given: Any, media: Path) -> tuple[list[NewItem], list[str]]:
    """The items as `read_items` returns them, from any of the forms that `serve` takes."""
    if isinstance(given, str | PathLike):
        return read_items(Path(given), media)
    if hasattr(given, "to_dicts"):  # polars
        given = given.to_dicts()
    elif hasattr(given, "to_dict"):  # pandas
        has_names = getattr(given.index.dtype, "kind", "O") not in "iufb"
        given = (given.reset_index() if has_names else given).to_dict("records")
    rows = [row if isinstance(row, Mapping) else {"name": row} for row in _all(given)]
    if rows and any(row.keys() != rows[0].keys() for row in rows):
        raise DataError("the items have different columns: give each of them in every row")
    cells = [{str(k): _cell(value) for k, value in row.items()} for row in rows]
    return items_of(cells, Path(), media)


def _all(given: Any) -> list[Any]:
    if not isinstance(given, Iterable):
        raise DataError(
            f"items is a {type(given).__name__}: it must be names, a table, or the path of one"
        )
    return list(given)


def _cell(value: Any) -> str:
    if value is None or value != value:  # NaN is not equal to itself
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value)


def _frame(rows: list[dict[str, Any]]) -> Any:
    if find_spec("pandas") is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows)


def _name(text: str) -> str:
    """A name for an address and a folder."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:40].strip("-") or "study"
