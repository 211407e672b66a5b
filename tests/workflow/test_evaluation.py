"""Held-out scores: what they are computed from, and what cannot be evaluated."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import penchant as pc
from penchant.errors import DataError, DataWarning
from penchant.metrics import calibration, log_loss, pair_error
from penchant.workflow import BradleyTerry, Material, as_model, hold_out
from tests.simulation import duel_data

BASELINE = "bradley-terry"

QUICK = {
    "multi-user": pc.MultiUserGP(optimize=None, progress=False),
    "community": pc.CommunityGP(optimize=None, progress=False, random_state=0),
    "gp": pc.PreferenceGP(optimize=None),
    "rank-rls": pc.RankRLS(),
}


@pytest.fixture(scope="module")
def table(study):
    return pc.evaluate(QUICK, study.comparisons, study.item_features, folds=3)


def test_a_row_is_what_the_folds_said(study):
    data, model = study.comparisons, pc.PreferenceGP(optimize=None)
    train, test = data.split(0.5, random_state=np.random.default_rng(7))
    # two folds: each half is predicted from the other
    scores = []
    for known, asked in ((train, test), (test, train)):
        names = [
            (data.items[a], data.items[b]) for a, b in zip(asked.winner, asked.loser, strict=True)
        ]
        p = model.fit(None, known).predict_proba(names)
        error = calibration(p, counts=asked.count).error
        scores.append((1 - pair_error(p, asked.count), log_loss(p, asked.count), error))
    row = pc.evaluate(model, data, folds=2, random_state=7).rows[1]
    assert (row.accuracy, row.log_loss, row.calibration_error) == pytest.approx(
        np.mean(scores, axis=0)
    )
    spread = np.std(scores, axis=0, ddof=1) / np.sqrt(2)
    assert (row.accuracy_se, row.log_loss_se, row.calibration_error_se) == pytest.approx(spread)


def test_every_model_is_there_beside_the_baseline(table):
    assert [row.model for row in table] == [BASELINE, *QUICK]
    assert len(table) == 5
    for row in table:
        assert 0.4 < row.accuracy <= 1.0
        assert row.seconds > 0
        assert np.isnan(row.log_loss) == (row.model == "rank-rls")
    assert table.best.log_loss == min(row.log_loss for row in table if row.log_loss > 0)


def test_the_table_can_be_read_by_people_and_programs(table, outline_of):
    assert table.to_dicts()[0]["model"] == BASELINE
    frame = table.to_pandas()
    assert list(frame["accuracy"]) == [row.accuracy for row in table]
    lines = str(table).splitlines()
    assert lines[0].split()[:2] == ["model", "accuracy"]
    assert lines[-1].split()[0] == "rank-rls"
    assert "–" in lines[-1]
    assert len(outline_of(table._repr_html_()).find("tr")) == 6


def test_models_are_not_changed_by_being_evaluated(table):
    assert not hasattr(QUICK["gp"], "state_")
    assert not hasattr(QUICK["rank-rls"], "kernel_")


def test_names_are_models_too(monkeypatch):
    rng = np.random.default_rng(0)
    taste = 3.0 * rng.standard_normal((4, 5))  # four people of different tastes
    few = duel_data(rng, taste, user=np.repeat(np.arange(4), 20))
    seen = []
    fit = Material.fit

    def spy(self, model):
        seen.append(model.get_params(deep=False))
        return fit(self, model)

    monkeypatch.setattr(Material, "fit", spy)
    table = pc.evaluate(["auto", "gp"], few, folds=2)
    assert [row.model for row in table] == [BASELINE, "multi-user", "gp"]
    own = {"progress": False, "random_state": 0}  # else what a fit has too
    assert pc.MultiUserGP(**own).get_params(deep=False) in seen


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        ("gpp", {}, "there is no model called 'gpp'"),
        (["gp", pc.PreferenceGP()], {}, "two models are called 'gp'"),
        ({BASELINE: pc.PreferenceGP()}, {}, "two models are called"),
        ([3.0], {}, "is no model"),
        ("gp", {"folds": 1}, "folds=1: it must be a whole number"),
        ("gp", {"folds": 4}, "3 comparisons are no ties, too few for 4 parts"),
        ("rank-rls", {"folds": 2}, "there are none: give X"),
        ("community", {"folds": 2}, "user"),
    ],
)
def test_what_cannot_be_evaluated_is_said(models, options, message):
    data = pc.Comparisons.from_pairs(list("abcd"), list("bcad"[:3]) + ["a"], tie=[0, 0, 0, 1])
    with pytest.raises(DataError, match=message):
        pc.evaluate(models, data, **options)


def test_an_unknown_keyword_is_refused(study):
    with pytest.raises(TypeError, match="relation"):
        pc.evaluate("gp", study.comparisons, relation={})


def test_ties_are_learned_from_but_not_predicted():
    tie = np.arange(60) % 3 == 0
    data = pc.Comparisons.from_pairs(["a", "b"] * 30, ["b", "c"] * 30, tie=tie)
    held_out = hold_out(pc.PreferenceGP(likelihood="ties"), Material(data), data)
    assert held_out.count.sum() == 40


def test_parts_of_nothing_but_ties_are_an_error_or_left_out():
    tie = np.arange(60) > 1
    data = pc.Comparisons.from_pairs(["a", "b"] * 30, ["b", "c"] * 30, tie=tie)
    model, said = pc.PreferenceGP(likelihood="ties"), set()
    for seed in range(8):
        try:
            table = pc.evaluate(model, data, folds=2, random_state=seed)
        except DataError as error:
            said.add(str(error))
        else:
            said.add(len(table))
    assert said == {2, "every part is all ties, or leaves only ties to learn from: collect more"}


def test_the_baseline_is_ridge_penalised_logistic_regression():
    data = pc.datasets.simulate_pairs([0.0, 0.5, 1.5], 60, random_state=1)
    model = BradleyTerry().fit(None, data)

    def loss(s):
        margin = s[data.winner] - s[data.loser]
        return data.count @ np.logaddexp(0, -margin) + 0.5 * s @ s

    best = minimize(loss, np.zeros(3)).x
    expected = 1 / (1 + np.exp(best[0] - best[2]))
    assert model.predict_proba([(2, 0)])[0] == pytest.approx(expected, abs=1e-3)


def test_relations_and_features_of_people_reach_the_models_that_take_them(study):
    data = study.comparisons
    about = Material(data, None, {"near": study.links}, np.arange(12.0)[:, None])
    assert "relation='near'" in repr(about.fit(pc.PreferenceGP()).kernel_)
    people = about.fit(pc.MultiUserGP(optimize=None, progress=False))
    assert people.state_.user_columns.n_columns == 1
    scorer = Material(data, study.item_features, {"near": study.links}).fit(as_model(pc.RankRLS()))
    assert scorer.predict().shape == (10,)


def test_what_every_fold_would_warn_of_is_said_once():
    data = pc.datasets.simulate_pairs([0.0, 1.0, 2.0, 3.0], 60, random_state=0)
    X = np.column_stack([np.arange(4.0), np.ones(4)])
    with pytest.warns(DataWarning) as told:
        pc.evaluate(pc.PreferenceGP(optimize=None), data, X, folds=3)
    assert sum("constant" in str(each.message) for each in told) == 1


def test_what_differs_in_numbers_only_is_said_once():
    texts = iter(("gain of 1.5 nats", "gain of 22.25 nats", "gain of 1.5 bits"))

    class Talking(pc.PreferenceGP):
        def fit(self, X, data):
            warnings.warn(next(texts), DataWarning, stacklevel=1)
            return super().fit(X, data)

    data = pc.datasets.simulate_pairs([0.0, 1.0], 30, random_state=0)
    with pytest.warns(DataWarning) as told:
        pc.evaluate({"talking": Talking(optimize=None)}, data, folds=3)
    assert [str(each.message) for each in told] == ["gain of 1.5 nats", "gain of 1.5 bits"]


def test_a_file_or_a_data_frame_serves_as_well(tmp_path):
    data = pc.datasets.simulate_pairs([0.0, 1.0, 2.0], 80, random_state=0)
    path = tmp_path / "votes.csv"
    frame = data.to_frame()
    frame.to_csv(path, index=False)
    model = pc.PreferenceGP(optimize=None)
    scores = [pc.evaluate(model, given, folds=2).best[:3] for given in (data, path, frame)]
    assert scores[0] == scores[1] == scores[2]
    assert pc.choose_model(path).why == pc.choose_model(frame).why == pc.choose_model(data).why
    pages = [pc.report(given, tmp_path / "r.html").read_text() for given in (path, frame)]
    assert "Read as:" in pages[0]
    assert "80 comparisons" in pages[1]


def test_answers_in_a_file_of_a_study_and_scanned_ones_are_checked_as_others(tmp_path):
    rng = np.random.default_rng(0)
    a = rng.integers(5, size=150)
    b = (a + rng.integers(1, 5, size=150)) % 5
    table = pd.DataFrame({"winner": a, "loser": b, "user": rng.integers(6, size=150)}).astype(str)
    table = table.assign(tie=False, count=1, form="pair", shown_first=table["loser"], at=1.7e9)
    path = tmp_path / "export.csv"
    table.to_csv(path, index=False)
    judging = pc.PreferenceGP(raters="lapse", optimize=None)
    by_file, by_data = (
        pc.evaluate({"judging": judging}, source, folds=2)
        for source in (path, pc.read_comparisons(path))
    )
    for one, other in zip(by_file, by_data, strict=True):
        assert one._replace(seconds=0.0) == other._replace(seconds=0.0)
    with pc.scan_comparisons(path) as scan:
        for ask in (
            lambda: pc.evaluate(judging, scan),
            lambda: pc.choose_model(scan),
            lambda: pc.report(scan, tmp_path / "r.html"),
            lambda: judging.fit(None, path).score(scan),
        ):
            with pytest.raises(pc.DataError, match="read_comparisons, or take"):
                ask()
        assert len(pc.evaluate(pc.PreferenceGP(optimize=None), scan.pooled, folds=2)) == 2
