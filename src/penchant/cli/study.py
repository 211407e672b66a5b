"""From files: comparisons, features of items and people, relations between items."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scipy import sparse

import penchant as pc
from penchant.cli.tables import FileTable, local_file, read_table
from penchant.workflow.encoding import Encoded, as_names
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
    skip_bad: bool = False


def read_material(files: Files, note: Callable[[str], None]) -> Material:
    """Read and match all files; `note` is told what was left out."""
    data, X, user_features = _comparisons(files), None, None
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
    links = [(name, kind, read_table(path)) for name, kind, path in files.relations]
    if X is None:
        data = replace(data, items=_with_linked(data.items, links))
    graphs = {name: _relation(table, kind, data.items) for name, kind, table in links}
    return Material(data, X, graphs or None, user_features)


def _encoded(path: str, names: Sequence[Any], what: str, note: Callable[[str], None]) -> Encoded:
    """Features of everybody who was compared, and of those whom only the table knows."""
    table = read_table(path)
    encoded = pc.encode(table, names, others=True, what=what)
    for sentence in encoded.left_out:
        note(f"{table.source}: {sentence}")
    return encoded


def _comparisons(files: Files) -> pc.Comparisons:
    with local_file(files.comparisons) as path:
        try:
            return pc.read_comparisons(path, skip_bad=files.skip_bad, **files.columns)
        except pc.DataError as error:
            raise pc.DataError(f"{error}{_hint(str(error))}") from None


def _hint(message: str) -> str:
    """What the library advises, in words of the command line."""
    columns = re.findall(r"""(?:winner|loser)=(?:'[^']*'|"[^"]*")""", message)
    if columns:
        return "\non the command line: " + " ".join(f"--column {column}" for column in columns)
    if "rows are counted" in message:
        return "\non the command line: --skip-bad leaves such rows out"
    return ""


def _with_linked(
    names: Sequence[Any], links: Sequence[tuple[str, str, FileTable]]
) -> tuple[Any, ...]:
    """Items that are linked but were never compared still belong to the study."""
    everyone = dict.fromkeys(names)
    for _, kind, table in links:
        ends = list(table.columns.values())[: 1 if kind == "bipartite" else 2]
        everyone |= dict.fromkeys(name for cells in ends for name in as_names(cells, names))
    return tuple(everyone)


def _relation(table: FileTable, kind: str, names: Sequence[Any]) -> Any:
    """A graph from rows `from, to[, weight]`; bipartite: rows `item, other thing[, weight]`."""
    if len(table.columns) < 2:
        raise pc.DataError(
            f"{table.source} has one column: a relation needs two, the items at both ends of a "
            "link (and may have a third, called weight)"
        )
    first, second = list(table.columns.values())[:2]
    others = tuple(dict.fromkeys(second)) if kind == "bipartite" else names
    ends = _codes(first, names, table), _codes(second, others, table)
    links = sparse.csr_array((_weights(table), ends), shape=(len(names), len(others)))
    if kind == "bipartite":
        return pc.kernels.bipartite(links)
    return pc.kernels.directed(links) if kind == "directed" else links.maximum(links.T)


def _codes(cells: Sequence[Any], names: Sequence[Any], table: FileTable) -> list[int]:
    code = {name: index for index, name in enumerate(names)}
    found = as_names(cells, names)
    for row, name in enumerate(found, start=1):
        if name not in code:
            raise pc.DataError(
                f"{table.source} row {row} links {name!r}, which is not one of the {len(names)} "
                "items: correct the name or add it to the items"
            )
    return [code[name] for name in found]


def _weights(table: FileTable) -> list[float]:
    column = next((name for name in table.columns if name.lower() == "weight"), None)
    if column is None:
        return [1.0] * len(table)
    try:
        return [float(cell) for cell in table.columns[column]]
    except (TypeError, ValueError):
        raise pc.DataError(
            f"column {column!r} of {table.source} holds something that is not a number: every "
            "link needs a weight, or leave the column out"
        ) from None
