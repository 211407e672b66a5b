"""Figures, one function each. matplotlib is imported when a figure is drawn.

Every function takes `ax=None` and returns the axes it drew on; `ax.figure.savefig("name.svg")`
writes them. Without axes, new ones are made at the width of one journal column.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penchant.plots.calibration import plot_calibration as plot_calibration
    from penchant.plots.evidence import plot_evidence as plot_evidence
    from penchant.plots.ranking import plot_ranking as plot_ranking
    from penchant.plots.regret import plot_regret as plot_regret
    from penchant.plots.utilities import plot_utilities as plot_utilities
    from penchant.plots.win_matrix import plot_win_matrix as plot_win_matrix

__all__ = [
    "plot_calibration",
    "plot_evidence",
    "plot_ranking",
    "plot_regret",
    "plot_utilities",
    "plot_win_matrix",
]


def __getattr__(name: str) -> Any:
    module = name.removeprefix("plot_")
    if name in __all__:
        return getattr(import_module(f"penchant.plots.{module}"), name)
    raise AttributeError(f"module 'penchant.plots' has no attribute {name!r}")
