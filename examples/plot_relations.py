"""
Do links between items help?
============================

Sixty papers lie along a line that nobody knows; near ones cite each other, and quality changes
smoothly along it. Few comparisons are made.

What to see: with the citations, far fewer pairs are put in the wrong order when answers are few;
with many answers links matter less. Links that were drawn at random cost little: their share in
the prior is learned, and goes down. Bands are 95 % intervals of the mean over eight draws.

Where the method is weak: with twenty answers nobody can tell a good graph from a bad one.
Features can: where linked items have similar features, links start with more trust.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc
from penchant.plots.style import COLOURS, name_lines, tidy

pc.plots.use_style()
warnings.simplefilter("ignore", pc.DataWarning)  # few answers leave items unconnected
n, amounts, draws = 60, (20, 40, 80, 160, 320), 8


def wrong(model, quality):
    believed = model.predict()
    agree = np.sign(believed[:, None] - believed) * np.sign(quality[:, None] - quality)
    return 0.5 - 0.5 * agree.sum() / (n * (n - 1))  # a pair that is left open is half wrong


errors = {"random links": [], "no links": [], "citations": []}
for draw in range(draws):
    rng = np.random.default_rng(draw)
    place = np.sort(rng.uniform(0.0, 10.0, n))
    quality = 1.5 * np.sin(place) + 0.2 * rng.standard_normal(n)
    near = ((np.abs(place[:, None] - place) < 0.5) & ~np.eye(n, dtype=bool)).astype(float)
    shuffled = rng.permutation(n)
    graphs = {"no links": None, "citations": near, "random links": near[shuffled][:, shuffled]}
    data = pc.datasets.simulate_pairs(quality, max(amounts), random_state=draw)
    pairs = np.repeat(np.column_stack([data.winner, data.loser]), data.count, axis=0)
    pairs = rng.permutation(pairs)
    for label, graph in graphs.items():
        relations = None if graph is None else {"cites": graph}
        curve = []
        for m in amounts:
            some = pc.Comparisons.from_pairs(*pairs[:m].T, items=range(n))
            curve.append(wrong(pc.PreferenceGP().fit(None, some, relations), quality))
        errors[label].append(curve)

figure, ax = plt.subplots(figsize=(5.4, 2.9))
for k, (label, runs) in enumerate(errors.items()):
    mean = np.mean(runs, axis=0)
    reach = 1.96 * np.std(runs, axis=0, ddof=1) / np.sqrt(draws)
    ax.fill_between(amounts, mean - reach, mean + reach, color=COLOURS[k], alpha=0.15, linewidth=0)
    ax.plot(amounts, mean, color=COLOURS[k], label=label, marker="os^"[k], markersize=4)
    print(f"{label}: {', '.join(f'{value:.3f}' for value in mean)} wrong at {amounts} answers")
ax.set(xscale="log", xlabel="answers", ylabel="pairs in the wrong order", ylim=(0, None))
ax.set_xticks(amounts, amounts)
ax.minorticks_off()
name_lines(tidy(ax))
plt.show()
