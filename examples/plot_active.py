"""
Asking the right questions
==========================

Twenty-five films lie on a map; how much a viewer likes one changes smoothly over it. We may ask
the viewer to compare two films at a time. Which two? The model asks, is told, and asks again;
every answer updates the posterior without a refit.

What to see: on the left, questions chosen by information gain order the films with about half of
the answers that random questions need; bands are 95 % intervals of the mean over five viewers. On
the right, the same budget spent on finding the favourite: `expected_best` and `thompson` look for
it where they expect it, and soon recommend a film that is nearly as good.

Where the method is weak: it trusts its model. With a wrong kernel, or a viewer whose taste
drifts, chosen questions can teach less than random ones, and data that were chosen are no fair
test of predictions: keep a share of random questions, `Rules(random_share=0.1)`, to check on. And
a criterion for the favourite is a poor one for the whole order, and the other way round.
"""

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc
from penchant.kernels import RBF

pc.plots.use_style()
n_films, n_answers, n_viewers = 25, 36, 5
kernel = RBF(0.5, variance=4.0)


def study(viewer, criterion):
    """Pair error of the order, and regret of the recommended film, after each answer."""
    rng = np.random.default_rng(viewer)
    places = rng.uniform(-1.0, 1.0, (n_films, 2))
    liking = rng.multivariate_normal(np.zeros(n_films), kernel(places))
    first = pc.Comparisons.from_pairs([0], [1], items=range(n_films))
    model = pc.PreferenceGP(kernel, optimize=None, random_state=viewer).fit(places, first)
    error, regret = [], []
    for _ in range(n_answers):
        ((a, b),) = model.ask(1, criterion)
        prefers_a = liking[a] - liking[b] + rng.standard_normal() > 0
        model.tell([(a, b) if prefers_a else (b, a)])
        believed = model.predict()
        wrong = np.sign(believed[:, None] - believed) != np.sign(liking[:, None] - liking)
        error.append(wrong.sum() / (n_films * (n_films - 1)))
        regret.append(liking.max() - liking[believed.argmax()])
    return error, regret


criteria = ("random", "variance_ratio", "information_gain", "thompson", "expected_best")
runs = {c: np.array([study(viewer, c) for viewer in range(n_viewers)]) for c in criteria}
figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.0))
for ax, which, shown, measure in (
    (left, 0, criteria[:3], "pairs in the wrong order"),
    (right, 1, (criteria[0], *criteria[3:]), "regret of the recommendation"),
):
    curves = {criterion: runs[criterion][:, which] for criterion in shown}
    pc.plots.plot_learning(curves, ax, measure)
    target = curves["random"].mean(axis=0)[-1]
    for criterion, curve in curves.items():
        reached = int(np.argmax(curve.mean(axis=0) <= target)) + 1
        print(f"{measure}: {criterion} is where random ends after {reached} answers")
left.set_title("the whole order")
right.set_title("the favourite")
plt.show()
