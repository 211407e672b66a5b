"""Tables of named rows: by position and by column, as data frames, as text and HTML."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar, overload

import numpy as np

from penchant.models.exports import to_html, to_text

RowT = TypeVar("RowT", bound=tuple[Any, ...])
"""A named tuple."""


@dataclass(frozen=True, repr=False)
class RowTable(Sequence[RowT]):
    """Rows by position, columns by name; prints as a table.

    row_type: the named tuple that rows are; left: the columns that begin at the left in print.
    """

    rows: tuple[RowT, ...]

    row_type: ClassVar[Any]
    left: ClassVar[tuple[int, ...]]

    @abstractmethod
    def _cells(self) -> list[list[str]]:
        """Header and rows as text."""

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, key: int) -> RowT: ...
    @overload
    def __getitem__(self, key: slice) -> Self: ...
    @overload
    def __getitem__(self, key: str) -> np.ndarray[Any, Any]: ...
    def __getitem__(self, key: int | slice | str) -> Any:
        if isinstance(key, str):
            return np.array([getattr(row, key) for row in self.rows])
        if isinstance(key, slice):
            return replace(self, rows=self.rows[key])
        return self.rows[key]

    def __iter__(self) -> Iterator[RowT]:
        return iter(self.rows)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Rows as plain dictionaries."""
        names = self.row_type._fields
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def to_pandas(self) -> Any:
        """A pandas data frame, one row for each."""
        import pandas

        return pandas.DataFrame(self.to_dicts(), columns=list(self.row_type._fields))

    def _repr_html_(self) -> str:
        return to_html(self._cells())

    def __str__(self) -> str:
        return to_text(self._cells(), self.left)

    def __repr__(self) -> str:
        return str(self)
