"""How sphinx-gallery draws and sorts: with the package's own style, from questions to methods."""

from pathlib import Path
from typing import Any

ORDER = (
    "ranking",
    "win_matrix",
    "style_control",
    "ties",
    "choices",
    "league",
    "preference_gp",
    "map",
    "relations",
    "many_users",
    "raters",
    "communities",
    "disagreement",
    "active",
    "planning",
    "calibration",
    "coverage",
    "ep",
    "kernel_ranking",
    "online",
)
"""Examples, without plot_, as the gallery shows them."""


def set_style(gallery_conf: dict[str, Any], fname: str) -> None:
    """Called before each example."""
    from penchant.plots import use_style

    use_style()


class InOrder:
    """Sorts files of examples as `ORDER` does."""

    def __init__(self, source_folder: str) -> None:
        pass

    def __call__(self, name: str) -> int:
        return ORDER.index(Path(name).stem.removeprefix("plot_"))
