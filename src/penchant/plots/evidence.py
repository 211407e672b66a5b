"""How the evidence, or a chain's joint probability, developed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from penchant.plots.style import COLOURS, axes, name_lines, tidy


def plot_evidence(traces: Any, ax: Any | None = None, xlabel: str = "step") -> Any:
    """Log evidence against steps of an optimiser, or log joint against sweeps of a sampler.

    traces : a model of communities; (n_steps,), or label → such a column, one line each. A line
    that still climbs at its right end has not settled. The first tenth may climb in from below
    the figure, which would otherwise show nothing else.

    >>> ax = plot_evidence({"chain 1": [-90, -60, -58], "chain 2": [-80, -59, -58]})
    >>> len(ax.lines)
    2
    """
    ylabel = "log evidence"
    if hasattr(traces, "chains_"):
        report, is_sampled = traces.report_, bool(traces.chains_)
        xlabel, ylabel = ("sweep", "log probability") if is_sampled else ("step", ylabel)
        joint = report.log_joint if is_sampled else [report.log_evidence]
        what = "chain" if is_sampled else "search"
        traces = {f"{what} {k}": trace for k, trace in enumerate(joint, start=1)}
    given = traces if isinstance(traces, Mapping) else {"": traces}
    named = {label: np.asarray(trace, dtype=np.float64) for label, trace in given.items()}
    ax = axes(ax)
    for k, (label, trace) in enumerate(named.items()):
        colour = COLOURS[k % len(COLOURS)]
        ax.plot(np.arange(1, trace.size + 1), trace, color=colour, linewidth=1, label=label)
    late = np.concatenate([trace[trace.size // 10 :] for trace in named.values()])
    margin = 0.05 * max(float(np.ptp(late)), 1.0)
    ax.set_ylim(late.min() - margin, late.max() + margin)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if len(named) > 1:
        name_lines(ax)
    return tidy(ax)
