"""
Kernel ranking: how many components, how much ridge
===================================================

Rows of thirty queries are graded; only the order within a query is to be learned, and the labels
are noisy. What to see: the left curve is KPCRank's cross-validated error for *every* number of
kernel principal components, the right one RankRLS's leave-one-query-out error for every ridge.
Each curve comes from a single fit, and the error on fresh queries (dashed) has its valley at
about the same place.

Where the method is weak: both rankers fit differences of scores by least squares, so a few wild
labels weigh a lot, and neither returns a probability (PreferenceGP does). KPCRank keeps the
directions in which the *rows* vary most; where the order depends on a direction of little
variance it needs many components, and RankRLS is then the better choice.
"""

import matplotlib.pyplot as plt
import numpy as np

import penchant as pc
from penchant.plots.style import BLUE, GREY, ORANGE, SMALL, tidy

pc.plots.use_style()


def draw_queries(n_queries, rng):
    """Twenty rows a query, graded by a curve in five features plus a constant of the query."""
    X = rng.standard_normal((20 * n_queries, 5))
    qid = np.repeat(np.arange(n_queries), 20)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 3 * rng.standard_normal(n_queries)[qid]
    return X, y, qid


rng = np.random.default_rng(0)
X, y, qid = draw_queries(30, rng)
noisy = y + rng.standard_normal(len(y))
X_new, y_new, qid_new = draw_queries(60, rng)

by_components = pc.KPCRank().fit(X, noisy, qid)
by_ridge = pc.RankRLS().fit(X, noisy, qid)


def fresh_error(model):
    """Share of wrongly ordered pairs on queries never seen."""
    return 1 - model.fit(X, noisy, qid).score(X_new, y_new, qid_new)


numbers = np.unique(np.geomspace(1, len(by_components.cv_error_), 20).astype(int))
fresh_by_components = [fresh_error(pc.KPCRank(n_components=int(p))) for p in numbers]
fresh_by_ridge = [fresh_error(pc.RankRLS(alpha=float(a))) for a in by_ridge.alphas_]

_, (left, right) = plt.subplots(1, 2, sharey=True, figsize=(7.2, 3.0))
counted = np.arange(1, len(by_components.cv_error_) + 1)
for ax, x, left_out, some, fresh, chosen, xlabel, title in (
    (left, counted, by_components.cv_error_, numbers, fresh_by_components,
     by_components.n_components_, "components", "KPCRank"),
    (right, by_ridge.alphas_, by_ridge.cv_error_, by_ridge.alphas_, fresh_by_ridge,
     by_ridge.alpha_, "ridge", "RankRLS"),
):  # fmt: skip
    ax.semilogx(x, left_out, color=BLUE)
    ax.semilogx(some, fresh, "--", color=ORANGE)
    ax.axvline(chosen, color=GREY, linewidth=0.8)
    ax.set(xlabel=xlabel, title=title)
    tidy(ax)
left.set_ylabel("disagreement error")
for height, text, colour in (
    (0.80, "left out, noisy labels", BLUE),
    (0.40, "fresh queries, true labels", ORANGE),
):
    left.text(0.02, height, text, color=colour, fontsize=SMALL, transform=left.transAxes)
chosen = by_components.n_components_
left.annotate(
    "chosen", (chosen, 0.5), (3, 0), textcoords="offset points", color=GREY, fontsize=SMALL
)

print(f"{by_components.n_components_} components, ridge {by_ridge.alpha_:.3g}")
plt.show()
