"""Disagreement of many rankings at once against a plain double loop."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penchant.ranking import Groups, disagreement


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=12))
def test_disagreement_is_equation_4(rows):
    scores, predictions = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    wrong = 0.0
    for i in range(len(rows)):
        for j in range(len(rows)):
            if scores[i] != scores[j]:  # Eq. 4 as printed charges ties in s whatever f says
                sign_s = 1 if scores[i] > scores[j] else -1
                sign_f = 1 if predictions[i] > predictions[j] else -1
                wrong += 0.5 * abs(sign_s - sign_f)
    pairs = Groups(np.zeros(len(rows), dtype=np.intp), scores).ordered_pairs()
    ones = pairs._replace(weight=np.ones(len(pairs.better)))
    np.testing.assert_allclose(disagreement(predictions[:, None], ones), [wrong / 2])


def test_chunks_add_up(rng, monkeypatch):
    pairs = Groups(rng.integers(4, size=60), rng.standard_normal(60)).ordered_pairs()
    predictions = rng.standard_normal((60, 3))
    whole = disagreement(predictions, pairs)
    monkeypatch.setattr("penchant.ranking.graph._CHUNK", 50)
    np.testing.assert_allclose(disagreement(predictions, pairs), whole)
