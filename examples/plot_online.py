"""
Learning from rankings that users improve
=========================================

A search engine presents a ranking, the user returns a better one, and the preference perceptron
moves its weights by the difference. It never sees a utility, only which of two orders was better.

What to see: the average regret falls at least as fast as the 1/√T of Theorem 1, and far under it;
a user who gives the best ranking (α = 1) teaches faster than one who gives a tenth of the
possible gain (α = 0.1), but far from ten times as fast; and the adaptive step beats the constant
one.

Where the method is weak: features that move together. The right panel is the same problem seen
through features with strong correlations: the same user, the same rankings, but the regret falls
much more slowly. Whitening the features (`sklearn.decomposition.PCA(whiten=True)`) takes you back
to the left panel.
"""

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc
from penchant.models import PreferencePerceptron
from penchant.online import AlphaUser, Round, simulate
from penchant.plots.style import GREY, SMALL

pc.plots.use_style()
rng = np.random.default_rng(0)
d, n_rounds = 20, 400
documents = rng.standard_normal((n_rounds, 15, d))
taste = rng.standard_normal(d)

# Mix the features so that a few directions carry most of the variance; the taste that gives the
# same utilities is the inverse mix of the old one.
mix = rng.standard_normal((d, d)) @ np.diag(np.geomspace(1.0, 0.03, d)) / np.sqrt(d)
views = {
    "independent features": (documents, taste),
    "correlated features": (documents @ mix, np.linalg.solve(mix, taste)),
}

figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.0), sharey=True)
for axis, (title, (docs, weights)) in zip(axes, views.items(), strict=True):
    rounds = [Round(block) for block in docs]
    regrets = {
        label: simulate(
            PreferencePerceptron(update=update),
            rounds,
            AlphaUser(weights, alpha),
            weights=weights,
            n_permutations=5,
            random_state=0,
        )
        for label, update, alpha in (
            ("α = 0.1", "additive", 0.1),
            ("α = 1", "additive", 1.0),
            ("α = 1, adaptive", "adaptive", 1.0),
        )
    }
    for label, regret in regrets.items():
        reached = regret.running()[0][-1]
        print(f"{title}, {label}: average regret {reached:.2f} after {n_rounds} rounds")
    bound = regrets["α = 1"].bound(alpha=1.0)
    axis.plot(np.arange(1, n_rounds + 1), bound, "--", color=GREY, linewidth=0.9)
    axis.set(xscale="log", yscale="log", ylim=(0.1, 2e5))
    note = {"textcoords": "offset points", "color": GREY, "fontsize": SMALL}
    axis.annotate("Theorem 1, α = 1", (6, bound[5]), (0, 5), **note)
    pc.plots.plot_regret(regrets, axis)
    axis.set_title(title)
    axis.label_outer()
plt.show()
