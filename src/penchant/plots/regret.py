"""Regret of online learners over time."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from penchant.online import Regret
from penchant.plots.style import COLOURS, axes, name_lines, tidy


def plot_regret(
    runs: Mapping[str, Regret],
    ax: Any | None = None,
    of: Literal["utility", "dcg"] = "utility",
    alpha: float | None = None,
) -> Any:
    """Average regret against rounds, one line a learner, with one standard deviation.

    runs : label → what `penchant.online.simulate` gives. alpha : draw Theorem 1's bound for
    α-informative feedback, dashed, for each.

    >>> from penchant.online import AlphaUser, Round, simulate
    >>> from penchant.models.preference_perceptron import PreferencePerceptron
    >>> rounds = [Round(np.eye(3)) for _ in range(20)]
    >>> taste = np.array([0.0, 1.0, 2.0])
    >>> run = simulate(PreferencePerceptron(), rounds, AlphaUser(taste), weights=taste)
    >>> plot_regret({"perceptron": run}, alpha=1.0).get_ylabel()
    'average utility regret'
    """
    ax = axes(ax)
    for colour, (label, run) in zip(_cycle(len(runs)), runs.items(), strict=True):
        mean, deviation = run.running(of)
        rounds = np.arange(1, mean.size + 1)
        ax.plot(rounds, mean, color=colour, linewidth=1.2, label=label)
        ax.fill_between(
            rounds, mean - deviation, mean + deviation, color=colour, alpha=0.2, linewidth=0
        )
        if alpha is not None:
            bound = f"Theorem 1, {label}"
            ax.plot(rounds, run.bound(alpha), "--", color=colour, linewidth=0.8, label=bound)
    what = "utility" if of == "utility" else "DCG*"
    ax.set(xscale="log", yscale="log", xlabel="rounds", ylabel=f"average {what} regret")
    name_lines(ax)
    return tidy(ax)


def _cycle(n: int) -> list[str]:
    return [COLOURS[k % len(COLOURS)] for k in range(n)]
