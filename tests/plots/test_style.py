"""One look: colours that are told apart on either ground, names of any script, nothing covered."""

import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

from penchant import plots
from penchant.plots import style


@pytest.mark.parametrize("colour", style.COLOURS)
def test_colours_stand_out_on_either_ground(colour):
    assert style.contrast(style.readable(colour), "white") >= 4.5
    assert style.contrast(style.DARK[colour], style.GROUND) >= 4.5


def test_names_stand_apart_in_the_order_of_their_lines(rng):
    ends = np.sort(rng.random(9))
    placed = style.spread(ends, 0.1)
    assert np.all(np.diff(placed) >= 0.1 - 1e-5)
    assert style.spread([0.1, 0.5, 0.9], 0.1) == [0.1, 0.5, 0.9]
    assert style.spread([0.5, 0.5, 0.0], 0.2) == [0.4, 0.6, 0.0]


def test_points_that_lie_close_get_names_that_do_not_cover_each_other():
    ax = Figure(figsize=(4, 4), dpi=72).subplots()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    style.name_points(ax, [(0.5, 0.5), (0.51, 0.5), (0.5, 0.51)], ["one", "two", "three"])
    assert len({text.get_position() for text in ax.texts}) == 3


def test_boxes_and_arrows_turn_dark_too():
    ax = Figure().subplots()
    box = {"facecolor": "#eef4f9", "edgecolor": "black"}
    text = ax.annotate("x", (0, 0), (1, 1), bbox=box, arrowprops={"color": "black"})
    plots.to_dark(ax.figure)
    assert style.contrast(text.get_color(), text.get_bbox_patch().get_facecolor()[:3]) >= 4.5
    assert style.contrast(text.arrow_patch.get_edgecolor()[:3], style.GROUND) >= 4.5


@pytest.mark.parametrize("name", ["寿司", "すし", "초밥", "🍣"])
def test_any_script_is_drawn_where_a_font_has_it(name):
    from matplotlib.font_manager import fontManager, get_font

    files = [font.fname for font in fontManager.ttflist if font.name in style.installed_fonts()]
    if not any(ord(name[0]) in get_font(file).get_charmap() for file in files):
        pytest.skip(f"no font here has {name}")
    figure = Figure()
    ax = figure.subplots()
    style.name_ticks(ax.yaxis, [name])
    style.tidy(ax)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig("/dev/null", format="svg")
