"""What the figures share: colours that colour-blind readers tell apart, and fresh axes."""

from typing import Any

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#666666"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, "#E69F00", "#56B4E9", "#000000")
COLUMN_WIDTH = 3.5
"""Inches: one column of a journal page."""


def axes(ax: Any | None, width: float = COLUMN_WIDTH, height: float = 2.6) -> Any:
    """The given axes, or new ones of a size that is legible in one column."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", dpi=200)
    return figure.subplots()


def tidy(ax: Any) -> Any:
    """Fewer lines: no box, light grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=7)
    ax.xaxis.label.set_size(8)
    ax.yaxis.label.set_size(8)
    ax.title.set_size(9)
    return ax
