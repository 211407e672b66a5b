"""
Communities of taste, their number included
===========================================

Ninety people compare drinks. Some like them strong, some sweet, some plain; nobody says so, and
nobody says how many such groups there are. A Dirichlet-process mixture finds both from the
comparisons alone, and says how sure it is.

What to see: side by side, the three communities order the same drinks differently. On the map,
people are near each other when they like the same (everybody's own utilities, by `MultiUserGP`),
and shape and colour say in which community they were put. A newcomer is placed after three
answers.

Where the method is weak: it looks for groups. Where tastes shade into each other, it needs many
communities to cover them, chains disagree about the borders, and `report_` says so; the per-user
deviations of `personal=True` predict better then.
"""

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc

pc.plots.use_style()

drinks = ("espresso", "coffee", "black tea", "green tea", "juice", "cola", "milk", "water")
#                    strong, sweet
features = np.array(
    [[3, 0], [2, 0], [1.5, 0], [1, 0], [0, 2], [1, 3], [0, 0.5], [0, 0]], dtype=float
)
tastes = np.array([[1.0, -0.5], [-0.5, 1.0], [-1.0, -1.0]])

rng = np.random.default_rng(0)
kind = rng.integers(3, size=90)
utilities = tastes[kind] @ features.T + 0.3 * rng.standard_normal((90, len(drinks)))
user = np.repeat(np.arange(90), 12)
first = rng.integers(len(drinks), size=len(user))
second = (first + rng.integers(1, len(drinks), size=len(user))) % len(drinks)
noise = 0.5 * rng.standard_normal(len(user))
wins = utilities[user, first] - utilities[user, second] + noise > 0
data = pc.Comparisons.from_pairs(
    np.take(drinks, np.where(wins, first, second)),
    np.take(drinks, np.where(wins, second, first)),
    user=user,
    items=drinks,
)

model = pc.CommunityGP(inference="mcmc", n_sweeps=40, random_state=0).fit(features, data)
print(model.describe())

_, (panels,) = plt.subplots(1, model.n_communities_, squeeze=False, sharex=True, figsize=(7.2, 2.5))
_ = pc.plots.plot_community_utilities(model, panels)

# %%
# The same people on a map of what each of them likes.
people = pc.MultiUserGP(random_state=0).fit(features, data)
_, ax = plt.subplots(figsize=(4.8, 2.8))
_ = pc.plots.plot_membership_map(people.predict(users=range(90)), model.membership_, ax)

# %%
# A newcomer answers three questions and is placed without fitting again.
newcomer = pc.Comparisons.from_pairs(
    ["cola", "juice", "milk"], ["espresso", "coffee", "black tea"], user=["newcomer"] * 3
)
model = model.fold_in(newcomer)
print("newcomer:", model.membership_[-1].round(2))
print("cola rather than water:", model.predict_proba([("cola", "water")], "newcomer").round(2))
plt.show()
