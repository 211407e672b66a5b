"""Tables as people have them, each read right by itself or with the one shape named."""

import re
import warnings
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from penchant.data import Comparisons
from penchant.errors import DataError, DataWarning
from penchant.io import SHAPES, SPELLINGS, WANTED, read_comparisons

pd = pytest.importorskip("pandas")


@pytest.fixture
def read(tmp_path):
    """Reads a text as a file and as a data frame, which must be the same."""

    def read(text, **options):
        path = tmp_path / "t.csv"
        path.write_text(text, encoding="utf-8")
        data = read_comparisons(path, **options)
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
        again = Comparisons.from_frame(frame, **options)
        assert told(again) == told(data)
        assert again.source == data.source
        return data

    return read


def told(data):
    """Everything that is said, by names as text: files of digits hold integers, frames text."""
    return sorted(
        (
            "" if data.user is None else str(data.users[data.user[i]]),
            str(data.items[data.winner[i]]),
            str(data.items[data.loser[i]]),
            bool(data.tie[i]),
            int(data.count[i]),
            *(
                None if values is None else float(values[i])
                for values in (data.margin, data.first, data.time)
            ),
        )
        for i in range(len(data))
    )


def won(data):
    """Winner, loser (or both ends of a tie), and how often."""
    return {
        (data.items[w], data.items[lo], "tie" if t else "won"): int(n)
        for w, lo, t, n in zip(data.winner, data.loser, data.tie, data.count, strict=True)
    }


def complaint(read, text, **options):
    with pytest.raises(DataError) as caught:
        read(text, **options)
    return str(caught.value)


BATTLES = {("x", "y", "won"): 1, ("z", "y", "won"): 1, ("x", "z", "tie"): 1}


@pytest.mark.parametrize(
    "text",
    [
        "model_a,model_b,winner\nx,y,model_a\ny,z,model_b\nz,x,tie\n",
        "model_a,model_b,winner\nx,y,model_a\ny,z,model_b\nz,x,tie (bothbad)\n",
        "model_a,model_b,winner\nx,y,A\ny,z,B\nz,x,Both bad\n",
        "left,right,choice\nx,y,left\ny,z,right\nz,x,no preference\n",
        "left,right,choice\nx,y,Left\ny,z, RIGHT \nz,x,equal\n",
        "item 1,item 2,preference\nx,y,first\ny,z,second\nz,x,neither\n",
        "a,b,winner\nx,y,x\ny,z,z\nz,x,tie\n",
        "option_a,option_b,result\nx,y,1\ny,z,0\nz,x,0.5\n",
        "player1,player2,outcome\nx,y,1\ny,z,2\nz,x,0\n",
        "white,black,result\nx,y,1\ny,z,-1\nz,x,0\n",
        "White,Black,Result,Date\nx,y,1-0,2024.01.02\ny,z,0-1,2024.01.03\nz,x,1/2-1/2,2024.01.04\n",
        "white,black,result\nx,y,1–0\ny,z,0–1\nz,x,½–½\n",
        "assistant_a,assistant_b,winner\nx,y,assistant_a\ny,z,assistant_b\nz,x,tie\n",
        "Model A,Model B,Winner\nx,y,Model A\ny,z,Model B\nz,x,Tie\n",
        "response_a,response_b,label\nx,y,response_a\ny,z,B is better\nz,x,about the same\n",
        "option1,option2,chosen_option\nx,y,option1\ny,z,option2\nz,x,none\n",
        "player,opponent,result\nx,y,W\ny,z,L\nz,x,D\n",
        "team,opponent,result\nx,y,win\ny,z,loss\nz,x,draw\n",
        "player_1,player_2,score\nx,y,1\ny,z,0\nz,x,0.5\n",
        'player_1,player_2,score\nx,y,1\ny,z,0\nz,x,"0,5"\n',
        "HomeTeam,AwayTeam,FTR\nx,y,H\ny,z,A\nz,x,D\n",
        "photo 1,photo 2,winner\nx,y,photo 1\ny,z,photo 2\nz,x,tie\n",
        "left,right,vote\nx,y,l\ny,z,r\nz,x,tie\n",
        "white,black,result\nx,y,w\ny,z,b\nz,x,draw\n",
        "left_image,right_image,vote\nx,y,l\ny,z,r\nz,x,tie\n",
        "response_a,response_b,verdict\nx,y,A>B\ny,z,A<B\nz,x,A=B\n",
    ],
)
def test_two_items_and_an_outcome(read, text):
    shape = "numbered" if "player1" in text else None
    data = read(text, shape=shape)
    assert won(data) == BATTLES
    # x was shown first and won; z second and won; in the tie, z was shown first and is stored last
    shown = dict(zip(zip(data.winner, data.loser, strict=True), data.first, strict=True))
    assert shown == {(0, 1): 1, (2, 1): -1, (0, 2): -1}


SIDES = "model_a,model_b,winner\nx,y,model_a\ny,z,model_b\n"
NAMED = {"winner": "model_a", "loser": "model_b"}
GRID = "Which do you like? [tea],Which do you like? [milk],Which do you like? [water]\n"
VOTES = "Rank [tea],Rank [milk],votes,day\n1,2,3,2024-01-01\n2,1,1,2024-01-02\n"
RATINGS = "user,item,rating\nu,a,5\nu,b,3\nu,b,1\nv,a,\nv,b,N/A\n,a,1\n"
CELLS = "winner,loser,length\na,b,3\nb,c,blue\n"
QUESTIONS = "user,Tea or milk?,Tea or water?\nann,tea,water\nbob,milk,beer\n"


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        # pairs
        ("winning_team,losing_team,date\nx,y,2020-01-01\n", {}, "x>y"),
        ("winner_name,loser_name,winner_rank,loser_rank\nx,y,1,5\n", {}, "x>y"),
        ("winner,loser,timestamp\na,b,2024-01-01\na,b,2024-01-02\n", {}, "a>b a>b"),
        (SIDES, NAMED | {"shape": "pairs"}, "x>y y>z"),
        # outcomes
        ("a,b,winner,vote\nx,y,a,b\n", {"winner": "vote"}, "y>x"),
        ("a,b,winner,tie\nx,y,a,no\ny,z,b,yes\n", {}, "x>y y=z"),
        ("a,b,choice\nx,y,0\ny,z,1\n", {"shape": "points"}, "y>x y>z"),
        ("a,b,choice\nx,y,0\ny,z,1\n", {"shape": "numbered"}, "x>y z>y"),
        ("a,b,winner\na,b,a\na,b,b\n", {}, "a>b b>a"),
        # marks
        (
            "model_a,model_b,winner_model_a,winner_model_b,winner_tie\n"
            "x,y,1,0,0\ny,z,0,1,0\nz,x,0,0,1\n",
            {},
            "x>y z>y x=z",
        ),
        # questions
        (
            "Tea or coffee?,Do you prefer milk or tea?,Which is better: coffee vs. milk\n"
            "Tea,milk,coffee\ncoffee,,No preference\n",
            {},
            "Tea>coffee coffee>Tea milk>Tea coffee>milk coffee=milk",
        ),
        # ranks and rankings
        (
            "respondent,Rank these [tea],Rank these [milk],Rank these [water]\n"
            "ann,1,3,2\nbob,2,1,\n",
            {},
            "tea>milk tea>water water>milk milk>tea",
        ),
        ("user,tea,milk\nann,1st,2nd\nbob,1,1\n", {"shape": "ranks"}, "tea>milk milk=tea"),
        (VOTES, {"count": "votes"}, "tea>milk tea>milk tea>milk milk>tea"),
        (GRID + "1,2,3\n", {"shape": "ranks"}, "tea>milk tea>water milk>water"),
        (GRID + "1,2,3\n", {"shape": "ratings"}, "milk>tea water>tea water>milk"),
        (GRID + "1,2,2\n", {}, "milk>tea water>tea milk=water"),
        ("ballot,item,position\n1,tea,1\n2,milk,1\n1,milk,2\n2,tea,1\n", {}, "tea>milk milk=tea"),
        ("id,item,rank\n1,8,1\n1,9,2\n", {}, "8>9"),
        ("ballot,item,rank,count\n1,a,1,2\n1,b,2,2\n", {"count": "count"}, "a>b a>b"),
        *(
            (f"{name},item,position\nann,tea,1\nann,milk,2\n", {}, "tea>milk")
            for name in ("voter", "Voter", "voter_id", "VoterID", "voter id")
        ),
        # grades
        ("userId,movieId,rating\n1,31,2.5\n1,40,4\n2,31,5\n2,40,5.0\n", {}, "40>31 31=40"),
        ("who,item,score\nann,tea,love\nann,milk,hate\n", {"user": "who"}, "tea>milk"),
        # best and worst
        (
            "user,item 1,item 2,item 3,best,worst\nann,a,b,c,c,a\nbob,a,b,d,a,d\n",
            {},
            "c>a c>b b>a a>b a>d b>d",
        ),
        ("best,worst\na,b\n", {}, "a>b"),
        # lists of what is liked
        (
            'name,"Select all that you like"\nann,"tea, milk"\nbob,milk\ncleo,"water, tea, milk"\n',
            {},
            "tea>water milk>water milk>water milk>tea",
        ),
        (
            "user,drinks\nann,tea;milk\nbob,water\n",
            {"shape": "approvals"},
            "tea>water milk>water water>tea water>milk",
        ),
    ],
)
def test_who_won(read, text, options, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answers(read(text, **options)) == sorted(expected.split())


def answers(data):
    return sorted(
        f"{first}{'=' if how == 'tie' else '>'}{second}"
        for (first, second, how), n in won(data.pooled()).items()
        for _ in range(n)
    )


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        # pairs and outcomes
        (SIDES, NAMED, "column 'winner' seems to tell who won"),
        (SIDES.replace("winner", "x").replace("model", "photo"), {}, "winner='NAME', loser='NAME'"),
        ("photo_a,photo_b,choice\nx,y,a\n", {"winner": "photo_a", "loser": "photo_b"}, "seems to"),
        ("photo_a,photo_b,taste_a,taste_b,choice\nx,y,1,2,a\n", {}, "has 2 pairs of columns that"),
        ("model_a,model_b,winner,loser\nx,y,model_a,model_b\n", {}, "are columns of their own"),
        ("a,b,winner,vote\nx,y,a,b\n", {}, "say which, as in winner='winner' or winner='vote'"),
        ("a,b,choice\nx,y,0\ny,z,1\n", {}, "1 means that the first won, 0 that the second did"),
        ("a,b,choice\nx,y,0\ny,z,1\n", {}, "the number tells which one won: 0 or 1"),
        ("a,b,choice\nx,y,0\ny,z,1\nx,z,2\n", {}, "can be read in two ways"),
        ("left,right,choice\nright,left,left\n", {}, "can be read in two ways"),
        ("a,b,choice\n9:00,10:00,9:00\n10:00,11:00,11:00\n", {}, "can be read in two ways"),
        ("home,away,home_goals,away_goals\na,b,x,1\n", {}, "row 1 is 'x, 1': both must be numbers"),
        ("winner,loser\na,b\n", {"shape": "scores"}, "cannot be read as shape='scores'"),
        *(("winner,loser\na,b\n", {"shape": "table"}, repr(shape)) for shape in SHAPES),
        # times
        (
            "winner,loser,when\na,b,01/02/2024\nb,c,03/04/2024\n",
            {"time": "when"},
            "can be read in two ways, as dates",
        ),
        (
            "winner,loser,when\na,b,2024-01-01\nb,c,soon\n",
            {"time": "when"},
            "column 'when' row 2 is 'soon': it must be a date",
        ),
        # cells that are no numbers are shown
        (CELLS, {"margin": "length"}, "column 'length' row 2 is 'blue'"),
        (CELLS, {"covariates": ["length"]}, "the covariates of row 2 are not all numbers"),
        # sides, ranks, ids and times are never suggested for winners
        *(
            (text, {}, "as in winner='NAME', loser='NAME'")
            for text in (
                "id,Apple,Pear,Plum\n1,1,2,3\n2,2,1,3\n",
                "item_a,item_b,wins_a,wins_b\nx,y,3,1\n",
                "item_a,item_b,a_wins\nx,y,True\n",
                "userId,movieId,seen,when\n1,10,5,99\n",
                "timestamp,x\n2024,a\n",
                "Timestamp,updated_at\n1,2\n",
                "date,time,y\n1,2,3\n",
            )
        ),
        # ballots
        ("Tea or coffee?\nTea\nwater\n", {}, "row 2 is 'water': it must be 'Tea', 'coffee' or a"),
        ("tea,milk\nx,1\n", {"shape": "ranks"}, "row 1 is 'x': it must be a rank"),
        ("tea,milk,water\n1,2,3\n", {}, "shape="),
        ("Q [tea],Q [milk]\nmeh,wow\n", {}, "'Q [tea]' row 1 is 'meh': it must be a grade"),
        (GRID + "1,2,3\n3,,2\n", {}, "shape='ranks' or shape='ratings'"),
        ("item 1,item 2,best,worst\na,b,z,a\n", {}, "it must name an item that was shown"),
        ("best,worst\na,a\n", {}, "differ from the best"),
        ("winner,loser\na,b\n", {"shape": "best-worst"}, "no columns for shape='best-worst'"),
        ("ballot,item,rank\n1,tea,1\n1,tea,2\n", {}, "occur once in ballot '1'"),
        ("id,item,rank\n1,tea,0\n1,milk,1\n", {}, "it must be a rank"),
        ("ballot,user,item,position\n1,u,a,1\n1,v,b,2\n", {}, "have one user, count and tied"),
        ("ballot,item,position,count\n1,a,1,2\n1,b,2,3\n", {}, "have one user, count and tied"),
        ("ballot,item,position,count\n1,a,1,0\n1,b,2,0\n", {}, "a count is '0'"),
        ("votes,item,position\nann,tea,1\nann,milk,2\n", {}, "shape="),
        (RATINGS, {}, "column 'item' row 3 is 'b': it must occur once in user 'u'"),
        ("user,item,rank,rating\nu,a,1,5\n", {}, "say shape='rankings' or shape='grades'"),
        *(
            (text, {"count": "n"}, "count='n' cannot tell how often the whole was given")
            for text in (
                "user,item,rating,n\nu,a,5,2\nu,b,3,2\n",
                "ballot,item,rank,n\n1,a,1,2\n1,b,2,2\n",
            )
        ),
        (VOTES.replace("2,1,1", "2,1,0"), {"count": "votes"}, "row 2 is '0': it must be a whole"),
        (
            VOTES.replace("2,1,1", "2,1,999999999"),
            {"count": "votes"},
            "more than 1,000,000 ballots",
        ),
        (VOTES.replace("2,1,1", "2,1,999998"), {"count": "votes"}, "more than 1,000,000 ballots"),
        (
            VOTES.replace("1,2,3", "1,2,1000000").replace("2,1,1", "2,1,many"),
            {"count": "votes"},
            "'votes' row 2 is 'many'",  # the first row alone is within the limit
        ),
        (VOTES, {"time": "day"}, "a ballot has none"),
        ("user,Tea or milk?\nann,beer\n", {"skip_bad": True}, "no row is usable. t.csv: column"),
    ],
)
def test_tables_that_are_refused(read, text, options, message):
    assert message in complaint(read, text, **options)


@pytest.mark.parametrize(
    ("text", "n", "expected"),
    [
        ("user,Q [tea],Q [milk]\nann,agree,neutral\nbob,meh,agree\n", 1, "tea>milk"),
        (QUESTIONS, 1, "Tea>milk water>Tea"),  # a person with one bad answer is left out whole
        ("Tea or milk?,Milk or water?\nTea,Milk\nwhat,Milk\nMilk,?\n", 2, "Tea>milk Milk>water"),
        (RATINGS, 4, "a>b"),
    ],
)
def test_surveys_leave_bad_rows_out_when_told(read, text, n, expected):
    with pytest.warns(DataWarning, match=f"{n} rows cannot be used"):
        data = read(text, skip_bad=True)
    assert sorted(a.casefold() for a in answers(data)) == sorted(expected.casefold().split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "model_a,model_b,winner,judge\nx,y,model_a,ann\ny,z,tie,bob\ny,z,model_b,bob\n",
            "3 battles; 1 ties; shown first = model_a; outcome = winner; judge = user",
        ),
        ("a or b?,b or c?\na,tie\n", "2 answers to 2 questions 'X or Y?'; 1 ties"),
        ("user,item,stars\n1,a,2.5\n1,b,4\n", "1 people's grades; user = user; stars 2.5 < 4"),
        (
            "chosen,rejected,n\na,b,2\n",
            "2 comparisons; 0 ties; winner = chosen, loser = rejected; n = count",
        ),
    ],
)
def test_how_it_was_read(read, text, said):
    data = read(text)
    assert data.source == said
    assert f"read as: {said}" in data.describe()


def test_people_are_named_by_a_column_or_by_their_row(read):
    assert read("Tea or milk?\ntea\nmilk\n").users == (1, 2)
    assert read("userId,movieId,rating\n7,31,2.5\n7,40,4\n").user.tolist() == [0]
    data = read("user,item 1,item 2,item 3,best,worst\nann,a,b,c,c,a\nbob,a,b,d,a,d\n")
    assert answers(data.for_user("ann")) == ["b>a", "c>a", "c>b"]


def test_scores_give_the_margin(read):
    for text in (
        "home_team,away_team,home_score,away_score\nx,y,3,2\ny,z,0,3\nz,x,1,1\n",
        "home,away,score\nx,y,2-1\ny,z,0-3\nz,x,1-1\n",
        "Home Team,Away Team,Result\nx,y,2:1\ny,z,0 : 3\nz,x,1:1\n",
        "Home,Away,HG,AG,Res\nx,y,2,1,H\ny,z,0,3,A\nz,x,1,1,D\n",
        "team,opponent,team_score,opponent_score\nx,y,2,1\ny,z,0,3\nz,x,1,1\n",
    ):
        data = read(text)
        assert won(data) == BATTLES
        assert {data.items[w]: m for w, _, m in _margins(data) if m} == {"x": 1.0, "z": 3.0}
    football = "Date,HomeTeam,AwayTeam,FTHG,FTAG,FTR\n13/08/2023,x,y,2,0,H\n20/08/2023,y,z,0,1,A\n"
    assert read(football, time="Date").time.tolist() == [19582.0, 19589.0]


def test_strength_of_preference_is_a_margin(read):
    data = read(
        "a,b,preference\nx,y,A is much better\ny,z,B is slightly better\nx,z,A is better\n"
        "x,w,about the same\n"
    )
    margin = {data.items[w] + data.items[lo]: m for w, lo, m in _margins(data)}
    assert margin == {"xy": 3.0, "zy": 1.0, "xz": 2.0, "wx": 0.0}


def test_a_scale_may_begin_on_the_left_or_count_for_the_first(read):
    text = "a,b,preference\nx,y,-3\ny,z,1\nx,z,0\n"
    assert "negative means that the first won" in complaint(read, text)
    data = read(text, shape="points")
    assert sorted(data.margin.tolist()) == [0.0, 1.0, 3.0]
    assert won(data) == {("y", "x", "won"): 1, ("y", "z", "won"): 1, ("x", "z", "tie"): 1}
    turned = read(text, shape="numbered")
    assert sorted(turned.margin.tolist()) == [0.0, 1.0, 3.0]
    assert won(turned) == {("x", "y", "won"): 1, ("z", "y", "won"): 1, ("x", "z", "tie"): 1}


def test_outcomes_that_say_nothing_are_bad_rows(read, tmp_path):
    text = "model_a,model_b,winner\nx,y,model_a\ny,z,skip\nz,x,\nx,y,model_b\n"
    lines = complaint(read, text).splitlines()
    assert lines[0] == "t.csv: 2 of 4 rows cannot be used (rows are counted from 1):"
    assert lines[1].startswith("  column 'winner' row 2 is 'skip': it must say which of 'model_a'")
    assert lines[2].startswith("  column 'winner' row 3 is None: it must say")
    with pytest.warns(DataWarning, match="2 of 4"):
        data = read_comparisons(tmp_path / "t.csv", skip_bad=True)
    assert won(data) == {("x", "y", "won"): 1, ("y", "x", "won"): 1}


def test_covariates_turn_with_the_winner(read):
    text = (
        "model_a,model_b,winner,length_a,length_b\nx,y,model_a,10,4\ny,z,model_b,7,5\nz,x,tie,3,1\n"
    )
    data = read(text, covariates=["length_a - length_b"])
    assert data.covariate_names == ("length_a - length_b",)
    rows = zip(data.winner, data.loser, data.covariates[:, 0], strict=True)
    assert {(int(w), int(lo)): c for w, lo, c in rows} == {(0, 1): 6.0, (2, 1): -2.0, (0, 2): -2.0}
    with pytest.raises(DataError, match="no column 'size' for the covariate"):
        read(text, covariates=["size"])
    with pytest.raises(DataError, match="the covariates of row 1 are not all numbers"):
        read(text.replace("10,4", "?,4"), covariates=["length_a - length_b"])


@pytest.mark.parametrize(
    ("dates", "days"),
    [
        (["2024-01-01", "2024-01-03"], [19723.0, 19725.0]),
        (["2024-01-01 12:00:00", "2024-01-03T00:00:00"], [19723.5, 19725.0]),
        (["13/08/2023", "01/09/2023"], [19582.0, 19601.0]),
        (["1704067200", "1704240000.0"], [19723.0, 19725.0]),
        (["1704067200000", "1704240000000"], [19723.0, 19725.0]),
        (["3", "5"], [3.0, 5.0]),
    ],
)
def test_times_are_days(read, dates, days):
    data = read(f"winner,loser,when\na,b,{dates[0]}\nb,c,{dates[1]}\n", time="when")
    assert data.time.tolist() == days


@pytest.mark.parametrize(
    ("high", "low"),
    [("Strongly agree", "neutral"), ("5", "3"), ("5 - very good", "2 - bad"), ("love", "hate")],
)
def test_grids_of_grades(read, high, low):
    text = (
        f"How good? [tea],How good? [milk],How good? [water]\n{high},{low},{low}\n{low},,{high}\n"
    )
    data = read(text)
    assert won(data) == {
        ("tea", "milk", "won"): 1,
        ("tea", "water", "won"): 1,
        ("milk", "water", "tie"): 1,
        ("water", "tea", "won"): 1,
    }
    named = read(f"user,tea,milk\nann,{high},{low}\n", shape="ratings")
    assert won(named) == {("tea", "milk", "won"): 1}


@pytest.mark.parametrize(
    "header",
    [
        "Rank them [2nd choice],Rank them [1st choice],Rank them [3rd choice]",
        "2nd choice,1st choice,3rd choice",
        "choice 2,choice 1,choice 3",
        "Second pick,First pick,Third pick",
    ],
)
def test_first_choices(read, header):
    data = read(f"voter,{header}\nann,b,a,c\nbob,,c,\n")
    assert won(data) == {("a", "b", "won"): 1, ("a", "c", "won"): 1, ("b", "c", "won"): 1}
    assert data.users == ("ann",)
    assert "not compared" in data.source


def test_many_bad_rows_are_found_in_one_pass(read):
    """Each used to be found by reading all rows again: 20,000 took minutes."""
    rows = "".join(f"{k // 5},{k % 5},{'x' if k % 2 else k % 5 + 1}\n" for k in range(6_000))
    with pytest.warns(DataWarning, match=r"3000 rows cannot be used:(\n.*){6}and 2995 more"):
        data = read("ballot,item,rank\n" + rows, skip_bad=True)
    assert data.n_comparisons == 2_400
    with pytest.warns(DataWarning, match="1 rows cannot be used"):
        repeated = read(
            "ballot,1st choice,2nd choice,n\na,x,y,2\nb,y,x,-1\n", count="n", skip_bad=True
        )
    assert won(repeated) == {("x", "y", "won"): 2}


@pytest.mark.parametrize("suffix", ["xlsx", "ods"])
def test_spreadsheets(tmp_path, suffix):
    pytest.importorskip({"xlsx": "openpyxl", "ods": "odf"}[suffix])
    path = tmp_path / f"v.{suffix}"
    rows = [["", "", ""], ["winner", "loser", "rater"], ["007", "NA", 3], ["b", "007", 4]]
    pd.DataFrame(rows).to_excel(path, header=False, index=False)
    expected = Comparisons.from_pairs(["007", "b"], ["NA", "007"], user=[3, 4])
    assert read_comparisons(path) == expected
    with pd.ExcelWriter(path) as writer:
        pd.DataFrame(rows).to_excel(writer, sheet_name="one", header=False, index=False)
        pd.DataFrame(rows).to_excel(writer, sheet_name="two", header=False, index=False)
    with pytest.raises(DataError, match=r"has 2 sheets that hold something \('one', 'two'\)"):
        read_comparisons(path)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(DataError, match="cannot be read as a spreadsheet"):
        read_comparisons(path)


@pytest.mark.parametrize("suffix", ["xlsx", "ods"])
def test_spreadsheets_without_their_libraries(tmp_path, suffix, monkeypatch):
    def missing(*_args, **_kwargs):
        raise ImportError

    monkeypatch.setattr(pd, "read_excel", missing)
    path = tmp_path / f"v.{suffix}"
    with ZipFile(path, "w") as file:
        file.writestr("content.xml", "")
    library = {"xlsx": "openpyxl", "ods": "odfpy"}[suffix]
    with pytest.raises(DataError, match=f"which pandas and {library} read: install them"):
        read_comparisons(path)


def test_a_spreadsheet_that_is_a_bomb(tmp_path):
    path = tmp_path / "v.xlsx"
    with ZipFile(path, "w", ZIP_DEFLATED) as file:
        file.writestr("xl/worksheets/sheet1.xml", b" " * (80 << 20))
    with pytest.raises(DataError, match="unzips to more than 200 times its size"):
        read_comparisons(path)


def test_every_shape_and_every_spelling_is_in_the_docs():
    page = Path(__file__).resolve().parents[2] / "docs" / "data.md"
    text = page.read_text(encoding="utf-8")
    assert [shape for shape in SHAPES if f"`{shape}`" not in text] == []
    assert all(f"| {role} | {', '.join(words)}" in text for role, words in SPELLINGS.items())


def test_a_column_of_strengths_beside_the_winner_is_the_margin(read):
    text = "chosen,rejected,strength\na,b,much better\nb,c,slightly better\na,c,better\n"
    data = read(text)
    margin = {data.items[w] + data.items[lo]: m for w, lo, m in _margins(data)}
    assert margin == {"ab": 3.0, "bc": 1.0, "ac": 2.0}
    assert data.source.endswith("; margin = strength")
    named = read(text.replace("strength", "x"), margin="x")
    assert named.margin.tolist() == data.margin.tolist()
    assert read(text.replace("strength", "x")).margin is None
    assert read(text.replace("better", "blue")).margin is None  # no words of strength
    assert "is 'blue': it must be finite" in complaint(
        read, text.replace("slightly better", "blue"), margin="strength"
    )


def _margins(data):
    return zip(data.winner, data.loser, data.margin, strict=True)


@pytest.mark.parametrize("names", ["first,second,third", "a,b,c"])
def test_a_third_choice_is_not_left_out_in_silence(write, names):
    file = write(f"voter,{names}\nann,tea,milk,water\nbob,milk,tea,water\n")
    with pytest.raises(DataError, match=r"two ways.*shape='pairs'.*shape='top'"):
        read_comparisons(file)
    assert read_comparisons(file, shape="pairs").n_comparisons == 2
    if names.startswith("first"):
        ballots = read_comparisons(file, shape="top")
        named = ballots.named_rankings(tied=True) + ballots.named_rankings(tied=False)
        assert sorted(places for places, _, _ in named) == [
            [["milk"], ["tea"], ["water"]],
            [["tea"], ["milk"], ["water"]],
        ]


@pytest.mark.parametrize("cells", [("1", "2"), ("3", "-1"), ("left", "right"), ("true", "tie")])
def test_a_column_beside_a_and_b_may_tell_who_won(read, cells):
    text = f"a,b,foo\nx,y,{cells[0]}\nx,z,{cells[1]}\n"
    if "true" in cells:  # that says nothing about a and b
        assert won(read(text)) == {("x", "y", "won"): 1, ("x", "z", "won"): 1}
        return
    assert "or column 'foo' tells which of them was" in complaint(read, text)
    assert won(read(text, shape="pairs")) == {("x", "y", "won"): 1, ("x", "z", "won"): 1}


@pytest.mark.parametrize("title", ["Our survey of 2024", "sep=;"])
def test_a_title_above_the_names(tmp_path, write, title):
    with pytest.raises(DataError, match="delete what stands above the names"):
        read_comparisons(write(f"{title}\nwinner;loser\nx;y\n"))
    pytest.importorskip("openpyxl")
    sheet = tmp_path / "t.xlsx"
    rows = [[title, None], [None, None], ["winner", "loser"], ["x", "y"]]
    pd.DataFrame(rows).to_excel(sheet, index=False, header=False)
    with pytest.raises(DataError, match="delete what stands above the names"):
        read_comparisons(sheet)


ROWS = {
    "pairs": "tea,milk",
    "outcome": "tea,milk,tea",
    "points": "tea,milk,1\nmilk,tea,0",
    "numbered": "tea,milk,2\nmilk,tea,1",
    "scores": "tea,milk,3,1",
    "marks": "tea,milk,1,0",
    "rankings": "b1,tea,1\nb1,milk,2",
    "ranks": "ann,2,1",
    "ratings": "ann,2,1",
    "grades": "ann,tea,5\nann,milk,3",
    "questions": "ann,tea",
    "best-worst": "tea,milk,tea,milk,water",
    "top": "ann,tea,milk",
    "approvals": "ann,tea; milk\nbob,water; tea",
}
HEADS = {
    "ranks": "user,tea,milk",
    "ratings": "user,tea,milk",
    "questions": "user,tea or milk?",
    "best-worst": "best,worst,item_1,item_2,item_3",
    "top": "user,choice 1,choice 2",
    "approvals": "user,likes",
}
"""Where what a shape wants is not a list of names."""


@pytest.mark.parametrize("shape", SHAPES)
def test_the_columns_that_a_shape_wants_are_read(shape, write):
    head = HEADS.get(shape) or WANTED[shape].replace(", ", ",")
    assert "tea" in read_comparisons(write(f"{head}\n{ROWS[shape]}\n"), shape=shape).items
    if shape in ("ranks", "ratings", "approvals"):  # any columns will do
        return
    wanted = "winner='NAME', loser='NAME'" if shape == "pairs" else WANTED[shape]
    with pytest.raises(DataError, match=re.escape(wanted)):
        read_comparisons(write("foo,bar,baz\nx,y,z\n"), shape=shape)
