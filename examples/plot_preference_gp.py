"""
Utilities from comparisons, with uncertainty
============================================

Forty drinks differ in how sweet they are. Nobody says how good a drink is, only which of two is
better, and sometimes by mistake. A Gaussian process turns the answers into a utility for every
sweetness, with bands that say how sure it is.

What to see: with 30 answers (left) the curve peaks near the right place, though lower than the
truth (dashed), and the bands of one and two standard deviations say how little that is; with 300
(middle) they close in on the truth. Comparisons tell utilities up to a common shift, so
everything is drawn relative to the average drink.

Where the method is weak: the kernel believes that similar drinks are similarly good. On the right
the truth drops suddenly (above a limit drinks are taxed, say), and the curve cannot follow: it
overshoots before the cliff, dips behind it, and is sure of both. A feature that tells the two
sides apart would cure it; more answers cure it slowly.
"""

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc
from penchant.plots.style import GREY

pc.plots.use_style()
rng = np.random.default_rng(0)
sweetness = np.sort(rng.uniform(0, 10, 40))
centre = np.eye(40) - 1.0 / 40.0


def peak(x):
    return 3.0 * np.exp(-0.5 * ((x - 6.0) / 1.8) ** 2)


def cliff(x):
    return np.where(x < 6.0, 0.5 * x, -1.0)


figure, panels = plt.subplots(1, 3, figsize=(7.2, 2.5), sharey=True)
for panel, truth, n_answers in zip(panels, (peak, peak, cliff), (30, 300, 300), strict=True):
    answers = pc.datasets.simulate_pairs(truth(sweetness), n_answers, random_state=1)
    model = pc.PreferenceGP(random_state=0).fit(sweetness[:, None], answers)
    mean = centre @ model.predict()
    std = np.sqrt(np.diag(centre @ model.posterior_.covariance() @ centre))
    pc.plots.plot_utilities(sweetness, mean, std, ax=panel, marks=sweetness)
    panel.plot(sweetness, centre @ truth(sweetness), "--", color=GREY, linewidth=1.0)
    panel.set(title=f"{n_answers} answers, true {truth.__name__}", xlabel="sweetness")
    panel.label_outer()
    best = model.rank()[0]
    print(
        f"{truth.__name__}, {n_answers} answers: drink {best.item} (sweetness "
        f"{sweetness[best.item]:.1f}) is best with {best.prob_best:.0%}"
    )
plt.show()
