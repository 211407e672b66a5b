"""
Does a 95 % interval hold the truth 95 times in 100?
====================================================

Twenty items, their utilities drawn at random, some answers; forty times over.

What to see: against the promise (dashed), the share of intervals that hold the true utility, with
two standard errors, by the number of answers. The blue ones have the prior that made the truth
and keep their promise at every size. The orange ones learn the prior's width from the same
answers, and fall a little short when answers are few: intervals take it as known.

Where the method is weak: exactly there. With one or two answers an item, 95 % was 92 % here.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc
from penchant.plots.style import COLOURS, GREY, name_lines, tidy

pc.plots.use_style()
warnings.simplefilter("ignore", pc.DataWarning)  # few answers leave items unconnected
n, draws, amounts = 20, 40, (20, 40, 80, 160, 320)
models = {
    "width known": pc.PreferenceGP(pc.kernels.Independent(1.0), optimize=None),
    "width learned": pc.PreferenceGP(),
}
held = {label: np.zeros((draws, len(amounts))) for label in models}
for draw in range(draws):
    rng = np.random.default_rng(draw)
    truth = rng.standard_normal(n)
    truth -= truth.mean()
    for k, m in enumerate(amounts):
        data = pc.datasets.simulate_pairs(truth, m, random_state=draw)
        for label, model in models.items():
            rows = model.fit(None, data).rank()
            middle = np.mean([row.utility for row in rows])
            inside = [row.low <= truth[row.item] + middle <= row.high for row in rows]
            held[label][draw, k] = np.mean(inside)

figure, ax = plt.subplots(figsize=(5.0, 2.7))
for k, (label, share) in enumerate(held.items()):
    mean, error = share.mean(axis=0), share.std(axis=0, ddof=1) / np.sqrt(draws)
    ax.errorbar(amounts, mean, 2 * error, fmt="none", color=COLOURS[k], linewidth=0.9)
    ax.plot(amounts, mean, marker="os"[k], color=COLOURS[k], markersize=4, label=label)
    print(f"{label}: {', '.join(f'{value:.3f}' for value in mean)} at {amounts} answers")
ax.axhline(0.95, color=GREY, linestyle="--", linewidth=0.9)
ax.set(xscale="log", xlabel="answers", ylabel="intervals that hold the truth", ylim=(0.85, 1.0))
ax.set_xticks(amounts, amounts)
ax.minorticks_off()
name_lines(tidy(ax))
plt.show()
