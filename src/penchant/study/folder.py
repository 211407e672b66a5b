"""The folder of a study on disk: its database, its secret, its media."""

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penchant.errors import DataError
from penchant.study.store import Database

SETTINGS = "study.json"


class Folder:
    """A folder that `penchant study new` made.

    study.json says where the database is, `secret` signs cookies and hides panels' ids,
    media/ holds files under random names.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            settings = json.loads((self.path / SETTINGS).read_text())
            self.study, self.database_url = str(settings["study"]), str(settings["database"])
            self.secret = (self.path / "secret").read_text().strip()
        except FileNotFoundError:
            raise DataError(
                f"{self.path} is no folder of a study: make one with `penchant study new "
                f"{self.path} --items items.csv --question '…'`"
            ) from None
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise DataError(
                f"{self.path / SETTINGS} cannot be read ({error}): it must name the study and its "
                "database, as `penchant study new` wrote it"
            ) from error
        self.media = self.path / "media"

    @classmethod
    def create(cls, path: str | os.PathLike[str], study: str, database: str | None) -> "Folder":
        """Make a folder for a new study; one that holds a study already is refused."""
        path = Path(path)
        if (path / SETTINGS).exists():
            raise DataError(f"{path} holds a study already: choose another folder")
        (path / "media").mkdir(parents=True, exist_ok=True)
        write_private(path / "secret", secrets.token_hex(32))
        settings: Mapping[str, Any] = {"study": study, "database": database or "sqlite:///study.db"}
        write_private(path / SETTINGS, json.dumps(settings, indent=2))
        return cls(path)

    def open(self, *, durable: bool = True, migrate: bool = True) -> Database:
        """The database, its tables up to date; a relative SQLite path lies in the folder."""
        prefix = "sqlite:///"
        url = self.database_url
        if url.startswith(prefix) and not url.startswith(f"{prefix}/"):
            url = f"{prefix}{(self.path / url.removeprefix(prefix)).resolve()}"
        database = Database(url, durable=durable)
        if migrate:
            database.migrate()
        return database


def write_private(path: Path, content: str) -> None:
    """Write a file that its owner alone can read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(content)
