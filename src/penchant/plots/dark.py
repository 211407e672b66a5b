"""The dark variant of any figure."""

from typing import Any

import numpy as np

from penchant.plots.style import BLUE, GREEN, GREY, ON_COLOUR, ORANGE, PURPLE, readable

DARK = {
    BLUE: "#56B4E9",
    ORANGE: "#F58B4C",
    GREEN: "#3CC8A0",
    PURPLE: "#E39CC3",
    GREY: "#A8A8A8",
    "#E69F00": "#F0B93C",
    "#56B4E9": "#9AD6F7",
    "#000000": "#F2F2F2",
}
"""What each colour becomes on a dark ground, at least as far from it as before from white."""
GROUND = "#14181E"
"""The dark ground."""
KINDS = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")


def to_dark(figure: Any) -> Any:
    """The same figure on a dark ground: colours lighter, ink white. Changes it, and returns it.

    >>> from penchant.plots.style import axes
    >>> ax = axes(None)
    >>> (line,) = ax.plot([0, 1], [0, 1], color=BLUE)
    >>> _ = to_dark(ax.figure)
    >>> line.get_color(), figure_ground(ax.figure)
    ('#56b4e9', '#14181e')
    """
    for artist in _artists(figure):
        # all are read before one is written, since a marker may follow its line
        known = {kind: _colours(artist, kind) for kind in KINDS}
        for kind, old in known.items():
            if old is not None:
                new = np.array([_dark(rgba) for rgba in old])
                getattr(artist, f"set_{kind}")(new if len(new) > 1 else _plain(new[0]))
    return figure


def _artists(figure: Any) -> list[Any]:
    """All that is drawn, once: figures and axes are their patches; boxes around texts and arrows
    are nobody's children."""
    found = [artist for artist in figure.findobj() if not hasattr(artist, "patch")]
    boxes = [artist.get_bbox_patch() for artist in found if hasattr(artist, "get_bbox_patch")]
    arrows = [getattr(artist, "arrow_patch", None) for artist in found]
    drawn = (artist for artist in (*found, *boxes, *arrows) if artist is not None)
    return [artist for artist in drawn if artist.get_gid() != ON_COLOUR]


def _colours(artist: Any, kind: str) -> Any:
    """(k, 4), or None where an artist has no such colour, or follows another one's."""
    from matplotlib.colors import to_rgba_array

    if not (hasattr(artist, f"get_{kind}") and hasattr(artist, f"set_{kind}")):
        return None
    try:
        colours = to_rgba_array(getattr(artist, f"get_{kind}")())
    except (TypeError, ValueError):  # "auto", "inherit"
        return None
    return colours if len(colours) else None


def figure_ground(figure: Any) -> str:
    """The colour that a figure is drawn on."""
    from matplotlib.colors import to_hex

    return str(to_hex(figure.get_facecolor()))


def _plain(rgba: Any) -> Any:
    from matplotlib.colors import to_hex

    return to_hex(rgba) if rgba[3] == 1.0 else tuple(rgba)


def _dark(rgba: Any) -> Any:
    """The colour on a dark ground: ours by the table, grey and pale ones turned around,
    others as much lighter as it takes."""
    from matplotlib.colors import to_hex, to_rgba

    known = {colour.lower(): dark for colour, dark in DARK.items()}
    name = to_hex(rgba)
    if name in known:
        return to_rgba(known[name], rgba[3])
    pale = np.min(rgba[:3]) > 0.8
    if np.ptp(rgba[:3]) > 0.02 and not pale:
        return to_rgba(readable(rgba[:3], GROUND), rgba[3])
    ground = np.array(to_rgba(GROUND)[:3])
    level = float(np.mean(rgba[:3]))
    return (*(ground + (0.95 - ground) * (1.0 - level)), rgba[3])
