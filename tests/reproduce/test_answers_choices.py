"""Choices as cliques cover what they promise, where broken pairs do not."""

from penchant.reproduce.answers_choices import choices_beside_pairs


def test_intervals_of_choices_cover_where_those_of_pairs_do_not():
    rows = {
        (row["answers"], row["taken as"]): row
        for row in choices_beside_pairs(8)
        if row["prior"] == "known"
    }
    for kind in ("best of 5", "rankings of 5"):
        choices, pairs = rows[kind, "cliques"], rows[kind, "pairs"]
        assert 0.86 <= choices["coverage"] <= 0.94
        assert pairs["coverage"] < 0.84
        assert choices["log_likelihood"] > pairs["log_likelihood"] - 0.02
