"""
Who beats whom?
===============

A ranking of nine players puts them in a row. Is a row enough?

What to see: on the left the probabilities that the model gives for every pair, smooth from corner
to corner, because one number a player is all it has. On the right the shares that were observed.
Where the two differ by much, with many games, a player has a bogey opponent.

Where the method is weak: it cannot hold such a pair. Here *Ida* beats *Ada* although Ada is the
strongest; the model spreads that surprise over both strengths, and stays wrong about this one
pair.
"""

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc
from penchant.plots import win_matrix

pc.plots.use_style()
rng = np.random.default_rng(0)
names = ["Ada", "Ben", "Cem", "Dee", "Eli", "Fay", "Gus", "Hal", "Ida"]
strength = np.linspace(1.2, -1.2, 9)
games = 40
winner, loser = [], []
observed = np.full((9, 9), 0.5)
for a in range(9):
    for b in range(a + 1, 9):
        lead = strength[a] - strength[b] - (3.2 if (a, b) == (0, 8) else 0.0)
        wins = int((lead + rng.standard_normal(games) > 0).sum())
        winner += [names[a]] * wins + [names[b]] * (games - wins)
        loser += [names[b]] * wins + [names[a]] * (games - wins)
        observed[a, b], observed[b, a] = wins / games, 1 - wins / games

model = pc.PreferenceGP(random_state=0).fit(None, pc.Comparisons.from_pairs(winner, loser))
figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.3))
believed = win_matrix(model, names)
pc.plots.plot_win_matrix(believed, names, left)
pc.plots.plot_win_matrix(observed, names, right)
left.set_title("by the model")
right.set_title(f"observed in {games} games a pair")
right.set_yticklabels([])
print(f"Ida beats Ada: {observed[8, 0]:.0%} observed, {believed[8, 0]:.0%} believed")
plt.show()
