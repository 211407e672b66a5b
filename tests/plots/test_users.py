"""Figures of one user."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from penchant.data import Comparisons
from penchant.models.multi_user_gp import MultiUserGP
from penchant.plots.users import centred, plot_user, plot_user_against_population


@pytest.fixture
def model():
    data = Comparisons.from_pairs(
        ["$a_{", "b", "$a_{", "c"], ["b", "c", "c", "b"], user=["ann", "ann", "bob", "bob"]
    )
    X = np.array([[0.0], [1.0], [2.0]])
    return MultiUserGP(optimize=None).fit(X, data)


def test_zero_is_the_average_item(model):
    posterior = model.posterior_for("ann")
    mean, var = centred(posterior)
    assert mean.sum() == pytest.approx(0.0, abs=1e-12)
    draws = posterior.sample(20_000, np.random.default_rng(0))
    draws -= draws.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5 * np.sqrt(var.max() / 20_000))
    np.testing.assert_allclose(draws.var(axis=0), var, rtol=0.06)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_a_user_is_drawn_best_first_with_intervals_of_the_level(model, level):
    items = model.comparisons_.items
    ax = Figure().subplots()
    assert plot_user(model.posterior_for("ann"), items, ax, level) is ax
    mean, var = centred(model.posterior_for("ann"))
    assert [t.get_text() for t in ax.get_yticklabels()] == [items[i] for i in np.argsort(-mean)]
    (low, _), (high, _) = ax.collections[0].get_segments()[0]
    best = np.argmax(mean)
    reach = {0.5: 0.6744898, 0.95: 1.9599640}[level] * np.sqrt(var[best])
    assert (low, high) == pytest.approx((mean[best] - reach, mean[best] + reach))


def test_every_item_is_named_beside_the_population(model, tmp_path):
    items = model.comparisons_.items
    ax = plot_user_against_population(model.posterior_for("bob"), model.posterior_for(), items)
    assert [text.get_text() for text in ax.texts] == list(items)
    ax.figure.savefig(tmp_path / "figure.svg")
