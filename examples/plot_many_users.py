"""
Many users, a few answers each
==============================

Sixty people each compare a handful of the same dozen drinks. `MultiUserGP` learns what they share
and which tastes go together, and from there what each of them would say to the pairs that they
never saw.

What to see: with five answers a person, pooling everybody misses that people differ, and fitting
everybody alone has next to nothing to go by; learning together is ahead of both, and stays ahead
when there are more answers. On the right, the user who differs most from the population: items
above the diagonal are liked better by this user than by people at large, and the bars say how
sure that is.

Where the method is weak: a deviation is Gaussian, so that a population which falls into a few
sharply different camps is described by a wide cloud between them (see `CommunityGP` for camps).
And the covariance between items is learned from the users: with ten of them it would be mostly
its prior.
"""

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc
from penchant.metrics import pair_error
from penchant.plots.style import COLOURS, MARKERS, name_lines, tidy

pc.plots.use_style()
rng = np.random.default_rng(0)
items = ("espresso", "latte", "mocha", "green tea", "black tea", "chai", "cola", "lemonade",
         "orange juice", "beer", "wine", "water")  # fmt: skip
n_users, n_items = 60, len(items)

# Three tastes (bitter, sweet, strong) decide; people weigh them differently.
traits = rng.standard_normal((n_items, 3))
weights = np.array([1.2, 0.6, -1.0]) + rng.standard_normal((n_users, 3))
utility = weights @ traits.T


def answers(n_each):
    """Each user's probit answers to random pairs: columns user, winner, loser."""
    user = np.repeat(np.arange(n_users), n_each)
    a = rng.integers(n_items, size=len(user))
    b = (a + rng.integers(1, n_items, size=len(user))) % n_items
    first = utility[user, a] - utility[user, b] + rng.standard_normal(len(user)) > 0
    return user, np.where(first, a, b), np.where(first, b, a)


test_user, test_winner, test_loser = answers(60)
test_pairs = np.column_stack([test_winner, test_loser])
errors = {"everybody pooled": [], "each alone": [], "together": []}
amounts = (3, 5, 10, 20)
all_user, all_winner, all_loser = answers(amounts[-1])
for n_each in amounts:
    some = np.arange(len(all_user)) % amounts[-1] < n_each
    user, winner, loser = all_user[some], all_winner[some], all_loser[some]
    data = pc.Comparisons.from_pairs(
        np.take(items, winner), np.take(items, loser), user=user, items=items, users=range(n_users)
    )
    pooled = pc.PreferenceGP().fit(None, data)
    alone = pc.MultiUserGP(pc.kernels.Independent(), sharing=1e-3, optimize=None).fit(None, data)
    together = pc.MultiUserGP().fit(None, data)
    errors["everybody pooled"].append(pair_error(pooled.predict_proba(test_pairs)))
    errors["each alone"].append(pair_error(alone.predict_proba(test_pairs, test_user)))
    errors["together"].append(pair_error(together.predict_proba(test_pairs, test_user)))

figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2), width_ratios=(1, 1.2))
for (label, values), colour, marker in zip(errors.items(), COLOURS, MARKERS, strict=False):
    left.plot(amounts, values, marker=marker, markersize=4, color=colour, label=label)
    print(f"{label}: error {', '.join(f'{value:.3f}' for value in values)} at {amounts} answers")
left.set(xlabel="answers a user", ylabel="error on unseen pairs", xscale="log", ylim=(0.1, 0.4))
left.set_xticks(amounts, amounts)
left.minorticks_off()
name_lines(tidy(left))
differs = np.abs(together.predict(users=range(n_users)) - together.predict()).sum(axis=1)
pc.plots.plot_user_against_population(together, int(np.argmax(differs)), right)
plt.show()
