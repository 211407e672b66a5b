import pytest

from penchant.errors import DataError
from penchant.io.recognise import choose_columns

NOTHING: dict[str, str | None] = {}


@pytest.mark.parametrize(
    ("available", "expected"),
    [
        (["winner", "loser"], {"winner": "winner", "loser": "loser"}),
        (["Chosen", "REJECTED"], {"winner": "Chosen", "loser": "REJECTED"}),
        (["preferred item id", "preferred", "other"], {"winner": "preferred", "loser": "other"}),
        (["winner_id", "Loser ID"], {"winner": "winner_id", "loser": "Loser ID"}),
        (["a", "b"], {"winner": "a", "loser": "b"}),
        (["first", "second", "n"], {"winner": "first", "loser": "second", "count": "n"}),
        (
            ["x", "User_ID", "better", "worse", "Draw", "times"],
            {
                "winner": "better",
                "loser": "worse",
                "user": "User_ID",
                "tie": "Draw",
                "count": "times",
            },
        ),
    ],
)
def test_common_spellings_are_recognised(available, expected):
    assert choose_columns(available, NOTHING) == expected


def test_a_weight_is_not_a_count():
    assert "count" not in choose_columns(["winner", "loser", "weight"], NOTHING)


def test_a_and_b_are_not_guessed_beside_a_winner():
    """In a table of a, b and the winner of the two, b is not the loser."""
    with pytest.raises(DataError, match="no column that is recognised as the loser: its"):
        choose_columns(["a", "b", "winner"], NOTHING)


def test_a_named_column_wins_over_the_guess():
    chosen = choose_columns(["winner", "loser", "best"], {"winner": "best"})
    assert chosen["winner"] == "best"


def test_names_are_compared_without_case_and_spaces():
    assert choose_columns(["User ID", "W", "L"], {"winner": "w", "loser": "l"}) == {
        "user": "User ID",
        "winner": "W",
        "loser": "L",
    }


def test_a_wrong_name_lists_the_columns_and_the_closest():
    with pytest.raises(DataError) as caught:
        choose_columns(["winer", "loser"], {"winner": "winners"})
    assert str(caught.value) == (
        "the table has no column 'winners' for the winner (did you mean 'winer'?): its columns are "
        "'winer', 'loser'"
    )


def test_one_column_cannot_play_two_roles():
    with pytest.raises(DataError, match="cannot be both winner and loser"):
        choose_columns(["a", "b"], {"winner": "a", "loser": "a"})


def test_no_columns_at_all():
    with pytest.raises(DataError, match="its columns are none"):
        choose_columns([], NOTHING)
