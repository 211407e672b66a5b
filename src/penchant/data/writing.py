"""Tables that are written: Parquet, by DuckDB."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penchant.data.duck import identifier, literal, open_duck
from penchant.data.files import whole_file
from penchant.data.names import Names


def write_parquet(
    path: str | PathLike[str], columns: Mapping[str, NDArray[Any]], names: Mapping[str, Names]
) -> None:
    """Write a table of equally long columns; those of `names` are codes, and written as names.

    >>> from tempfile import mkdtemp
    >>> import duckdb
    >>> path = Path(mkdtemp()) / "table.parquet"
    >>> write_parquet(path, {"item": np.array([1, 0]), "mean": np.ones(2)}, {"item": ("a", "b")})
    >>> duckdb.sql(f"FROM '{path}'").fetchall()
    [('b', 1.0), ('a', 1.0)]
    """
    with open_duck(str(path)) as duck:
        table = {"row number": np.arange(len(next(iter(columns.values())))), **columns}
        duck.con.register("codes", table)
        cells, joins = [], []
        for number, column in enumerate(columns):
            cell = f"codes.{identifier(column)}"
            if column in names:
                code, is_text = f"names_{number}", any(isinstance(n, str) for n in names[column])
                known = np.array(names[column], dtype=object if is_text else None)
                duck.con.register(code, {"code": np.arange(len(known)), "name": known})
                joins.append(f"JOIN {code} ON {code}.code = {cell}")
                cell = f"{code}.name"
            cells.append(f"{cell} AS {identifier(column)}")
        query = f'SELECT {", ".join(cells)} FROM codes {" ".join(joins)} ORDER BY "row number"'
        part = duck.folder / "table.parquet"
        duck.con.execute(f"COPY ({query}) TO {literal(str(part))} (FORMAT parquet)")
        with whole_file(Path(path)) as file:
            file.write(part.read_bytes())
