"""Files of comparisons: CSV, Parquet, JSON lines, spreadsheets and PrefLib."""

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from penchant.data.comparisons import Comparisons
from penchant.data.formats.preflib import SUFFIXES as PREFLIB
from penchant.data.formats.preflib import read_preflib
from penchant.data.reading import Wish, check_file, read_file, table_suffix
from penchant.data.sql import Further


def read_comparisons(
    path: str | PathLike[str],
    *,
    winner: str | None = None,
    loser: str | None = None,
    user: str | None = None,
    tie: str | None = None,
    count: str | None = None,
    margin: str | None = None,
    first: str | None = None,
    time: str | None = None,
    covariates: Sequence[str] = (),
    shape: str | None = None,
    skip_bad: bool = False,
) -> Comparisons:
    """Read comparisons from a CSV, Parquet, JSON-lines, xlsx, ods or PrefLib file.

    The shape of the table is recognised from its columns (winner and loser; two items and an
    outcome; rankings; surveys …), or `shape` names it; `source` of the result tells how it was
    read. The other arguments name columns where spellings are unusual; in a table of two items
    and an outcome `winner` names the column of outcomes. `margin`, `first`, `time` and
    `covariates` are read only when named; a covariate is a column, or a difference such as
    "length_a - length_b". Columns that nothing points to are ignored. Bad rows are an error that
    lists them, or with `skip_bad=True` they are left out with a DataWarning that lists them.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "votes.csv"
    ...     _ = path.write_text("chosen,rejected\\ntea,milk\\ntea,milk\\n")
    ...     data = read_comparisons(path)
    >>> data.items, data.count.tolist()
    (('milk', 'tea'), [2])
    """
    path = check_file(Path(path))
    if table_suffix(path, PREFLIB) in PREFLIB:
        return read_preflib(path)
    columns = {"winner": winner, "loser": loser, "user": user, "tie": tie, "count": count}
    wish = Wish(columns, shape, Further(time, margin, first, tuple(covariates)), skip_bad)
    return Comparisons.from_found(read_file(path, wish), wish)


def as_comparisons(data: Any) -> Comparisons:
    """Return comparisons as they are, those in a file or those in a data frame.

    >>> as_comparisons(Comparisons.from_pairs(["a"], ["b"])).items
    ('a', 'b')
    """
    if isinstance(data, Comparisons):
        return data
    if isinstance(data, str | PathLike):
        return read_comparisons(fspath(data))
    return Comparisons.from_frame(data)
