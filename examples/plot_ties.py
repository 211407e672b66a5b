"""
What does "equally good" mean?
==============================

People may answer "equal". In one study they say so when two items are close; in another they say
so when they do not care, whatever the items.

What to see: curves are the probabilities of win, tie and loss that the model learned, points are
observed shares. On the left ties pile up around zero: they carry information, and the model uses
it. On the right they come at any difference: `likelihood="ties"` notices by the evidence and
takes them for nothing.

Where the method is weak: the evidence decides for all answers at once. A crowd in which some
people mean the one and some the other gets an average of both.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc
from penchant.plots.style import COLOURS, SMALL, tidy

pc.plots.use_style()
rng = np.random.default_rng(0)
utility = np.linspace(-1.5, 1.5, 16)
a = rng.integers(16, size=4000)
b = (a + rng.integers(1, 16, size=4000)) % 16
g = utility[a] - utility[b] + rng.standard_normal(4000)
studies = {
    "ties where items are close": np.abs(g) < 0.6,
    "ties at any difference": rng.random(4000) < 0.3,
}
figure, panels = plt.subplots(1, 2, figsize=(7.2, 2.8), sharex=True, sharey=True)
for ax, (title, tie) in zip(panels, studies.items(), strict=True):
    winner, loser = np.where(g > 0, a, b), np.where(g > 0, b, a)
    data = pc.Comparisons.from_pairs(winner, loser, tie=tie, items=range(16))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pc.PreferenceGP(likelihood="ties", random_state=0).fit(None, data)
    pairs = np.argwhere(~np.eye(16, dtype=bool))
    gap = utility[pairs[:, 0]] - utility[pairs[:, 1]]
    gaps, which = np.unique(gap.round(6), return_inverse=True)
    stated = model.predict_proba(pairs, ties=True)
    stated = np.array([stated[which == k].mean(axis=0) for k in range(len(gaps))])
    outcome = np.where(tie, 1, np.where(g > 0, 0, 2))
    bins = np.round((utility[a] - utility[b]) / 0.4)
    for k, name in enumerate(("first wins", "equal", "second wins")):
        ax.plot(gaps, stated[:, k], color=COLOURS[k], linewidth=1.2)
        share = [(outcome[bins == v] == k).mean() for v in np.unique(bins)]
        ax.plot(0.4 * np.unique(bins), share, "os^"[k], color=COLOURS[k], markersize=3.5)
        if ax is panels[1]:
            height = max(stated[-1, k], 0.05)
            ax.text(3.3, height, name, color=COLOURS[k], va="center", fontsize=SMALL)
    ax.set(title=title, xlabel="true difference", ylim=(0, 1))
    tidy(ax)
    print(f"{title}: {model.likelihood_}")
panels[0].set_ylabel("probability")
plt.show()
