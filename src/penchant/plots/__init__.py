"""Figures, one function each. matplotlib is imported when a figure is drawn.

Where a person would expect it, a model may be given instead of its table. Every function takes
`ax=None` and returns the axes it drew on; `ax.figure.savefig("name.svg")` writes them. Without
axes, new ones are made at the width of one journal column. `use_style()` gives your own figures
the same look, `to_dark(figure)` turns any of them for a dark page.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penchant.plots.calibration import plot_calibration as plot_calibration
    from penchant.plots.communities import plot_community_counts as plot_community_counts
    from penchant.plots.communities import plot_community_utilities as plot_community_utilities
    from penchant.plots.communities import plot_disagreement as plot_disagreement
    from penchant.plots.communities import plot_membership_map as plot_membership_map
    from penchant.plots.dark import to_dark as to_dark
    from penchant.plots.evidence import plot_evidence as plot_evidence
    from penchant.plots.learning import plot_learning as plot_learning
    from penchant.plots.paths import plot_paths as plot_paths
    from penchant.plots.ranking import plot_ranking as plot_ranking
    from penchant.plots.regret import plot_regret as plot_regret
    from penchant.plots.style import use_style as use_style
    from penchant.plots.users import plot_user as plot_user
    from penchant.plots.users import plot_user_against_population as plot_user_against_population
    from penchant.plots.utilities import plot_utilities as plot_utilities
    from penchant.plots.win_matrix import plot_win_matrix as plot_win_matrix

_MODULE = {
    "to_dark": "dark",
    "use_style": "style",
    "plot_calibration": "calibration",
    "plot_community_counts": "communities",
    "plot_community_utilities": "communities",
    "plot_disagreement": "communities",
    "plot_evidence": "evidence",
    "plot_learning": "learning",
    "plot_membership_map": "communities",
    "plot_paths": "paths",
    "plot_ranking": "ranking",
    "plot_regret": "regret",
    "plot_user": "users",
    "plot_user_against_population": "users",
    "plot_utilities": "utilities",
    "plot_win_matrix": "win_matrix",
}

__all__ = list(_MODULE)


def __getattr__(name: str) -> Any:
    if name in _MODULE:
        return getattr(import_module(f"penchant.plots.{_MODULE[name]}"), name)
    raise AttributeError(f"module 'penchant.plots' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
