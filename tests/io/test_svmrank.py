import gzip

import numpy as np
import pytest
from scipy import sparse

from penchant.datasets import iter_svmrank, load_mq2008, load_ohsumed, read_svmrank
from penchant.errors import DataError

TEXT = """# a comment line
2 qid:3 1:0.5 3:-1.25 #docid = 7 qid:9
0 qid:3 2:4e-1

1 qid:5 1:1 2:2 3:3
0 qid:8
"""


@pytest.fixture
def path(write):
    return write(TEXT, "documents.txt")


def test_lines_become_rows(path):
    documents = read_svmrank(path)
    np.testing.assert_array_equal(documents.X, [[0.5, 0, -1.25], [0, 0.4, 0], [1, 2, 3], [0, 0, 0]])
    assert documents.y.tolist() == [2, 0, 1, 0]
    assert documents.qid.tolist() == [3, 3, 5, 8]
    assert len(documents) == 4
    assert documents.n_queries == 3


def test_sparse_wide_and_zipped(path, write):
    zipped = write(gzip.compress(TEXT.encode()), "documents.txt.gz")
    documents = read_svmrank(zipped, sparse=True, n_features=6)
    assert sparse.issparse(documents.X)
    assert documents.X.shape == (4, 6)
    np.testing.assert_array_equal(documents.X.toarray()[:, :3], read_svmrank(path).X)


def test_documents_without_features_stay_with_their_query(write):
    path = write("1 qid:1\n0 qid:1 1:1\n2 qid:2\n1 qid:3\n", "bare.txt")
    chunks = list(iter_svmrank(path, n_features=1))
    assert [chunk.qid.tolist() for chunk in chunks] == [[1, 1], [2], [3]]
    assert [chunk.y.tolist() for chunk in chunks] == [[1.0, 0.0], [2.0], [1.0]]


@pytest.mark.parametrize("chunk_queries", [1, 2, 3, 10])
def test_streaming_gives_the_same_documents(path, chunk_queries):
    whole = read_svmrank(path)
    chunks = list(iter_svmrank(path, chunk_queries))
    np.testing.assert_array_equal(np.vstack([chunk.X for chunk in chunks]), whole.X)
    np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), whole.y)
    np.testing.assert_array_equal(np.concatenate([chunk.qid for chunk in chunks]), whole.qid)
    assert all(chunk.n_queries <= chunk_queries for chunk in chunks)


def test_a_later_chunk_with_more_features_says_what_to_give(write):
    path = write("1 qid:1 1:1\n1 qid:2 5:1\n", "growing.txt")
    with pytest.raises(DataError, match="give n_features"):
        list(iter_svmrank(path))
    assert [chunk.X.shape for chunk in iter_svmrank(path, n_features=5)] == [(1, 5), (1, 5)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:2\n", "every line needs a qid|not in the SVM-rank format"),
        ("1 qid:1 1:2\n1 1:2\n", "2 documents but only 1 with a query"),
        ("1 qid:1 0:2\n", "features numbered from 1"),
        ("good qid:1 1:2\n", "not in the SVM-rank format"),
        ("1 qid:1 1:NULL\n", "not in the SVM-rank format"),
        ("# nothing\n", "holds no documents"),
    ],
)
def test_broken_files(write, text, message):
    path = write(text, "broken.txt")
    with pytest.raises(DataError, match=message):
        read_svmrank(path)


def test_files_and_chunks_that_cannot_be(tmp_path, path):
    with pytest.raises(DataError, match="there is no file"):
        read_svmrank(tmp_path / "none.txt")
    with pytest.raises(DataError, match="chunk_queries is 0"):
        next(iter_svmrank(path, 0))


def test_ohsumed_is_as_published(data_folder):
    whole = load_ohsumed().whole()
    assert whole.n_queries == 106
    assert np.bincount(whole.y.astype(int)).tolist() == [11303, 2585, 2252]
    assert whole.X.shape == (16140, 25)
    assert whole.X[0, 0] == pytest.approx(float(_first_value(data_folder)))


def _first_value(folder):
    with (folder / "ohsumed" / "trainingset.txt").open() as file:
        return file.readline().split()[2].removeprefix("1:")


def test_mq2008_is_as_published(data_folder):
    parts = load_mq2008()
    assert parts.whole().n_queries == 784
    assert parts.whole().X.shape == (15211, 46)
    streamed = sum(len(c) for c in iter_svmrank(data_folder / "mq2008" / "vali.txt", 50))
    assert streamed == len(parts.validation)
