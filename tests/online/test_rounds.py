from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penchant.online import rounds_of
from penchant.online.rounds import group


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
