"""Rankings and choices are one answer each, through everything that is done with comparisons."""

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.io import read_comparisons


@pytest.fixture
def mixed():
    """Rankings with and without ties, choices, and single pairs, by three people."""
    who = ["ann", "bob", "ann", "cid"]
    rankings = [["a", "b", "c", "d"], ["b", ["a", "c"]], ["a", "b", "c", "d"], ["c", "a"]]
    ranked = Comparisons.from_rankings(rankings, users=who)
    sets = [["a", "b", "d"], ["a", "c", "d", "e"]]
    chosen = Comparisons.from_choices(["d", "a"], sets, worst=["a", "e"], user=["bob", "cid"])
    return ranked + chosen + Comparisons.from_pairs(["a"], ["b"], user=["ann"])


def by_name(data):
    both = data.named_rankings(tied=True) + data.named_rankings(tied=False)
    return sorted((str(who), [sorted(p) for p in places], n) for places, who, n in both)


def won(data):
    return {
        (data.items[w], data.items[lo]): int(n)
        for w, lo, n, t in zip(data.winner, data.loser, data.count, data.tie, strict=True)
        if not t
    }


def test_equal_rankings_become_one_with_a_count_and_pairs_stay_pairs(mixed):
    assert by_name(mixed) == [
        ("ann", [["a"], ["b"], ["c"], ["d"]], 2),
        ("bob", [["b"], ["a", "c"]], 1),
        ("bob", [["d"], ["b"], ["a"]], 1),
        ("cid", [["a"], ["c", "d"], ["e"]], 1),
    ]
    single = mixed.single_pairs()
    assert won(single) == {("c", "a"): 1, ("a", "b"): 1}
    assert single.n_comparisons == 2


def test_the_columns_hold_the_pairs_of_everything(mixed):
    pooled = won(mixed.pooled())
    assert pooled[("a", "b")] == 3  # twice in rankings, once by itself
    assert ("c", "d") in pooled
    cid = mixed.for_user("cid")
    assert won(cid) == {
        ("c", "a"): 1, ("a", "c"): 1, ("a", "d"): 1, ("a", "e"): 1, ("c", "e"): 1, ("d", "e"): 1
    }  # fmt: skip
    assert cid.rankings.user is None
    assert len(cid.rankings) == 1


@pytest.mark.parametrize(
    ("made", "places"),
    [
        (("b", None), [["b"], ["a", "c"]]),
        ((None, "b"), [["a", "c"], ["b"]]),
        (("b", "a"), [["b"], ["c"], ["a"]]),
        ((("a", "b"), None), [["a", "b"], ["c"]]),
    ],
)
def test_choices_are_orders_of_places(made, places):
    best, worst = made
    data = Comparisons.from_choices(
        None if best is None else [best],
        [["c", "b", "a"]],
        worst=None if worst is None else [worst],
    )
    ((found, who, count),) = data.named_rankings(tied=False)
    assert ([sorted(p) for p in found], who, count) == (places, None, 1)


def test_a_choice_of_two_is_a_pair():
    data = Comparisons.from_choices(["a", "b"], [["a", "b"], ["c", "b"]], user=["u", "v"])
    assert data == Comparisons.from_pairs(["a", "b"], ["b", "c"], user=["u", "v"])
    assert Comparisons.from_rankings([["b", "a"]]) == Comparisons.from_pairs(["b"], ["a"])


def test_a_ranking_without_any_order_is_ties():
    data = Comparisons.from_rankings([[["a", "b", "c"]]])
    assert data.rankings is None
    assert data.tie.all()
    assert len(data) == 3


def test_a_ranking_counts_once_where_a_share_is_held_out():
    rng = np.random.default_rng(0)
    rankings = [rng.permutation(8)[:5].tolist() for _ in range(40)]
    data = Comparisons.from_rankings(rankings, items=range(8), users=np.arange(40) % 4)
    data = data + Comparisons.from_pairs([1, 2, 3], [2, 3, 4], user=[0, 1, 2], items=range(8))
    _, test = data.split(0.25, random_state=1)
    assert test.rankings.count.sum() + test.single_pairs().n_comparisons == 11  # of 43 answers


def test_taking_back_whole_answers_leaves_the_others(mixed):
    ranking = Comparisons.from_rankings([["a", "b", "c", "d"]], users=["ann"])
    less = mixed.without(ranking)
    assert ("ann", [["a"], ["b"], ["c"], ["d"]], 1) in by_name(less)
    assert less.n_comparisons == mixed.n_comparisons - 6
    assert less + ranking == mixed
    assert less.without(ranking).rankings.count.sum() == 3
    nothing = mixed.without(mixed)
    assert len(nothing) == 0
    assert nothing.rankings is None


def test_a_pair_of_a_ranking_cannot_be_taken_back_by_itself(mixed):
    with pytest.raises(DataError, match="'b' beat 'c' is to be taken back 1 times, but occurred 0"):
        mixed.without(Comparisons.from_pairs(["b"], ["c"], user=["ann"]))
    with pytest.raises(DataError, match=r"ranking or choice of .* occurred 0 times"):
        mixed.without(Comparisons.from_rankings([["d", "b", "c"]], users=["ann"]))
    with pytest.raises(DataError, match="occurred 0 times"):
        mixed.single_pairs().without(Comparisons.from_rankings([["d", "b", "c"]], users=["ann"]))


def test_order_of_rows_and_of_names_makes_no_difference():
    rankings = [["a", "b", "c"], [["a", "c"], "b"], ["c", "b", "a", "d"]]
    one = Comparisons.from_rankings(rankings, items=list("abcd"))
    other = Comparisons.from_rankings(
        [rankings[2], [["c", "a"], "b"], rankings[0]], items=list("abcd")
    )
    assert one == other
    assert one != Comparisons.from_rankings(
        rankings[:2] + [["c", "b", "d", "a"]], items=list("abcd")
    )
    assert one != one.as_pairs()
    assert one.as_pairs() == one.as_pairs()


def test_new_names_go_to_the_end_and_users_are_on_both_sides(mixed):
    with pytest.raises(DataError, match="a user"):
        mixed + Comparisons.from_rankings([["a", "b", "c"]])
    both = mixed + Comparisons.from_rankings([["z", "a", "y"]], users=["dan"])
    assert both.items[-2:] == ("y", "z")
    assert both.users[-1] == "dan"
    assert ("dan", [["z"], ["a"], ["y"]], 1) in by_name(both)


def test_stages_are_the_choices_of_an_order():
    data = Comparisons.from_rankings([["c", ["a", "d"], "b", "e"]], items=list("abcde"))
    found = {
        (tuple(row[marks].tolist()), tuple(row[~marks].tolist()))
        for stage in data.rankings.stages()
        for row, marks in zip(stage.item, stage.chosen, strict=True)
    }
    assert found == {((2,), (0, 1, 3, 4)), ((0, 3), (1, 4)), ((1,), (4,))}


def test_rankings_are_described_and_a_table_of_them_reads_back(mixed):
    assert "rankings and choices: 5 (4 distinct)" in mixed.describe()
    assert "rankings and choices" in mixed._repr_html_()
    pytest.importorskip("pandas")
    assert Comparisons.from_frame(mixed.to_frame()) == mixed
    pooled = mixed.pooled()
    assert Comparisons.from_frame(pooled.to_frame()).n_comparisons == pooled.n_comparisons


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("user,best,worst,item1,item2,item3\nu,a,c,a,b,c\n", [["a"], ["b"], ["c"]]),
        ("user,best,worst,item1,item2,item3,item4\nu,a,c,a,b,c,d\n", [["a"], ["b", "d"], ["c"]]),
        ("user,Choose all you like\nu,a;b\nv,c;d\n", [["a", "b"], ["c", "d"]]),
        ("user,first choice,second choice,third choice\nu,b,c,a\n", [["b"], ["c"], ["a"]]),
        ("user,Rank [a],Rank [b],Rank [c]\nu,2,1,2\n", [["b"], ["a", "c"]]),
        ("user,Like [a],Like [b],Like [c]\nu,5,1,3\n", [["a"], ["c"], ["b"]]),
        ("ballot,item,position\nu,a,2\nu,b,1\nu,c,3\n", [["b"], ["a"], ["c"]]),
    ],
)
def test_tables_of_ballots_are_read_whole(tmp_path, text, expected):
    (tmp_path / "t.csv").write_text(text)
    data = read_comparisons(tmp_path / "t.csv")
    by = {who: places for who, places, _ in by_name(data)}
    assert by["u"] == expected
    assert len(data.single_pairs()) == 0
