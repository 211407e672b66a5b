"""
Is the best chatbot good, or only wordy?
========================================

Six chatbots, 3,000 battles. Two of them write long answers, judges like long answers, and the
left side gets a little more than its share.

What to see: dashed lines join each model's place when length is ignored (left column) and when it
is taken out (middle); crosses are the truth. Ignoring length, *basalt* leads and *dune*, a
mediocre model that talks a lot, is third. At equal length both fall to about where they belong;
*basalt* and *cobalt*, truly 0.1 apart, cannot be told apart. Bars are 95 % intervals.

Where the method is weak: a covariate takes out all that goes with it. If good models write longer
*because* they know more, some merit leaves with the words; no ranking can tell that apart from
battles alone.
"""

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc
from penchant.plots.style import COLOURS, GREY, SMALL, spread, tidy

pc.plots.use_style()
rng = np.random.default_rng(0)
names = ["aurora", "basalt", "cobalt", "dune", "ember", "flint"]
strength = np.array([1.1, 0.7, 0.6, 0.0, -0.4, -0.9])
words = np.array([400, 550, 350, 620, 400, 300])
a = rng.integers(6, size=3000)
b = (a + rng.integers(1, 6, size=3000)) % 6
longer = (words[a] - words[b] + 110 * rng.standard_normal(3000)) / 100
won = strength[a] - strength[b] + 0.2 + 0.3 * longer + rng.standard_normal(3000) > 0
winner, loser = np.where(won, a, b), np.where(won, b, a)
side = np.where(won, 1, -1)
shown = {"first": side, "items": range(6)}
plain = pc.PreferenceGP().fit(None, pc.Comparisons.from_pairs(winner, loser, **shown))
length = {"length (100 words)": side * longer}
fair = pc.PreferenceGP().fit(
    None, pc.Comparisons.from_pairs(winner, loser, covariates=length, **shown)
)
print(fair.effects_)

figure, ax = plt.subplots(figsize=(5.2, 3.2))
for column, model in enumerate((plain, fair)):
    for row in model.rank():
        colour = COLOURS[row.item]
        x = column + 0.012 * (row.item - 2.5)
        ax.plot([x, x], [row.low, row.high], color=colour, linewidth=1.2)
        ax.plot(x, row.utility, "os^Dv<"[row.item], color=colour, markersize=5)
ends = []
for item in range(6):
    place = [next(r.utility for r in m.rank() if r.item == item) for m in (plain, fair)]
    ax.plot([0, 1], place, "--", color=COLOURS[item], linewidth=0.7, zorder=1)
    ends.append(place[1])
truth = strength - strength.mean()
ax.plot(np.full(6, 1.3), truth, "x", color=GREY, markersize=5)
for item, place in enumerate(spread(ends, 0.16)):
    ax.text(1.4, place, names[item], color=COLOURS[item], va="center", fontsize=SMALL)
ax.set_xlim(-0.15, 1.75)
ax.set_xticks([0, 1, 1.3], ["length\nignored", "at equal\nlength", "truth"])
ax.set_ylabel("utility above the average model")
tidy(ax)
plt.show()
