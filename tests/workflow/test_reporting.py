"""pc.report from comparisons and from models; the page itself is tested through the command."""

import re

import numpy as np
import pytest

import penchant as pc
from penchant.errors import DataError


@pytest.fixture
def page_of(tmp_path):
    """The text of a report."""

    def page_of(*given, **about):
        path = pc.report(given[0], tmp_path / "r.html", *given[1:], **about)
        return path.read_text(encoding="utf-8")

    return page_of


def headings(text):
    return re.findall(r"<h2[^>]*>(.*?)</h2>", text)


def test_from_comparisons_a_model_is_chosen(page_of, outline_of):
    data = pc.datasets.simulate_pairs([0.0, 1.0, 2.0, 3.0], 100, random_state=0)
    text = page_of(data, title="<b>Four</b>")
    assert headings(text)[:3] == ["Ranking", "Who beats whom", "Can it be trusted?"]
    assert "nothing says who made which comparison" in text
    assert "<title>&lt;b&gt;Four&lt;/b&gt;</title>" in text
    assert "was held out" in text
    outline_of(text)


def test_a_fitted_model_is_reported_as_it_is(study, page_of):
    model = pc.CommunityGP(progress=False, random_state=0)
    text = page_of(model.fit(None, study.comparisons))
    assert "Communities of taste" in headings(text)
    assert "Model: community (as it was fitted)" in text
    assert "was held out" in text


def test_a_model_is_not_checked_without_what_it_was_fitted_with(study, page_of):
    X, links = study.item_features, {"near": study.links}
    model = pc.PreferenceGP(random_state=0).fit(X, study.comparisons, links)
    said = "fitted with features (X) and relations, which the report was not given"
    assert said in page_of(model)
    assert "was held out" in page_of(model, X, relations=links)


def test_people_who_are_linked_are_asked_for_too(study, page_of):
    friends = {"knows": 1.0 - np.eye(12)}
    model = pc.MultiUserGP(optimize=None, progress=False)
    model.fit(None, study.comparisons, user_relations=friends)
    said = "fitted with relations between people (user_relations), which"
    assert said in page_of(model)
    assert "was held out" in page_of(model, user_relations=friends)


def test_many_ties_are_no_reason_to_fail(page_of):
    tie = [True] * 99 + [False]
    data = pc.Comparisons.from_pairs(["a"] * 100, ["b"] * 100, tie=tie)
    assert "too few comparisons" in page_of(data)


@pytest.mark.parametrize("model", [pc.PreferenceGP(), pc.RankRLS()])
def test_a_model_that_knows_no_comparisons_is_an_error(model, page_of):
    with pytest.raises(DataError, match="give the comparisons instead"):
        page_of(model)
