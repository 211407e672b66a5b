"""Figures, one function each. matplotlib is imported when a figure is drawn.

Where a person would expect it, a model may be given instead of its table. Every function takes
`ax=None` and returns the axes it drew on; `ax.figure.savefig("name.svg")` writes them. Without
axes, new ones are made at the width of one journal column. `use_style()` gives your own figures
the same look, `to_dark(figure)` turns any of them for a dark page.
"""

from penchant.plots.communities import (
    plot_community_counts,
    plot_community_utilities,
    plot_disagreement,
    plot_membership_map,
)
from penchant.plots.curves import (
    plot_calibration,
    plot_evidence,
    plot_learning,
    plot_paths,
    plot_regret,
    plot_utilities,
)
from penchant.plots.items import (
    plot_ranking,
    plot_user,
    plot_user_against_population,
    plot_win_matrix,
)
from penchant.plots.items import win_matrix as win_matrix
from penchant.plots.style import to_dark, use_style

__all__ = [
    "plot_calibration",
    "plot_community_counts",
    "plot_community_utilities",
    "plot_disagreement",
    "plot_evidence",
    "plot_learning",
    "plot_membership_map",
    "plot_paths",
    "plot_ranking",
    "plot_regret",
    "plot_user",
    "plot_user_against_population",
    "plot_utilities",
    "plot_win_matrix",
    "to_dark",
    "use_style",
]


def __dir__() -> list[str]:
    return sorted(__all__)
