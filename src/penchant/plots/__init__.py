"""Figures, one function each. matplotlib is imported when a figure is drawn.

Every function takes `ax=None` and returns the axes it drew on.
"""

from penchant.plots.ranking import plot_ranking

__all__ = ["plot_ranking"]
