"""A small client of a running study, for its owner."""

from os import PathLike
from pathlib import Path
from typing import Any, Self

import httpx

from penchant.errors import DataError


class Client:
    """HTTP client of a running study.

    address : str
        Of the study, as `http://127.0.0.1:8000/s/drinks`, or of the owner's link with its key.
    token : str
        The owner's key; not needed where the address carries it.

    Every method returns plain values, or raises a DataError with the server's message.

    >>> Client("http://127.0.0.1:8000/s/drinks", token="key").study
    'drinks'
    """

    def __init__(self, address: str, token: str | None = None, timeout: float = 30.0) -> None:
        url = httpx.URL(address)
        parts = url.path.strip("/").split("/")
        if len(parts) != 2 or parts[0] not in ("s", "o"):
            raise DataError(
                f"{address} is no address of a study: it must look like http://host/s/name"
            )
        key = token or url.params.get("key")
        if not key:
            raise DataError("the owner's key is missing: give token=…, or the owner's whole link")
        self.study = parts[1]
        self._http = httpx.Client(
            base_url=url.copy_with(path="/", query=None),
            headers={"Authorization": f"Bearer {key}"},
            timeout=timeout,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _call(self, method: str, path: str = "", **options: Any) -> httpx.Response:
        reply = self._http.request(method, f"/api/studies/{self.study}{path}", **options)
        if reply.is_error:
            try:
                content = reply.json()
            except ValueError:
                content = {}
            raise DataError(str(content.get("message") or content.get("detail") or reply.text))
        return reply

    def overview(self) -> dict[str, Any]:
        """Settings, counts, ranking, raters, calibration."""
        return self._call("GET").json()

    def ranking(self) -> list[dict[str, Any]]:
        """The ranking of the model's last snapshot."""
        return self.overview()["ranking"]

    def set_state(self, state: str) -> None:
        """ "running", "paused" or "closed"."""
        self._call("PATCH", json={"state": state})

    def change(self, **settings: Any) -> None:
        """Change settings of the study."""
        self._call("PATCH", json={"config": settings})

    def items(self) -> list[dict[str, Any]]:
        """All items."""
        return self._call("GET", "/items").json()

    def add_items(self, *items: str | dict[str, Any]) -> list[str]:
        """Add items by name, or with media, body and features; their ids."""
        new = [{"name": item} if isinstance(item, str) else item for item in items]
        return self._call("POST", "/items", json=new).json()["ids"]

    def upload_item(
        self, name: str, medium: str, path: str | PathLike[str], caption: str = ""
    ) -> str:
        """Add an item that is an image, audio or video file; its id."""
        file = Path(path)
        sent = {"name": name, "medium": medium, "caption": caption}
        files = {"file": (file.name, file.read_bytes())}
        reply = self._call("POST", "/items/upload", data=sent, files=files)
        return str(reply.json()["ids"][0])

    def retire(self, item: str) -> None:
        """Retire an item, by its id: it is not asked about any more."""
        self._call("DELETE", f"/items/{item}")

    def suggestions(self) -> list[dict[str, Any]]:
        """The items that participants suggest and nobody has decided about."""
        return self._call("GET", "/suggestions").json()

    def accept(self, suggestion: str, name: str = "", **features: float) -> str:
        """Add a suggestion, by its id, as an item; the item's id."""
        sent = {"add": True, "name": name, "features": features}
        return str(self._call("POST", f"/suggestions/{suggestion}", json=sent).json()["item"])

    def decline(self, suggestion: str) -> None:
        """Decline a suggestion, by its id."""
        self._call("POST", f"/suggestions/{suggestion}", json={"add": False})

    def invite(self, n: int = 1, **options: Any) -> list[str]:
        """Make invitations and return their links; options: role, label, uses, days."""
        paths = self._call("POST", "/invites", json={"n": n, **options}).json()["paths"]
        return [str(self._http.base_url.join(path)) for path in paths]

    def participants(self) -> list[dict[str, Any]]:
        """All participants, by random ids."""
        return self._call("GET", "/participants").json()

    def erase(self, participant: str) -> int:
        """Erase a person and all their data; return how many events were removed."""
        return int(self._call("DELETE", f"/participants/{participant}").json()["erased_events"])

    def plan(self) -> dict[str, Any]:
        """How many more answers, people and how much money until enough is known."""
        return self._call("GET", "/plan").json()

    def export(self, path: str | PathLike[str], everybody: bool = False) -> None:
        """Write the votes to a file that ends in .csv, .jsonl or .parquet.

        everybody: those of excluded people, too.
        """
        params = {"format": Path(path).suffix.removeprefix("."), "everybody": everybody}
        Path(path).write_bytes(self._call("GET", "/export", params=params).content)

    def import_votes(self, path: str | PathLike[str]) -> int:
        """Import votes from a CSV file; return how many distinct rows were new."""
        files = {"file": ("votes.csv", Path(path).read_bytes())}
        reply = self._call("POST", "/import", files=files)
        return int(reply.json()["rows"])

    def backup(self, path: str | PathLike[str]) -> None:
        """Write a backup, which `penchant study restore` reads."""
        Path(path).write_bytes(self._call("GET", "/backup").content)
