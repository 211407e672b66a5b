"""One look for all figures: colours, sizes, fonts, names beside their lines, dark pages.

The name of a line stands at its right end, not in a box over the data. Colours are Okabe and Ito's,
which colour-blind readers tell apart; markers and line styles differ, too.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#666666"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, "#E69F00", "#56B4E9", "#000000")
MARKERS = "os^Dv<>"
"""One for each colour, so that points differ without colours too."""
COLUMN_WIDTH, PAGE_WIDTH = 3.5, 7.2
"""Inches: one column of a journal page, and both."""
NAME_LENGTH = 28
"""Letters of a name that a figure has room for."""
FONTS = (
    *("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR"),
    *("Source Han Sans SC", "WenQuanYi Zen Hei", "PingFang SC", "Hiragino Sans"),
    *("Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Noto Sans Arabic"),
    *("Noto Sans Devanagari", "Noto Emoji", "Symbola", "Segoe UI Emoji"),
)
"""Fonts in which a letter is looked for, in this order: names come in any script."""
ON_COLOUR = "on colour"
"""The gid of texts on a coloured ground: they keep their colour on a dark page."""
SMALL, NORMAL, LARGE = 7.5, 8.5, 9.5
"""Points: ticks and notes, labels, titles."""


def use_style() -> None:
    """Draw everything that follows as the figures of this package are drawn.

    Sizes for print at the width of a page, 300 dots an inch, SVG with its letters drawn, fonts
    for as many scripts as are installed. `matplotlib.rcdefaults()` takes it back.

    >>> import matplotlib
    >>> with matplotlib.rc_context():
    ...     use_style()
    ...     matplotlib.rcParams["savefig.dpi"]
    300.0
    """
    from cycler import cycler  # type: ignore[import-untyped]
    from matplotlib import rcParams

    rcParams.update(
        {
            "figure.figsize": (PAGE_WIDTH, 3.0),
            "figure.constrained_layout.use": True,
            "figure.dpi": 110,
            "savefig.dpi": 300,
            "svg.fonttype": "path",
            "svg.hashsalt": "penchant",
            "font.family": installed_fonts(),
            "font.size": NORMAL,
            "axes.titlesize": LARGE,
            "axes.labelsize": NORMAL,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": cycler(color=COLOURS),
            "xtick.labelsize": SMALL,
            "ytick.labelsize": SMALL,
            "legend.fontsize": SMALL,
            "legend.frameon": False,
            "lines.linewidth": 1.2,
        }
    )


def installed_fonts() -> list[str]:
    """Those of `FONTS` that are installed: a missing font would be a warning for each letter."""
    from matplotlib.font_manager import fontManager

    here = {font.name for font in fontManager.ttflist}
    return [name for name in FONTS if name in here]


def axes(ax: Any | None, width: float = COLUMN_WIDTH, height: float = 2.6) -> Any:
    """The given axes, or new ones of a size that is legible in one column."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", dpi=200).subplots()


def tidy(ax: Any, **how: Any) -> Any:
    """No box, one set of sizes, letters of any script. how: what `ax.set` takes, such as labels."""
    ax.set(**how)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=SMALL)
    for text, size in ((ax.xaxis.label, NORMAL), (ax.yaxis.label, NORMAL), (ax.title, LARGE)):
        text.set_size(size)
    fonts = installed_fonts()
    for text in (ax.title, *ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels()):
        text.set_family(fonts)
    return ax


def draw_line(
    ax: Any, k: int, x: Any, mean: Any, reach: Any = None, alpha: float = 0.15, **how: Any
) -> None:
    """A line in the k-th colour, with a band of `mean` ± `reach`."""
    colour = COLOURS[k % len(COLOURS)]
    if reach is not None:
        ax.fill_between(x, mean - reach, mean + reach, color=colour, alpha=alpha, linewidth=0)
    ax.plot(x, mean, color=colour, **{"linewidth": 1.2, **how})


def draw_intervals(ax: Any, rows: Sequence[Any], colour: str = BLUE, *, zero: bool = False) -> None:
    """Rows of a ranking from top to bottom: each utility as a point on its interval.

    zero: whether a line marks the average item.
    """
    if zero:
        ax.axvline(0.0, color=GREY, linewidth=0.5, linestyle=":")
    places = range(len(rows))
    ax.hlines(places, [r.low for r in rows], [r.high for r in rows], color=GREY, linewidth=1)
    ax.scatter([r.utility for r in rows], places, color=colour, s=14, zorder=3)
    name_ticks(ax.yaxis, [r.item for r in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)


def name_lines(ax: Any) -> None:
    """Write the names of labelled lines at their right ends, without overlaps.

    Call it last: a later change of the limits moves the lines, not their names.

    >>> ax = axes(None)
    >>> _ = ax.plot([0, 1], [0, 1], label="up"), ax.plot([0, 1], [1, 1.01], label="level")
    >>> name_lines(ax)
    >>> [text.get_text() for text in ax.texts]
    ['up', 'level']
    """
    named = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
    if not named:
        return
    ax.get_ylim(), ax.get_xlim()  # autoscales now
    ends = [_end(ax, line) for line in named]
    height = 0.9 * ax.get_position().height * ax.figure.get_figheight()
    places = spread(ends, 1.15 * SMALL / 72.0 / height)
    for line, place in zip(named, places, strict=True):
        how = {"va": "center", "xycoords": "axes fraction", "annotation_clip": False}
        colour = readable(line.get_color())
        write(ax, str(line.get_label()), (1.0, place), (4, 0), color=colour, **how)


def write(ax: Any, text: str, place: Any, shift: tuple[float, float], **how: Any) -> None:
    """Small text, with dollar signs as they are, so many points away from a place."""
    how |= {"fontsize": SMALL, "textcoords": "offset points", "parse_math": False}
    ax.annotate(text, place, xytext=shift, **how)


def contrast(a: Any, b: Any) -> float:
    """Contrast ratio of two colours, 1 to 21, as in the Web Content Accessibility Guidelines.

    >>> round(contrast("black", "white"))
    21
    """
    from matplotlib.colors import to_rgb

    def light(colour: Any) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    low, high = sorted((light(to_rgb(a)), light(to_rgb(b))))
    return (high + 0.05) / (low + 0.05)


def readable(colour: Any, ground: str = "white") -> str:
    """The colour, darker (on a dark ground lighter) until its contrast is 4.5.

    >>> readable("#0072B2"), readable("#E69F00")
    ('#0072b2', '#966700')
    """
    from matplotlib.colors import to_hex, to_rgb

    ink = "black" if contrast(ground, "black") > contrast(ground, "white") else "white"
    own, far = np.array(to_rgb(colour)), np.array(to_rgb(ink))
    mixed = (to_hex(own + (far - own) * step / 20) for step in range(21))
    return next(shade for shade in mixed if contrast(shade, ground) >= 4.5 or shade == to_hex(far))


def legend_beside(ax: Any) -> None:
    """The legend of points to the right of the axes, where it covers nothing."""
    ax.legend(fontsize=SMALL, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _end(ax: Any, line: Any) -> float:
    """How high a line ends, as a share of the axes' height."""
    where = line.get_transform().transform(line.get_xydata())
    where = where[np.isfinite(where).all(axis=1)]
    height = ax.transAxes.inverted().transform(where[-1])[1] if len(where) else 0.5
    return float(np.clip(height, 0.0, 1.0))


def spread(places: Sequence[float], apart: float) -> list[float]:
    """The places, moved by least squares until they are this far apart, in the same order."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(places, kind="stable")
    least = apart * np.arange(len(order))
    result = np.array(places, dtype=np.float64)
    # place[k + 1] − place[k] ≥ apart means that place[k] − k apart does not fall
    result[order] = isotonic_regression(result[order] - least).x + least
    return result.round(6).tolist()


def name_points(ax: Any, places: Any, names: Iterable[object]) -> None:
    """Write a name beside each point, at the corner where it covers least of the others."""
    ax.get_ylim(), ax.get_xlim()  # autoscales now
    points = ax.transData.transform(np.asarray(places, dtype=np.float64))
    points = points * 72.0 / ax.figure.dpi
    taken = [(x - 2, y - 2, x + 2, y + 2) for x, y in points]
    for (x, y), place, name in zip(points, places, map(short, names), strict=True):
        wide, high = 0.55 * SMALL * len(name), SMALL
        spots = [(3, 2), (3, -2 - high), (-3 - wide, 2), (-3 - wide, -2 - high)]
        boxes = [(x + dx, y + dy, x + dx + wide, y + dy + high) for dx, dy in spots]
        best = min(range(4), key=lambda k: sum(_overlap(boxes[k], other) for other in taken))
        taken.append(boxes[best])
        write(ax, name, tuple(place), spots[best])


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """The area that two boxes (left, low, right, high) share."""
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return max(wide, 0.0) * max(high, 0.0)


def short(name: object) -> str:
    """The name, cut to `NAME_LENGTH` letters.

    >>> short("a name that nobody would ever write in full")
    'a name that nobody would ev…'
    """
    text = " ".join(str(name).split())
    return text if len(text) <= NAME_LENGTH else text[: NAME_LENGTH - 1] + "…"


def name_ticks(axis: Any, names: Iterable[object], **how: Any) -> None:
    """Name the ticks 0, 1, … of an axis, with dollar signs as they are."""
    labels = [short(name) for name in names]
    axis.set_ticks(range(len(labels)), labels, **how)
    for label in axis.get_ticklabels():
        label.set_parse_math(False)


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
"""Colour on white → colour on a dark ground, of at least the same contrast."""
GROUND = "#14181E"
"""The dark ground."""
KINDS = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")


def to_dark(figure: Any) -> Any:
    """Turn a figure dark in place: dark ground, lighter colours, white ink. Returns the figure.

    >>> from penchant.plots.style import axes
    >>> ax = axes(None)
    >>> (line,) = ax.plot([0, 1], [0, 1], color=BLUE)
    >>> _ = to_dark(ax.figure)
    >>> line.get_color()
    '#56b4e9'
    """
    from matplotlib.colors import to_hex

    for artist in _artists(figure):
        # read all before writing one: a marker's colour may follow its line's
        known = {kind: _colours(artist, kind) for kind in KINDS}
        for kind, old in known.items():
            if old is not None:
                new = np.array([_dark(rgba) for rgba in old])
                one = to_hex(new[0]) if new[0][3] == 1.0 else tuple(new[0])
                getattr(artist, f"set_{kind}")(new if len(new) > 1 else one)
    return figure


def _artists(figure: Any) -> list[Any]:
    """Every artist once. `findobj` omits the boxes around texts and the arrows."""
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


def _dark(rgba: Any) -> Any:
    """The colour on a dark ground: by the table `DARK`, grey and pale ones inverted, others lighter
    until they are readable."""
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
