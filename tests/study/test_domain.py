"""The rules of a study, without web and without database."""

import pytest

import penchant.study as ps
from penchant.errors import DataError

NORMAL, REPEAT, RANDOM, CHECK = ps.KINDS
CHECKED = ps.Config("Which?", checks=(ps.Check("Take b.", ("a", "b"), 1),), check_share=0.1)


def answered(seq, order=((0,), (1,)), **changes):
    values = {"participant": "p", "items": ("a", "b"), "question": f"q{seq}", "ms": 2000}
    return ps.Answer(seq, order=order, **{**values, **changes})


def event(seq, kind="answer", **payload):
    if kind == "answer":
        payload = {"items": ["a", "b"], "order": [[0], [1]], "form": "pair", "kind": "normal"} | (
            payload
        )
    return ps.Event(seq, kind, "p", f"q{seq}", payload)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"size": 3}, "a pair has 2"),
        ({"repeat_share": 0.6, "random_share": 0.6}, "exceed 1"),
        ({"checks": [{"prompt": "x", "options": ["a"], "right": 0}]}, "at least 2"),
        ({"checks": [{"prompt": "x", "options": ["a", "b"], "right": 2}]}, "from 0 to 1"),
        ({"colour": "red"}, "no setting of a study"),
    ],
)
def test_wrong_settings_are_refused_with_advice(wrong, words):
    """What is wrong with one setting alone is in test_settings.py."""
    with pytest.raises(DataError, match=words):
        ps.Config.from_json({"question": "Which?"} | wrong)


def test_settings_survive_json():
    assert ps.Config.from_json(CHECKED.to_json()) == CHECKED


def test_kinds_come_in_their_shares_and_are_reproducible():
    config = ps.Config(
        "Which?", checks=CHECKED.checks, check_share=0.1, repeat_share=0.2, random_share=0.3
    )
    kinds = [ps.kind_of(config, f"p{k}", n) for k in range(100) for n in range(20, 60)]
    shares = {kind: kinds.count(kind) / len(kinds) for kind in ps.KINDS}
    expected = {CHECK: 0.1, REPEAT: 0.2, RANDOM: 0.3, NORMAL: 0.4}
    # 4,000 draws: a standard error is below 0.008
    assert all(abs(shares[kind] - expected[kind]) < 0.032 for kind in ps.KINDS)
    assert kinds == [ps.kind_of(config, f"p{k}", n) for k in range(100) for n in range(20, 60)]
    first = [ps.kind_of(config, f"p{k}", 0) for k in range(500)]
    assert CHECK not in first
    early = [ps.kind_of(config, f"p{k}", n) for k in range(100) for n in range(ps.REPEAT_AFTER + 1)]
    assert REPEAT not in early


def test_sides_are_random_and_fixed_by_the_question():
    sides = [ps.shown_order(("a", "b"), f"q{n}") for n in range(1000)]
    left = sum(order == ("a", "b") for order in sides)
    assert abs(left - 500) < 80  # five standard errors
    assert sides == [ps.shown_order(("b", "a")[::-1], f"q{n}") for n in range(1000)]


def test_a_check_is_passed_by_its_right_option_wherever_it_is_shown():
    first, second = ps.check_items(0, CHECKED)
    assert ps.passed(CHECKED, (first, second), ((1,), (0,))) is True
    assert ps.passed(CHECKED, (second, first), ((1,), (0,))) is False
    assert ps.passed(CHECKED, (second, first), ((0, 1),)) is False
    assert ps.passed(ps.Config("Which?"), (first, second), ((1,), (0,))) is None


def test_leases_end_and_a_clock_that_jumped_back_does_not_strand_them():
    assert ps.is_pending(160.0, now=100.0, lease_seconds=60)
    assert not ps.is_pending(100.0, now=100.0, lease_seconds=60)
    assert not ps.is_pending(160.1, now=100.0, lease_seconds=60)
    assert not ps.is_pending(None, now=100.0, lease_seconds=60)


def test_limits():
    config = ps.Config("Which?", answers_per_person=3, minutes_per_person=2)
    assert not ps.is_finished(config, 2, 119.0)
    assert ps.is_finished(config, 3, 0.0)
    assert ps.is_finished(config, 0, 120.0)
    assert not ps.is_finished(ps.Config("Which?", answers_per_person=None), 10**6, 1e9)


FITTING = {
    (2, "pair", False): [[[0], [1]]],
    (2, "pair", True): [[[0, 1]]],
    (3, "best", False): [[[2], [0, 1]]],
    (3, "rank", False): [[[2], [0], [1]]],
}
NOT_FITTING = {
    (2, "pair", False): [[[0, 1]]],
    (2, "pair", True): [
        *([[0], [0]], [[0], [2]], [[0]], [[True], [False]], [["0"], ["1"]], [[0], [1], []]),
        *(7, [0, 1], None, [[[0]], [1]]),
    ],
    (3, "best", False): [[[0, 1], [2]]],
    (3, "rank", False): [[[2], [0, 1]]],
}
"""Orders by the number of options, the form, and whether a tie may be said."""


@pytest.mark.parametrize("asked", FITTING, ids=str)
def test_answers_are_taken_if_they_fit(asked):
    for order in FITTING[asked]:
        assert ps.check_order(order, *asked) == tuple(map(tuple, order))
    for order in NOT_FITTING[asked]:
        with pytest.raises(DataError, match="the answer is"):
            ps.check_order(order, *asked)


def test_withdrawn_answers_never_stand_and_items_come_and_go():
    told = [event(1, "add_item", item="a"), event(2, "add_item", item="b"), event(3)]
    told += [event(4, "skip"), event(5, order=[[1], [0]])]
    told += [event(6, "withdraw", of=3), event(7, "withdraw", of=4), event(8, "retire", item="a")]
    record = ps.replay(told)
    assert list(record.answers) == [5]
    assert not record.skipped
    assert record.active() == ["b"]
    assert (record.seq, record.n_taught) == (8, 2)
    halves = ps.replay(told[3:], ps.replay(told[:3]))
    assert halves == record


def test_checks_do_not_teach():
    asked = {1: NORMAL, 2: NORMAL, 3: REPEAT, 4: CHECK}
    said = {"items": ["a", "b"], "order": [[0], [1]], "form": "pair"}
    record = ps.replay(
        [ps.Event(n, "answer", "p", f"q{n}", {**said, "kind": kind}) for n, kind in asked.items()]
    )
    assert [answer.seq for answer in record.taught()] == [1, 2, 3]
    assert record.n_taught == 3


def test_a_batch_is_split_where_the_count_is_reached():
    told = [event(1), event(2, "skip"), event(3), event(4)]
    assert ps.split_at(told, ps.Record(), 2) == 3
    assert ps.split_at(told, ps.Record(n_taught=1), 2) == 1
    assert ps.split_at(told, ps.Record(), 9) == 4


def test_an_uncommon_but_consistent_taste_is_no_reason_to_look_closer():
    rare = [
        answered(n, ((n % 2,), (1 - n % 2,)), items=("a", "b") if n % 2 else ("b", "a"))
        for n in range(20)
    ]
    rare += [answered(20 + n, items=("b", "a"), kind=REPEAT) for n in range(4)]
    row = ps.raters(rare, [], CHECKED)[0]
    assert row["look_closer"] == []
    assert row["reliability"]["k"] == 4


def test_raters_who_are_inattentive_are_pointed_out():
    always_left = [answered(n, items=(f"i{n}", f"j{n}"), ms=100) for n in range(30)]
    flips = [answered(30 + n, ((n % 2,), (1 - n % 2,)), kind=REPEAT) for n in range(8)]
    wrong = answered(50, ((0,), (1,)), items=ps.check_items(0, CHECKED), kind=CHECK)
    row = ps.raters([*always_left, answered(29), *flips, wrong], ["p", None, "p"], CHECKED)[0]
    assert set(row["look_closer"]) == {"checks", "fast", "side", "repeats"}
    assert row["skipped"] == 2
    assert (row["reliability"]["k"], row["reliability"]["n"]) == (1, 8)


def test_calibration_uses_random_questions_alone():
    told = [answered(n, ((0,), (1,)), kind=RANDOM, p_before=0.75) for n in range(3)]
    told += [answered(3, ((1,), (0,)), kind=RANDOM, p_before=0.75)]
    told += [answered(4, kind=NORMAL, p_before=0.99), answered(5, kind=RANDOM, p_before=None)]
    result = ps.calibration(told)
    row = result["rows"][2]
    assert (result["n"], row["won"]["n"], row["won"]["k"], row["expected"]) == (4, 4, 3.0, 0.75)
    assert result["log_score"] == pytest.approx(-0.5623351446)
    assert ps.calibration([])["log_score"] is None
