"""Files of the command line: comparisons, features and relations; model files."""

import io
import json
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import penchant as pc
from penchant.workflow.encoding import Encoded, Encoding
from penchant.workflow.models import Material, as_model, name_of

# Tables that the user points at: a file, or standard input.

_MAGIC = {b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz", b"{": ".jsonl", b"# FILE NAME": ".toi"}


@contextmanager
def local_file(path: str) -> Iterator[Path]:
    """The path itself, or for `-` a temporary file with what standard input holds.

    Standard input has no name to tell its format; its first bytes do.
    """
    if path != "-":
        yield Path(path)
        return
    if sys.stdin is None:
        raise pc.DataError("standard input is closed: give the path of a file instead of -")
    content = sys.stdin.buffer.read()
    if not content.strip():
        raise pc.DataError("standard input is empty: pipe a table with a header line into it")
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")
    suffix = next((s for magic, s in _MAGIC.items() if start.startswith(magic)), ".csv")
    with tempfile.TemporaryDirectory(prefix="penchant-") as folder:
        file = Path(folder) / f"standard input{suffix}"
        file.write_bytes(content)
        yield file


def read_table(path: str) -> pc.io.CellTable:
    """All columns of a table of features or pairs."""
    with local_file(path) as file:
        return pc.io.read_table(file)


def read_links(path: str, names: tuple[object, ...]) -> pc.io.Links:
    """Links between items, by the names that are known already."""
    with local_file(path) as file:
        return pc.io.read_relation(file, names)


# From files: comparisons, features of items and people, relations between items.

RELATION_KINDS = ("undirected", "directed", "bipartite")


@dataclass(frozen=True)
class Files:
    """What the user points at."""

    comparisons: str
    items: str | None = None
    users: str | None = None
    relations: tuple[tuple[str, str, str], ...] = ()  # name, kind, path
    columns: Mapping[str, str] = field(default_factory=dict)  # role → name of the column
    shape: str | None = None
    covariates: tuple[str, ...] = ()  # columns, or differences of two: "length_a - length_b"
    time: str | None = None
    skip_bad: bool = False
    where: str | None = None

    @property
    def how(self) -> dict[str, Any]:
        """How the comparisons are to be read."""
        plain = {"shape": self.shape, "skip_bad": self.skip_bad, "where": self.where}
        return {**plain, "covariates": self.covariates, "time": self.time, **self.columns}


def read_material(files: Files, note: Callable[[str], None]) -> Material:
    """Read and match all files; `note` is called with what was left out."""
    data, X, user_features = _comparisons(files), None, None
    if data.source:
        note(f"read {data.source}")
    if files.items is not None:
        X = _encoded(files.items, data.items, "item", note)
        data = replace(data, items=X.names)
    if files.users is not None:
        if data.user is None:
            raise pc.DataError(
                f"{files.users} describes users, but no column of the comparisons says who made "
                "them: name it with --column user=NAME, or leave out --users"
            )
        user_features = _encoded(files.users, data.users, "user", note)
        data = replace(data, users=user_features.names)
    links = [(name, kind, read_links(path, data.items)) for name, kind, path in files.relations]
    if X is None:
        data = replace(data, items=_with_linked(data.items, links))
    graphs = {name: _graph(found, kind, data.items) for name, kind, found in links}
    return Material(data, X, graphs or None, user_features)


def _encoded(path: str, names: Sequence[Any], what: str, note: Callable[[str], None]) -> Encoded:
    """Features of everybody who was compared, and of those whom only the table knows."""
    table = read_table(path)
    encoded = pc.encode(table, names, others=True, what=what)
    for sentence in encoded.left_out:
        note(f"{table.source}: {sentence}")
    return encoded


def _comparisons(files: Files) -> pc.Comparisons:
    with local_file(files.comparisons) as path, _hints():
        return pc.read_comparisons(path, **files.how)


def read_segments(files: Files, by: str) -> dict[str, pc.Comparisons]:
    """Read the comparisons apart by the values of a column."""
    with local_file(files.comparisons) as path, _hints():
        return pc.io.read_segments(path, by, **files.how)


@contextmanager
def _hints() -> Iterator[None]:
    try:
        yield
    except pc.DataError as error:
        raise pc.DataError(f"{error}{_hint(str(error))}") from None


def _hint(message: str) -> str:
    """What the library advises, in words of the command line."""
    columns = re.findall(r"""(?:winner|loser)=(?:'[^']*'|"[^"]*")""", message)
    # a shape that is said not to fit is no advice
    shapes = dict.fromkeys(re.findall(r"(?<!as )(?<!for )shape='([a-z-]+)'", message))
    options = [" ".join(f"--column {column}" for column in columns)] if columns else []
    if options or shapes:
        options += [f"--shape {shape}" for shape in shapes]
        return "\non the command line: " + ", ".join(options)
    if "rows are counted" in message:
        return "\non the command line: --skip-bad leaves such rows out"
    return ""


def _with_linked(
    names: Sequence[Any], links: Sequence[tuple[str, Any, pc.io.Links]]
) -> tuple[Any, ...]:
    """Items that are linked but were never compared still belong to the study."""
    everyone = dict.fromkeys(names)
    for _, kind, found in links:
        everyone |= dict.fromkeys(found.items(kind))
    return tuple(everyone)


def _graph(links: pc.io.Links, kind: Any, names: Sequence[Any]) -> Any:
    """A graph from rows `from, to[, weight]`; bipartite: rows `item, other thing[, weight]`."""
    matrix = links.matrix(names, kind)
    if kind == "bipartite":
        return pc.kernels.bipartite(matrix)
    return pc.kernels.directed(matrix) if kind == "directed" else matrix


# Model files of the command line: what `model.save` writes, and beside it the items' features.
#
# The file stays a penchant model that `penchant.load` reads; the addition lets the command line
# match new tables to the columns that the model was fitted with.

SUFFIX = ".penchant"
_ENCODING, _FEATURES = "study.json", "features.npy"


@dataclass(frozen=True)
class FittedModel:
    """A model that has learned, and the items' features where they came from a table."""

    model: Any
    X: Encoded | None
    why: str = ""

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        return name_of(self.model)

    @property
    def data(self) -> pc.Comparisons:
        """What it learned from."""
        data: pc.Comparisons = self.model.comparisons_
        return data


def save(fitted: FittedModel, path: str) -> None:
    """Write one file, whole or not at all."""
    target = Path(path)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".penchant-") as folder:
        scratch = Path(folder) / target.name
        fitted.model.save(scratch)
        if fitted.X is not None:
            buffer = io.BytesIO()
            np.save(buffer, fitted.X.values, allow_pickle=False)
            with zipfile.ZipFile(scratch, "a") as archive:
                content = {"item_encoding": asdict(fitted.X.encoding)}
                archive.writestr(_ENCODING, json.dumps(content))
                archive.writestr(_FEATURES, buffer.getvalue())
        os.replace(scratch, target)


def load(path: str) -> FittedModel:
    """Read what `save` wrote, or what a model's own `save` wrote."""
    model = as_model(pc.load(path))
    try:
        names = model.comparisons_.items
    except AttributeError:
        raise pc.DataError(
            f"{path} holds a {name_of(model)} model without the names of its items: fit it with "
            "`penchant fit`, or use it in Python"
        ) from None
    try:
        with zipfile.ZipFile(path) as archive:
            return FittedModel(model, _read_features(archive, names))
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise pc.DataError(f"{path} is damaged ({error}): fit the model again") from None


def _read_features(archive: zipfile.ZipFile, names: tuple[Any, ...]) -> Encoded | None:
    if not {_ENCODING, _FEATURES} <= set(archive.namelist()):
        return None
    fields = json.loads(archive.read(_ENCODING))["item_encoding"]
    if fields is None:
        return None
    values = np.load(io.BytesIO(archive.read(_FEATURES)), allow_pickle=False)
    return Encoded(values, names, Encoding.from_dict(fields))
