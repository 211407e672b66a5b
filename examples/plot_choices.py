"""
Is a ranking of five one answer, or ten?
========================================

People rank five of thirty items. A ranking holds ten pairs, and it is tempting to count them as
ten answers.

What to see: bars are the share of nominal 90 % intervals of differences that hold the truth, over
12 draws. Whole rankings keep what they promise; the same rankings as pairs are too sure of
themselves. The means hardly differ, so the mistake cannot be seen in the order.

Where the method is weak: the whole ranking is a chain of choices, each with the same noise.
People who order their first and last place with care and the middle at random are not like that.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtri

import penchant as pc
from penchant.plots.style import BLUE, GREY, ORANGE, SMALL, tidy

pc.plots.use_style()
n, n_sets, n_draws, level = 30, 80, 12, 0.9
upper = np.triu_indices(n, 1)


def coverage(data, truth):
    """Share of all differences whose interval holds the true one."""
    model = pc.PreferenceGP(pc.kernels.Independent(1.0), optimize=None).fit(None, data)
    covariance = model.posterior_.covariance()
    var = np.diag(covariance)[:, None] + np.diag(covariance) - 2 * covariance
    gap = model.predict()[:, None] - model.predict()
    miss = np.abs(gap - (truth[:, None] - truth)) / np.sqrt(np.maximum(var, 1e-12))
    return np.mean(miss[upper] < ndtri(0.5 + level / 2))


found = {"best of five": [], "ranking of five": []}
for draw in range(n_draws):
    rng = np.random.default_rng(draw)
    truth = rng.standard_normal(n)
    sets = [rng.choice(n, 5, replace=False) for _ in range(n_sets)]
    # Plackett and Luce on the scale of the probit model, where a choice is a softmax of 1.702 f
    ranked = [s[np.argsort(-(1.702 * truth[s] + rng.gumbel(size=5)))].tolist() for s in sets]
    best = pc.Comparisons.from_choices([r[0] for r in ranked], ranked, items=range(n))
    order = pc.Comparisons.from_rankings(ranked, items=range(n))
    for kind, data in (("best of five", best), ("ranking of five", order)):
        found[kind].append([coverage(data, truth), coverage(data.as_pairs(), truth)])

figure, ax = plt.subplots(figsize=(4.6, 2.7))
for k, (kind, shares) in enumerate(found.items()):
    mean, error = np.mean(shares, axis=0), np.std(shares, axis=0, ddof=1) / np.sqrt(n_draws)
    for j, (label, colour) in enumerate((("kept whole", BLUE), ("as pairs", ORANGE))):
        x = k + 0.32 * (j - 0.5)
        ax.bar(x, mean[j], 0.28, color=colour)
        ax.errorbar(x, mean[j], 2 * error[j], color="black", linewidth=0.9)
        ax.text(
            x, 0.52, label, ha="center", va="bottom", color="white", fontsize=SMALL, rotation=90
        )
    print(f"{kind}: {mean[0]:.3f} whole, {mean[1]:.3f} as pairs, ± {error.max():.3f}")
ax.axhline(level, color=GREY, linestyle="--", linewidth=0.9)
ax.text(1.5, level + 0.008, "promised", color=GREY, ha="right", fontsize=SMALL)
ax.set_xticks([0, 1], list(found))
ax.set(ylim=(0.5, 1.0), xlim=(-0.5, 1.5), ylabel="intervals that hold the truth")
tidy(ax)
plt.show()
