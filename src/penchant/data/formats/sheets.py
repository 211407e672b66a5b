"""Spreadsheets: xlsx and ods, read by pandas where it is installed."""

from pathlib import Path
from typing import Any
from zipfile import ZipFile

from penchant.data.duck import Duck, refuse_bomb
from penchant.data.formats.frames import open_frame
from penchant.data.source import Source, refuse_title
from penchant.errors import DataError

SUFFIXES = (".xlsx", ".ods")

_NEEDS = {".xlsx": "openpyxl", ".ods": "odfpy"}


def open_sheet(duck: Duck, path: Path) -> Source:
    """Return the table in a spreadsheet with one sheet; its first row names the columns."""
    sheets = {name: _without_margins(cells) for name, cells in _read(path).items()}
    filled = {name: cells for name, cells in sheets.items() if cells.size}
    if len(filled) != 1:
        raise DataError(
            f"{path.name} has {len(filled)} sheets that hold something"
            + (f" ({', '.join(map(repr, filled))})" if filled else "")
            + ": it must have one; save the sheet that you mean as a file of its own"
        )
    (cells,) = filled.values()
    table = cells.iloc[1:].reset_index(drop=True)
    table.columns = ["" if _is_blank(label) else str(label).strip() for label in cells.iloc[0]]
    further = sum(not _is_blank(cell) for cell in table.head(1).to_numpy().ravel())
    refuse_title(list(table.columns), further > 1, path.name)
    return open_frame(duck, table, path.name, first_row=1)


def _read(path: Path) -> dict[str, Any]:
    needed = f"pandas and {_NEEDS[path.suffix.lower()]}"
    try:
        import pandas as pd

        with ZipFile(path) as parts:
            refuse_bomb(path, sum(p.file_size for p in parts.infolist()), path.stat().st_size)

        sheets: dict[str, Any] = pd.read_excel(
            path, sheet_name=None, header=None, dtype=object, na_filter=False
        )
    except ImportError:
        raise DataError(
            f"{path.name} is a spreadsheet, which {needed} read: install them, or save the sheet "
            "as CSV UTF-8"
        ) from None
    except DataError:
        raise
    except Exception as error:  # a damaged file fails anywhere inside the libraries
        raise DataError(
            f"{path.name} cannot be read as a spreadsheet ({type(error).__name__}: {error}): save "
            "it again, or save the sheet as CSV UTF-8"
        ) from error
    return sheets


def _without_margins(cells: Any) -> Any:
    """Drop rows and columns in which nothing is written."""
    filled = ~cells.map(_is_blank)
    return cells.loc[filled.any(axis=1), filled.any(axis=0)].astype(object)


def _is_blank(cell: Any) -> bool:
    return cell is None or cell != cell or (isinstance(cell, str) and not cell.strip())
