"""How the evidence, or a chain's joint probability, developed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.plots.style import COLOURS, axes, tidy


def plot_evidence(
    traces: ArrayLike | Mapping[str, ArrayLike], ax: Any | None = None, xlabel: str = "step"
) -> Any:
    """Log evidence against steps of an optimiser, or log joint against sweeps of a sampler.

    traces : (n_steps,), or label → such a column, one line each. A line that still climbs at its
    right end has not settled.

    >>> ax = plot_evidence({"chain 1": [-90, -60, -58], "chain 2": [-80, -59, -58]})
    >>> len(ax.lines)
    2
    """
    named = traces if isinstance(traces, Mapping) else {"": traces}
    ax = axes(ax)
    for k, (label, trace) in enumerate(named.items()):
        values = np.asarray(trace, dtype=np.float64)
        colour = COLOURS[k % len(COLOURS)]
        ax.plot(np.arange(1, values.size + 1), values, color=colour, linewidth=1, label=label)
    ax.set(xlabel=xlabel, ylabel="log evidence")
    if len(named) > 1:
        ax.legend(fontsize=6, frameon=False)
    return tidy(ax)
