"""
Where on the map of all products is the best one?
=================================================

Eighty coffees differ in roast and in acidity. People compared 500 pairs. Which coffee should be
roasted next?

What to see: on the left the utility that the model expects everywhere, with the coffees that were
compared as dots and the true peak as a cross. On the right how sure it is: dark where nobody has
tasted anything (some of it, 0.8 everywhere, is the common level, which comparisons never tell).
The next product should be good (left) or teach (right); `ask` weighs both.

Where the method is weak: outside the dots the surface falls back to the average, which is a
guess, not a finding. The right panel is there to say so.
"""

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc
from penchant.plots.style import SMALL, tidy

pc.plots.use_style()
rng = np.random.default_rng(0)
X = np.column_stack([rng.beta(2, 2, 80), rng.beta(2, 3, 80)])


def liking(X):
    return 3.0 * np.exp(-8 * ((X[:, 0] - 0.65) ** 2 + 2 * (X[:, 1] - 0.35) ** 2))


data = pc.datasets.simulate_pairs(liking(X), 500, random_state=0)
model = pc.PreferenceGP(random_state=0).fit(X, data)
side = np.linspace(0, 1, 60)
grid = np.array([(a, b) for b in side for a in side])
mean, std = model.predict(grid, return_std=True)
figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.0), sharex=True, sharey=True)
for ax, values, title, colours in (
    (panels[0], mean - mean.mean(), "expected utility", "viridis"),
    (panels[1], std, "standard deviation", "cividis_r"),
):
    image = ax.pcolormesh(
        side, side, values.reshape(60, 60), cmap=colours, shading="gouraud", rasterized=True
    )
    ax.plot(*X.T, "o", color="white", markeredgecolor="black", markersize=3, markeredgewidth=0.5)
    ax.plot(0.65, 0.35, "x", color="#D55E00", markersize=9, markeredgewidth=2)
    bar = figure.colorbar(image, ax=ax)
    bar.ax.tick_params(labelsize=SMALL)
    ax.set(title=title, xlabel="roast")
    tidy(ax)
panels[0].set_ylabel("acidity")
best = grid[mean.argmax()]
print(f"best expected at roast {best[0]:.2f}, acidity {best[1]:.2f}; the truth: 0.65, 0.35")
plt.show()
