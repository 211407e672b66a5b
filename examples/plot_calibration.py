"""
Can its probabilities be trusted?
=================================

A model that says 80 % should be right in 8 of 10 such cases. Forty items, 600 answers to learn
from, 4,000 to check on.

What to see: on the left points lie on the diagonal within their two standard errors. In the
middle the same answers were entered five times each, as happens when tables are joined
carelessly: the model believes that it has 3,000 answers, is too sure, and its points are flatter
than the diagonal. On the right a third of the answers was given at random: the likelihood with
lapses stays on the diagonal, because no probability is then near 0 or 1.

Where the method is weak: calibration is an average over pairs. A model may be calibrated and
useless (it says 50 % always), or calibrated overall and wrong for one kind of item; look at the
log-likelihood, too.
"""

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc
from penchant.likelihoods import Lapse, Probit

pc.plots.use_style()
utility = np.random.default_rng(0).standard_normal(40)


def answers(n, lapse, rng):
    """Random pairs, a share of them answered without looking."""
    a, b = rng.integers(40, size=n), rng.integers(1, 40, size=n)
    b = (a + b) % 40
    won = utility[a] - utility[b] + rng.standard_normal(n) > 0
    won = np.where(rng.random(n) < lapse, rng.random(n) < 0.5, won)
    return pc.Comparisons.from_pairs(np.where(won, a, b), np.where(won, b, a), items=range(40))


cases = {
    "as they are": (pc.PreferenceGP(), 1, 0.0),
    "entered five times": (pc.PreferenceGP(), 5, 0.0),
    "a third at random, Lapse": (pc.PreferenceGP(likelihood=Lapse(Probit())), 1, 0.33),
}
figure, panels = plt.subplots(1, 3, figsize=(7.2, 2.7), sharex=True, sharey=True)
for ax, (title, (model, times, lapse)) in zip(panels, cases.items(), strict=True):
    rng = np.random.default_rng(1)  # the same answers in the first two panels
    once, test = answers(600, lapse, rng), answers(4000, lapse, rng)
    model.fit(None, sum([once] * (times - 1), once))
    pc.plots.plot_calibration(model, ax, data=test)
    ax.set_title(title)
    ax.label_outer()
    print(f"{title}: log-likelihood {model.score(test):.3f} an answer")
plt.show()
