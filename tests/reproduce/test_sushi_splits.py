"""Splits of rankings into training and test pairs, and the tables made of scores."""

import numpy as np

from penchant.reproduce.sushi_splits import Score, score_rows, split_rankings


def test_every_pair_is_in_one_part_and_follows_the_ranking(rng):
    rankings = np.array([rng.permutation(20)[:5] for _ in range(7)])
    train, test = split_rankings(rankings, 4, rng)
    assert np.bincount(train.user).tolist() == [4] * 7
    assert np.bincount(test.user).tolist() == [6] * 7
    seen = set()
    for part in (train, test):
        for user, winner, loser in zip(*part, strict=True):
            order = rankings[user].tolist()
            assert order.index(winner) < order.index(loser)
            seen.add((user, winner, loser))
    assert len(seen) == 70
    assert train.comparisons(20, 7).n_comparisons == 28


def test_scores_become_rows_with_standard_errors():
    certain, even = Score.of(np.array([0.9, 0.8])), Score.of(np.array([0.5, 0.5]))
    assert certain.accuracy == 1.0
    assert even.accuracy == 0.5
    rows = score_rows({("k", "model"): [certain, even], "one": [even]})
    assert rows[0][:3] == ["k", "model", "0.7500 ± 0.2500"]
    assert rows[1][:2] == ["one", "0.5000"]
