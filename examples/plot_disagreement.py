"""
Groups of people, or just people?
=================================

Two towns of 100 people compare twelve dishes. In one there are two camps; in the other everybody
has a taste of their own.

What to see: people as points along the two main directions in which they disagree, dishes as
arrows. Two clouds on the left, one on the right; and the model's verdict above each. A method
that always returns groups would cut the right cloud in two as well.

Where the method is weak: the verdict needs answers. With eight a person instead of thirty it says
"too few" of the right town, and takes the two camps of the left one for personal taste.
"""

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc

pc.plots.use_style()
rng = np.random.default_rng(0)
dishes = [
    "pho",
    "pizza",
    "tacos",
    "sushi",
    "curry",
    "stew",
    "falafel",
    "pasta",
    "ramen",
    "salad",
    "soup",
    "burger",
]
camps = 1.3 * rng.standard_normal((2, 12))
towns = {
    "two camps": camps[np.arange(100) % 2] + 0.2 * rng.standard_normal((100, 12)),
    "everybody different": 0.5 * rng.standard_normal(12) + rng.standard_normal((100, 12)),
}
figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.4))
for ax, (title, utility) in zip(panels, towns.items(), strict=True):
    user = np.repeat(np.arange(100), 30)
    a = rng.integers(12, size=len(user))
    b = (a + rng.integers(1, 12, size=len(user))) % 12
    won = utility[user, a] - utility[user, b] + rng.standard_normal(len(user)) > 0
    data = pc.Comparisons.from_pairs(
        np.take(dishes, np.where(won, a, b)), np.take(dishes, np.where(won, b, a)), user=user
    )
    model = pc.CommunityGP(random_state=0).fit(None, data)
    people = pc.MultiUserGP().fit(None, data)
    pc.plots.plot_disagreement(people, ax=ax, top=6)
    ax.set_title(f"{title}: “{model.verdict_}”")
    print(f"{title}: {model.describe().splitlines()[0]}")
plt.show()
