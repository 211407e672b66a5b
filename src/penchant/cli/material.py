"""From files: comparisons, features of items and people, relations between items."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import penchant as pc
from penchant.cli.tables import local_file, read_links, read_table
from penchant.workflow.encoding import Encoded
from penchant.workflow.models import Material

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
    """Read and match all files; `note` is told what was left out."""
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
    graphs = {name: _relation(found, kind, data.items) for name, kind, found in links}
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


def _relation(links: pc.io.Links, kind: Any, names: Sequence[Any]) -> Any:
    """A graph from rows `from, to[, weight]`; bipartite: rows `item, other thing[, weight]`."""
    matrix = links.matrix(names, kind)
    if kind == "bipartite":
        return pc.kernels.bipartite(matrix)
    return pc.kernels.directed(matrix) if kind == "directed" else matrix
