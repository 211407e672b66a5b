"""
How many answers will it take?
==============================

Before a study: simulate it. Ten items, four people, and what is not known: how much items differ.

What to see: comparisons until utilities are known with a reliability of 0.8 (the squared
correlation with the truth), by how far apart items are. The smaller the spread, the more it
takes. Questions that the model chooses (squares) save a sixth to a half of it.

Where the method is weak: it plans for the spread that you say. After fifty answers look again; a
study shows the plan for what it knows by then.
"""

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc
from penchant.ask import StudyDesign, plan
from penchant.plots.style import COLOURS, name_lines, tidy

pc.plots.use_style()
spreads = (0.5, 0.75, 1.0, 1.5, 2.0)
figure, ax = plt.subplots(figsize=(5.2, 2.8))
for k, criterion in enumerate(("random", "information_gain")):
    needed = [
        plan(
            StudyDesign(n_items=10, n_raters=4, spread=spread, disagreement=0.3),
            reliability=0.8,
            criterion=criterion,
            n_simulations=12,
            random_state=0,
        ).comparisons
        for spread in spreads
    ]
    label = "random questions" if criterion == "random" else "chosen by the model"
    ax.plot(spreads, needed, marker="os"[k], color=COLOURS[k], markersize=4, label=label)
    print(f"{criterion}: {dict(zip(spreads, needed, strict=True))}")
ax.set(xlabel="spread of utilities (an answer's noise is 1)", ylabel="comparisons", yscale="log")
ax.set_yticks([30, 50, 100, 200, 400], ["30", "50", "100", "200", "400"])
ax.minorticks_off()
ax.set_xlim(0.4, np.max(spreads) + 0.05)
name_lines(tidy(ax))
plt.show()
