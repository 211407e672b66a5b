"""
Who clicked at random?
======================

Twenty people answer 40 questions each. Three of them do not look, and three have a taste of their
own, against everybody's.

What to see: reliability with its interval, least reliable on top. On the left people are compared
with the common ranking: those who differ look as bad as those who click at random. On the
right they are compared with their own taste: the minority is reliable, and only the careless are
at the top.

Where the method is weak: somebody to whom all items are the same answers like somebody who does
not look, and no model can tell them apart. And 40 answers make wide intervals: do not pay people
by the point.
"""

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc
from penchant.plots.style import BLUE, GREEN, GREY, ORANGE, SMALL, tidy

pc.plots.use_style()
rng = np.random.default_rng(2)
utility = 1.6 * rng.standard_normal(8)
kind = np.array(["careless"] * 3 + ["minority"] * 3 + ["common taste"] * 14)
winner, loser, user = [], [], []
for person in range(20):
    own = -utility if kind[person] == "minority" else utility
    for _ in range(40):
        a, b = rng.choice(8, 2, replace=False)
        looked = own[a] - own[b] + rng.standard_normal() > 0
        won = rng.random() < 0.5 if kind[person] == "careless" else looked
        winner.append(a if won else b)
        loser.append(b if won else a)
        user.append(person)
data = pc.Comparisons.from_pairs(winner, loser, user=user, items=range(8))
models = {
    "against everybody (PreferenceGP)": pc.PreferenceGP(raters="lapse", random_state=0),
    "against themselves (MultiUserGP)": pc.MultiUserGP(raters="lapse", random_state=0),
}
colour = {"careless": ORANGE, "minority": GREEN, "common taste": BLUE}
marker = {"careless": "s", "minority": "^", "common taste": "o"}
figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.6), sharex=True, sharey=True)
for ax, (title, model) in zip(panels, models.items(), strict=True):
    rows = list(model.fit(None, data).raters_)
    for place, row in enumerate(rows):
        group = kind[row.user]
        ax.plot([row.low, row.high], [place, place], color=GREY, linewidth=0.8)
        ax.plot(row.reliability, place, marker[group], color=colour[group], markersize=4)
    ax.set(title=title, xlabel="reliability: share of answers that were looked at", xlim=(0, 1))
    ax.set_yticks([])
    tidy(ax)
    print(title, "least reliable:", [str(kind[row.user]) for row in rows[:6]])
panels[0].invert_yaxis()
panels[0].set_ylabel("people")
for k, group in enumerate(colour):
    panels[0].text(
        0.03,
        0.07 + 0.07 * k,
        group,
        color=colour[group],
        fontsize=SMALL,
        transform=panels[0].transAxes,
    )
plt.show()
