"""What every figure promises, and what is particular to each."""

from importlib import import_module
from pkgutil import iter_modules
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

import penchant as pc
from penchant import plots
from penchant.metrics import calibration
from penchant.models import RankedItem, Ranking
from penchant.online import Regret

HOSTILE = "$x_{broken <b>"


def ranking():
    return [RankedItem(k, f"{HOSTILE}{k}", -k, -k - 1.0, -k + 1.0, 1 / k, 1, 3) for k in (1, 2, 3)]


def regret():
    ones = np.ones((2, 5))
    return Regret(ones / np.arange(1, 6), ones, None, ones, 1.0, 1.0)


DRAW = {
    "plot_ranking": lambda ax: plots.plot_ranking(ranking(), ax=ax),
    "plot_win_matrix": lambda ax: plots.plot_win_matrix(np.eye(3), [HOSTILE, "b", "c"], ax=ax),
    "plot_calibration": lambda ax: plots.plot_calibration(calibration([0.7, 0.6, 0.2]), ax=ax),
    "plot_utilities": lambda ax: plots.plot_utilities([2, 0, 1], [1, 0, 2], [1, 1, 1], ax=ax),
    "plot_paths": lambda ax: plots.plot_paths(
        np.array(["2024-01-01", "2024-02-01"], dtype="datetime64[D]"),
        np.eye(2),
        np.ones((2, 2)),
        [HOSTILE, "b"],
        ax=ax,
        last=np.datetime64("2024-01-15"),
    ),
    "plot_regret": lambda ax: plots.plot_regret({"a": regret(), "b": regret()}, ax=ax, alpha=1.0),
    "plot_evidence": lambda ax: plots.plot_evidence({"a": [1, 2], "b": [0, 2]}, ax=ax),
}


def test_every_figure_is_public():
    defined = set()
    for module in iter_modules(plots.__path__):
        names = vars(import_module(f"penchant.plots.{module.name}"))
        defined |= {name for name in names if name.startswith("plot_")}
    assert defined | {"to_dark", "use_style"} == set(plots.__all__)


@pytest.mark.parametrize("name", DRAW)
def test_a_figure_draws_on_given_axes_or_new_ones_and_leaves_no_trace(name, tmp_path):
    import matplotlib.pyplot as plt

    given = Figure().subplots()
    assert DRAW[name](given) is given
    fresh = DRAW[name](None)
    assert fresh.get_xlabel() or fresh.get_xticklabels()
    assert fresh.figure.get_figwidth() <= 7.0
    fresh.figure.savefig(tmp_path / "figure.svg")
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", DRAW)
def test_text_is_legible_at_the_size_of_a_column(name):
    ax = DRAW[name](None)
    texts = [t for t in ax.findobj(lambda o: hasattr(o, "get_fontsize")) if t.get_text()]
    assert min(text.get_fontsize() for text in texts) >= 6


def test_the_matrix_shows_rows_against_columns():
    ax = plots.plot_win_matrix([[0.5, 0.9], [0.1, 0.5]], ["tea", "milk"])
    shown = ax.images[0].get_array()
    assert shown[0, 1] == 0.9
    assert shown.mask[0, 0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["tea", "milk"]


def test_utilities_are_drawn_in_the_order_of_the_feature():
    ax = plots.plot_utilities([2, 0, 1], [20, 0, 10], [1, 1, 1], marks=[0.5])
    assert ax.lines[0].get_xdata().tolist() == [0, 1, 2]
    assert ax.lines[0].get_ydata().tolist() == [0, 10, 20]


def test_calibration_intervals_cover_a_calibrated_forecaster(rng):
    """Two standard errors hold about 95 of 100 bins when the probabilities are right."""
    inside = total = 0
    for _ in range(15):
        p = rng.uniform(0.05, 0.95, 400)
        outcome = (rng.random(400) < p).astype(float)
        ax = plots.plot_calibration(calibration(p, outcome))
        points = ax.collections[1].get_offsets()
        for segment, (x, _) in zip(ax.collections[0].get_segments(), points, strict=True):
            inside += segment[0, 1] <= x <= segment[1, 1]
            total += 1
    assert abs(inside / total - 0.95) < 4 * np.sqrt(0.05 * 0.95 / total)


def test_a_bad_start_does_not_hide_how_a_chain_ended():
    trace = np.r_[-900.0, -90 + np.arange(29.0) / 10]
    low, high = plots.plot_evidence(trace).get_ylim()
    assert -95 < low < trace[3]
    assert high > trace.max()


def test_people_lie_where_the_arrows_of_what_they_like_point(rng):
    side = np.where(np.arange(20) % 2, 1.0, -1.0)
    utilities = np.outer(side, [2.0, -2.0, 0.0]) + 0.01 * rng.standard_normal((20, 3))
    ax = plots.plot_disagreement(utilities, ["tea", "milk", "water"], top=2)
    arrows = {text.get_text(): text.xy for text in ax.texts}
    assert set(arrows) == {"tea", "milk"}
    places = ax.collections[0].get_offsets()
    assert np.all(np.sign(places[:, 0]) == np.sign(arrows["tea"][0]) * side)


def test_communities_differ_in_shape_as_well_as_colour(rng):
    membership = np.repeat(np.eye(3), 4, axis=0)
    ax = plots.plot_membership_map(rng.standard_normal((12, 5)), membership)
    shapes = {points.get_paths()[0].vertices.tobytes() for points in ax.collections}
    assert len(shapes) == 3
    assert ax.get_legend().get_texts()[0].get_text() == "community 0 (4)"


@pytest.mark.parametrize("sharey", [True, False])
def test_communities_stand_in_the_same_order_in_every_panel(sharey):
    rows = [
        RankedItem(1, "a", 1.0, 0.0, 2.0, 1, 1, 1),
        RankedItem(2, "b", -1.0, -2.0, 0.0, 0, 2, 2),
    ]
    panels = Figure().subplots(1, 2, sharey=sharey)
    ranking = Ranking(tuple(rows), 0.95)
    plots.plot_community_utilities([SimpleNamespace(ranking=ranking, share=0.5)] * 2, panels)
    for ax in panels:
        assert ax.collections[1].get_offsets()[:, 1].tolist() == [0, 1]
        assert ax.yaxis_inverted()


def test_plots_load_on_demand():
    assert all(callable(getattr(pc.plots, name)) for name in pc.plots.__all__)
    with pytest.raises(AttributeError, match="plot_pie"):
        _ = pc.plots.plot_pie


@pytest.fixture(scope="module")
def communities():
    tea = ["tea", "milk", "water"]
    data = pc.Comparisons.from_rankings([tea] * 6 + [tea[::-1]] * 6, users=range(5, 17))
    model = pc.CommunityGP(inference="mcmc", n_sweeps=6, n_chains=2, progress=False, random_state=0)
    return model.fit(None, data)


def test_a_model_is_drawn_as_its_tables_are(communities):
    model = communities
    users = model.comparisons_.users
    pairs = [
        (plots.plot_ranking(model), plots.plot_ranking(model.rank())),
        (
            plots.plot_membership_map(model),
            plots.plot_membership_map(model.predict(users=users), model.membership_),
        ),
    ]
    for drawn, expected in pairs:
        for one, other in zip(drawn.collections, expected.collections, strict=True):
            np.testing.assert_array_equal(one.get_offsets(), other.get_offsets())
    bars = [bar.get_height() for bar in plots.plot_community_counts(model).patches]
    assert bars == list(model.community_counts_.values())
    assert len(plots.plot_community_utilities(model)) == model.n_communities_
    chains = plots.plot_evidence(model)
    assert [line.get_label() for line in chains.lines] == ["chain 1", "chain 2"]
    np.testing.assert_array_equal(chains.lines[0].get_ydata(), model.report_.log_joint[0])


def test_the_matrix_of_a_model_shows_its_best_items_first(communities):
    ax = plots.plot_win_matrix(communities)
    names = [row.item for row in communities.rank()]
    assert [t.get_text() for t in ax.get_yticklabels()] == names
    (expected,) = communities.predict_proba([(names[0], names[2])])
    assert ax.images[0].get_array()[0, 2] == pytest.approx(expected)
    some = plots.plot_win_matrix(communities, ["water", "tea"])
    assert some.images[0].get_array().shape == (2, 2)


def test_calibration_and_utilities_of_a_model(rng):
    x = np.arange(6.0)
    data = pc.datasets.simulate_pairs(x / 2.0, 300, random_state=0)
    train, test = data.split(0.4, random_state=0)
    model = pc.PreferenceGP(optimize=None).fit(x[:, None], train)
    pairs = np.column_stack([test.winner, test.loser])
    found = calibration(model.predict_proba(pairs), counts=test.count)
    drawn, want = (
        plots.plot_calibration(*a, **k) for a, k in (((model,), {"data": test}), ((found,), {}))
    )
    for one, other in zip(drawn.collections, want.collections, strict=True):
        np.testing.assert_array_equal(one.get_offsets(), other.get_offsets())
    with pytest.raises(pc.DataError, match="not learned from"):
        plots.plot_calibration(model)
    grid = np.linspace(0, 5, 9)
    line = plots.plot_utilities(grid, model).lines[0]
    np.testing.assert_array_equal(line.get_ydata(), model.predict(grid[:, None]))
    with pytest.raises(pc.DataError, match="std"):
        plots.plot_utilities(grid, grid)
