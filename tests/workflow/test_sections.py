"""What a report says: true of each model, and only what there is."""

import html
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import penchant as pc
from penchant.likelihoods import Lapse, Probit
from penchant.models import Effect, Effects, RankedItem, Ranking, Rater, RaterTable
from penchant.workflow import reporting


def fitted(kind, study):
    data = study.comparisons
    if kind == "ties":
        pooled = data.pooled()
        tied = replace(pooled, tie=np.arange(len(pooled)) % 4 == 0)
        return pc.PreferenceGP(likelihood="ties", optimize=None).fit(None, tied)
    models = {
        "probit": pc.PreferenceGP(optimize=None),
        "logit": pc.PreferenceGP(likelihood="logit", optimize=None),
        "lapse": pc.PreferenceGP(likelihood=Lapse(Probit(), 0.3), optimize=None),
        "people": pc.MultiUserGP(optimize=None, progress=False),
        "communities": pc.CommunityGP(progress=False, random_state=0),
    }
    return models[kind].fit(None, data)


@pytest.mark.parametrize("kind", ["probit", "logit", "lapse", "ties", "people", "communities"])
def test_the_sentence_about_the_scale_is_the_model_s_own(kind, study):
    model = fitted(kind, study)
    ranking = model.rank()
    sentence = model.scale_
    assert html.escape(sentence, quote=False) in reporting.leaderboard(model, ranking)
    best, other = re.findall("“(.*?)”", sentence)
    number = int(re.search(r"win (\d+) of 100", sentence)[1])
    assert number == round(100 * model.predict_proba([(best, other)])[0])
    utility = {row.item: row.utility for row in ranking}
    assert f"lies {utility[best] - utility[other]:.2f} above" in sentence
    assert ("end in a tie" in sentence) == (kind == "ties")


def test_raters_and_effects_where_there_are_any():
    rows = (Rater("<ann>", 1200, 0.9, 0.8, 1.0),)
    table = RaterTable(rows, "lapse", about="What it means.")
    found = Effects((Effect("length", 1.2e-4, 1e-4, 1.4e-4, None),), 0.95)
    model = SimpleNamespace(raters_=table, effects_=found)
    ((heading, text),) = reporting.rater_table(model)
    assert heading == "Raters"
    assert all(
        part in text for part in ("&lt;ann&gt;", "1200", "0.90", "[0.80, 1.00]", "What it means.")
    )
    heading, text = next(reporting.effect_table(model))
    assert heading == "Order shown and other effects"
    assert "+0.000120" in text  # as in print, with digits that say something
    assert "[+0.000100, +0.000140]" in text
    assert list(reporting.rater_table(SimpleNamespace())) == []
    assert list(reporting.effect_table(SimpleNamespace(effects_=()))) == []


def test_a_model_whose_data_do_not_tell_raters():
    class Nobody:
        @property
        def raters_(self):
            raise pc.DataError("nobody is named")

    assert list(reporting.rater_table(Nobody())) == []


def test_no_map_where_there_is_one_community(study):
    data = study.comparisons
    model = pc.CommunityGP(n_communities=1, progress=False, random_state=0).fit(None, data)
    ((_, text),) = reporting.community_sections(model)
    assert "<img" not in text
    assert "One taste for everybody" in text


def test_communities_stand_side_by_side(study):
    model = pc.CommunityGP(n_communities=2, progress=False, random_state=0)
    ((_, text),) = reporting.community_sections(model.fit(None, study.comparisons))
    assert text.count('class="range"') == 2 * study.comparisons.n_items
    assert "on one scale" in text


def test_letters_of_any_script_stay_letters(study, tmp_path, recwarn):
    names = ("抹茶", "🍕", "한국어", *study.comparisons.items[3:])
    data = replace(study.comparisons, items=names)
    page = pc.report(pc.PreferenceGP(optimize=None).fit(None, data), tmp_path / "r.html")
    text = page.read_text(encoding="utf-8")
    assert all(name in text for name in names)
    assert not [w for w in recwarn if "Glyph" in str(w.message)]


def test_one_item_is_a_page_too():
    row = RankedItem(1, "tea", 0.8, 0.1, 1.5, 0.9, 1, 1)
    assert "tea" in reporting.leaderboard(None, Ranking((row,), 0.95))


def test_paths_are_drawn_where_utilities_drift(tmp_path):
    rng = np.random.default_rng(0)
    day = np.sort(rng.integers(19_000, 19_300, 400)).astype(float)
    a = rng.integers(4, size=400)
    b = (a + 1 + rng.integers(3, size=400)) % 4
    rising = np.where(a == 0, 1.0, 0.0) - np.where(b == 0, 1.0, 0.0)
    won = rising * (day - 19_150) / 60 + rng.standard_normal(400) > 0
    data = pc.Comparisons.from_pairs(
        np.where(won, a, b), np.where(won, b, a), time=day, items=range(4)
    )
    model = pc.PreferenceGP(drift="ou", random_state=0).fit(None, data)
    ((heading, text),) = reporting.drift_over_time(model, model.rank(), model.comparisons_)
    assert heading == "Over time"
    assert text.count("<img") == 1
    for day in (data.time.min(), data.time.max()):
        assert str(np.datetime64(int(day), "D")) in text
    change = re.findall(r">([+-][\d.]+)</td></tr>", text)
    mean, _ = model.paths([data.time.min(), data.time.max()])
    order = [row.item for row in model.rank()]
    assert change == [f"{mean[1, k] - mean[0, k]:+.2f}" for k in order]
    still = pc.PreferenceGP(optimize=None).fit(None, data)
    assert list(reporting.drift_over_time(still, still.rank(), data)) == []
    page = pc.report(model, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Over time" in page


@pytest.mark.parametrize("raters", [None, "lapse", "noise"])
@pytest.mark.parametrize("estimator", [pc.PreferenceGP, pc.MultiUserGP])
def test_the_page_says_what_the_model_takes_for_unreliable(study, tmp_path, estimator, raters):
    model = estimator(optimize=None, raters=raters).fit(None, study.comparisons)
    page = pc.report(model, tmp_path / "r.html").read_text(encoding="utf-8")
    pooled = estimator is pc.PreferenceGP
    assert ("taste of their own counts as unreliable" in html.unescape(page)) == pooled
    assert ("taste of their own does not count" in page) == (not pooled)
    assert ("count less in the ranking" in page) == (raters is not None)
    assert ("how sharply" in page) == (raters == "noise")
    assert f"by {study.comparisons.n_users} people" in page
    assert "accuracy" in page


def test_people_widen_intervals_and_are_judged_unless_too_many(study):
    model = pc.PreferenceGP(optimize=None).fit(None, study.comparisons)
    text = reporting.leaderboard(model, model.rank())
    about = " ".join(model.report_.about_people().split())
    assert about
    assert about in text
    assert next(reporting.rater_table(model, study.comparisons.n_users))[0] == "Raters"
    assert list(reporting.rater_table(model, reporting.JUDGED_RATERS + 1)) == []
