"""Draw the pictures of the README from the examples: python examples/pictures.py"""

import runpy
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

EXAMPLES = Path(__file__).resolve().parent
IMAGES = EXAMPLES.parent / "docs" / "images"
PICTURES = {"plot_preference_gp": 1, "plot_communities": 2}
"""Example → which of its figures."""


def draw(name: str, number: int, folder: Path) -> Path:
    """Run an example and save one of its figures."""
    plt.close("all")
    runpy.run_path(str(EXAMPLES / f"{name}.py"))
    target = folder / f"{name}.png"
    plt.figure(number).savefig(target, dpi=100, metadata={"Software": None})
    return target


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    for name, number in PICTURES.items():
        print(draw(name, number, IMAGES))
