"""The numbers before and after modelling the order shown."""

from penchant.reproduce.answers_effects import effects_beside_none


def test_knowing_how_battles_were_shown_foresees_more():
    rows = effects_beside_none(n_draws=2)
    assert [(row["model"], row["order and length"]) for row in rows] == [
        ("PreferenceGP", "ignored"),
        ("PreferenceGP", "modelled"),
        ("MultiUserGP", "ignored"),
        ("MultiUserGP", "modelled"),
    ]
    for blind, knowing in (rows[:2], rows[2:]):
        assert knowing["log_likelihood"] > blind["log_likelihood"] + 0.01
