"""
Which chatbot is best, and which cannot be told apart?
======================================================

Eight chatbots met in 1,500 battles. A leaderboard that shows means alone invites everybody to
read an order into noise.

What to see: points are utilities, bars 95 % intervals, percentages the chance of being best of
all. A band, grey or white, is a group that the data cannot tell from its first member: its order
is open. *heath* met few opponents. It leads, with the widest bar: bet on *aurora* if you must be
right about the top three.

Where the method is weak: it knows one strength a model. Prompts of different kinds, or judges who
want different things, are averaged; see the segments of the arena tutorial, and `MultiUserGP`.
"""

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc

pc.plots.use_style()
rng = np.random.default_rng(4)
names = ["aurora", "basalt", "cobalt", "dune", "ember", "flint", "gneiss", "heath"]
strength = np.array([1.0, 0.8, 0.75, 0.2, 0.1, -0.4, -0.9, 0.5])
often = np.array([1, 1, 1, 1, 1, 1, 1, 0.06])
first = rng.choice(8, 1500, p=often / often.sum())
second = (first + rng.integers(1, 8, 1500)) % 8
keep = (rng.random(1500) < often[second]) | (first == 7)
first, second = first[keep], second[keep]
won = strength[first] - strength[second] + rng.standard_normal(len(first)) > 0
data = pc.Comparisons.from_pairs(
    np.take(names, np.where(won, first, second)), np.take(names, np.where(won, second, first))
)
ranking = pc.PreferenceGP(random_state=0).fit(None, data).rank()

figure, ax = plt.subplots(figsize=(6.0, 2.9))
for group in sorted(set(ranking["group"])):
    members = np.flatnonzero(ranking["group"] == group)
    if group % 2:
        ax.axhspan(members[0] - 0.5, members[-1] + 0.5, color="#eeeeee", zorder=0, linewidth=0)
pc.plots.plot_ranking(ranking, ax)
ax.set_ylim(len(ranking) - 0.5, -0.5)
ax.set_title("Bands are groups of equal rank", loc="left")
print(ranking)
plt.show()
