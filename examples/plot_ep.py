"""
How does a Gaussian stand for an answer?
========================================

Tea and milk: what is believed of the difference g before an answer, and after "tea". The answer's
likelihood is a step, not a Gaussian; expectation propagation puts one in its place.

What to see: from left to right, what all other answers say of g (the cavity); the likelihood of
this answer; their product, a lopsided hump; and the Gaussian with the hump's mean and variance.
The *site* is the Gaussian that takes the cavity there. Above, an answer that was expected: little
happens. Below, a surprise: the belief moves far, and the site is narrow.

Where the method is weak: a hump with two tops would be badly served by one Gaussian. Answers with
lapses make such humps when they are very surprising; then the step of EP is damped.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import penchant as pc
from penchant.plots.style import BLUE, GREEN, GREY, ORANGE, SMALL, tidy

pc.plots.use_style()
g = np.linspace(-5, 5, 400)
figure, rows = plt.subplots(2, 3, figsize=(7.2, 3.4), sharex=True, sharey="row")
for row, mean, what in zip(rows, (1.0, -1.5), ("an expected answer", "a surprise"), strict=True):
    cavity = norm.pdf(g, mean, 1.2)
    hump = cavity * norm.cdf(g)
    mass = np.trapezoid(hump, g)
    m = np.trapezoid(g * hump, g) / mass
    v = np.trapezoid((g - m) ** 2 * hump, g) / mass
    tau, nu = 1 / v - 1 / 1.44, m / v - mean / 1.44
    row[0].fill_between(g, cavity, color=GREY, alpha=0.3, linewidth=0)
    row[1].fill_between(g, cavity, color=GREY, alpha=0.3, linewidth=0)
    row[1].plot(g, 0.5 * norm.cdf(g), color=ORANGE)
    row[2].fill_between(g, hump / mass, color=BLUE, alpha=0.25, linewidth=0)
    row[2].plot(g, norm.pdf(g, m, np.sqrt(v)), color=GREEN, linewidth=1.4)
    row[0].set_ylabel(what)
    for ax in row:
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.axvline(0, color=GREY, linewidth=0.6, linestyle=":")
        ax.set_ylim(0, 0.62)
        tidy(ax)
    print(f"{what}: site τ = {tau:.2f}, ν = {nu:.2f}")
    row[2].text(-4.8, 0.5, f"site: τ = {tau:.2f}, ν = {nu:.2f}", fontsize=SMALL, color=GREEN)
for ax, title in zip(
    rows[0], ("1. what the others say", "2. times the answer", "3. a Gaussian instead"), strict=True
):
    ax.set_title(title)
for ax in rows[1]:
    ax.set_xlabel("g = f(tea) − f(milk)")
plt.show()
