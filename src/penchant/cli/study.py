"""A study from files: comparisons, features of items and people, relations between items."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import penchant as pc
from penchant.cli.features import Encoding, FloatArray, find_id_column, learn_encoding
from penchant.cli.tables import Table, local_file, read_table

RELATION_KINDS = ("undirected", "directed", "bipartite")


@dataclass(frozen=True)
class Files:
    """What the user points at."""

    comparisons: str
    items: str | None = None
    users: str | None = None
    relations: tuple[tuple[str, str, str], ...] = ()  # name, kind, path
    columns: Mapping[str, str] | None = None  # role → name of the column
    skip_bad: bool = False


@dataclass(frozen=True)
class Study:
    """Everything that a model can learn from.

    X : (n_items, d) and user_features : (n_users, e), in the order of the data, or None.
    item_encoding, user_encoding : how they came from tables, where they did.
    """

    data: pc.Comparisons
    X: FloatArray | None = None
    user_features: FloatArray | None = None
    relations: Mapping[str, Any] | None = None
    item_encoding: Encoding | None = None
    user_encoding: Encoding | None = None


def read_study(files: Files, note: Callable[[str], None]) -> Study:
    """Read and match all files; `note` is told what was left out."""
    study = Study(_comparisons(files))
    if files.items is not None:
        study = _with_items(study, read_table(files.items), note)
    if files.users is not None:
        study = _with_users(study, read_table(files.users), note)
    return _with_relations(study, files.relations)


def _comparisons(files: Files) -> pc.Comparisons:
    with local_file(files.comparisons) as path:
        try:
            return pc.read_comparisons(path, skip_bad=files.skip_bad, **(files.columns or {}))
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


def _with_items(study: Study, table: Table, note: Callable[[str], None]) -> Study:
    names, encoding, X = _features(table, study.data.items, "item", note)
    return replace(study, data=replace(study.data, items=names), X=X, item_encoding=encoding)


def _with_users(study: Study, table: Table, note: Callable[[str], None]) -> Study:
    if study.data.user is None:
        raise pc.DataError(
            f"{table.source} describes users, but no column of the comparisons says who made "
            "them: name it with --column user=NAME, or leave out --users"
        )
    names, encoding, features = _features(table, study.data.users, "user", note)
    data = replace(study.data, users=names)
    return replace(study, data=data, user_features=features, user_encoding=encoding)


def _with_relations(study: Study, relations: Sequence[tuple[str, str, str]]) -> Study:
    links = [(name, kind, read_table(path)) for name, kind, path in relations]
    if study.X is None:
        known = _with_linked(study.data.items, links)
        study = replace(study, data=replace(study.data, items=known))
    graphs = {name: _relation(table, kind, study.data.items) for name, kind, table in links}
    return replace(study, relations=graphs or None)


def as_names(cells: Sequence[Any], like: Sequence[Any]) -> list[Any]:
    """Cells as names: those that are known by their text, others as whole numbers where all
    known names are such."""
    known = {str(name): name for name in like}
    whole = all(isinstance(name, int) for name in like)
    return [known.get(str(cell), _new_name(str(cell), whole)) for cell in cells]


def _new_name(text: str, whole: bool) -> Any:
    return int(text) if whole and text.isdecimal() and str(int(text)) == text else text


def _features(
    table: Table, names: Sequence[Any], what: str, note: Callable[[str], None]
) -> tuple[tuple[Any, ...], Encoding, FloatArray]:
    """The names with those that only the table knows at the end, and features for all."""
    column = find_id_column(table, names, what)
    listed = as_names(table.columns[column], names)
    row_of = {name: row for row, name in enumerate(listed)}
    absent = [name for name in names if name not in row_of]
    if absent:
        raise pc.DataError(
            f"{len(absent)} of {len(names)} {what}s have no row in {table.source} (for example "
            f"{absent[0]!r}; its {what}s are in column {column!r}): add a row for each, its cells "
            f"empty where nothing is known, or leave out --{what}s"
        )
    encoding, left_out = learn_encoding(table, column)
    for sentence in left_out:
        note(f"{table.source}: {sentence}")
    if not encoding.columns:
        raise pc.DataError(
            f"{table.source} has no usable feature column beside {column!r}: leave out --{what}s"
        )
    known = set(names)
    everyone = (*names, *(name for name in listed if name not in known))
    rows = [row_of[name] for name in everyone]
    return everyone, encoding, encoding.encode(table)[rows]


def _with_linked(names: Sequence[Any], links: Sequence[tuple[str, str, Table]]) -> tuple[Any, ...]:
    """Items that are linked but were never compared still belong to the study."""
    everyone = dict.fromkeys(names)
    for _, kind, table in links:
        ends = list(table.columns.values())[: 1 if kind == "bipartite" else 2]
        everyone |= dict.fromkeys(name for cells in ends for name in as_names(cells, names))
    return tuple(everyone)


def _relation(table: Table, kind: str, names: Sequence[Any]) -> Any:
    """A graph from rows `from, to[, weight]`; bipartite: rows `item, other thing[, weight]`."""
    if len(table.columns) < 2:
        raise pc.DataError(
            f"{table.source} has one column: a relation needs two, the items at both ends of a "
            "link (and may have a third, called weight)"
        )
    first, second = list(table.columns.values())[:2]
    code = {name: index for index, name in enumerate(names)}
    rows = _codes(first, code, names, table)
    weight = _weights(table)
    if kind == "bipartite":
        others = {name: index for index, name in enumerate(dict.fromkeys(map(str, second)))}
        columns = np.array([others[str(cell)] for cell in second])
        shape = (len(names), len(others))
        return pc.kernels.bipartite(sparse.csr_array((weight, (rows, columns)), shape=shape))
    columns = _codes(second, code, names, table)
    links = sparse.csr_array((weight, (rows, columns)), shape=(len(names),) * 2)
    if kind == "directed":
        return pc.kernels.directed(links)
    return links.maximum(links.T)


def _codes(
    cells: Sequence[Any], code: Mapping[Any, int], names: Sequence[Any], table: Table
) -> NDArray[np.intp]:
    found = as_names(cells, names)
    for row, name in enumerate(found, start=1):
        if name not in code:
            raise pc.DataError(
                f"{table.source} row {row} links {name!r}, which is not one of the {len(names)} "
                "items: correct the name or add it to the items"
            )
    return np.array([code[name] for name in found], dtype=np.intp)


def _weights(table: Table) -> FloatArray:
    column = next((name for name in table.columns if name.lower() == "weight"), None)
    if column is None:
        return np.ones(len(table))
    try:
        return np.array([float(cell) for cell in table.columns[column]])
    except (TypeError, ValueError):
        raise pc.DataError(
            f"column {column!r} of {table.source} holds something that is not a number: every "
            "link needs a weight, or leave the column out"
        ) from None
