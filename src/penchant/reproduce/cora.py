"""Paper 000, section 6 and figure 3, on Cora: a few known pairs, and papers that cite each other.

A topic is a query and its papers are what is relevant; the TREC collection of the paper, whose
links are not public, has the same shape.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from penchant.data import Comparisons
from penchant.datasets.items import Cora
from penchant.errors import DataWarning
from penchant.kernels import RBF, CommonCause, directed, undirected
from penchant.metrics import auc
from penchant.models import PreferenceGP
from penchant.numerics.types import BoolArray, FloatArray
from penchant.plots.style import COLOURS, axes, name_lines, tidy
from penchant.reproduce.page import standard_error

Model = Callable[[Comparisons], PreferenceGP]
Errors = dict[str, FloatArray]
VARIANTS = (
    "attributes + common causes",
    "attributes + directed roles",
    "attributes + directed walk",
)
"""Other ways to see the links; the walk goes through a dense matrix of all papers."""


def cora_models(attributes: FloatArray, citations: sparse.csr_matrix) -> dict[str, Model]:
    """Every treatment that is compared, by name."""
    links = undirected(((citations + citations.T) > 0).astype(float))
    roles, walk = directed(citations), directed(citations, "chung")
    spread = attributes.std(axis=0)
    scaled = (attributes - attributes.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    smooth = RBF(3.0 * float(np.sqrt(attributes.shape[1])))
    return {
        "attributes": lambda pairs: PreferenceGP().fit(attributes, pairs),
        "links": lambda pairs: PreferenceGP().fit(None, pairs, {"cites": links}),
        "attributes + links": lambda pairs: PreferenceGP().fit(attributes, pairs, {"cites": links}),
        VARIANTS[0]: lambda pairs: PreferenceGP(smooth + CommonCause("cites")).fit(
            scaled, pairs, {"cites": links}
        ),
        VARIANTS[1]: lambda pairs: PreferenceGP().fit(attributes, pairs, {"cites": roles}),
        VARIANTS[2]: lambda pairs: PreferenceGP().fit(attributes, pairs, {"cites": walk}),
    }


def cora_errors(cora: Cora, models: dict[str, Model], n_pairs: int, n_repeats: int) -> Errors:
    """Error of each model on each topic and repeat, (topics · n_repeats,)."""
    errors: dict[str, list[float]] = {name: [] for name in models}
    for topic in np.unique(cora.labels):
        relevant = cora.labels == topic
        for repeat in range(n_repeats):
            rng = np.random.default_rng([int(topic), repeat])
            pairs = draw_pairs(relevant, n_pairs, rng)
            for name, fit in models.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DataWarning)
                    utilities = fit(pairs).predict()
                errors[name].append(1.0 - auc(utilities, relevant))
    return {name: np.array(values) for name, values in errors.items()}


def draw_pairs(relevant: BoolArray, n_pairs: int, rng: np.random.Generator) -> Comparisons:
    """Known pairs: a random relevant item beats a random irrelevant one."""
    winners = rng.choice(np.flatnonzero(relevant), n_pairs)
    losers = rng.choice(np.flatnonzero(~relevant), n_pairs)
    return Comparisons.from_pairs(winners, losers, items=range(len(relevant)))


def draw(errors: dict[int, Errors], what: str) -> Any:
    """Error against the number of known pairs, one line a model."""
    sizes = list(errors)
    ax = axes(None, width=5.0, height=3.4)
    for colour, name in zip(COLOURS, errors[sizes[0]], strict=False):
        means = [errors[size][name].mean() for size in sizes]
        bars = [standard_error(errors[size][name]) for size in sizes]
        ax.errorbar(sizes, means, bars, color=colour, fmt="none")
        ax.plot(sizes, means, color=colour, marker="o", markersize=3, label=name)
    ax.set(xlabel="known pairs", ylabel=f"pair error, {what}", xticks=sizes)
    ax.set_ylim(bottom=0)
    name_lines(tidy(ax))
    return ax.figure
