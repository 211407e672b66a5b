"""Answers as people give them: effects, choices, raters and time against truth, in small."""

import numpy as np
import pytest
from scipy.stats import norm

from experiments import answers, answers_choices, answers_time
from experiments.page import Page
from penchant.errors import DataError


def test_coverage_before_and_after():
    pairs, rankings, alike = answers.coverage_rows(n_studies=8)
    assert rankings.independent < 0.8 < rankings.clustered
    assert pairs.clustered >= pairs.independent
    assert alike.studies == 8


def test_raters_by_group():
    reliability = {row.group: row for row in answers.rater_rows()}
    assert reliability["random clickers"].high < reliability["minority"].low


def test_drift_predicts_better_than_shares_and_no_worse_than_ratings():
    rows = {row.model: row for row in answers_time.simulated_rows(n_leagues=1, n_weeks=40)}
    ours = rows["PreferenceGP, drift"]
    assert ours.log_likelihood > rows["shares so far"].log_likelihood + 0.05
    for name in ("Elo", "Glicko"):
        assert rows[name].less_ours < 3.0 * rows[name].error
    assert ours.games == 160


def test_weeks_are_in_order_and_whole():
    league = answers_time.simulated_league(np.random.default_rng(0), n_weeks=5)
    parts = answers_time.weeks(league)
    assert [len(part) for part in parts] == [8] * 5
    assert np.concatenate([part.home for part in parts]).tolist() == league.home.tolist()


@pytest.mark.parametrize("model", [answers_time.Elo(), answers_time.Glicko()])
def test_ratings_follow_who_wins(model):
    league = answers_time.simulated_league(np.random.default_rng(1), n_teams=8, n_weeks=60)
    model.learn(league)
    points = np.bincount(league.home, league.goals, 8) - np.bincount(league.away, league.goals, 8)
    assert np.corrcoef(model.rating, points)[0, 1] > 0.7
    triples = model.predict(league)
    np.testing.assert_allclose(triples.sum(axis=1), 1.0)


def test_the_link_is_the_likeliest():
    rng = np.random.default_rng(2)
    x, true = rng.standard_normal(20_000), np.array([0.8, 0.3, -0.5])
    triples = answers_time.outcome_probabilities(x, true)
    u = rng.random(len(x))
    sign = 1 - (u > triples[:, 0]).astype(int) - (u > triples[:, :2].sum(axis=1)).astype(int)
    found, loss = answers_time.fit_link(x, sign)
    np.testing.assert_allclose(found, true, atol=0.08)
    assert loss <= -answers_time.log_prob(triples, sign).mean() + 1e-6


def test_football_is_read_whole():
    from penchant.datasets import load_football

    try:
        league = load_football()
    except DataError as error:
        pytest.skip(str(error))
    assert len(league) == 7980
    assert len(league.teams) == 43
    assert np.bincount(np.sign(league.goals) + 1).tolist() == [2310, 1997, 3673]
    assert (np.diff(league.day) >= 0).all()


def test_the_page_tells_coverage_and_calibration_before_and_after(tmp_path):
    page = Page("t", "a", quick=True, out=tmp_path)
    rows = [
        answers.BeforeAfter("order", 0.95, 0.75, 0.94, 0.03, 0.01),
        answers.BeforeAfter("choices", 0.90, 0.80, 0.85),
    ]
    answers._before_and_after(page, rows)
    text = page.text()
    assert "| order | 0.95 | 0.750 | 0.940 | 0.0300 | 0.0100 |" in text
    assert "| choices | 0.90 | 0.800 | 0.850 | – | – |" in text
    verdicts = {claim.paper: claim.verdict for claim in page.claims}
    assert verdicts == {
        "90% intervals cover about as much": "not confirmed",
        "95% intervals cover about as much": "confirmed",
    }
    assert (tmp_path / "answers_coverage.png").stat().st_size < 400_000


def test_a_package_that_is_not_installed_gives_no_verdict():
    page = Page("t", "a", quick=True, out=None)
    ours = answers_time.TimeRow("league", "ours", -0.79, 0.0, 0.0, 960, 5.0)
    elo = answers_time.TimeRow("league", "Elo", -0.80, -0.01, 0.002, 960, 0.1)
    peer = answers_time.TimeRow("league", "kickscore", -0.78, 0.0005, 0.0002, 960, 27.0)
    answers._predicted_games(page, [ours, elo])
    answers._predicted_games(page, [ours, elo, peer])
    expected = ["confirmed", "cannot be tested here", "confirmed", "not confirmed"]
    assert [claim.verdict for claim in page.claims] == expected


def test_intervals_of_choices_cover_where_those_of_pairs_do_not():
    rows = {
        (row["answers"], row["taken as"]): row
        for row in answers_choices.choices_beside_pairs(3)
        if row["prior"] == "known"
    }
    for kind in ("best of 5", "rankings of 5"):
        choices, pairs = rows[kind, "cliques"], rows[kind, "pairs"]
        assert 0.84 <= choices["coverage"] <= 0.96
        assert pairs["coverage"] < choices["coverage"] - 0.04
        assert choices["log_likelihood"] > pairs["log_likelihood"] - 0.02


def test_modelling_how_battles_were_shown_predicts_better():
    rows = answers.effects_beside_none(n_draws=2)
    assert [(row["model"], row["order and length"]) for row in rows] == [
        ("PreferenceGP", "ignored"),
        ("PreferenceGP", "modelled"),
        ("MultiUserGP", "ignored"),
        ("MultiUserGP", "modelled"),
    ]
    for blind, knowing in (rows[:2], rows[2:]):
        assert knowing["log_likelihood"] > blind["log_likelihood"] + 0.01


def test_moments_and_evidence_are_those_of_numerical_integration():
    """Two items, of which only the difference d ~ N(0, 2 s²) counts: an integral over a line."""
    sets = np.array([[0, 1], [0, 1], [1, 0], [0, 1]])
    log_variance = 0.3
    mode, precision = answers_choices._mode(sets, np.exp(log_variance), np.zeros(2))
    found = answers_choices._sampled(sets, log_variance, mode, precision, np.random.default_rng(0))
    d = np.linspace(-15.0, 15.0, 20_001)
    density = np.exp(answers_choices._log_likelihood(sets, np.stack([0.5 * d, -0.5 * d], axis=1)))
    density *= norm.pdf(d, scale=np.sqrt(2.0 * np.exp(log_variance)))
    step = d[1] - d[0]
    evidence = density.sum() * step
    mean = (d * density).sum() * step / evidence
    var = (d * d * density).sum() * step / evidence - mean**2
    # 2,000 draws: errors of a few hundredths are two standard errors
    assert abs(found.log_evidence - np.log(evidence)) < 0.03
    assert abs(found.mean[0] - found.mean[1] - mean) < 0.08
    across = found.covariance[0, 0] + found.covariance[1, 1] - 2.0 * found.covariance[0, 1]
    assert abs(across / var - 1.0) < 0.1
