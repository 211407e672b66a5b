"""
How strong was each team, and when?
===================================

Six teams, 120 weeks, three games a week with draws and a home advantage. Strengths wander.

What to see: lines are utilities with bands of two standard deviations, dashed lines the truth
that made the games. How fast strengths change was learned from the games. Right of the dotted
line nothing was played: the forecast drifts back to each team's long-run level, and its band
opens.

Where the method is weak: a sudden change (Cedar loses its star in week 60) is smoothed over some
weeks, because a path that jumps is not what the prior expects.
"""

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc

pc.plots.use_style()
rng = np.random.default_rng(7)
teams = ["Ash", "Birch", "Cedar", "Elm", "Fir", "Hazel"]
weeks = 120
start = np.datetime64("2023-01-01")
paths = np.cumsum(0.09 * rng.standard_normal((weeks, 6)), axis=0) + 0.5 * rng.standard_normal(6)
paths[60:, 2] -= 1.2
rows = []
for week in range(weeks):
    order = rng.permutation(6)
    for home, away in zip(order[:3], order[3:], strict=True):
        g = paths[week, home] - paths[week, away] + 0.25 + rng.standard_normal()
        pair = (home, away, 1) if g > 0 else (away, home, -1)
        rows.append((*pair, abs(g) < 0.35, start + 7 * week))
winner, loser, first, tie, time = zip(*rows, strict=True)
games = pc.Comparisons.from_pairs(
    np.take(teams, winner),
    np.take(teams, loser),
    first=first,
    tie=tie,
    time=np.array(time),
    items=teams,
)
model = pc.PreferenceGP(drift="ou", likelihood="ties", random_state=0).fit(None, games)
print(model.effects_)

when = start + 7 * np.arange(0, weeks + 30, 2)
mean, std = model.paths(when)
mean = mean - mean.mean(axis=1, keepdims=True)
shown = [2, 0, 4]
figure, ax = plt.subplots(figsize=(7.2, 3.0))
pc.plots.plot_paths(
    when, mean[:, shown], std[:, shown], [teams[i] for i in shown], ax, start + 7 * weeks
)
truth = paths - paths.mean(axis=1, keepdims=True)
for line, item in zip(ax.lines[:3], shown, strict=True):
    ax.plot(
        start + 7 * np.arange(weeks), truth[:, item], "--", color=line.get_color(), linewidth=0.8
    )
ax.margins(x=0)
ax.set(xlabel="", ylabel="strength above the average team")
plt.show()
