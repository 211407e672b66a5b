"""Figures of one user."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from penchant.data import Comparisons
from penchant.models import MultiUserGP
from penchant.plots import plot_user, plot_user_against_population


@pytest.fixture
def model():
    data = Comparisons.from_pairs(
        ["$a_{", "b", "$a_{", "c"], ["b", "c", "c", "b"], user=["ann", "ann", "bob", "bob"]
    )
    X = np.array([[0.0], [1.0], [2.0]])
    return MultiUserGP(optimize=None).fit(X, data)


def above_average(model, user):
    """Mean and variance of utilities less their average, from draws of the belief."""
    belief = model.belief(user)
    draws = belief.sample(40_000, np.random.default_rng(0))
    draws -= draws.mean(axis=1, keepdims=True)
    return belief.mean - belief.mean.mean(), draws.var(axis=0)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_a_user_is_drawn_best_first_with_intervals_of_the_level(model, level):
    items = model.comparisons_.items
    ax = Figure().subplots()
    assert plot_user(model, "ann", ax, level) is ax
    mean, var = above_average(model, "ann")
    assert [t.get_text() for t in ax.get_yticklabels()] == [items[i] for i in np.argsort(-mean)]
    (low, _), (high, _) = ax.collections[0].get_segments()[0]
    best = np.argmax(mean)
    reach = {0.5: 0.6744898, 0.95: 1.9599640}[level] * np.sqrt(var[best])
    assert 0.5 * (low + high) == pytest.approx(mean[best])
    assert 0.5 * (high - low) == pytest.approx(reach, rel=0.02)


def test_every_item_is_named_beside_the_population(model, tmp_path):
    ax = plot_user_against_population(model, "bob")
    assert [text.get_text() for text in ax.texts] == list(model.comparisons_.items)
    x, y = ax.lines[1].get_data()
    for found, user in ((x, None), (y, "bob")):
        np.testing.assert_allclose(found, above_average(model, user)[0])
    ax.figure.savefig(tmp_path / "figure.svg")
