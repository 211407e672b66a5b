"""pc.report from comparisons and from models; the page itself is tested through the command."""

import re

import numpy as np
import pytest

import penchant as pc
from penchant.errors import DataError


def headings(path):
    return re.findall(r"<h2[^>]*>(.*?)</h2>", path.read_text(encoding="utf-8"))


def test_from_comparisons_a_model_is_chosen(tmp_path, outline_of):
    data = pc.datasets.simulate_pairs([0.0, 1.0, 2.0, 3.0], 100, random_state=0)
    page = pc.report(data, tmp_path / "r.html", title="<b>Four</b>")
    text = page.read_text(encoding="utf-8")
    assert headings(page)[:3] == ["Ranking", "Who beats whom", "Can it be trusted?"]
    assert "nothing says who made which comparison" in text
    assert "<title>&lt;b&gt;Four&lt;/b&gt;</title>" in text
    assert "was held out" in text
    outline_of(text)


def test_a_fitted_model_is_reported_as_it_is(study, tmp_path):
    model = pc.CommunityGP(progress=False, random_state=0)
    model.fit(None, study.comparisons)
    page = pc.report(model, tmp_path / "r.html")
    assert "Communities of taste" in headings(page)
    assert "Model: community (as it was fitted)" in page.read_text(encoding="utf-8")
    assert "was held out" in page.read_text(encoding="utf-8")


def test_a_model_is_not_checked_without_what_it_was_fitted_with(study, tmp_path):
    X, links = study.item_features, {"near": study.links}
    model = pc.PreferenceGP(random_state=0).fit(X, study.comparisons, links)
    text = pc.report(model, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "fitted with features (X) and relations, which the report was not given" in text
    whole = pc.report(model, tmp_path / "r.html", X, relations=links)
    assert "was held out" in whole.read_text(encoding="utf-8")


def test_people_who_are_linked_are_asked_for_too(study, tmp_path):
    friends = {"knows": 1.0 - np.eye(12)}
    model = pc.MultiUserGP(optimize=None, progress=False)
    model.fit(None, study.comparisons, user_relations=friends)
    page = pc.report(model, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "fitted with relations between people (user_relations), which" in page
    page = pc.report(model, tmp_path / "r.html", user_relations=friends)
    assert "was held out" in page.read_text(encoding="utf-8")


def test_many_ties_are_no_reason_to_fail(tmp_path):
    tie = [True] * 99 + [False]
    data = pc.Comparisons.from_pairs(["a"] * 100, ["b"] * 100, tie=tie)
    page = pc.report(data, tmp_path / "r.html")
    assert "too few comparisons" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("model", [pc.PreferenceGP(), pc.RankRLS()])
def test_a_model_that_knows_no_comparisons_is_an_error(model, tmp_path):
    with pytest.raises(DataError, match="give the comparisons instead"):
        pc.report(model, tmp_path / "r.html")
