"""How sphinx-gallery draws: with the package's own style, whatever an example did before."""

from typing import Any


def set_style(gallery_conf: dict[str, Any], fname: str) -> None:
    """Called before each example."""
    from penchant.plots import use_style

    use_style()
