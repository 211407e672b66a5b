import numpy as np
import pytest
from scipy.special import ndtri

import penchant as pc
from penchant.likelihoods import Lapse, Logit, Probit, Ties
from penchant.models import RankedItem, Ranking, elo_per_unit


@pytest.fixture(scope="module")
def model():
    data = pc.datasets.simulate_pairs(np.linspace(0.0, 3.0, 12), 900, random_state=1)
    return pc.PreferenceGP(optimize=None, random_state=0).fit(None, data)


def test_groups_by_the_joint_posterior(model):
    """The rule by brute force: each item against the first of its group."""
    ranking, belief = model.rank(level=0.9), model.belief()
    place = [model.comparisons_.item_index(row.item) for row in ranking]
    cov, reach = belief.covariance(), ndtri(0.95)
    expected, first, group = [], 0, 1
    for k, i in enumerate(place):
        f = place[first]
        sd = np.sqrt(cov[f, f] + cov[i, i] - 2 * cov[f, i])
        if k and belief.mean[f] - belief.mean[i] > reach * sd:
            first, group = k, group + 1
        expected.append(group)
    assert ranking["group"].tolist() == expected
    assert 2 < max(expected) < 12


def test_groups_longer_than_a_look_ahead():
    data = pc.datasets.simulate_pairs(np.r_[np.zeros(90), -9.0], 3000, random_state=1)
    ranking = pc.PreferenceGP(optimize=None).fit(None, data).rank()
    sizes = np.bincount(ranking["group"])[1:]
    assert sizes.sum() == 91
    assert sizes.max() > 16
    assert ranking[-1].group == len(sizes)


def test_win_rate(model):
    row = model.rank()[0]
    assert row.win_rate == row.wins / row.comparisons
    data = pc.Comparisons.from_pairs(["a"], ["b"], items=["a", "b", "c"])
    rows = pc.PreferenceGP(optimize=None).fit(None, data).rank()
    assert {row.item: str(row.win_rate) for row in rows} == {"a": "1.0", "b": "0.0", "c": "nan"}


@pytest.mark.parametrize(
    "likelihood", [Logit(), Ties(0.4, "logit"), Probit(), Lapse(Probit(), 0.1)]
)
def test_elo_points_give_the_chances_of_the_likelihood(likelihood):
    one, known = np.ones(1), np.zeros(1)
    win, loss = likelihood.prob(one, known), likelihood.prob(-one, known)
    points = elo_per_unit(likelihood)
    assert 1.0 / (1.0 + 10.0 ** (-points / 400.0)) == pytest.approx((win / (win + loss))[0])
    assert elo_per_unit(Logit()) == pytest.approx(400.0 / np.log(10.0))


def test_elo_moves_everything_but_the_order(model):
    ranking = model.rank()
    elo = ranking.to_elo()
    assert elo["utility"].mean() == pytest.approx(1000.0)
    assert [row.item for row in elo] == [row.item for row in ranking]
    width = (ranking["high"] - ranking["low"]) * elo_per_unit(model.likelihood_)
    np.testing.assert_allclose(elo["high"] - elo["low"], width)
    anchored = ranking.to_elo(1500.0, item=ranking[3].item)
    assert anchored[3].utility == 1500.0
    assert "elo" in str(anchored).splitlines()[0]
    for wrong, why in (
        (lambda: elo.to_elo(), "already"),
        (lambda: ranking.to_elo(item="?"), "one of the 12"),
        (lambda: ranking.to_elo(float("nan")), "anchor"),
        (lambda: Ranking(ranking.rows, 0.9).to_elo(), "no probabilities"),
    ):
        with pytest.raises(pc.DataError, match=why):
            wrong()


HOSTILE = "=1+1 & 50% _of_ {all} | \\x ~\nb"


def test_tables_for_others(tmp_path):
    row = RankedItem(1, HOSTILE, 0.8, 0.1, 1.5, 0.9, 1, 2, 4, 3.0, 0.75, 1)
    ranking = Ranking((row, row._replace(rank=2, item="茶 🍵", win_rate=float("nan"))), 0.95)
    assert r"=1+1 \& 50\% \_of\_ \{all\} | \textbackslash{}x \textasciitilde{} b &" in (
        ranking.to_latex()
    )
    assert ranking.to_latex().count("\n") == 7
    assert "=1+1 & 50% _of_ {all} \\| \\x ~ b" in ranking.to_markdown()
    assert "<td>=1+1 &amp; 50%" in ranking._repr_html_()
    assert ranking.to_pandas()["item"].tolist() == [HOSTILE, "茶 🍵"]
    pytest.importorskip("polars")
    assert ranking.to_polars()["wins"].to_list() == [3.0, 3.0]


def test_a_spreadsheet_of_numbers_and_harmless_names(tmp_path, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl")
    row = RankedItem(1, HOSTILE + "\x07", 0.8, 0.1, 1.5, 0.9, 1, 2, 4, 3.0, float("nan"), 1)
    Ranking((row,), 0.95).to_excel(tmp_path / "r.xlsx")
    header, cells = openpyxl.load_workbook(tmp_path / "r.xlsx").active.iter_rows()
    assert [cell.value for cell in header] == list(RankedItem._fields)
    assert (cells[1].value, cells[1].data_type) == (HOSTILE, "s")
    assert (cells[2].value, cells[2].data_type) == (0.8, "n")
    assert cells[10].value is None
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(pc.DataError, match="to_excel needs openpyxl"):
        Ranking((row,), 0.95).to_excel(tmp_path / "s.xlsx")
    assert not (tmp_path / "s.xlsx").exists()
