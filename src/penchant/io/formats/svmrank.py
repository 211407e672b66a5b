"""Documents with graded relevance in the SVM-rank text format (LETOR, MSLR, Yahoo!)."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import groupby, islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse as sp

from penchant.errors import DataError
from penchant.numerics.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class GradedDocuments:
    """Documents that were graded within queries.

    X : (n, d) features, dense or CSR; y : (n,) grades; qid : (n,) the query of each document.

    >>> documents = GradedDocuments(np.eye(3), np.array([2.0, 0.0, 1.0]), np.array([1, 1, 2]))
    >>> len(documents), documents.n_queries
    (3, 2)
    """

    X: FloatArray | sp.csr_matrix
    y: FloatArray
    qid: IntArray

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_queries(self) -> int:
        """Number of different queries."""
        return len(np.unique(self.qid))


def read_svmrank(
    path: str | PathLike[str], *, sparse: bool = False, n_features: int | None = None
) -> GradedDocuments:
    """Read lines `grade qid:q 1:v 2:v … #comment`; features are numbered from 1.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.txt"
    ...     _ = path.write_text("2 qid:7 1:0.5 3:1 #a\\n0 qid:7 2:4\\n")
    ...     documents = read_svmrank(path)
    >>> documents.X.tolist(), documents.y.tolist(), documents.qid.tolist()
    ([[0.5, 0.0, 1.0], [0.0, 4.0, 0.0]], [2.0, 0.0], [7, 7])
    """
    with _opened(Path(path)) as file:
        return _parse(file, str(path), sparse, n_features)


def iter_svmrank(
    path: str | PathLike[str],
    chunk_queries: int = 1,
    *,
    sparse: bool = False,
    n_features: int | None = None,
) -> Iterator[GradedDocuments]:
    """Yield `chunk_queries` whole queries at a time, so that memory does not grow with the file.

    A query is a run of consecutive lines with the same qid. Without `n_features` the first
    chunk decides how many there are.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "graded.txt")
    ...     _ = path.write_text("2 qid:1 1:0.5\\n0 qid:1 1:0.1\\n1 qid:2 1:0.3\\n")
    ...     [len(query) for query in iter_svmrank(path)]
    [2, 1]
    """
    if chunk_queries < 1:
        raise DataError(f"chunk_queries is {chunk_queries}: it must be at least 1")
    with _opened(Path(path)) as file:
        lines = (line for line in file if line.split(b"#", 1)[0].strip())
        queries = (list(run) for _, run in groupby(lines, key=_query_of))
        while chunk := b"".join(line for run in islice(queries, chunk_queries) for line in run):
            documents = _parse(BytesIO(chunk), str(path), sparse, n_features)
            n_features = documents.X.shape[1]
            yield documents


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file, zipped or not; what a damaged .gz file raises becomes a DataError."""
    if not path.is_file():
        raise DataError(f"there is no file {path}: check the path")
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is damaged or not zipped ({error}): copy it again") from None


def _query_of(line: bytes) -> bytes:
    fields = line.split(maxsplit=2)
    return fields[1] if len(fields) > 1 else b""


def _parse(file: Any, name: str, sparse: bool, n_features: int | None) -> GradedDocuments:
    # slow to load, and whoever reads comparisons does not need it
    from sklearn.datasets import load_svmlight_file

    try:
        X, y, qid = load_svmlight_file(
            file, n_features=n_features, zero_based=False, query_id=True, dtype=np.float64
        )
    except ValueError as error:
        raise DataError(
            f"{name} is not in the SVM-rank format ({error}): every line must look like "
            "'2 qid:10 1:0.5 2:0.1', with features numbered from 1"
            + (f" to {n_features}; give n_features" if n_features else "")
        ) from None
    if not len(y):
        raise DataError(f"{name} holds no documents: every line must look like '2 qid:10 1:0.5'")
    if len(qid) != len(y):
        raise DataError(
            f"{name} has {len(y)} documents but only {len(qid)} with a query: every line needs "
            "a qid, as in '2 qid:10 1:0.5'"
        )
    return GradedDocuments(X if sparse else X.toarray(), y, np.asarray(qid, dtype=np.intp))
