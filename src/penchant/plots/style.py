"""What the figures share: colours that colour-blind readers tell apart, and fresh axes."""

from collections.abc import Iterable
from typing import Any

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#666666"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, "#E69F00", "#56B4E9", "#000000")
MARKERS = "os^Dv<>"
"""As many as there are colours: who sees no colours still tells points apart."""
COLUMN_WIDTH = 3.5
"""Inches: one column of a journal page."""
NAME_LENGTH = 28
"""Letters of a name that a figure shows."""


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


def short(name: object) -> str:
    """A name that leaves room for the figure.

    >>> short("a name that nobody would ever write in full")
    'a name that nobody would ev…'
    """
    text = " ".join(str(name).split())
    return text if len(text) <= NAME_LENGTH else text[: NAME_LENGTH - 1] + "…"


def name_ticks(axis: Any, names: Iterable[object], **how: Any) -> None:
    """Name the ticks 0, 1, … of an axis; a dollar sign in a name is no mathematics."""
    labels = [short(name) for name in names]
    axis.set_ticks(range(len(labels)), labels, **how)
    for label in axis.get_ticklabels():
        label.set_parse_math(False)
