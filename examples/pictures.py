"""Draw the pictures of README and docs from the examples: python examples/pictures.py [NAME …]"""

import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import penchant as pc
from penchant.plots.style import BLUE, GREY, NORMAL, PAGE_WIDTH, SMALL

EXAMPLES = Path(__file__).resolve().parent
IMAGES = EXAMPLES.parent / "docs" / "images"
PICTURES = (
    "plot_preference_gp",
    "plot_communities",
    "plot_ranking",
    "plot_many_users",
    "plot_kernel_ranking",
    "plot_online",
    "plot_active",
    "plot_ep",
    "plot_coverage",
)
"""Examples whose first figure is shown on a page, on light and on dark ground."""
TREE = (
    ("Are there answers?", "no", "penchant study", "people vote, the model asks"),
    ("Do they never end (clicks)?", "yes", "PreferencePerceptron", "a step a click"),
    ("Graded rows instead of pairs?", "yes", "RankRLS · KPCRank", "scikit-learn's ways"),
    ("Does it say who answered?", "no", "PreferenceGP", "one ranking for everybody"),
    ("Is it groups that you want?", "yes", "CommunityGP", "camps, and a verdict"),
    ("", "", "MultiUserGP", "everybody's own taste"),
)
"""Question, the answer that leads right, to which model, which does what; else go on below."""


def draw(name: str, folder: Path) -> Path:
    """Run an example and save its first figure."""
    plt.close("all")
    runpy.run_path(str(EXAMPLES / f"{name}.py"))
    return save(plt.figure(1), name, folder)


def save(figure: plt.Figure, name: str, folder: Path) -> Path:
    target = folder / f"{name}.svg"
    figure.savefig(target, metadata={"Date": None})
    pc.plots.to_dark(figure).savefig(folder / f"{name}_dark.svg", metadata={"Date": None})
    return target


def draw_tree() -> plt.Figure:
    """The decision tree of docs/which_model.md."""
    pc.plots.use_style()
    figure, ax = plt.subplots(figsize=(PAGE_WIDTH, 4.1))
    ax.set_axis_off()
    ax.set(xlim=(0, 10), ylim=(-len(TREE) + 0.45, 0.5))
    for k, (question, answer, model, what) in enumerate(TREE):
        y = -k
        ax.text(6.3, y + 0.09, model, color=BLUE, fontsize=NORMAL + 1, weight="bold", va="center")
        ax.text(6.3, y - 0.2, what, color=GREY, fontsize=SMALL, va="center")
        arrow = {"arrowstyle": "->", "color": GREY, "linewidth": 0.9}
        if not question:
            ax.annotate(
                "", (6.15, y), (2.4, y + 0.4), arrowprops=arrow | {"connectionstyle": "angle"}
            )
            continue
        box = {"boxstyle": "round,pad=0.45", "facecolor": "#eef4f9", "edgecolor": BLUE}
        ax.text(2.4, y, question, ha="center", va="center", fontsize=NORMAL, bbox=box)
        ax.annotate("", (6.15, y), (4.2, y), arrowprops=arrow)
        ax.text(5.1, y + 0.07, answer, color=GREY, fontsize=SMALL, ha="center", va="bottom")
        if k + 2 < len(TREE):
            ax.annotate("", (2.4, y - 0.72), (2.4, y - 0.28), arrowprops=arrow)
        other = "yes" if answer == "no" else "no"
        ax.text(2.5, y - 0.5, other, color=GREY, fontsize=SMALL, va="center")
    return figure


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    wanted = sys.argv[1:] or [*PICTURES, "which_model"]
    for name in wanted:
        print(save(draw_tree(), name, IMAGES) if name == "which_model" else draw(name, IMAGES))
