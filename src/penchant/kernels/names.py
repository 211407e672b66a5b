"""What the rows and columns of a data frame are called."""

from typing import Any

Names = tuple[Any, ...]


def row_names(table: Any) -> Names | None:
    """The `names` of a table of features, or the index of a pandas frame; None: rows have none."""
    return _names(table.index if hasattr(table, "iloc") else getattr(table, "names", None))


def column_names(table: Any) -> Names | None:
    """The columns of a data frame or an arrow table; None: they have no names."""
    return _names(getattr(table, "column_names", getattr(table, "columns", None)))


def is_numbered(names: Names) -> bool:
    """Whether names are only positions: 0, 1, 2 …, as pandas numbers what has no names.

    >>> is_numbered((0, 1)), is_numbered((1, 0)), is_numbered(("a", "b"))
    (True, False, False)
    """
    return names == tuple(range(len(names)))


def _names(found: Any) -> Names | None:
    return None if found is None or callable(found) else tuple(found)
