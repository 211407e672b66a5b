from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penchant.online import read_rounds, rounds_of
from penchant.online.feedback import group


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_grouping_keeps_time_and_rows_together(qid):
    order, starts = group(qid)
    ids = np.array(qid)
    row = np.arange(len(qid)) if order is None else order
    assert sorted(row) == list(range(len(qid)))
    blocks = [row[a:b] for a, b in pairwise(starts)]
    assert [ids[block[0]] for block in blocks] == list(dict.fromkeys(qid))
    for block in blocks:
        assert len(set(ids[block])) == 1
        assert np.all(np.diff(block) > 0)


def test_rounds_hold_the_documents_and_labels_of_one_query():
    docs = np.arange(8.0).reshape(4, 2)
    first, second = rounds_of(docs, [1, 2, 3, 4], ["b", "a", "b", "a"])
    assert first.docs.tolist() == [[0, 1], [4, 5]]
    assert first.grades.tolist() == [1, 3]
    assert second.grades.tolist() == [2, 4]


def test_a_file_streams_the_same_rounds_whatever_the_chunk(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    qid = np.repeat([3, 1, 3, 8, 5], [2, 4, 1, 3, 2])  # query 3 comes twice: two rounds
    docs, grades = rng.random((12, 3)).round(3), rng.integers(0, 3, 12)
    file = tmp_path / "queries.txt"
    file.write_text(
        "".join(
            f"{y} qid:{q} " + " ".join(f"{i + 1}:{v}" for i, v in enumerate(x)) + "\n"
            for x, y, q in zip(docs, grades, qid, strict=True)
        )
    )
    for chunk in (1, 2, 1000):
        monkeypatch.setattr("penchant.online.feedback._CHUNK", chunk)
        rounds = list(read_rounds(file))
        assert [len(round_.docs) for round_ in rounds] == [2, 4, 1, 3, 2]
        assert np.array_equal(np.concatenate([round_.docs for round_ in rounds]), docs)
        assert np.array_equal(np.concatenate([round_.grades for round_ in rounds]), grades)
