"""How fast a policy of asking learns."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from penchant.numerics.types import FloatArray
from penchant.plots.style import COLOURS, axes, name_lines, tidy


def plot_learning(
    curves: Mapping[str, FloatArray], ax: Any | None = None, what: str = "error"
) -> Any:
    """A measure against the number of answers, one line a policy, with a 95 % band of its mean.

    curves : label → (runs, answers), the measure after each answer of each run. what : its name.

    >>> runs = np.random.default_rng(0).random((5, 20))
    >>> plot_learning({"random": runs}, what="pair error").get_ylabel()
    'pair error'
    """
    ax = axes(ax)
    for k, (label, runs) in enumerate(curves.items()):
        colour = COLOURS[k % len(COLOURS)]
        answers = np.arange(1, runs.shape[1] + 1)
        mean = runs.mean(axis=0)
        ax.plot(answers, mean, color=colour, linewidth=1.2, label=label)
        if len(runs) > 1:
            reach = 1.96 * runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
            ax.fill_between(
                answers, mean - reach, mean + reach, color=colour, alpha=0.15, linewidth=0
            )
    ax.set(xlabel="answers", ylabel=what)
    name_lines(ax)
    return tidy(ax)
